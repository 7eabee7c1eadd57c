//! The audit of the model.

use holdfast_core::audit::{Auditor, Report};
use holdfast_core::ledger::Entry;

use super::Rows;

impl Rows {
    pub(super) fn audit(&self) -> Report {
        let mut auditor = Auditor::new();
        self.campaigns.values().for_each(|campaign| auditor.campaign(campaign));
        self.pools.values().for_each(|pool| auditor.pool(pool));
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
        auditor.finish()
    }
}
