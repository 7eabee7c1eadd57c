//! The catalog's version: counted up by every write of a campaign or a pool, in its transaction.

use std::sync::Arc;

use holdfast_core::cache::CacheBucket;
use holdfast_core::campaign::Campaign;
use holdfast_store::rows::{self, Row, corrupt, integer, number};
use holdfast_store::{CATALOG_PAGE_MAX, CatalogChanges, Error, PoolRow};
use rusqlite::Connection;

use crate::load::{many, one};
use crate::query;

/// The version of the row that is being written.
pub(crate) fn next_version(db: &Connection) -> Result<i64, Error> {
    let sql = "UPDATE authority SET catalog_version = catalog_version + 1 RETURNING catalog_version";
    integer(one(db, sql, [], version)?.ok_or_else(|| corrupt("no row of the authority"))?)
}

/// What changed since a version.
pub(crate) fn changes(db: &Connection, since: Option<u64>) -> Result<CatalogChanges, Error> {
    let sql = "SELECT catalog_version FROM authority";
    let now = one(db, sql, [], version)?.ok_or_else(|| corrupt("no row of the authority"))?;
    let Some(since) = since.filter(|since| *since < now) else {
        return Ok(CatalogChanges { version: now, ..CatalogChanges::default() });
    };
    // One more than a page, so that it shows whether there are more.
    let most = i64::try_from(CATALOG_PAGE_MAX.saturating_add(1)).unwrap_or(i64::MAX);
    let after = (integer(since)?, most);
    let sql = "SELECT * FROM campaign WHERE catalog_version > ?1 ORDER BY catalog_version LIMIT ?2";
    let campaigns: Vec<(u64, Arc<Campaign>)> =
        many(db, sql, after, |row| Ok((version(row)?, Arc::new(rows::campaign(row)?))))?;
    let sql = "SELECT * FROM pool WHERE catalog_version > ?1 ORDER BY catalog_version LIMIT ?2";
    let pools: Vec<(u64, PoolRow)> =
        many(db, sql, after, |row| Ok((version(row)?, query::with_buckets(db, rows::pool(row)?)?)))?;
    let sql = "SELECT * FROM cache_bucket WHERE catalog_version > ?1 ORDER BY catalog_version LIMIT ?2";
    let caches: Vec<(u64, CacheBucket)> =
        many(db, sql, after, |row| Ok((version(row)?, rows::cache_bucket(row)?)))?;
    Ok(CatalogChanges::page(now, campaigns, pools, caches))
}

fn version(row: &dyn Row) -> Result<u64, Error> {
    number(row, "catalog_version")
}
