//! The settlement of a campaign: exact, for the books; never mixed with what the shelf shows.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::id::CampaignId;
use holdfast_store::{PoolSettlement, Settlement, SettlementUnits};
use holdfast_wire::{BucketPositionView, PoolSettlementView, SettlementUnitsView, SettlementView};

use crate::answer::json;
use crate::app::App;
use crate::extract::{Named, NoQuery};
use crate::openapi::parameters::CampaignPath;
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, problems};
use crate::problem::Problem;
use crate::view;

problems! {
    /// Problems of a settlement.
    SettlementProblems = ANY, KEYED, QUERY, NAMED;
}

/// Shows what became of a campaign's stock, exact
#[utoipa::path(
    get, path = "/v1/campaigns/{id}/settlement", tag = "campaigns",
    params(CampaignPath),
    responses(
        (status = 200, description = "As of a ledger position.", body = SettlementView), SettlementProblems
    )
)]
pub(crate) async fn get_settlement(
    State(app): State<App>,
    Named(id): Named<CampaignId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let settlement = app.store().settlement(id).await?;
    let settlement = settlement.ok_or_else(|| Problem::not_found("there is no such campaign"))?;
    json(StatusCode::OK, &shown(&settlement))
}

fn shown(settlement: &Settlement) -> SettlementView {
    let Settlement { campaign, as_of, entries, units: sums, pool_count, pools } = settlement;
    SettlementView {
        campaign_id: campaign.to_string(),
        as_of: view::time(*as_of),
        ledger_entries: *entries,
        units: units(sums),
        pool_count: *pool_count as u64,
        pools: pools.iter().map(pool).collect(),
    }
}

fn pool(pool: &PoolSettlement) -> PoolSettlementView {
    let positions = pool.positions.iter();
    PoolSettlementView {
        pool_id: pool.pool.id.to_string(),
        sku: pool.pool.sku.to_string(),
        location: pool.pool.location.to_string(),
        units: units(&pool.units),
        buckets: positions
            .map(|(number, ledger_seq)| BucketPositionView { number: *number, ledger_seq: *ledger_seq })
            .collect(),
    }
}

fn units(units: &SettlementUnits) -> SettlementUnitsView {
    SettlementUnitsView {
        opening: units.opening,
        inbound: units.inbound,
        adjusted: units.adjusted,
        moved: units.moved,
        repaired: units.repaired,
        supply: units.available.saturating_add(units.held).saturating_add(units.sold),
        available: units.available,
        held: units.held,
        sold: units.sold,
        refunded_restocked: units.refunded_restocked,
        refunded_kept: units.refunded_kept,
    }
}
