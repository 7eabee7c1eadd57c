//! What an operator sees of a pool's caches: both sides of every step, read now.

use holdfast_core::cache::CacheBucket;
use holdfast_core::id::PoolId;
use holdfast_core::stock::{Bucket, BucketKey};

use super::contract::Position;
use crate::engine::Engine;
use crate::error::Error;

/// Ledger entries that are summed at most to hold a cache against the law.
const ENTRIES_MAX: u64 = 1_000_000;

/// One bucket's cache, from both sides.
#[derive(Debug, Clone)]
pub struct CacheReport {
    /// The bucket as the authority has it, read after the cache.
    pub bucket: Bucket,
    /// Its cache as the authority knows it; none: it never had an epoch.
    pub row: Option<CacheBucket>,
    /// What the cache says of itself; none: its keys are gone.
    pub position: Option<Position>,
    /// Whether the cache answered.
    pub is_reachable: bool,
    /// By how many units the cache has more than the law says, at its own ledger position. None: it has another
    /// epoch, or too many entries would have to be summed.
    pub difference: Option<i64>,
}

impl Engine {
    /// A pool's caches, bucket by bucket; none if there is no such pool.
    pub async fn cache_report(&self, pool: PoolId) -> Result<Option<Vec<CacheReport>>, Error> {
        let Some(known) = self.store().pool(pool).await? else { return Ok(None) };
        let mut seen = Vec::with_capacity(known.buckets.len());
        for bucket in &known.buckets {
            let row = self.store().cache_bucket(bucket.key).await?;
            let position = match self.shared.caches.cache().filter(|_| row.is_some()) {
                Some(cache) => cache.position(bucket.key).await.ok(),
                None => None,
            };
            seen.push((row, position));
        }
        // The pool once more, and last: a cache that was credited up to its ledger then has all there is.
        let Some(known) = self.store().pool(pool).await? else { return Ok(None) };
        let mut reports = Vec::with_capacity(seen.len());
        for (bucket, (row, position)) in known.buckets.into_iter().zip(seen) {
            let is_reachable = position.is_some();
            let position = position.flatten();
            let difference = match (&row, &position) {
                (Some(row), Some(position)) => self.difference(bucket.key, row, position).await?,
                (Some(_) | None, _) => None,
            };
            reports.push(CacheReport { bucket, row, position, is_reachable, difference });
        }
        Ok(Some(reports))
    }

    async fn difference(
        &self,
        bucket: BucketKey,
        row: &CacheBucket,
        position: &Position,
    ) -> Result<Option<i64>, Error> {
        let entries = position.applied.saturating_sub(row.base_seq);
        if position.epoch != row.epoch || entries > ENTRIES_MAX {
            return Ok(None);
        }
        let credits = self.credits_between(bucket, row.base_seq, position.applied).await?;
        let lawful = credits.map(|credits| row.lawful(credits, position.accepted_units));
        Ok(lawful.map(|lawful| position.available.saturating_sub(lawful)))
    }
}
