//! Keys in flight: a repeat joins the first instead of racing it to the unique index.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_core::id::OrderKey;
use holdfast_core::order::Order;
use tokio::sync::oneshot;

type Waiters = HashMap<OrderKey, Vec<oneshot::Sender<Option<Arc<Order>>>>>;

/// The keys that this node is placing.
#[derive(Default)]
pub(crate) struct InFlight(Arc<Mutex<Waiters>>);

/// What a place finds.
pub(crate) enum Entered {
    /// It is the first: the key is in flight until the guard is gone.
    First(Guard),
    /// Another is first; the receiver gets the order that came of it, if one did.
    Joined(oneshot::Receiver<Option<Arc<Order>>>),
    /// Too many wait for this key.
    Full,
}

/// Keeps a key in flight.
pub(crate) struct Guard {
    key: OrderKey,
    waiters: Arc<Mutex<Waiters>>,
    order: Option<Arc<Order>>,
}

impl InFlight {
    /// How many keys are in flight.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Enters a key, or joins who has it.
    pub(crate) fn enter(&self, key: &OrderKey, joined_max: usize) -> Entered {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match keys.get_mut(key) {
            None => {
                keys.insert(key.clone(), Vec::new());
                Entered::First(Guard { key: key.clone(), waiters: Arc::clone(&self.0), order: None })
            }
            Some(waiters) if waiters.len() >= joined_max => Entered::Full,
            Some(waiters) => {
                let (sender, receiver) = oneshot::channel();
                waiters.push(sender);
                Entered::Joined(receiver)
            }
        }
    }
}

impl Guard {
    /// The order that came of it, for those who joined.
    pub(crate) fn found(&mut self, order: &Arc<Order>) {
        self.order = Some(Arc::clone(order));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        for waiter in waiters.into_iter().flatten() {
            // One who has gone does not need the answer.
            let _ = waiter.send(self.order.clone());
        }
    }
}
