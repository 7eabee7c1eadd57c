//! What the node remembers of holds that will end. It is prompt, and it may be lost: the scan finds the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_core::id::OrderId;
use holdfast_core::order::Order;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::DueOrder;
use tokio::sync::Notify;

/// Most orders set aside; beyond it the scan simply finds them again.
const ASIDE_MAX: usize = 10_000;

/// Ends of holds, and orders that are set aside.
pub(crate) struct Timer {
    due: Mutex<BTreeSet<(Timestamp, OrderId, BucketKey)>>,
    aside: Mutex<BTreeMap<OrderId, Timestamp>>,
    timer_max: usize,
    woken: Notify,
}

impl Timer {
    pub(crate) fn new(timer_max: usize) -> Self {
        Self { due: Mutex::default(), aside: Mutex::default(), timer_max, woken: Notify::new() }
    }

    /// Remembers when an order is due.
    pub(crate) fn remember(&self, order: &Order) {
        if let Some((due_at, home)) = order.due_at.zip(order.home) {
            self.remember_at(due_at, order.id, home);
        }
    }

    pub(crate) fn remember_at(&self, due_at: Timestamp, order: OrderId, home: BucketKey) {
        let mut known = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = known.first().is_none_or(|(first, ..)| due_at < *first);
        // A full timer loses nothing: the scan finds the order.
        if known.len() < self.timer_max {
            known.insert((due_at, order, home));
        }
        drop(known);
        if is_next {
            self.wake();
        }
    }

    /// Forgets an end that will not come: the order has ended otherwise.
    pub(crate) fn forget(&self, due_at: Timestamp, order: OrderId, home: BucketKey) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).remove(&(due_at, order, home));
    }

    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Waits for a wake-up or for the time, whichever is first.
    pub(crate) async fn woken(&self, most: Duration) {
        let _ = tokio::time::timeout(most, self.woken.notified()).await;
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).first().map(|(due, ..)| *due)
    }

    /// Takes what is due from the timer.
    pub(crate) fn take_due(&self, now: Timestamp, most: usize) -> Vec<DueOrder> {
        let mut known = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        while due.len() < most
            && let Some((due_at, id, home)) = known.first().copied()
            && due_at <= now
        {
            known.pop_first();
            due.push(DueOrder { id, home, due_at });
        }
        due
    }

    /// How many ends it remembers.
    pub(crate) fn count(&self) -> usize {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many orders are set aside, or were and have not been looked at since.
    pub(crate) fn aside_count(&self) -> usize {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn set_aside(&self, order: OrderId, until: Timestamp) {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        if aside.len() < ASIDE_MAX {
            aside.insert(order, until);
        }
    }

    /// Whether an order was set aside and its time has not come. Forgets those whose time has.
    pub(crate) fn is_aside(&self, order: OrderId, now: Timestamp) -> bool {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        match aside.get(&order) {
            Some(until) if *until > now => true,
            Some(_) => {
                aside.remove(&order);
                false
            }
            None => false,
        }
    }
}
