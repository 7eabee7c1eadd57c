//! What the node knows of campaigns and pools. Addresses of pools never change, so they are kept;
//! campaigns are replaced whenever this node changes them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use holdfast_core::campaign::Campaign;
use holdfast_core::id::{CampaignId, Location, PoolId, Sku};
use holdfast_core::stock::{Path, Pool};
use holdfast_store::{Error, Page, PoolFilter, Store};

type Address = (CampaignId, Sku, Location);

/// A pool's place in routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolEntry {
    pub(crate) id: PoolId,
    pub(crate) buckets: u32,
    pub(crate) path: Path,
}

impl PoolEntry {
    const fn of(pool: &Pool) -> Self {
        Self { id: pool.id, buckets: pool.buckets, path: pool.path }
    }
}

/// The catalog.
#[derive(Default)]
pub(crate) struct Catalog {
    campaigns: RwLock<HashMap<CampaignId, Arc<Campaign>>>,
    pools: RwLock<HashMap<Address, PoolEntry>>,
}

impl Catalog {
    pub(crate) fn keep_campaign(&self, campaign: &Arc<Campaign>) {
        let mut campaigns = self.campaigns.write().unwrap_or_else(PoisonError::into_inner);
        campaigns.insert(campaign.id.clone(), Arc::clone(campaign));
    }

    pub(crate) fn keep_pool(&self, pool: &Pool) {
        let address = (pool.campaign.clone(), pool.sku.clone(), pool.location.clone());
        let entry = PoolEntry::of(pool);
        self.pools.write().unwrap_or_else(PoisonError::into_inner).insert(address, entry);
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
        let Some(found) = store.campaign(id.clone()).await? else { return Ok(None) };
        // A switch may have been kept meanwhile: what is known is newer than what was read.
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
    ) -> Result<Option<PoolEntry>, Error> {
        let address = (campaign.clone(), sku.clone(), location.clone());
        let known = self.pools.read().unwrap_or_else(PoisonError::into_inner).get(&address).copied();
        if known.is_some() {
            return Ok(known);
        }
        let (campaign, sku, location) = address;
        let filter = PoolFilter {
            campaign: Some(campaign),
            sku: Some(sku),
            location: Some(location),
            ..PoolFilter::default()
        };
        let (found, _) = store.pools(filter, Page { after: None, limit: 1 }).await?;
        for row in &found {
            self.keep_pool(&row.pool);
        }
        Ok(found.first().map(|row| PoolEntry::of(&row.pool)))
    }
}
