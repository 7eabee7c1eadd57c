//! The audit of the model, and the counts that a new limit needs.

use holdfast_core::audit::{Auditor, Report};
use holdfast_core::campaign::{Campaign, Policy};
use holdfast_core::id::PoolId;
use holdfast_core::ledger::Entry;
use holdfast_core::limit::Recount;
use holdfast_core::snapshot::{PaymentClaim, UsageKey};

use super::Rows;
use crate::read::{LEDGERS_AHEAD_MAX, LedgerAhead};

impl Rows {
    pub(super) fn ledgers_ahead(&self, pools: &[PoolId]) -> Vec<LedgerAhead> {
        let buckets = self.buckets.values().filter(|bucket| pools.contains(&bucket.key.pool));
        let ahead = buckets.filter_map(|bucket| {
            let of_bucket = self.ledger.range((bucket.key, 0)..=(bucket.key, u64::MAX));
            let mut beyond =
                of_bucket.map(|(_, entry)| entry).skip_while(|entry| entry.seq <= bucket.ledger_seq);
            let first = beyond.next()?;
            let last_seq = beyond.last().unwrap_or(first).seq;
            Some(LedgerAhead { bucket: *bucket, first: first.clone(), last_seq })
        });
        ahead.take(LEDGERS_AHEAD_MAX).collect()
    }

    pub(super) fn audit(&self) -> Report {
        let mut auditor = Auditor::new();
        self.campaigns.values().for_each(|campaign| auditor.campaign(campaign));
        self.pools.values().for_each(|pool| auditor.pool(pool));
        self.caches.values().for_each(|row| auditor.cache(row));
        for bucket in self.buckets.values() {
            auditor.bucket(bucket);
            let of_bucket = self.ledger.range((bucket.key, 0)..=(bucket.key, u64::MAX));
            of_bucket.for_each(|(_, entry)| auditor.entry(entry));
        }
        for order in self.orders.values() {
            let own: Vec<Entry> =
                self.ledger.values().filter(|entry| entry.order_id == Some(order.id)).cloned().collect();
            auditor.order(order, &own);
        }
        self.usage.iter().for_each(|(key, usage)| auditor.usage(key, *usage));
        self.payments.values().for_each(|row| auditor.payment(row));
        for ((provider, payment_id), order) in &self.claims {
            let (provider, payment_id) = (provider.clone(), payment_id.clone());
            auditor.claim(&PaymentClaim { provider, payment_id, order: *order });
        }
        auditor.finish()
    }

    /// Counts usage anew for a limit that is added later, and drops what nobody limits any more.
    pub(super) fn recount(&mut self, before: &Policy, campaign: &mut Campaign) {
        let (recount, void) = Recount::of(before, &campaign.policy);
        self.usage.retain(|key, _| key.campaign != campaign.id || !void.covers(&key.limited));
        let Some(mut recount) = recount else { return };
        self.orders.values().filter(|order| order.key.campaign == campaign.id).for_each(|o| recount.order(o));
        let counted = recount.finish(&mut campaign.ceilings).into_iter();
        let row = |(limited, usage)| (UsageKey { campaign: campaign.id.clone(), limited }, usage);
        self.usage.extend(counted.map(row));
    }
}
