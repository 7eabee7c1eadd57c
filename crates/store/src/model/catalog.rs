//! The model's versions of campaigns, pools and caches.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use holdfast_core::cache::EpochState;
use holdfast_core::campaign::Campaign;
use holdfast_core::command::How;
use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::order::State;
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::{BucketKey, Pool};
use holdfast_core::time::Timestamp;

use super::Rows;
use crate::acts::Act;
use crate::assortment::PutAssortment;
use crate::catalog::CatalogChanges;
use crate::contract::{SwitchCampaign, SwitchPool};
use crate::read::{Page, PoolRow};

/// Which version of the catalog changed what last.
#[derive(Default)]
pub(super) struct Versions {
    now: u64,
    campaigns: BTreeMap<CampaignId, u64>,
    pools: BTreeMap<PoolId, u64>,
    caches: BTreeMap<BucketKey, u64>,
}

impl Versions {
    pub(super) fn campaign_changed(&mut self, id: &CampaignId) {
        self.now += 1;
        self.campaigns.insert(id.clone(), self.now);
    }

    pub(super) fn pool_changed(&mut self, id: PoolId) {
        self.now += 1;
        self.pools.insert(id, self.now);
    }

    pub(super) fn cache_turned(&mut self, key: BucketKey) {
        self.now += 1;
        self.caches.insert(key, self.now);
    }
}

impl Rows {
    pub(super) fn switch_pool(&mut self, switch: &SwitchPool, now: Timestamp) -> Result<PoolRow, Refusal> {
        let before = self.pools.get(&switch.id).cloned().ok_or(Refusal::UnknownPool)?;
        let after = before.clone().after(switch.switch);
        if after != before {
            self.pools.insert(switch.id, after);
            self.catalog.pool_changed(switch.id);
            self.record(&Act::switch_pool(switch), now);
        }
        self.pool_row(switch.id).ok_or(Refusal::UnknownPool)
    }

    pub(super) fn switch_campaign(
        &mut self,
        switch: &SwitchCampaign,
        now: Timestamp,
    ) -> Result<Arc<Campaign>, Refusal> {
        let campaign = self.campaigns.get(&switch.id).cloned().ok_or(Refusal::UnknownCampaign)?;
        let pool = switch.target(&campaign).and_then(|pool| self.pools.get(&pool));
        let of = |pool: &Pool| Some((pool.clone(), self.campaigns.get(&pool.campaign)?.as_ref().clone()));
        let Some(after) = switch.onto(&campaign, pool.and_then(of).as_ref(), now)? else {
            return Ok(campaign);
        };
        let after = Arc::new(after);
        self.campaigns.insert(switch.id.clone(), Arc::clone(&after));
        self.catalog.campaign_changed(&switch.id);
        self.record(&Act::switch(switch), now);
        Ok(after)
    }

    pub(super) fn closed_into(
        &self,
        only: Option<&CampaignId>,
        page: &Page<CampaignId>,
    ) -> Vec<(CampaignId, PoolId)> {
        let after = page.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let waits = |id: &CampaignId| {
            self.orders.values().any(|order| order.state == State::Queued && order.key.campaign == *id)
        };
        let unclosed = self.caches.values().filter(|row| row.state != EpochState::Closed);
        let accepted: BTreeSet<&CampaignId> =
            unclosed.filter_map(|row| Some(&self.pools.get(&row.key.pool)?.campaign)).collect();
        let gives = |(id, campaign): &(&CampaignId, &Arc<Campaign>)| {
            only.is_none_or(|only| only == *id)
                && !campaign.switches.frozen
                && !waits(id)
                && !accepted.contains(id)
        };
        let found = self.campaigns.range((after, Bound::Unbounded)).filter(gives);
        found.filter_map(|(id, campaign)| Some((id.clone(), campaign.unsold_to?))).take(page.limit).collect()
    }

    pub(super) fn put_assortment(
        &mut self,
        put: &PutAssortment,
        now: Timestamp,
    ) -> Result<(Arc<Campaign>, How), Refusal> {
        let mut campaign = self.campaigns.get(&put.campaign).cloned().ok_or(Refusal::UnknownCampaign)?;
        let has_pool =
            self.pools.values().any(|p| p.campaign == put.campaign && Some(&p.sku) == put.bundle());
        let (after, how) = put.onto(&campaign, has_pool)?;
        if how != How::Repeated {
            let changed = Arc::make_mut(&mut campaign);
            (changed.assortment, changed.updated_at) = (after, now);
            self.campaigns.insert(put.campaign.clone(), Arc::clone(&campaign));
            self.catalog.campaign_changed(&put.campaign);
            self.record(&Act::put_assortment(put), now);
        }
        Ok((campaign, how))
    }

    pub(super) fn catalog_since(&self, since: Option<u64>) -> CatalogChanges {
        let Versions { now, campaigns, pools, caches } = &self.catalog;
        let is_new = |version: &u64| since.is_some_and(|since| *version > since);
        let mut changed: Vec<_> = campaigns
            .iter()
            .filter(|(_, version)| is_new(version))
            .filter_map(|(id, version)| Some((*version, self.campaigns.get(id)?.clone())))
            .collect();
        changed.sort_unstable_by_key(|(version, _)| *version);
        let mut rows: Vec<_> = pools
            .iter()
            .filter(|(_, version)| is_new(version))
            .filter_map(|(id, version)| Some((*version, self.pool_row(*id)?)))
            .collect();
        rows.sort_unstable_by_key(|(version, _)| *version);
        let mut turned: Vec<_> = caches
            .iter()
            .filter(|(_, version)| is_new(version))
            .filter_map(|(key, version)| Some((*version, self.caches.get(key)?.clone())))
            .collect();
        turned.sort_unstable_by_key(|(version, _)| *version);
        CatalogChanges::page(*now, changed, rows, turned)
    }
}
