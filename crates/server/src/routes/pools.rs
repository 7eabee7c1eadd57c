//! Pools.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::command::{How, Outcome};
use holdfast_core::id::PoolId;
use holdfast_core::stock::PoolSwitch;
use holdfast_engine::Engine;
use holdfast_store::{PoolFilter, PoolRow, SwitchPool};
use holdfast_wire::{
    AdjustPoolRequest, AdjustmentView, AvailabilityView, ChangePoolRequest, Code, OpenPoolRequest, Page,
    PoolView, SweepRequest, SwitchRequest,
};

use super::{approvals, page};
use crate::answer::{json, made, unexpected};
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, NoQuery, WriteBody};
use crate::input::campaigns::read_switch;
use crate::input::pools::{read_adjustment, read_change, read_pool, read_sweep};
use crate::input::query::Query;
use crate::openapi::parameters::{PageParameters, PoolFilters, PoolPath};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::scope::{Mentioned, of_list};
use crate::view;

problems! {
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
    /// Problems of one pool.
    PoolProblems = ANY, KEYED, QUERY, NAMED;
    /// Problems of a new pool.
    OpenProblems = ANY, KEYED, WRITE, NAMED, &[Code::InvalidQuantity, Code::Conflict];
    /// Problems of an adjustment.
    AdjustProblems = ANY, KEYED, WRITE, NAMED,
        &[Code::InvalidQuantity, Code::Frozen, Code::StockInUse, Code::Conflict, Code::KeyMismatch];
    /// Problems of a switch.
    SwitchProblems = ANY, KEYED, WRITE, NAMED;
    /// Problems of a change.
    ChangeProblems = ANY, KEYED, WRITE, NAMED, &[Code::Conflict];
    /// Problems of a sweep.
    SweepProblems = ANY, KEYED, WRITE, NAMED, &[Code::Frozen, Code::Conflict];
}

/// Opens a pool of stock
#[utoipa::path(
    post, path = "/v1/pools", tag = "pools",
    request_body = OpenPoolRequest,
    responses(
        (status = 201, description = "Opened. Supply is split evenly, the remainder to the lowest buckets.", body = PoolView),
        (status = 200, description = "Opened before with the same content.", body = PoolView, headers(("Idempotent-Replayed" = String, description = "`true`: this was answered before."))),
        OpenProblems
    )
)]
pub(crate) async fn open_pool(
    State(app): State<App>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let mut open = body.read(|object| read_pool(caller.actor(), object))?;
    caller.allow(&open.campaign)?;
    open.signed.via = caller.via();
    let work = |engine: Engine| async move { Ok(engine.open_pool(open).await?) };
    match app.write(body.permit, work).await? {
        Outcome::Pool { pool, buckets, how } => made(how != How::Created, &view::pool_of(&pool, &buckets)),
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(Problem::refused(&refusal, recorded, repeated, order, Subject::NewInCampaign))
        }
        other @ (Outcome::Order { .. }
        | Outcome::Adjusted { .. }
        | Outcome::Transferred { .. }
        | Outcome::Imported { .. }
        | Outcome::Proposed { .. }
        | Outcome::Epoch { .. }
        | Outcome::Repaired { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated
        | Outcome::NotDue(_)) => Err(unexpected(&other)),
    }
}

/// Lists pools, exact
#[utoipa::path(
    get, path = "/v1/pools", tag = "pools",
    params(PoolFilters, PageParameters),
    responses(
        (status = 200, description = "A page, also when it is empty.", body = Page<PoolView>),
        ListProblems
    )
)]
pub(crate) async fn list_pools(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let mut filter = PoolFilter {
        campaign: query.id("campaign_id"),
        sku: query.id("sku"),
        location: query.id("location"),
        ..PoolFilter::default()
    };
    let asked = query.page::<PoolId>();
    let asked = query.finish(asked)?;
    let mentioned = Mentioned { campaign: filter.campaign.as_ref(), ..Mentioned::default() };
    filter.scope = of_list(&app, &caller, mentioned).await?;
    let (rows, more) = app.store().pools(filter, asked.page).await?;
    json(StatusCode::OK, &page(&rows, more, &asked.cursor, |row| row.pool.id, view::pool))
}

/// Shows a pool with its buckets, exact
#[utoipa::path(
    get, path = "/v1/pools/{id}", tag = "pools",
    params(PoolPath),
    responses(
        (status = 200, description = "The pool.", body = PoolView),
        PoolProblems
    )
)]
pub(crate) async fn get_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    json(StatusCode::OK, &view::pool(&row_of(&app, id).await?))
}

/// Shows a pool's stock for display, with its age
#[utoipa::path(
    get, path = "/v1/pools/{id}/availability", tag = "pools",
    params(PoolPath),
    responses(
        (status = 200, description = "What there was a moment ago.", body = AvailabilityView),
        PoolProblems
    )
)]
pub(crate) async fn get_availability(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let shown = app.engine().availability(id).await?.ok_or_else(no_pool)?;
    json(StatusCode::OK, &view::availability(&shown))
}

/// Changes a pool's supply
#[utoipa::path(
    post, path = "/v1/pools/{id}/adjustments", tag = "pools",
    params(PoolPath),
    request_body = AdjustPoolRequest,
    responses(
        (status = 201, description = "Adjusted.", body = AdjustmentView),
        (status = 202, description = "A second person must agree first: nothing is adjusted yet.", body = AdjustmentView),
        (status = 200, description = "Adjusted before with the same content.", body = AdjustmentView, headers(("Idempotent-Replayed" = String, description = "`true`: this was answered before."))),
        AdjustProblems
    )
)]
pub(crate) async fn adjust_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let mut adjust = body.read(|object| read_adjustment(id, object))?;
    adjust.signed.via = caller.via();
    let adjustment_id = adjust.adjustment_id.to_string();
    let work = |engine: Engine| async move { Ok(engine.adjust(adjust).await?) };
    match app.write(body.permit, work).await? {
        Outcome::Adjusted { buckets, repeated } => {
            // Of the pool only what never changes is read anew, and whether it is frozen.
            let pool = view::pool_of(&row_of(&app, id).await?.pool, &buckets);
            made(
                repeated,
                &AdjustmentView { adjustment_id, state: "applied".into(), pool, approval_id: None },
            )
        }
        Outcome::Proposed { approval, repeated } => {
            let (state, pool) =
                (approvals::state_of(&app, &approval).into(), view::pool(&row_of(&app, id).await?));
            let approval_id = Some(approval.key.as_str().to_owned());
            let view = AdjustmentView { adjustment_id, state, pool, approval_id };
            approvals::waiting(&app, &approval, repeated, &view)
        }
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(Problem::refused(&refusal, recorded, repeated, order, Subject::Named))
        }
        other @ (Outcome::Order { .. }
        | Outcome::Pool { .. }
        | Outcome::Transferred { .. }
        | Outcome::Imported { .. }
        | Outcome::Epoch { .. }
        | Outcome::Repaired { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated
        | Outcome::NotDue(_)) => Err(unexpected(&other)),
    }
}

/// Lets no stock out of a pool
#[utoipa::path(
    post, path = "/v1/pools/{id}/freeze", tag = "pools",
    params(PoolPath),
    request_body = SwitchRequest,
    responses(
        (status = 200, description = "The pool, also if nothing changed.", body = PoolView),
        SwitchProblems
    )
)]
pub(crate) async fn freeze_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    set_switch(&app, &caller, id, PoolSwitch::Freeze, body).await
}

/// Ends a freeze of a pool
#[utoipa::path(
    post, path = "/v1/pools/{id}/unfreeze", tag = "pools",
    params(PoolPath),
    request_body = SwitchRequest,
    responses(
        (status = 200, description = "The pool, also if nothing changed.", body = PoolView),
        SwitchProblems
    )
)]
pub(crate) async fn unfreeze_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    set_switch(&app, &caller, id, PoolSwitch::Unfreeze, body).await
}

/// Sells nothing from a pool any more, for good
#[utoipa::path(
    post, path = "/v1/pools/{id}/retire", tag = "pools",
    params(PoolPath),
    request_body = SwitchRequest,
    responses(
        (status = 200, description = "The pool, also if nothing changed. What it holds goes on; its stock can be transferred.", body = PoolView),
        SwitchProblems
    )
)]
pub(crate) async fn retire_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    set_switch(&app, &caller, id, PoolSwitch::Retire, body).await
}

/// Changes how orders come to a pool, while it sells
#[utoipa::path(
    patch, path = "/v1/pools/{id}", tag = "pools",
    params(PoolPath),
    request_body = ChangePoolRequest,
    responses(
        (status = 200, description = "The pool, also if nothing changed. Every node knows it within a second.", body = PoolView),
        ChangeProblems
    )
)]
pub(crate) async fn change_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let mut change = body.read(|object| read_change(id, caller.actor(), object))?;
    change.signed.via = caller.via();
    let work = |engine: Engine| async move { Ok(engine.change_pool(change).await?) };
    pool_of(app.write(body.permit, work).await?)
}

/// Gathers a pool's available units in one bucket, so that a line of many finds them together
#[utoipa::path(
    post, path = "/v1/pools/{id}/sweep", tag = "pools",
    params(PoolPath),
    request_body = SweepRequest,
    responses(
        (status = 200, description = "The pool, also if there was nothing to gather.", body = PoolView),
        SweepProblems
    )
)]
pub(crate) async fn sweep_pool(
    State(app): State<App>,
    Named(id): Named<PoolId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let mut sweep = body.read(|object| read_sweep(id, object))?;
    sweep.signed.via = caller.via();
    let work = |engine: Engine| async move { Ok(engine.sweep(sweep).await?) };
    pool_of(app.write(body.permit, work).await?)
}

/// The pool of an outcome, as it stands.
fn pool_of(outcome: Outcome) -> Result<Response, Problem> {
    match outcome {
        Outcome::Pool { pool, buckets, .. } => json(StatusCode::OK, &view::pool_of(&pool, &buckets)),
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(Problem::refused(&refusal, recorded, repeated, order, Subject::Named))
        }
        other @ (Outcome::Order { .. }
        | Outcome::Adjusted { .. }
        | Outcome::Transferred { .. }
        | Outcome::Imported { .. }
        | Outcome::Proposed { .. }
        | Outcome::Epoch { .. }
        | Outcome::Repaired { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated
        | Outcome::NotDue(_)) => Err(unexpected(&other)),
    }
}

async fn set_switch(
    app: &App,
    caller: &Caller,
    id: PoolId,
    switch: PoolSwitch,
    body: WriteBody,
) -> Result<Response, Problem> {
    let signed = body.read(read_switch)?;
    let (operator, reason) = (signed.operator, signed.reason.to_string());
    let set = SwitchPool { id, switch, operator, reason, via: caller.via() };
    let work = |engine: Engine| async move { Ok(engine.switch_pool(set).await?) };
    match app.write(body.permit, work).await? {
        Ok(row) => json(StatusCode::OK, &view::pool(&row)),
        Err(refusal) => Err(Problem::refused(&refusal, false, false, None, Subject::Named)),
    }
}

pub(super) async fn row_of(app: &App, id: PoolId) -> Result<PoolRow, Problem> {
    app.store().pool(id).await?.ok_or_else(no_pool)
}

fn no_pool() -> Problem {
    Problem::not_found("there is no such pool")
}
