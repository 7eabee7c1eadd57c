//! Buckets and their ledgers, summed a bounded piece at a time.

use holdfast_core::id::OrderId;
use holdfast_core::ledger::Entry;
use holdfast_core::reconcile::{LedgerSums, PoolFacts, Range};
use holdfast_core::stock::BucketKey;
use holdfast_store::rows::{self, Row, corrupt, integer};
use holdfast_store::{BucketHead, Error, ODD_ROWS_MAX, Page, SUMMED_ENTRIES_MAX};
use rusqlite::{Connection, params};

use crate::codec::bytes;
use crate::load::{many, one};

const HEADS: &str = "SELECT bucket.*, coalesce(pool.frozen, 0) AS frozen, \
    (SELECT max(seq) FROM ledger WHERE ledger.pool = bucket.pool AND ledger.bucket = bucket.number) AS last_seq, \
    proved.to_seq, proved.entries, proved.available_sum, proved.held_sum, proved.sold_sum, proved.unowned_held, \
    proved.unowned_sold, proved.moves, proved.supplies, proved.covering FROM bucket \
    LEFT JOIN pool ON pool.id = bucket.pool LEFT JOIN reconcile_checkpoint AS proved \
    ON proved.pool = bucket.pool AND proved.number = bucket.number \
    WHERE (bucket.pool, bucket.number) > (?1, ?2) ORDER BY bucket.pool, bucket.number LIMIT ?3";
const SUMS: &str = "SELECT ?4 AS to_seq, count(*) AS entries, coalesce(sum(delta_available), 0) AS available_sum, \
    coalesce(sum(delta_held), 0) AS held_sum, coalesce(sum(delta_sold), 0) AS sold_sum, \
    coalesce(sum(delta_held) FILTER (WHERE order_id IS NULL AND action <> 'repair'), 0) AS unowned_held, \
    coalesce(sum(delta_sold) FILTER (WHERE order_id IS NULL AND action <> 'repair'), 0) AS unowned_sold, \
    count(*) FILTER (WHERE action IN ('transfer_out', 'transfer_in')) AS moves, \
    count(*) FILTER (WHERE action IN ('inbound', 'adjust')) AS supplies, \
    count(*) FILTER (WHERE action = 'repair') AS covering \
    FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3 AND seq <= ?4";
const MISSING: &str = "SELECT before + 1 AS first_seq, seq - 1 AS last_seq FROM \
    (SELECT seq, lag(seq, 1, ?3) OVER (ORDER BY seq) AS before FROM \
    (SELECT seq FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3 AND seq <= ?4 UNION ALL SELECT ?4 + 1)) \
    WHERE seq > before + 1 ORDER BY seq LIMIT ?5";

/// As the index has it of what changes the supply: only a condition of these very words lets it be used.
const SETTLING: &str =
    "action IN ('opening', 'inbound', 'adjust', 'transfer_out', 'transfer_in', 'repair', 'refund')";

fn most() -> i64 {
    i64::try_from(ODD_ROWS_MAX).unwrap_or(i64::MAX)
}

pub(super) fn bucket_heads(db: &Connection, page: &Page<BucketKey>) -> Result<Vec<BucketHead>, Error> {
    let (pool, number) = page.after.map_or((0, -1), |key| (key.pool.0, i64::from(key.number)));
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    many(db, HEADS, params![bytes(pool), number, limit], rows::bucket_head)
}

pub(super) fn odd_pools(db: &Connection, most: usize) -> Result<Vec<PoolFacts>, Error> {
    let sql = "SELECT * FROM (SELECT pool.id, pool.buckets, (SELECT count(*) FROM bucket WHERE bucket.pool = pool.id) \
               AS bucket_rows FROM pool) WHERE buckets <> bucket_rows LIMIT ?1";
    many(db, sql, params![i64::try_from(most).unwrap_or(i64::MAX)], rows::odd_pool)
}

pub(super) fn sum_entries(
    db: &Connection,
    bucket: BucketKey,
    after: u64,
    to: u64,
) -> Result<LedgerSums, Error> {
    let to = to.min(after.saturating_add(SUMMED_ENTRIES_MAX));
    let named = params![bytes(bucket.pool.0), bucket.number, integer(after)?, integer(to)?];
    one(db, SUMS, named, rows::sums)?.ok_or_else(|| corrupt("a sum without a row"))
}

pub(super) fn missing_entries(
    db: &Connection,
    bucket: BucketKey,
    after: u64,
    to: u64,
) -> Result<Vec<Range>, Error> {
    let named = params![bytes(bucket.pool.0), bucket.number, integer(after)?, integer(to)?, most()];
    many(db, MISSING, named, rows::range)
}

pub(super) fn repairs(db: &Connection, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
    let sql = format!(
        "SELECT * FROM ledger WHERE pool = ?1 AND {SETTLING} AND action = 'repair' AND bucket = ?2 ORDER BY seq LIMIT ?3"
    );
    many(db, &sql, params![bytes(bucket.pool.0), bucket.number, most()], rows::entry)
}

pub(super) fn doubled_supplies(db: &Connection, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
    let sql = format!(
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY action, source, business_no ORDER BY seq) AS place \
         FROM ledger WHERE pool = ?1 AND {SETTLING} AND action IN ('inbound', 'adjust') AND bucket = ?2) \
         WHERE place > 1 ORDER BY seq LIMIT ?3"
    );
    many(db, &sql, params![bytes(bucket.pool.0), bucket.number, most()], rows::entry)
}

pub(super) fn moves(db: &Connection, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Entry>, Error> {
    let sql = "SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3 AND seq <= ?4 \
               AND action IN ('transfer_out', 'transfer_in') ORDER BY seq";
    let named = params![bytes(bucket.pool.0), bucket.number, integer(after)?, integer(to)?];
    many(db, sql, named, rows::entry)
}

pub(super) fn halves(db: &Connection, of: &Entry) -> Result<Vec<Entry>, Error> {
    let sql = format!(
        "SELECT * FROM ledger WHERE {SETTLING} AND business_no = ?2 AND (action IN ('transfer_out', 'transfer_in') \
         AND source = ?1 AND at = ?3 OR action = 'repair' AND covers_first IS NOT NULL AND order_id IS NULL) \
         ORDER BY pool, bucket, seq LIMIT ?4"
    );
    many(db, &sql, params![&*of.source, &*of.business_no, of.at.0, most()], rows::entry)
}

pub(super) fn orders_in(
    db: &Connection,
    bucket: BucketKey,
    after: u64,
    to: u64,
) -> Result<Vec<OrderId>, Error> {
    let sql = "SELECT DISTINCT order_id FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3 AND seq <= ?4 \
               AND order_id IS NOT NULL";
    let named = params![bytes(bucket.pool.0), bucket.number, integer(after)?, integer(to)?];
    many(db, sql, named, |row: &dyn Row| rows::number_id(row, "order_id").map(OrderId))
}
