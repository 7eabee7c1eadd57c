//! Expiry: two channels doing the same idempotent release. The timer is prompt and may be lost with the
//! process; the scan finds what it missed. Both only trigger: the order's state decides, under its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_core::command::{Command, OrderAction, OrderCommand, Outcome, Signed};
use holdfast_core::id::OrderId;
use holdfast_core::order::Order;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{DueOrder, Page};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::api::{Engine, Error};
use crate::lanes::{Class, LaneKey};

/// Most orders set aside; beyond it the scan simply finds them again.
const ASIDE_MAX: usize = 10_000;

/// What one expiry pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpiryPass {
    /// Orders that changed: released, or sent to review.
    pub changed: usize,
    /// Orders for which there was nothing to do.
    pub unchanged: usize,
    /// Orders that failed and are set aside.
    pub failed: usize,
    /// Whether there may be more.
    pub more: bool,
}

/// What the node remembers of holds that will end.
pub(crate) struct Expiry {
    timer: Mutex<BTreeSet<(Timestamp, OrderId, BucketKey)>>,
    aside: Mutex<BTreeMap<OrderId, Timestamp>>,
    timer_max: usize,
    woken: Notify,
}

impl Expiry {
    pub(crate) fn new(timer_max: usize) -> Self {
        Self { timer: Mutex::default(), aside: Mutex::default(), timer_max, woken: Notify::new() }
    }

    /// Remembers when an order is due.
    pub(crate) fn remember(&self, order: &Order) {
        if let Some((due_at, home)) = order.due_at.zip(order.home) {
            self.remember_at(due_at, order.id, home);
        }
    }

    fn remember_at(&self, due_at: Timestamp, order: OrderId, home: BucketKey) {
        let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = timer.first().is_none_or(|(first, ..)| due_at < *first);
        // A full timer loses nothing: the scan finds the order.
        if timer.len() < self.timer_max {
            timer.insert((due_at, order, home));
        }
        drop(timer);
        if is_next {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner).first().map(|(due, ..)| *due)
    }

    /// Takes what is due from the timer.
    fn take_due(&self, now: Timestamp, most: usize) -> Vec<DueOrder> {
        let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        while due.len() < most
            && let Some((due_at, id, home)) = timer.first().copied()
            && due_at <= now
        {
            timer.pop_first();
            due.push(DueOrder { id, home, due_at });
        }
        due
    }

    fn set_aside(&self, order: OrderId, until: Timestamp) {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        if aside.len() < ASIDE_MAX {
            aside.insert(order, until);
        }
    }

    /// Whether an order was set aside and its time has not come. Forgets those whose time has.
    fn is_aside(&self, order: OrderId, now: Timestamp) -> bool {
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

impl Engine {
    /// Starts the expiry worker. It ends when the engine drains.
    pub fn start_workers(&self) {
        let engine = self.clone();
        tokio::spawn(async move { engine.run_expiry().await });
    }

    /// The worker: wakes on its timer and on signal, takes no input.
    async fn run_expiry(&self) {
        let mut scan_at = self.store().now();
        while !self.is_draining() {
            let now = self.store().now();
            let mut pass = self.expire_due(now).await;
            if now >= scan_at && !pass.more {
                pass = self.scan_overdue(now).await;
                if !pass.more {
                    let interval =
                        i64::try_from(self.shared.config.scan_interval.as_micros()).unwrap_or(i64::MAX);
                    scan_at = Timestamp(now.0.saturating_add(interval));
                }
            }
            if pass.failed > 0 {
                tracing::warn!(failed = pass.failed, "orders could not be expired and are set aside");
            }
            if !pass.more {
                let next = self.shared.expiry.next_due().map_or(scan_at, |due| due.min(scan_at));
                let micros = u64::try_from(next.0.saturating_sub(self.store().now().0)).unwrap_or(0);
                let woken = self.shared.expiry.woken.notified();
                // A wake-up or the time, whichever is first: both lead to the same pass.
                let _ = tokio::time::timeout(Duration::from_micros(micros.max(1_000)), woken).await;
            }
        }
    }

    /// Expires what the timer says is due, at most one pass.
    pub async fn expire_due(&self, now: Timestamp) -> ExpiryPass {
        let most = self.shared.config.expiry_pass_max;
        let due = self.shared.expiry.take_due(now, most);
        let more = due.len() == most;
        ExpiryPass { more, ..self.expire_all(due, now).await }
    }

    /// Expires what the scan finds overdue, at most one pass. Orders that were set aside are stepped over,
    /// so that one that cannot be expired never stops the others.
    pub async fn scan_overdue(&self, now: Timestamp) -> ExpiryPass {
        let most = self.shared.config.expiry_pass_max;
        let mut after = None;
        loop {
            let page = match self.store().due(now, Page { after, limit: most }).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "overdue orders could not be read");
                    return ExpiryPass::default();
                }
            };
            let full = page.len() == most;
            after = page.last().map(|last| (last.due_at, last.id));
            let due: Vec<_> =
                page.into_iter().filter(|due| !self.shared.expiry.is_aside(due.id, now)).collect();
            if !due.is_empty() || !full {
                return ExpiryPass { more: full, ..self.expire_all(due, now).await };
            }
        }
    }

    async fn expire_all(&self, due: Vec<DueOrder>, now: Timestamp) -> ExpiryPass {
        let mut tasks = JoinSet::new();
        for order in due {
            let engine = self.clone();
            tasks.spawn(async move { (order, engine.expire(order).await) });
        }
        let mut pass = ExpiryPass::default();
        while let Some(done) = tasks.join_next().await {
            let Ok((order, result)) = done else {
                pass.failed += 1;
                continue;
            };
            match result {
                Ok(Outcome::Order { .. }) => pass.changed += 1,
                Ok(Outcome::NotDue(due_at)) => {
                    pass.unchanged += 1;
                    if let Some(due_at) = due_at.filter(|due_at| *due_at > now) {
                        self.shared.expiry.remember_at(due_at, order.id, order.home);
                    }
                    // If its row says that it is overdue and it is not, the scan must not spin on it.
                    self.set_aside(order.id, now);
                }
                Ok(
                    Outcome::Refused { .. }
                    | Outcome::Pool { .. }
                    | Outcome::Adjusted { .. }
                    | Outcome::Miss(_)
                    | Outcome::Elsewhere(_),
                )
                | Err(_) => {
                    pass.failed += 1;
                    self.set_aside(order.id, now);
                }
            }
        }
        pass
    }

    fn set_aside(&self, order: OrderId, now: Timestamp) {
        let aside = i64::try_from(self.shared.config.set_aside.as_micros()).unwrap_or(i64::MAX);
        self.shared.expiry.set_aside(order, Timestamp(now.0.saturating_add(aside)));
    }

    /// Expires one order: under the lock of its home bucket, which is all that most orders need.
    async fn expire(&self, order: DueOrder) -> Result<Outcome, Error> {
        let signed = Signed { actor: Arc::from("expiry"), reason: Arc::from("") };
        let command = OrderCommand { order: order.id, action: OrderAction::Expire, signed: signed.clone() };
        let (lane, locks) = (LaneKey::Bucket(order.home), LockSet::bucket(order.home));
        let outcome = self.shared.lanes.run(lane, Class::Settling, Command::Order(command), locks).await?;
        if let Outcome::Elsewhere(_) = outcome {
            return self.change_unchecked(order.id, OrderAction::Expire, signed).await;
        }
        self.after_change(&outcome);
        Ok(outcome)
    }
}
