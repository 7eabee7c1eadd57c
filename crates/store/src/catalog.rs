//! The catalog: campaigns, pools with how orders come to them, and the epochs of caches. Nodes keep it and ask what changed.

use std::sync::Arc;

use holdfast_core::cache::CacheBucket;
use holdfast_core::campaign::Campaign;

use crate::read::PoolRow;

/// Most rows of one answer about the catalog.
pub const CATALOG_PAGE_MAX: usize = 200;

/// What changed in the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogChanges {
    /// Every change up to this version is told.
    pub version: u64,
    /// Campaigns as they are now.
    pub campaigns: Vec<Arc<Campaign>>,
    /// Pools as they are now, with their buckets.
    pub pools: Vec<PoolRow>,
    /// Caches whose epoch was turned, as they are now. What landed in them meanwhile is no change.
    pub caches: Vec<CacheBucket>,
    /// Whether there is more to ask for, from `version` on.
    pub more: bool,
}

impl CatalogChanges {
    /// A page of rows that changed, each with its own version. `version` is the catalog's, read before them.
    /// Of each kind at least the first [`CATALOG_PAGE_MAX`] + 1 are given, in order of versions.
    pub fn page(
        version: u64,
        campaigns: Vec<(u64, Arc<Campaign>)>,
        pools: Vec<(u64, PoolRow)>,
        caches: Vec<(u64, CacheBucket)>,
    ) -> Self {
        let mut versions: Vec<u64> = campaigns.iter().map(|(at, _)| *at).collect();
        versions.extend(pools.iter().map(|(at, _)| *at));
        versions.extend(caches.iter().map(|(at, _)| *at));
        versions.sort_unstable();
        let more = versions.len() > CATALOG_PAGE_MAX;
        versions.truncate(CATALOG_PAGE_MAX);
        let last = versions.last().copied().unwrap_or(version);
        Self {
            // What changed after the version was read is told again: better twice than never.
            version: if more { last } else { version },
            campaigns: campaigns.into_iter().filter(|(at, _)| *at <= last).map(|(_, row)| row).collect(),
            caches: caches.into_iter().filter(|(at, _)| *at <= last).map(|(_, row)| row).collect(),
            pools: pools.into_iter().filter(|(at, _)| *at <= last).map(|(_, row)| row).collect(),
            more,
        }
    }
}
