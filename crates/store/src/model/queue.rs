//! Queues and leases of the model.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::id::{OrderId, PoolId};
use holdfast_core::order::{Order, State};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

use super::Rows;
use crate::queue::{Lease, QueuePlace};
use crate::read::Page;

/// Who has a lease until when, by its name.
pub(super) type Leases = BTreeMap<String, (u128, Timestamp)>;

fn queue_of(order: &Order) -> Option<BucketKey> {
    order.home.filter(|_| order.state == State::Queued)
}

impl Rows {
    pub(super) fn queue_lengths(&self, pools: &BTreeSet<PoolId>) -> BTreeMap<PoolId, u64> {
        let mut lengths: BTreeMap<PoolId, u64> = pools.iter().map(|pool| (*pool, 0)).collect();
        for bucket in self.orders.values().filter_map(|order| queue_of(order)) {
            if let Some(length) = lengths.get_mut(&bucket.pool) {
                *length += 1;
            }
        }
        lengths
    }

    pub(super) fn queued(&self, bucket: BucketKey, page: &Page<QueuePlace>) -> Vec<QueuePlace> {
        let waits = self.orders.values().filter(|order| queue_of(order) == Some(bucket));
        let places: BTreeSet<(Timestamp, OrderId)> =
            waits.map(|order| (order.created_at, order.id)).collect();
        let is_after = |place: &QueuePlace| page.after.is_none_or(|after| *place > after);
        places.into_iter().filter(is_after).take(page.limit).collect()
    }

    pub(super) fn queues(&self, page: &Page<BucketKey>) -> Vec<BucketKey> {
        let queues: BTreeSet<BucketKey> = self.orders.values().filter_map(|order| queue_of(order)).collect();
        let is_after = |bucket: &BucketKey| page.after.is_none_or(|after| *bucket > after);
        queues.into_iter().filter(is_after).take(page.limit).collect()
    }

    pub(super) fn take_lease(&mut self, lease: Lease, now: Timestamp) -> bool {
        let is_free = self
            .leases
            .get(&lease.name)
            .is_none_or(|(holder, ends_at)| *holder == lease.holder || *ends_at <= now);
        if is_free {
            self.leases.insert(lease.name, (lease.holder, now.plus(lease.lasts)));
        }
        is_free
    }

    pub(super) fn give_up_leases(&mut self, holder: u128, now: Timestamp) {
        for (_, ends_at) in self.leases.values_mut().filter(|(held_by, _)| *held_by == holder) {
            *ends_at = now;
        }
    }
}
