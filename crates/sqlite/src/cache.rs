//! Caches of buckets, as the authority knows them.

use holdfast_core::cache::{CacheBucket, LandingKey};
use holdfast_core::id::OrderId;
use holdfast_core::ledger::Entry;
use holdfast_core::snapshot::{CacheChange, Needs, Snapshot};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, Row, integer};
use holdfast_store::{Credits, Error, Page, page_of};
use rusqlite::{Connection, params};

use crate::apply::exactly_one;
use crate::catalog;
use crate::codec::bytes;
use crate::load::{many, one};

/// The rows and landings that a batch names.
pub(crate) fn load(db: &Connection, needs: &Needs<'_>, rows: &mut Snapshot) -> Result<(), Error> {
    for key in &needs.caches {
        rows.caches.extend(find(db, *key)?.map(|row| (row.key, row)));
    }
    let sql = "SELECT order_id FROM ledger WHERE pool = ?1 AND bucket = ?2 AND source = ?3 AND settled > 0";
    for key in &needs.landings {
        let named = params![bytes(key.bucket.pool.0), key.bucket.number, &*key.source()];
        let order = |row: &dyn Row| Ok(row.id("order_id")?.map(OrderId));
        rows.landed.extend(one(db, sql, named, order)?.map(|order| (*key, order)));
    }
    Ok(())
}

/// The cache of a bucket.
pub(crate) fn find(db: &Connection, key: BucketKey) -> Result<Option<CacheBucket>, Error> {
    let sql = "SELECT * FROM cache_bucket WHERE pool = ?1 AND number = ?2";
    one(db, sql, params![bytes(key.pool.0), key.number], rows::cache_bucket)
}

pub(crate) fn list(db: &Connection, page: &Page<BucketKey>) -> Result<(Vec<CacheBucket>, bool), Error> {
    let (pool, number) = page.after.map_or((0, -1), |key| (key.pool.0, i64::from(key.number)));
    let most = i64::try_from(page.limit).unwrap_or(i64::MAX).saturating_add(1);
    let sql = "SELECT * FROM cache_bucket WHERE (pool, number) > (?1, ?2) ORDER BY pool, number LIMIT ?3";
    Ok(page_of(many(db, sql, params![bytes(pool), number, most], rows::cache_bucket)?, page.limit))
}

/// What a bucket's entries after a position credit its cache with.
pub(crate) fn credits(
    db: &Connection,
    bucket: BucketKey,
    after: u64,
    entries_max: u32,
) -> Result<Credits, Error> {
    let sql = "SELECT coalesce(max(seq), ?3) AS to_seq, coalesce(sum(delta_available + settled), 0) AS units FROM \
               (SELECT seq, delta_available, settled FROM ledger WHERE pool = ?1 AND bucket = ?2 AND seq > ?3 \
               ORDER BY seq LIMIT ?4) AS later";
    let named = params![bytes(bucket.pool.0), bucket.number, integer(after)?, entries_max];
    one(db, sql, named, rows::credits)?.ok_or_else(|| rows::corrupt("a sum without a row"))
}

/// The entry of a landing.
pub(crate) fn landed(db: &Connection, key: LandingKey) -> Result<Option<Entry>, Error> {
    let sql = "SELECT * FROM ledger WHERE pool = ?1 AND bucket = ?2 AND source = ?3 AND settled > 0";
    one(db, sql, params![bytes(key.bucket.pool.0), key.bucket.number, &*key.source()], rows::entry)
}

/// Writes a row that a batch changed.
pub(crate) fn write(db: &Connection, change: &CacheChange) -> Result<(), Error> {
    let row = &change.row;
    let (pool, number) = (bytes(row.key.pool.0), row.key.number);
    let (epoch, state, landed) = (integer(row.epoch.0)?, row.state.as_str(), integer(row.landed)?);
    let (base_seq, base_available) = (integer(row.base_seq)?, integer(row.base_available)?);
    let Some(base) = &change.base else {
        let sql = "INSERT INTO cache_bucket (pool, number, epoch, state, identity, base_seq, base_available, landed, \
                   changed_at, catalog_version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let (identity, at, version) = (&*row.identity, row.changed_at.0, catalog::next_version(db)?);
        let values =
            params![pool, number, epoch, state, identity, base_seq, base_available, landed, at, version];
        return exactly_one(db, sql, values);
    };
    let (was, was_state, was_landed) = (integer(base.epoch.0)?, base.state.as_str(), integer(base.landed)?);
    if !change.is_turned() {
        let sql = "UPDATE cache_bucket SET landed = ?3 \
                   WHERE pool = ?1 AND number = ?2 AND epoch = ?4 AND state = ?5 AND landed = ?6";
        return exactly_one(db, sql, params![pool, number, landed, was, was_state, was_landed]);
    }
    let sql = "UPDATE cache_bucket SET epoch = ?3, state = ?4, identity = ?5, base_seq = ?6, base_available = ?7, \
               landed = ?8, changed_at = ?9, catalog_version = ?10 \
               WHERE pool = ?1 AND number = ?2 AND epoch = ?11 AND state = ?12 AND landed = ?13";
    let values = params![
        pool,
        number,
        epoch,
        state,
        &*row.identity,
        base_seq,
        base_available,
        landed,
        row.changed_at.0,
        catalog::next_version(db)?,
        was,
        was_state,
        was_landed,
    ];
    exactly_one(db, sql, values)
}

/// The authority is another one: what a cache took of the one before is nothing to it.
pub(crate) fn close_epochs(db: &Connection, now: Timestamp) -> Result<(), Error> {
    let sql = "SELECT * FROM cache_bucket WHERE state <> 'closed' ORDER BY pool, number";
    for row in many(db, sql, [], rows::cache_bucket)? {
        let sql = "UPDATE cache_bucket SET state = 'closed', changed_at = ?3, catalog_version = ?4 \
                   WHERE pool = ?1 AND number = ?2";
        let (pool, version) = (bytes(row.key.pool.0), catalog::next_version(db)?);
        exactly_one(db, sql, params![pool, row.key.number, now.0, version])?;
    }
    Ok(())
}
