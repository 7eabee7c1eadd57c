//! What commits of this node wake couriers for. Nothing is written and nothing is sent here: a courier learns that a
//! bucket's ledger went on, and reads it. Where there is no courier, a commit pays one look at a flag.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_core::stock::BucketKey;
use holdfast_store::{Balance, SinkName};
use tokio::sync::Notify;

/// Most buckets that are remembered for a courier; beyond them it looks at the authority.
const BUCKETS_MAX: usize = 10_000;

/// What a courier is woken for.
#[derive(Default)]
pub(crate) struct Inbox {
    woken: Mutex<Woken>,
    wake: Notify,
}

/// Buckets whose ledgers went on, and how far.
#[derive(Default)]
pub(crate) struct Woken {
    pub(crate) buckets: HashMap<BucketKey, u64>,
    /// Whether there were more.
    pub(crate) more: bool,
    /// Whether the sinks have changed.
    pub(crate) look: bool,
}

impl Inbox {
    fn woken(&self) -> MutexGuard<'_, Woken> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn committed(&self, balances: &[Balance]) {
        let mut woken = self.woken();
        for balance in balances {
            if woken.buckets.len() >= BUCKETS_MAX && !woken.buckets.contains_key(&balance.bucket) {
                woken.more = true;
                continue;
            }
            let seq = woken.buckets.entry(balance.bucket).or_default();
            *seq = balance.ledger_seq.max(*seq);
        }
        drop(woken);
        self.wake.notify_one();
    }

    /// Takes what there is.
    pub(crate) fn take(&self) -> Woken {
        std::mem::take(&mut *self.woken())
    }

    /// Waits until there is something.
    pub(crate) async fn woken_up(&self) {
        self.wake.notified().await;
    }
}

/// The couriers of this node.
#[derive(Default)]
pub(crate) struct Outbox {
    has_any: AtomicBool,
    inboxes: Mutex<BTreeMap<SinkName, Arc<Inbox>>>,
    look: Notify,
}

impl Outbox {
    fn inboxes(&self) -> MutexGuard<'_, BTreeMap<SinkName, Arc<Inbox>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit went through.
    pub(crate) fn committed(&self, balances: &[Balance]) {
        if self.has_any.load(Ordering::Relaxed) {
            self.inboxes().values().for_each(|inbox| inbox.committed(balances));
        }
    }

    /// A courier begins.
    pub(crate) fn open(&self, name: &SinkName) -> Arc<Inbox> {
        let inbox = Arc::<Inbox>::default();
        self.inboxes().insert(name.clone(), Arc::clone(&inbox));
        // Before its first look at the authority: what is committed after that look wakes it.
        self.has_any.store(true, Ordering::SeqCst);
        inbox
    }

    /// A courier ends.
    pub(crate) fn close(&self, name: &SinkName) {
        let mut inboxes = self.inboxes();
        inboxes.remove(name);
        self.has_any.store(!inboxes.is_empty(), Ordering::SeqCst);
        drop(inboxes);
        self.look.notify_one();
    }

    /// The sinks have changed, or the node stops: everybody looks.
    pub(crate) fn wake(&self) {
        self.look.notify_one();
        for inbox in self.inboxes().values() {
            inbox.woken().look = true;
            inbox.wake.notify_one();
        }
    }

    /// Waits until the list of sinks may have changed, or for a while.
    pub(crate) async fn looked_at_within(&self, most: Duration) {
        let _ = tokio::time::timeout(most, self.look.notified()).await;
    }
}
