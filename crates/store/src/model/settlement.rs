//! The model's settlement: every row is looked at.

use holdfast_core::id::{CampaignId, OrderId};
use holdfast_core::stock::Pool;
use holdfast_core::time::Timestamp;

use super::Rows;
use crate::read::LedgerPosition;
use crate::settlement::{Settlement, SettlementSum};

impl Rows {
    pub(super) fn settlement(&self, campaign: CampaignId, now: Timestamp) -> Option<Settlement> {
        self.campaigns.get(&campaign)?;
        let mut sum = SettlementSum::new(campaign.clone(), now);
        let is_its = |pool: &Pool| pool.campaign == campaign;
        for pool in self.pools.values().filter(|pool| is_its(pool)) {
            sum.pool(pool.clone(), &self.buckets_of(pool.id));
        }
        for entry in
            self.ledger.values().filter(|entry| self.pools.get(&entry.bucket.pool).is_some_and(is_its))
        {
            sum.entries(entry.bucket.pool, entry.action, entry.delta.supply_change());
        }
        self.orders
            .values()
            .filter(|order| order.key.campaign == campaign)
            .for_each(|order| sum.refunds(&order.lines));
        Some(sum.finish())
    }

    pub(super) fn order_position(&self, order: OrderId, version: u32) -> Option<LedgerPosition> {
        let carries = |position: &LedgerPosition| {
            self.ledger
                .get(position)
                .is_some_and(|entry| entry.order_id == Some(order) && entry.order_version == Some(version))
        };
        self.ledger.keys().copied().find(carries)
    }
}
