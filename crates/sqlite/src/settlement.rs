//! The settlement of a campaign, in one view, and where an order's events stand.

use std::collections::BTreeSet;

use holdfast_core::id::{CampaignId, OrderId};
use holdfast_core::ledger::Action;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, corrupt};
use holdfast_store::{Error, LedgerPosition, Settlement, SettlementSum};
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::error::Driver;
use crate::load::{many, one};

/// The condition of the index, word for word, which is how SQLite knows that it may use it.
macro_rules! settling {
    () => {
        "action IN ('opening', 'inbound', 'adjust', 'transfer_out', 'transfer_in', 'repair', 'refund')"
    };
}

/// Sums of a pool's entries that change its supply.
const SUPPLY: &str = concat!(
    "SELECT action, sum(delta_available + delta_held + delta_sold) AS units \
     FROM ledger INDEXED BY ledger_settlement WHERE pool = ?1 AND ",
    settling!(),
    " GROUP BY action"
);

/// Orders that were refunded, by the entries of the pool that is their home or has their stock.
const REFUNDED: &str = concat!(
    "SELECT DISTINCT order_id FROM ledger INDEXED BY ledger_settlement WHERE pool = ?1 AND action = 'refund' AND ",
    settling!()
);

/// Reads a settlement; none if there is no such campaign.
pub(crate) fn settlement(
    db: &Connection,
    campaign: &CampaignId,
    now: Timestamp,
) -> Result<Option<Settlement>, Error> {
    // One snapshot for all statements, though the server is writing beside us.
    db.execute_batch("BEGIN").store()?;
    let read = read_all(db, campaign, now);
    db.execute_batch("ROLLBACK").store()?;
    read
}

fn read_all(db: &Connection, campaign: &CampaignId, now: Timestamp) -> Result<Option<Settlement>, Error> {
    let sql = "SELECT 1 AS there FROM campaign WHERE id = ?1";
    if one(db, sql, params![campaign.as_str()], |row| rows::number::<i64>(row, "there"))?.is_none() {
        return Ok(None);
    }
    let mut sum = SettlementSum::new(campaign.clone(), now);
    let sql = "SELECT * FROM pool WHERE campaign_id = ?1 ORDER BY id";
    let pools = many(db, sql, params![campaign.as_str()], rows::pool)?;
    let mut refunded = BTreeSet::new();
    for pool in pools {
        let id = pool.id;
        let sql = "SELECT * FROM bucket WHERE pool = ?1 ORDER BY number";
        sum.pool(pool, &many(db, sql, params![bytes(id.0)], rows::bucket)?);
        let entries = many(db, SUPPLY, params![bytes(id.0)], |row| {
            Ok((rows::word(row, "action", Action::parse)?, rows::number(row, "units")?))
        })?;
        for (action, units) in entries {
            sum.entries(id, action, units);
        }
        refunded.extend(many(db, REFUNDED, params![bytes(id.0)], |row| rows::number_id(row, "order_id"))?);
    }
    for order in refunded {
        // Only the lines: there may be many, and the view is open meanwhile.
        let sql = "SELECT lines FROM orders WHERE id = ?1";
        let found = one(db, sql, params![bytes(order)], rows::lines)?;
        sum.refunds(&found.ok_or_else(|| corrupt("a refund of an order that is not there"))?);
    }
    Ok(Some(sum.finish()))
}

/// Where the entry stands that carries this version of an order.
pub(crate) fn order_position(
    db: &Connection,
    order: OrderId,
    version: u32,
) -> Result<Option<LedgerPosition>, Error> {
    let sql = "SELECT pool, bucket, seq FROM ledger INDEXED BY ledger_order \
               WHERE order_id = ?1 AND order_version = ?2";
    one(db, sql, params![bytes(order.0), version], rows::position)
}
