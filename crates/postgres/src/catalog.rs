//! The catalog: pools as batches change them, and its version, counted up in the transaction of every write of a
//! campaign or a pool. The row that counts is taken last, and held until the commit: versions are given in the
//! order of commits, so whoever has read one has missed none before it.

use std::sync::Arc;

use holdfast_core::campaign::Campaign;
use holdfast_core::id::CampaignId;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::Changes;
use holdfast_core::stock::Pool;
use holdfast_store::rows::{self, Row, integer, number};
use holdfast_store::{Act, CATALOG_PAGE_MAX, CatalogChanges, Error, PoolRow, SwitchPool};
use tokio_postgres::types::Type;

use crate::apply::{ROWS_MAX, column, count, short, try_column};
use crate::call::{Work, rows as statement};
use crate::connection::Connection;
use crate::error::Fault;
use crate::flight::{Flight, Owned};
use crate::query::{self, Query};
use crate::read::View;
use crate::row::{all, first, uuid};
use crate::statement::{Sql, exactly};
use crate::store::Inner;
use crate::{acts, cache};

/// Every row gets a version of its own, so that a page of changes may end anywhere.
static INSERT_POOLS: Sql = Sql::new(
    "WITH counted AS (UPDATE authority SET catalog_version = catalog_version + $15 RETURNING catalog_version) \
     INSERT INTO pool (id, campaign_id, sku, location, buckets, opening_supply, opening_buckets, opening_path, \
     opening_routing, frozen, path, routing, max_concurrency, catalog_version) \
     SELECT new.id, new.campaign_id, new.sku, new.location, new.buckets, new.opening_supply, new.opening_buckets, \
     new.opening_path, new.opening_routing, new.frozen, new.path, new.routing, new.max_concurrency, \
     counted.catalog_version - new.later FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
     AS new (id, campaign_id, sku, location, buckets, opening_supply, opening_buckets, opening_path, opening_routing, \
     frozen, path, routing, max_concurrency, later), counted",
    &[
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::BOOL_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
);
/// Not its switches: they are set without the locks of its buckets.
static UPDATE_POOLS: Sql = Sql::new(
    concat!(
        "WITH counted AS (UPDATE authority SET catalog_version = catalog_version + $8 RETURNING catalog_version), \
         done AS (UPDATE pool SET buckets = new.buckets, path = new.path, routing = new.routing, \
         max_concurrency = new.max_concurrency, cache_fallback = new.cache_fallback, \
         catalog_version = counted.catalog_version - new.later FROM UNNEST($1, $2, $3, $4, $5, $6, $7) \
         AS new (id, buckets, path, routing, max_concurrency, cache_fallback, later), counted \
         WHERE pool.id = new.id RETURNING 1)",
        exactly!("$8")
    ),
    &[
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
);
static UPDATE_WEIGHTS: Sql = Sql::new(
    concat!(
        "WITH done AS (UPDATE bucket SET weight = new.weight FROM UNNEST($1, $2, $3) AS new (pool, number, weight) \
         WHERE bucket.pool = new.pool AND bucket.number = new.number RETURNING 1)",
        exactly!("$4")
    ),
    &[Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY, Type::INT8],
);

/// Adds what a batch changes of the catalog.
pub(crate) fn add<'f>(flight: &mut Flight<'f>, changes: &'f Changes) -> Result<(), Error> {
    let weights = &changes.weights;
    if !weights.is_empty() {
        let params: Vec<Owned<'f>> = vec![
            Box::new(weights.keys().map(|key| uuid(key.pool.0)).collect::<Vec<_>>()),
            Box::new(weights.keys().map(|key| short(key.number)).collect::<Vec<_>>()),
            Box::new(weights.values().map(|weight| i64::from(*weight)).collect::<Vec<_>>()),
            Box::new(i64::try_from(weights.len()).unwrap_or(i64::MAX)),
        ];
        flight.add(&UPDATE_WEIGHTS, params);
    }
    for pools in changes.pools.chunks(ROWS_MAX) {
        let params = vec![
            column(pools, |pool| uuid(pool.id.0)),
            column(pools, |pool| pool.campaign.as_str()),
            column(pools, |pool| pool.sku.as_str()),
            column(pools, |pool| pool.location.as_str()),
            column(pools, |pool| short(pool.buckets)),
            try_column(pools, |pool| integer(pool.opening.supply))?,
            column(pools, |pool| short(pool.opening.buckets)),
            column(pools, |pool| pool.opening.path.as_str()),
            column(pools, |pool| pool.opening.routing.as_str()),
            column(pools, |pool| pool.frozen),
            column(pools, |pool| pool.path.as_str()),
            column(pools, |pool| pool.routing.as_str()),
            column(pools, |pool| pool.max_concurrency.map(i64::from)),
            later(pools),
            count(pools),
        ];
        flight.add(&INSERT_POOLS, params);
    }
    let changed: &[Pool] = &changes.changed_pools;
    if !changed.is_empty() {
        let params = vec![
            column(changed, |pool| uuid(pool.id.0)),
            column(changed, |pool| short(pool.buckets)),
            column(changed, |pool| pool.path.as_str()),
            column(changed, |pool| pool.routing.as_str()),
            column(changed, |pool| pool.max_concurrency.map(i64::from)),
            column(changed, |pool| pool.cache_fallback.as_str()),
            later(changed),
            count(changed),
        ];
        flight.add(&UPDATE_POOLS, params);
    }
    cache::add_turned(flight, changes)
}

/// By how many the version of each row is below the last one: the first row comes first.
fn later(pools: &[Pool]) -> Owned<'static> {
    let last = i64::try_from(pools.len()).unwrap_or(i64::MAX);
    Box::new((0..last).rev().collect::<Vec<i64>>())
}

/// Gives a campaign that was written the next version.
pub(crate) async fn campaign_changed(connection: &Connection, id: &CampaignId) -> Result<(), Fault> {
    let sql = "WITH counted AS (UPDATE authority SET catalog_version = catalog_version + 1 \
               RETURNING catalog_version) UPDATE campaign SET catalog_version = counted.catalog_version \
               FROM counted WHERE campaign.id = $1";
    statement(connection, sql, &[&id.as_str()], &[Type::TEXT]).await?;
    Ok(())
}

impl Work for SwitchPool {
    type Output = Result<PoolRow, Refusal>;

    async fn run(&self, connection: &Connection, inner: &Inner) -> Result<Self::Output, Fault> {
        let sql = "SELECT * FROM pool WHERE id = $1 FOR UPDATE";
        let found = statement(connection, sql, &[&uuid(self.id.0)], &[Type::UUID]).await?;
        let Some(before) = first(&found, rows::pool).map_err(Fault::Refused)? else {
            return Ok(Err(Refusal::UnknownPool));
        };
        let after = before.clone().after(self.switch);
        if after != before {
            let sql = "WITH counted AS (UPDATE authority SET catalog_version = catalog_version + 1 \
                       RETURNING catalog_version) UPDATE pool SET frozen = $2, retired = $3, \
                       catalog_version = counted.catalog_version FROM counted WHERE pool.id = $1";
            let types = [Type::UUID, Type::BOOL, Type::BOOL];
            let now = inner.time(connection).await?;
            statement(connection, sql, &[&uuid(self.id.0), &after.frozen, &after.retired], &types).await?;
            acts::record(connection, &Act::switch_pool(self), now).await?;
        }
        Ok(query::pool(connection, self.id).await?.ok_or(Refusal::UnknownPool))
    }
}

/// What changed since a version, in one view.
pub(crate) struct Since(pub(crate) Option<u64>);

impl View for Since {
    type Output = CatalogChanges;

    async fn see(&self, connection: &Connection) -> Result<CatalogChanges, Fault> {
        let found = Query::whole("SELECT catalog_version FROM authority").rows(connection).await?;
        let now = first(&found, version).map_err(Fault::Refused)?;
        let now = now.ok_or_else(|| Fault::Refused(rows::corrupt("no row of the authority")))?;
        let Some(since) = self.0.filter(|since| *since < now) else {
            return Ok(CatalogChanges { version: now, ..CatalogChanges::default() });
        };
        let since = integer(since).map_err(Fault::Refused)?;
        let changed = |table: &str| {
            let mut query = Query::new(&format!("SELECT * FROM {table}"));
            query.and_integer("catalog_version >", Some(since));
            query.page("catalog_version", CATALOG_PAGE_MAX)
        };
        let found = changed("campaign").rows(connection).await?;
        let campaign = |row: &dyn Row| Ok((version(row)?, Arc::new(rows::campaign(row)?)));
        let campaigns: Vec<(u64, Arc<Campaign>)> = all(&found, campaign).map_err(Fault::Refused)?;
        let found = changed("pool").rows(connection).await?;
        let pool = |row: &dyn Row| Ok((version(row)?, rows::pool(row)?));
        let found: Vec<(u64, Pool)> = all(&found, pool).map_err(Fault::Refused)?;
        let (versions, pools): (Vec<u64>, Vec<Pool>) = found.into_iter().unzip();
        let pools = query::with_buckets(connection, pools).await?;
        let pools = versions.into_iter().zip(pools).collect();
        let found = changed("cache_bucket").rows(connection).await?;
        let cache = |row: &dyn Row| Ok((version(row)?, rows::cache_bucket(row)?));
        let caches = all(&found, cache).map_err(Fault::Refused)?;
        Ok(CatalogChanges::page(now, campaigns, pools, caches))
    }
}

fn version(row: &dyn Row) -> Result<u64, Error> {
    number(row, "catalog_version")
}
