//! What the node knows of campaigns and pools: read when first asked for, and told by the authority what
//! changed since, whoever changed it. It routes and refuses early; only the authority decides.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use holdfast_core::cache::CacheBucket;
use holdfast_core::campaign::Campaign;
use holdfast_core::id::{CampaignId, Location, PoolId, Sku};
use holdfast_core::stock::{BucketKey, CacheFallback, Path, Routing};
use holdfast_core::time::Timestamp;
use holdfast_store::{CatalogChanges, Error, Page, PoolFilter, PoolRow, Store};
use tokio::time::MissedTickBehavior;

use crate::engine::Engine;
use crate::offers::Offers;

type Address = (CampaignId, Sku, Location);

/// A pool's place in routing.
#[derive(Debug)]
pub(crate) struct PoolEntry {
    pub(crate) id: PoolId,
    pub(crate) path: Path,
    pub(crate) routing: Routing,
    /// The weight of every bucket, by its number.
    pub(crate) weights: Vec<u32>,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) frozen: bool,
    pub(crate) retired: bool,
    pub(crate) cache_fallback: CacheFallback,
    /// Shared by every version of the entry.
    pub(crate) traffic: Arc<Traffic>,
}

impl PoolEntry {
    fn new(row: &PoolRow, traffic: Arc<Traffic>) -> Self {
        let pool = &row.pool;
        Self {
            id: pool.id,
            path: pool.path,
            routing: pool.routing,
            weights: row.buckets.iter().map(|bucket| bucket.weight).collect(),
            max_concurrency: pool.max_concurrency,
            frozen: pool.frozen,
            retired: pool.retired,
            cache_fallback: pool.cache_fallback,
            traffic,
        }
    }

    /// Whether its orders are meant for a cache.
    fn is_cached(&self) -> bool {
        self.path == Path::Cached && !self.retired
    }

    /// How many buckets it has.
    pub(crate) fn buckets(&self) -> u32 {
        u32::try_from(self.weights.len()).unwrap_or(u32::MAX)
    }
}

/// What goes on in a pool on this node.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Whose turn it is, for round robin.
    pub(crate) turn: AtomicU64,
    /// Orders that are being placed.
    placing: AtomicU32,
}

/// An order that is being placed, until it is dropped.
#[derive(Debug)]
pub(crate) struct Placing(Arc<Traffic>);

impl Traffic {
    /// One more order, if there may be one more. They are counted without a limit too: one may come while
    /// they are under way.
    pub(crate) fn enter(self: &Arc<Self>, max: Option<u32>) -> Option<Placing> {
        let before = self.placing.fetch_add(1, Ordering::SeqCst);
        let placing = Placing(Arc::clone(self));
        max.is_none_or(|max| before < max).then_some(placing)
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        self.0.placing.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The catalog.
#[derive(Default)]
pub(crate) struct Catalog {
    campaigns: RwLock<HashMap<CampaignId, Arc<Campaign>>>,
    pools: RwLock<HashMap<Address, Arc<PoolEntry>>>,
    /// How lines are served that are bundles or have a choice of places; made of the rest.
    pub(crate) offers: Offers,
    /// Held while changes are read.
    version: tokio::sync::Mutex<Known>,
}

/// How far the authority's catalog is known.
#[derive(Debug, Default)]
struct Known {
    /// Every change up to this version.
    version: Option<u64>,
    /// When it was last begun to read what is newer.
    read_at: Option<Instant>,
}

/// What a refresh found.
#[derive(Debug, Default)]
struct Changed {
    /// Whether it is not the authority that it was.
    is_other_authority: bool,
    /// Whether a campaign changed.
    is_other_policy: bool,
    pools: Vec<PoolRow>,
    caches: Vec<CacheBucket>,
    /// Campaigns for which nodes were asked to make ready.
    to_warm: Vec<Arc<Campaign>>,
}

impl Catalog {
    /// Knows a version before anything is kept: what changes after it is told.
    pub(crate) async fn begin(&self, store: &dyn Store) -> Result<(), Error> {
        let mut known = self.version.lock().await;
        if known.version.is_none() {
            known.version = Some(store.catalog(None).await?.version);
        }
        Ok(())
    }

    /// As [`Catalog::refresh`], unless somebody else did it since: of many who ask at once one reads.
    async fn catch_up(&self, store: &dyn Store) -> Result<Changed, Error> {
        let asked = Instant::now();
        let mut known = self.version.lock().await;
        if known.read_at.is_some_and(|read_at| read_at > asked) {
            return Ok(Changed::default());
        }
        self.read_changes(store, &mut known).await
    }

    /// Reads what changed since.
    async fn refresh(&self, store: &dyn Store) -> Result<Changed, Error> {
        let mut known = self.version.lock().await;
        self.read_changes(store, &mut known).await
    }

    async fn read_changes(&self, store: &dyn Store, known: &mut Known) -> Result<Changed, Error> {
        known.read_at = Some(Instant::now());
        let Known { version, .. } = known;
        let mut all = Changed::default();
        loop {
            let changes = store.catalog(*version).await?;
            if version.is_some_and(|before| changes.version < before) {
                // Another authority than before: what is kept may be of a past that it has not.
                self.campaigns.write().unwrap_or_else(PoisonError::into_inner).clear();
                self.pools.write().unwrap_or_else(PoisonError::into_inner).clear();
                all.is_other_authority = true;
            }
            *version = Some(changes.version);
            let CatalogChanges { campaigns, pools: changed, caches, more, .. } = changes;
            all.is_other_policy |= !campaigns.is_empty();
            for campaign in campaigns {
                let mut kept = self.campaigns.write().unwrap_or_else(PoisonError::into_inner);
                let before = kept.insert(campaign.id.clone(), Arc::clone(&campaign));
                let asked_before = before.and_then(|before| before.warm_asked_at);
                all.to_warm.extend((campaign.warm_asked_at > asked_before).then_some(campaign));
            }
            changed.iter().for_each(|row| self.keep_pool(row));
            all.pools.extend(changed);
            all.caches.extend(caches);
            if all.is_other_policy || !all.pools.is_empty() {
                self.offers.forget_all();
            }
            if !more {
                return Ok(all);
            }
        }
    }

    pub(crate) fn keep_pool(&self, row: &PoolRow) {
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        let address = address(row);
        let traffic = pools.get(&address).map(|known| Arc::clone(&known.traffic)).unwrap_or_default();
        pools.insert(address, Arc::new(PoolEntry::new(row, traffic)));
    }

    /// Every bucket of the pools that are on the cached path, as far as the node knows them, without those of
    /// campaigns that are closed.
    pub(crate) fn cached_buckets(&self) -> BTreeSet<BucketKey> {
        let campaigns = self.campaigns.read().unwrap_or_else(PoisonError::into_inner);
        let is_closed = |of: &CampaignId| campaigns.get(of).is_some_and(|known| known.switches.closed);
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let cached = pools.iter().filter(|((of, ..), entry)| entry.is_cached() && !is_closed(of));
        cached.flat_map(|(_, entry)| buckets_of(entry)).collect()
    }

    /// The campaign of a bucket that is on the cached path; none if it is not.
    pub(crate) fn cached_of(&self, bucket: BucketKey) -> Option<CampaignId> {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let is_of = |entry: &PoolEntry| entry.id == bucket.pool && bucket.number < entry.buckets();
        let found = pools.iter().find(|(_, entry)| is_of(entry) && entry.is_cached());
        found.map(|((campaign, ..), _)| campaign.clone())
    }

    /// The same of one campaign.
    pub(crate) fn cached_buckets_of(&self, campaign: &CampaignId) -> BTreeSet<BucketKey> {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let cached = pools.iter().filter(|((of, ..), entry)| of == campaign && entry.path == Path::Cached);
        cached.flat_map(|(_, entry)| buckets_of(entry)).collect()
    }

    /// The campaigns of these pools, where the node knows them.
    pub(crate) fn campaigns_of(&self, wanted: &[PoolId]) -> HashMap<PoolId, CampaignId> {
        let pools = self.pools.read().unwrap_or_else(PoisonError::into_inner);
        let found = pools.iter().filter(|(_, entry)| wanted.contains(&entry.id));
        found.map(|((campaign, ..), entry)| (entry.id, campaign.clone())).collect()
    }

    /// A campaign, from the store if the node does not know it yet.
    pub(crate) async fn campaign(
        &self,
        store: &dyn Store,
        id: &CampaignId,
    ) -> Result<Option<Arc<Campaign>>, Error> {
        let known = self.campaigns.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        self.begin(store).await?;
        let Some(found) = store.campaign(id.clone()).await? else { return Ok(None) };
        // A change may have been told meanwhile: what is known is newer than what was read.
        let mut campaigns = self.campaigns.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Arc::clone(campaigns.entry(id.clone()).or_insert(found.campaign))))
    }

    /// The pool of an address, from the store if the node does not know it yet.
    pub(crate) async fn pool(
        &self,
        store: &dyn Store,
        campaign: &CampaignId,
        sku: &Sku,
        location: &Location,
    ) -> Result<Option<Arc<PoolEntry>>, Error> {
        let address = (campaign.clone(), sku.clone(), location.clone());
        let known = self.pools.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let filter = PoolFilter {
            campaign: Some(address.0.clone()),
            sku: Some(address.1.clone()),
            location: Some(address.2.clone()),
            ..PoolFilter::default()
        };
        self.learn(store, filter, Page { after: None, limit: 1 }).await?;
        Ok(self.pools.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned())
    }

    /// Reads pools that the node may not know yet.
    pub(crate) async fn learn(
        &self,
        store: &dyn Store,
        filter: PoolFilter,
        page: Page<PoolId>,
    ) -> Result<(Vec<PoolRow>, bool), Error> {
        self.begin(store).await?;
        let (rows, more) = store.pools(filter, page).await?;
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        for row in &rows {
            // As with campaigns.
            pools.entry(address(row)).or_insert_with(|| Arc::new(PoolEntry::new(row, Arc::default())));
        }
        drop(pools);
        Ok((rows, more))
    }
}

fn buckets_of(entry: &PoolEntry) -> impl Iterator<Item = BucketKey> + use<> {
    let pool = entry.id;
    (0..entry.buckets()).map(move |number| BucketKey { pool, number })
}

fn address(row: &PoolRow) -> Address {
    (row.pool.campaign.clone(), row.pool.sku.clone(), row.pool.location.clone())
}

impl Engine {
    /// Reads what changed in the authority's catalog, on whatever node.
    pub async fn refresh_catalog(&self) -> Result<(), Error> {
        let now = self.store().now();
        let changed = self.shared.catalog.refresh(self.store()).await?;
        self.after_refresh(changed, now);
        Ok(())
    }

    /// Before something is said not to be there: another node may just have made it.
    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        let now = self.store().now();
        let changed = self.shared.catalog.catch_up(self.store()).await?;
        self.after_refresh(changed, now);
        Ok(())
    }

    fn after_refresh(&self, changed: Changed, now: Timestamp) {
        if changed.is_other_authority {
            self.shared.caches.forget_all();
        }
        if !changed.caches.is_empty() {
            self.shared.caches.keep(changed.caches);
        }
        if changed.is_other_policy {
            self.shared.verdicts.forget_all();
        }
        changed.pools.iter().for_each(|row| self.keep_on_shelf(row, now));
        changed.to_warm.into_iter().for_each(|campaign| self.warm_beside(campaign));
    }

    /// After a change by this node. One that cannot be read now is read by the worker.
    pub(crate) async fn catalog_changed(&self) {
        if let Err(error) = self.refresh_catalog().await {
            tracing::warn!(%error, "what changed in the catalog could not be read");
        }
    }

    /// The worker: asks several times a second, also when nothing else goes on. A node that cannot ask works
    /// on with what it knows; the authority decides all the same.
    pub(crate) async fn run_catalog(&self) {
        let mut ticks = tokio::time::interval(self.shared.config.catalog_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_failing = false;
        while !self.is_draining() {
            ticks.tick().await;
            match self.refresh_catalog().await {
                Ok(()) => is_failing = false,
                Err(error) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(%error, "what changed in the catalog cannot be read; asking on");
                    }
                }
            }
        }
    }
}
