//! Making a node ready for a campaign before its first order: connections are open and know the statements, the
//! catalog knows its pools, the shelf their stock, and bundles and lines without location are made up.
//!
//! Whoever is asked does it before answering. The other nodes see in the catalog that it was asked, and do it, too.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::campaign::Campaign;
use holdfast_core::id::{CampaignId, Sku};
use holdfast_core::time::Timestamp;
use holdfast_store::{Page, PoolFilter, PoolRow};

use crate::engine::Engine;
use crate::error::Error;

/// Pools that are read at a time.
const PAGE: usize = 500;
/// Most pools of a campaign that a node makes ready; the rest are learnt as orders come.
const POOLS_MAX: usize = 20_000;
/// Most campaigns of which is remembered what was done.
const KEPT_MAX: usize = 1_000;

/// What a node has made ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Warmth {
    /// Pools that the node knows, with the stock of their buckets.
    pub pools: usize,
    /// Their buckets.
    pub buckets: usize,
    /// Bundles, and SKUs without location, that are made up.
    pub offers: usize,
    /// Connections to the database that are open.
    pub connections: usize,
    /// Whether that is all of the campaign.
    pub is_ready: bool,
    /// How long it took.
    pub took: Duration,
}

/// What was done, and for which asking. One campaign at a time.
pub(crate) type Warmed = tokio::sync::Mutex<HashMap<CampaignId, (Timestamp, Warmth)>>;

impl Engine {
    /// Makes this node ready for a campaign, once for each time that it was asked.
    pub async fn warm(&self, campaign: &Campaign) -> Result<Warmth, Error> {
        let Some(asked_at) = campaign.warm_asked_at else { return Ok(Warmth::default()) };
        let mut warmed = self.shared.warmed.lock().await;
        if let Some((at, warmth)) = warmed.get(&campaign.id)
            && *at >= asked_at
        {
            return Ok(*warmth);
        }
        let begun = Instant::now();
        let mut warmth = Warmth { connections: self.store().warm().await?, ..Warmth::default() };
        self.shared.hashing.warm(self.store()).await?;
        let skus = self.warm_pools(&campaign.id, &mut warmth).await?;
        let bundles = campaign.assortment.bundles.keys();
        let flexible = skus.iter().filter(|_| !campaign.assortment.locations.is_empty());
        for sku in flexible.chain(bundles) {
            let served = self.shared.catalog.served(self.store(), campaign, sku, None).await?;
            warmth.offers = warmth.offers.saturating_add(usize::from(served.is_some()));
        }
        warmth.took = begun.elapsed();
        if warmed.len() >= KEPT_MAX {
            warmed.clear();
        }
        warmed.insert(campaign.id.clone(), (asked_at, warmth));
        Ok(warmth)
    }

    /// Another node was asked, or this one: whoever comes second finds it done.
    pub(crate) fn warm_beside(&self, campaign: Arc<Campaign>) {
        let engine = self.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.warm(&campaign).await {
                tracing::warn!(%error, campaign = %campaign.id, "the node is not warm; it sells all the same");
            }
        });
    }

    async fn warm_pools(&self, campaign: &CampaignId, warmth: &mut Warmth) -> Result<BTreeSet<Sku>, Error> {
        let (mut skus, mut after) = (BTreeSet::new(), None);
        loop {
            let filter = PoolFilter { campaign: Some(campaign.clone()), ..PoolFilter::default() };
            let now = self.store().now();
            let page = Page { after, limit: PAGE };
            let (rows, more) = self.shared.catalog.learn(self.store(), filter, page).await?;
            rows.iter().for_each(|row| self.keep_on_shelf(row, now));
            warmth.pools = warmth.pools.saturating_add(rows.len());
            warmth.buckets = warmth.buckets.saturating_add(rows.iter().map(|row| row.buckets.len()).sum());
            skus.extend(rows.iter().map(|row| row.pool.sku.clone()));
            after = rows.last().map(|row| row.pool.id);
            warmth.is_ready = !more;
            if !more || warmth.pools >= POOLS_MAX {
                return Ok(skus);
            }
        }
    }

    /// Puts what was read of a pool on the shelf.
    pub(crate) fn keep_on_shelf(&self, row: &PoolRow, now: Timestamp) {
        if let Some(bucket) = self.shared.shelf.keep_pool(row, now) {
            self.shared.metrics.note_drift(bucket);
        }
    }
}
