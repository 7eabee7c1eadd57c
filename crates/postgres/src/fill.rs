//! Sold orders with their entries, as a long sale leaves them, written by statements of the database alone: what
//! `holdfast bench reconcile` looks through. No way in: nothing is decided, and nobody is told.

use holdfast_store::{Error, Fill};
use tokio_postgres::types::Type;

use crate::address::Address;
use crate::bare::connect;
use crate::error::Driver;
use crate::row::uuid;

/// Orders of one transaction.
const CHUNK: u64 = 100_000;
const BUCKET: &str = "UPDATE bucket SET available = available - $2, sold = sold + $2, ledger_seq = ledger_seq + 2 * $2, \
    last_at = greatest(last_at, $3) WHERE pool = $1 AND number = 0 RETURNING ledger_seq - 2 * $2";
const ORDERS: &str = "INSERT INTO orders (id, campaign_id, order_no, account, state, version, home_pool, home_bucket, \
    lines, hold_seconds, hold_ends_at, extended, created_at, updated_at) \
    SELECT CAST('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0') AS UUID), $2, 'fill-' || n, 'account-' || n, \
    'sold', 2, $1, 0, $3, 900, $4, FALSE, $4, $4 FROM generate_series($5, $6) AS n";
const ENTRIES: &str = "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, \
    delta_held, delta_sold, from_state, to_state, order_version, source, actor, reason) \
    SELECT $1, 0, $2 + 2 * (n - $4) + version, $3, \
    CAST('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0') AS UUID), 'fill-' || n, \
    CASE version WHEN 1 THEN 'place' ELSE 'confirm' END, CASE version WHEN 1 THEN -1 ELSE 0 END, \
    CASE version WHEN 1 THEN 1 ELSE -1 END, version - 1, CASE version WHEN 2 THEN 'held' END, \
    CASE version WHEN 1 THEN 'held' ELSE 'sold' END, version, \
    CASE version WHEN 1 THEN 'place' ELSE 'confirm' END, 'buyer', '' \
    FROM generate_series($4, $5) AS n CROSS JOIN generate_series(1, 2) AS version";

/// Sells units of the first bucket of a pool, one an order. Its campaign must keep no usage.
pub async fn fill(address: &Address, fill: &Fill) -> Result<(), Error> {
    let mut client = connect(address).await?;
    let (pool, at) = (uuid(fill.pool), fill.at.0);
    let lines = fill.lines();
    let mut done = 0;
    while done < fill.orders {
        let count = CHUNK.min(fill.orders - done);
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (first, last, count_signed) = (signed(done + 1), signed(done + count), signed(count));
        let transaction = client.transaction().await.store()?;
        let bucket = transaction
            .query_typed_one(BUCKET, &[(&pool, Type::UUID), (&count_signed, Type::INT8), (&at, Type::INT8)])
            .await
            .store()?;
        let seq: i64 = bucket.try_get(0).store()?;
        let orders: [(crate::connection::Param<'_>, Type); 6] = [
            (&pool, Type::UUID),
            (&fill.campaign, Type::TEXT),
            (&lines, Type::TEXT),
            (&at, Type::INT8),
            (&first, Type::INT8),
            (&last, Type::INT8),
        ];
        transaction.execute_typed(ORDERS, &orders).await.store()?;
        let entries: [(crate::connection::Param<'_>, Type); 5] = [
            (&pool, Type::UUID),
            (&seq, Type::INT8),
            (&at, Type::INT8),
            (&first, Type::INT8),
            (&last, Type::INT8),
        ];
        transaction.execute_typed(ENTRIES, &entries).await.store()?;
        transaction.commit().await.store()?;
        done += count;
    }
    // As it would be after a long sale: the planner knows the tables, and their pages are all visible. Each by itself:
    // statements that are sent together are a transaction, in which nothing is vacuumed.
    client.batch_execute("VACUUM ANALYZE orders").await.store()?;
    client.batch_execute("VACUUM ANALYZE ledger").await.store()
}
