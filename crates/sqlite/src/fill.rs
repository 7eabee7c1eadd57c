//! Sold orders with their entries, as a long sale leaves them, written by statements of the database alone: what
//! `holdfast bench reconcile` looks through. No way in: nothing is decided, and nobody is told.

use std::path::Path;

use holdfast_store::{Error, Fill};
use rusqlite::params;

use crate::codec::bytes;
use crate::error::Driver;
use crate::store;

/// Orders of one transaction: a server that runs beside waits for its turn no longer than it may.
const CHUNK: u64 = 20_000;
const BUCKET: &str = "UPDATE bucket SET available = available - ?2, sold = sold + ?2, ledger_seq = ledger_seq + 2 * ?2, \
    last_at = max(last_at, ?3) WHERE pool = ?1 AND number = 0 RETURNING ledger_seq - 2 * ?2";
const ORDERS: &str = "INSERT INTO orders (id, campaign_id, order_no, account, state, version, home_pool, home_bucket, \
    lines, hold_seconds, hold_ends_at, extended, created_at, updated_at) \
    WITH RECURSIVE numbers (n) AS (SELECT ?5 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?6) \
    SELECT unhex('01900000000070008000' || printf('%012x', n)), ?2, 'fill-' || n, 'account-' || n, 'sold', 2, ?1, 0, ?3, \
    900, ?4, 0, ?4, ?4 FROM numbers";
const ENTRIES: &str = "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, \
    delta_held, delta_sold, from_state, to_state, order_version, source, actor, reason) \
    WITH RECURSIVE numbers (n) AS (SELECT ?4 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?5), \
    versions (version) AS (VALUES (1), (2)) \
    SELECT ?1, 0, ?2 + 2 * (n - ?4) + version, ?3, unhex('01900000000070008000' || printf('%012x', n)), 'fill-' || n, \
    iif(version = 1, 'place', 'confirm'), iif(version = 1, -1, 0), iif(version = 1, 1, -1), version - 1, \
    iif(version = 2, 'held', NULL), iif(version = 1, 'held', 'sold'), version, iif(version = 1, 'place', 'confirm'), \
    'buyer', '' FROM numbers CROSS JOIN versions";

/// Sells units of the first bucket of a pool, one an order. Its campaign must keep no usage.
pub fn fill_file(path: &Path, fill: &Fill) -> Result<(), Error> {
    let mut db = store::connect(path, 4_000)?;
    let (pool, at) = (bytes(fill.pool), fill.at.0);
    let lines = fill.lines();
    let mut done = 0;
    while done < fill.orders {
        let count = CHUNK.min(fill.orders - done);
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (first, last) = (signed(done + 1), signed(done + count));
        let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).store()?;
        let seq: i64 =
            transaction.query_row(BUCKET, params![pool, signed(count), at], |row| row.get(0)).store()?;
        transaction.execute(ORDERS, params![pool, fill.campaign, lines, at, first, last]).store()?;
        transaction.execute(ENTRIES, params![pool, seq, at, first, last]).store()?;
        transaction.commit().store()?;
        done += count;
    }
    db.execute_batch("ANALYZE").store()
}
