//! Buckets and their ledgers, summed a bounded piece at a time.

use holdfast_core::ledger::Entry;
use holdfast_core::stock::BucketKey;
use holdfast_store::rows::integer;
use holdfast_store::{Error, ODD_ROWS_MAX, Page, SUMMED_ENTRIES_MAX};
use tokio_postgres::types::Type;

use crate::query::Query;
use crate::row::uuid;

const HEADS: &str = "SELECT bucket.*, coalesce(pool.frozen, FALSE) AS frozen, \
    (SELECT max(seq) FROM ledger WHERE ledger.pool = bucket.pool AND ledger.bucket = bucket.number) AS last_seq, \
    proved.to_seq, proved.entries, proved.available_sum, proved.held_sum, proved.sold_sum, proved.unowned_held, \
    proved.unowned_sold, proved.moves, proved.supplies, proved.covering FROM bucket \
    LEFT JOIN pool ON pool.id = bucket.pool LEFT JOIN reconcile_checkpoint AS proved \
    ON proved.pool = bucket.pool AND proved.number = bucket.number \
    WHERE (bucket.pool, bucket.number) > ($1, $2) ORDER BY bucket.pool, bucket.number LIMIT $3";
const SUMS: &str = "SELECT CAST($4 AS BIGINT) AS to_seq, count(*) AS entries, \
    CAST(coalesce(sum(delta_available), 0) AS BIGINT) AS available_sum, \
    CAST(coalesce(sum(delta_held), 0) AS BIGINT) AS held_sum, \
    CAST(coalesce(sum(delta_sold), 0) AS BIGINT) AS sold_sum, \
    CAST(coalesce(sum(delta_held) FILTER (WHERE order_id IS NULL AND action <> 'repair'), 0) AS BIGINT) AS unowned_held, \
    CAST(coalesce(sum(delta_sold) FILTER (WHERE order_id IS NULL AND action <> 'repair'), 0) AS BIGINT) AS unowned_sold, \
    count(*) FILTER (WHERE action IN ('transfer_out', 'transfer_in')) AS moves, \
    count(*) FILTER (WHERE action IN ('inbound', 'adjust')) AS supplies, \
    count(*) FILTER (WHERE action = 'repair') AS covering \
    FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 AND seq <= $4";
const MISSING: &str = "SELECT before + 1 AS first_seq, seq - 1 AS last_seq FROM \
    (SELECT seq, lag(seq, 1, $3) OVER (ORDER BY seq) AS before FROM \
    (SELECT seq FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 AND seq <= $4 \
    UNION ALL SELECT CAST($4 AS BIGINT) + 1) AS there) AS steps WHERE seq > before + 1 ORDER BY seq LIMIT $5";

fn most() -> i64 {
    i64::try_from(ODD_ROWS_MAX).unwrap_or(i64::MAX)
}

fn of_bucket(sql: &str, bucket: BucketKey) -> Query {
    let number = i32::try_from(bucket.number).unwrap_or(i32::MAX);
    Query::whole(sql).with(uuid(bucket.pool.0), Type::UUID).with(number, Type::INT4)
}

fn of_entries(sql: &str, bucket: BucketKey, after: u64, to: u64) -> Result<Query, Error> {
    Ok(of_bucket(sql, bucket).with(integer(after)?, Type::INT8).with(integer(to)?, Type::INT8))
}

pub(super) fn bucket_heads(page: &Page<BucketKey>) -> Query {
    let (pool, number) = page.after.map_or((0, -1), |key| (key.pool.0, i64::from(key.number)));
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    Query::whole(HEADS).with(uuid(pool), Type::UUID).with(number, Type::INT8).with(limit, Type::INT8)
}

pub(super) fn odd_pools(most: usize) -> Query {
    let sql = "SELECT * FROM (SELECT pool.id, pool.buckets, (SELECT count(*) FROM bucket WHERE bucket.pool = pool.id) \
               AS bucket_rows FROM pool) AS counted WHERE buckets <> bucket_rows LIMIT $1";
    Query::whole(sql).with(i64::try_from(most).unwrap_or(i64::MAX), Type::INT8)
}

pub(super) fn sum_entries(bucket: BucketKey, after: u64, to: u64) -> Result<Query, Error> {
    of_entries(SUMS, bucket, after, to.min(after.saturating_add(SUMMED_ENTRIES_MAX)))
}

pub(super) fn missing_entries(bucket: BucketKey, after: u64, to: u64) -> Result<Query, Error> {
    Ok(of_entries(MISSING, bucket, after, to)?.with(most(), Type::INT8))
}

pub(super) fn repairs(bucket: BucketKey) -> Query {
    // By the index of what changes the supply, repairs among it.
    let sql =
        "SELECT * FROM ledger WHERE pool = $1 AND action = 'repair' AND bucket = $2 ORDER BY seq LIMIT $3";
    of_bucket(sql, bucket).with(most(), Type::INT8)
}

pub(super) fn doubled_supplies(bucket: BucketKey) -> Query {
    let sql = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY action, source, business_no ORDER BY seq) \
               AS place FROM ledger WHERE pool = $1 AND action IN ('inbound', 'adjust') AND bucket = $2) AS supplies \
               WHERE place > 1 ORDER BY seq LIMIT $3";
    of_bucket(sql, bucket).with(most(), Type::INT8)
}

pub(super) fn moves(bucket: BucketKey, after: u64, to: u64) -> Result<Query, Error> {
    let sql = "SELECT * FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 AND seq <= $4 \
               AND action IN ('transfer_out', 'transfer_in') ORDER BY seq";
    of_entries(sql, bucket, after, to)
}

pub(super) fn halves(of: &Entry) -> Query {
    let sql = "SELECT * FROM ledger WHERE action IN ('transfer_out', 'transfer_in', 'repair') AND business_no = $2 \
               AND (action <> 'repair' AND source = $1 AND at = $3 \
               OR action = 'repair' AND covers_first IS NOT NULL AND order_id IS NULL) \
               ORDER BY pool, bucket, seq LIMIT $4";
    Query::whole(sql)
        .with(of.source.to_string(), Type::TEXT)
        .with(of.business_no.to_string(), Type::TEXT)
        .with(of.at.0, Type::INT8)
        .with(most(), Type::INT8)
}

pub(super) fn orders_in(bucket: BucketKey, after: u64, to: u64) -> Result<Query, Error> {
    let sql = "SELECT DISTINCT order_id FROM ledger WHERE pool = $1 AND bucket = $2 AND seq > $3 AND seq <= $4 \
               AND order_id IS NOT NULL";
    of_entries(sql, bucket, after, to)
}
