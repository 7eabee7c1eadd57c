//! Watchers: whoever waits for an order to change. A commit tells them after it is flushed. They are a
//! trigger and no authority: one that was missed is found by reading the order anew, which every waiter
//! does now and then.
//!
//! A watcher keeps the next few changes and, when its reader is slow, only the latest of them: memory does
//! not grow with what nobody reads. When nobody watches a commit pays one atomic read.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_core::command::Outcome;
use holdfast_core::id::OrderId;
use holdfast_core::order::{Order, State};
use holdfast_metrics::Overload;
use tokio::sync::Notify;

use crate::cache::Found;
use crate::engine::Engine;
use crate::error::Error;

/// Most changes that wait for one reader. A large order takes the room of many small ones.
const PENDING_MAX: usize = 8;
/// Lines of all the changes that wait for one reader; the latest is kept however many it has.
const PENDING_LINES_MAX: usize = 400;

/// What waits for one reader.
#[derive(Debug, Default)]
struct Slot {
    pending: Mutex<VecDeque<Arc<Order>>>,
    wake: Notify,
}

impl Slot {
    fn pending(&self) -> MutexGuard<'_, VecDeque<Arc<Order>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, order: &Arc<Order>) {
        let mut pending = self.pending();
        let lines: usize = pending.iter().map(|kept| kept.lines.len()).sum();
        if pending.len() >= PENDING_MAX || lines.saturating_add(order.lines.len()) > PENDING_LINES_MAX {
            pending.clear();
        }
        pending.push_back(Arc::clone(order));
        drop(pending);
        self.wake.notify_one();
    }
}

#[derive(Debug, Default)]
struct Slots {
    orders: HashMap<OrderId, Vec<Arc<Slot>>>,
    closed: bool,
}

/// The node's watchers.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    slots: Mutex<Slots>,
    /// How many watchers there are: read before each look into the map.
    count: AtomicUsize,
}

impl Watch {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, order: OrderId, watchers_max: usize) -> Result<Watcher, Error> {
        let mut slots = self.slots();
        if slots.closed {
            return Err(Error::ShuttingDown);
        }
        if self.count.load(Ordering::SeqCst) >= watchers_max {
            return Err(Error::Overloaded);
        }
        let slot = Arc::new(Slot::default());
        slots.orders.entry(order).or_default().push(Arc::clone(&slot));
        self.count.fetch_add(1, Ordering::SeqCst);
        Ok(Watcher { watch: Arc::clone(self), order, slot })
    }

    fn leave(&self, order: OrderId, slot: &Arc<Slot>) {
        let mut slots = self.slots();
        if let Some(of_order) = slots.orders.get_mut(&order) {
            of_order.retain(|kept| !Arc::ptr_eq(kept, slot));
            if of_order.is_empty() {
                slots.orders.remove(&order);
            }
        }
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Tells who watches what was committed.
    pub(crate) fn committed(&self, outcomes: &[Outcome]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let slots = self.slots();
        for order in outcomes.iter().filter_map(Outcome::order) {
            slots.orders.get(&order.id).into_iter().flatten().for_each(|slot| slot.push(order));
        }
    }

    /// Lets every watcher end; nobody may watch from now on.
    pub(crate) fn close(&self) {
        let mut slots = self.slots();
        slots.closed = true;
        slots.orders.values().flatten().for_each(|slot| slot.wake.notify_one());
    }

    fn is_closed(&self) -> bool {
        self.slots().closed
    }
}

/// Watches one order, until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    watch: Arc<Watch>,
    order: OrderId,
    slot: Arc<Slot>,
}

impl Watcher {
    /// The order after a change; none when the engine drains. It may be one that the caller knows already,
    /// or an older one: the version says so. May be dropped and called again without losing anything.
    pub async fn changed(&self) -> Option<Arc<Order>> {
        loop {
            if let Some(order) = self.slot.pending().pop_front() {
                return Some(order);
            }
            if self.watch.is_closed() {
                return None;
            }
            self.slot.wake.notified().await;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watch.leave(self.order, &self.slot);
    }
}

impl Engine {
    /// Watches an order from now on. Read the order after this call, or changes in between are missed.
    pub fn watch(&self, order: OrderId) -> Result<Watcher, Error> {
        self.check_running()?;
        let entered = self.shared.watch.enter(order, self.shared.config.watchers_max);
        if matches!(entered, Err(Error::Overloaded)) {
            self.shared.metrics.overloads.of(Overload::Watchers).inc();
        }
        entered
    }

    /// How many watch at the moment.
    pub fn watchers(&self) -> usize {
        self.shared.watch.count.load(Ordering::SeqCst)
    }

    /// An order, once it is queued no more or the wait is over. One that only a cache has is found by its
    /// ticket, or on the node that accepted it.
    pub async fn order_when_decided(
        &self,
        id: OrderId,
        ticket: Option<&str>,
        wait: Duration,
    ) -> Result<Found, Error> {
        let found = self.find_order(id, ticket).await?;
        if wait.is_zero() || !is_queued(&found) {
            return Ok(found);
        }
        let watcher = self.watch(id)?;
        let waiting = match self.find_order(id, ticket).await? {
            Found::Order(order) if order.state == State::Queued => order,
            found @ (Found::Order(_) | Found::Lost | Found::Nothing) => return Ok(found),
        };
        let decided = async {
            loop {
                let left = self.left_queue(&waiting);
                let changed = tokio::select! {
                    biased;
                    changed = watcher.changed() => Found::Order(changed?),
                    () = left => self.find_order(id, ticket).await.ok()?,
                };
                if !is_queued(&changed) {
                    return Some(changed);
                }
            }
        };
        if let Ok(Some(found)) = tokio::time::timeout(wait, decided).await {
            return Ok(found);
        }
        self.find_order(id, ticket).await
    }
}

fn is_queued(found: &Found) -> bool {
    matches!(found, Found::Order(order) if order.state == State::Queued)
}
