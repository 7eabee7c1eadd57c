//! Orders that this node accepted and that have not landed as far as it knows: so that who asks the same node
//! for an order by its id alone is answered, as he would be for one that the authority has. Another node, or
//! this one after a restart, needs the ticket.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::id::OrderId;
use holdfast_core::order::Order;

use super::ticket::Ticket;

/// Beyond so many the oldest is forgotten: its buyer has the ticket.
const WAITING_MAX: usize = 100_000;
/// How long one that has landed is still kept: it may land before its buyer is answered, and the answer has its
/// ticket all the same.
const LINGERS: Duration = Duration::from_secs(5);

/// An accepted order.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedOrder {
    /// As it waits.
    pub(crate) order: Arc<Order>,
    /// What its buyer was given.
    pub(crate) ticket: Ticket,
    /// The ticket's text.
    pub(crate) text: Arc<str>,
}

#[derive(Debug, Default)]
struct Kept {
    orders: HashMap<OrderId, AcceptedOrder>,
    /// As they came.
    came: VecDeque<(OrderId, Instant)>,
    /// Those of them that have landed, or never will.
    left: HashSet<OrderId>,
}

impl Kept {
    /// Forgets from the front who has left a while ago, and whoever is too many.
    fn forget(&mut self, now: Instant) {
        while let Some((id, came_at)) = self.came.front().copied() {
            let is_over = self.left.contains(&id) && now.duration_since(came_at) > LINGERS;
            if !is_over && self.came.len() <= WAITING_MAX {
                return;
            }
            self.came.pop_front();
            self.left.remove(&id);
            self.orders.remove(&id);
        }
    }
}

/// The node's accepted orders.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Kept>);

impl Waiting {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, order: AcceptedOrder) {
        let (id, now) = (order.order.id, Instant::now());
        let mut kept = self.kept();
        if kept.orders.insert(id, order).is_none() {
            kept.came.push_back((id, now));
        }
        kept.forget(now);
    }

    pub(super) fn get(&self, id: OrderId) -> Option<AcceptedOrder> {
        self.kept().orders.get(&id).cloned()
    }

    /// It has landed, or never will.
    pub(super) fn leave(&self, id: OrderId) {
        let mut kept = self.kept();
        if kept.orders.contains_key(&id) {
            kept.left.insert(id);
        }
    }
}
