//! The settlement of a campaign, in one view, and where an order's events stand.

use std::collections::BTreeSet;

use holdfast_core::id::{CampaignId, OrderId, PoolId};
use holdfast_core::ledger::Action;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self as row, number, number_id, word};
use holdfast_store::{Settlement, SettlementSum};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::rows;
use crate::connection::Connection;
use crate::error::Fault;
use crate::query::{Query, with_buckets};
use crate::read::View;
use crate::row::{all, uuid};

/// Pools that are read at a time: one by one, 100,000 took longer than a read may.
const POOLS: usize = 1_000;
/// Orders whose lines are read at a time.
const ORDERS: usize = 500;

/// The condition of the index, word for word, so that it may be used.
macro_rules! settling {
    () => {
        "action IN ('opening', 'inbound', 'adjust', 'transfer_out', 'transfer_in', 'repair', 'refund')"
    };
}

/// Sums of pools' entries that change their supply.
const SUPPLY: &str = concat!(
    "SELECT pool, action, CAST(sum(delta_available + delta_held + delta_sold) AS BIGINT) AS units \
     FROM ledger WHERE pool = ANY ($1) AND ",
    settling!(),
    " GROUP BY pool, action"
);

/// Orders that were refunded, by the entries of the pool that is their home or has their stock.
const REFUNDED: &str = concat!(
    "SELECT DISTINCT order_id FROM ledger WHERE pool = ANY ($1) AND action = 'refund' AND ",
    settling!()
);

/// The settlement of a campaign; none if there is no such campaign.
pub(crate) struct OfCampaign {
    pub(crate) campaign: CampaignId,
    pub(crate) now: Timestamp,
}

impl View for OfCampaign {
    type Output = Option<Settlement>;

    async fn see(&self, connection: &Connection) -> Result<Option<Settlement>, Fault> {
        settlement(connection, &self.campaign, self.now).await
    }
}

async fn settlement(
    connection: &Connection,
    campaign: &CampaignId,
    now: Timestamp,
) -> Result<Option<Settlement>, Fault> {
    let sql = "SELECT 1 AS there FROM campaign WHERE id = $1";
    if rows(connection, sql, &[&campaign.as_str()], &[Type::TEXT]).await?.is_empty() {
        return Ok(None);
    }
    let mut sum = SettlementSum::new(campaign.clone(), now);
    let sql = "SELECT id FROM pool WHERE campaign_id = $1 ORDER BY id";
    let found = rows(connection, sql, &[&campaign.as_str()], &[Type::TEXT]).await?;
    let pools = all(&found, |row| number_id(row, "id").map(uuid)).map_err(Fault::Refused)?;
    let mut refunded = BTreeSet::new();
    for some in pools.chunks(POOLS) {
        refunded.extend(add_pools(connection, some, &mut sum).await?);
    }
    let refunded: Vec<Uuid> = refunded.into_iter().map(uuid).collect();
    for some in refunded.chunks(ORDERS) {
        // Only the lines: there may be many, and the view is open meanwhile.
        let sql = "SELECT lines FROM orders WHERE id = ANY ($1)";
        let found = rows(connection, sql, &[&some], &[Type::UUID_ARRAY]).await?;
        if found.len() != some.len() {
            return Err(Fault::Refused(row::corrupt("a refund of an order that is not there")));
        }
        for lines in all(&found, row::lines).map_err(Fault::Refused)? {
            sum.refunds(&lines);
        }
    }
    Ok(Some(sum.finish()))
}

/// Adds pools; the orders that were refunded in them.
async fn add_pools(
    connection: &Connection,
    pools: &[Uuid],
    sum: &mut SettlementSum,
) -> Result<Vec<u128>, Fault> {
    let types = [Type::UUID_ARRAY];
    let sql = "SELECT * FROM pool WHERE id = ANY ($1) ORDER BY id";
    let found = rows(connection, sql, &[&pools], &types).await?;
    for found in with_buckets(connection, all(&found, row::pool).map_err(Fault::Refused)?).await? {
        sum.pool(found.pool, &found.buckets);
    }
    let entry = |row: &dyn row::Row| {
        let pool = PoolId(number_id(row, "pool")?);
        Ok((pool, word(row, "action", Action::parse)?, number(row, "units")?))
    };
    let found = rows(connection, SUPPLY, &[&pools], &types).await?;
    for (pool, action, units) in all(&found, entry).map_err(Fault::Refused)? {
        sum.entries(pool, action, units);
    }
    let found = rows(connection, REFUNDED, &[&pools], &types).await?;
    all(&found, |row| number_id(row, "order_id")).map_err(Fault::Refused)
}

/// Where the entry stands that carries this version of an order.
pub(crate) fn order_position(order: OrderId, version: u32) -> Query {
    Query::whole("SELECT pool, bucket, seq FROM ledger WHERE order_id = $1 AND order_version = $2")
        .with(uuid(order.0), Type::UUID)
        .with(i64::from(version), Type::INT8)
}
