//! What the node knows of the caches: which epochs the authority has, how far each cache had come when it
//! last answered, and who was accepted here. It sends orders the right way; it decides nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use holdfast_core::cache::{Accepted, CacheBucket, Epoch, EpochState};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_metrics::CacheMetrics;
use tokio::sync::Notify;

use crate::queue::Pace;

use super::contract::{Cache, Position};
use super::ticket::Tickets;
use super::waiting::Waiting;

/// How far a bucket's cache had come.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    epoch: Epoch,
    /// The greatest number of an accepted order.
    accepted: u64,
    /// How many of them had left the stream.
    landed: u64,
    /// When that was last told, or asked for.
    told_at: Option<Instant>,
    pace: Option<Pace>,
}

/// The node's view of the caches.
#[derive(Default)]
pub(crate) struct Caches {
    cache: OnceLock<Arc<dyn Cache>>,
    pub(super) tickets: Tickets,
    pub(super) waiting: Waiting,
    pub(crate) metrics: Arc<CacheMetrics>,
    rows: RwLock<HashMap<BucketKey, CacheBucket>>,
    progress: Mutex<HashMap<BucketKey, Progress>>,
    /// Of which closed epochs a cache was seen to have nothing left, or was waited for in vain.
    cleared: Mutex<HashMap<BucketKey, Epoch>>,
    /// Whether what the catalog does not tell, because it was there before, has been read.
    pub(super) is_known: AtomicBool,
    wake: Notify,
}

impl Caches {
    /// Takes the cache into use, once.
    pub(crate) fn begin(&self, cache: Arc<dyn Cache>) {
        let _ = self.cache.set(cache);
    }

    pub(super) fn cache(&self) -> Option<&Arc<dyn Cache>> {
        self.cache.get()
    }

    /// Keeps what the authority told of epochs. A later state is never replaced by an earlier one.
    pub(crate) fn keep(&self, told: impl IntoIterator<Item = CacheBucket>) {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        for row in told {
            let known = rows.get(&row.key).map(|known| (known.epoch, rank(known.state)));
            if known.is_none_or(|known| known <= (row.epoch, rank(row.state))) {
                rows.insert(row.key, row);
            }
        }
        drop(rows);
        self.wake.notify_one();
    }

    /// Forgets all epochs: another authority has its own. They are read when somebody needs them.
    pub(crate) fn forget_all(&self) {
        self.rows.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.is_known.store(false, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// What the authority told of a bucket.
    pub(crate) fn row(&self, bucket: BucketKey) -> Option<CacheBucket> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).get(&bucket).cloned()
    }

    /// The epoch in which a bucket's cache may accept, and the server that it was opened on.
    pub(super) fn open_epoch(&self, bucket: BucketKey) -> Option<(Epoch, Arc<str>)> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let row = rows.get(&bucket).filter(|row| row.state == EpochState::Open)?;
        Some((row.epoch, Arc::clone(&row.identity)))
    }

    /// Buckets of which something may still land.
    pub(super) fn unclosed(&self) -> Vec<BucketKey> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        rows.values().filter(|row| row.state != EpochState::Closed).map(|row| row.key).collect()
    }

    /// Buckets whose epoch was closed since then, and of which a cache may still have something: whoever closed it may
    /// have died before it was forgotten.
    pub(super) fn uncleared(&self, since: Timestamp) -> Vec<BucketKey> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let closed = rows.values().filter(|row| row.state == EpochState::Closed && row.changed_at >= since);
        let cleared = self.cleared();
        closed.filter(|row| cleared.get(&row.key) != Some(&row.epoch)).map(|row| row.key).collect()
    }

    /// Keeps that nothing is to be forgotten of a closed epoch.
    pub(super) fn clear(&self, row: &CacheBucket) {
        self.cleared().insert(row.key, row.epoch);
    }

    fn cleared(&self) -> MutexGuard<'_, HashMap<BucketKey, Epoch>> {
        self.cleared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<BucketKey, Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The greatest accepted number that this node has seen in the epoch.
    pub(super) fn seen(&self, bucket: BucketKey, epoch: Epoch) -> u64 {
        self.progress().get(&bucket).filter(|known| known.epoch == epoch).map_or(0, |known| known.accepted)
    }

    /// Keeps how far the cache had come when it answered: so many accepted, so many of them in the stream.
    pub(super) fn note(&self, accepted: &Accepted, backlog: u64, now: Timestamp) {
        self.note_progress(accepted.bucket, accepted.epoch, accepted.number, backlog, now);
    }

    /// The same of what it says of itself.
    pub(super) fn note_position(&self, bucket: BucketKey, position: &Position, now: Timestamp) {
        self.note_progress(bucket, position.epoch, position.accepted, position.backlog, now);
    }

    fn note_progress(&self, bucket: BucketKey, epoch: Epoch, accepted: u64, backlog: u64, now: Timestamp) {
        let mut progress = self.progress();
        let known = progress.entry(bucket).or_default();
        if known.epoch < epoch {
            *known = Progress { epoch, ..Progress::default() };
        }
        if known.epoch == epoch {
            // An answer about an order of before says nothing of those that came after it.
            if accepted >= known.accepted {
                known.told_at = Some(Instant::now());
            }
            known.accepted = known.accepted.max(accepted);
            let landed = known.landed.max(accepted.saturating_sub(backlog));
            known.pace.get_or_insert_with(|| Pace::new(now)).left(landed.saturating_sub(known.landed), now);
            known.landed = landed;
        }
    }

    /// How many of the epoch's orders had left the stream, as far as this node knows.
    pub(super) fn landed(&self, bucket: BucketKey, epoch: Epoch) -> u64 {
        self.progress().get(&bucket).filter(|known| known.epoch == epoch).map_or(0, |known| known.landed)
    }

    /// What one place in the bucket's stream takes, as far as that was measured.
    pub(super) fn each_us(&self, bucket: BucketKey, now: Timestamp) -> Option<u64> {
        self.progress().get(&bucket).and_then(|known| known.pace.as_ref()?.each_us(now))
    }

    /// Whether the caller is the one who shall ask the cache how far it has come: while orders are accepted, each
    /// answer tells.
    pub(super) fn begin_refresh(&self, bucket: BucketKey, age_max: Duration) -> bool {
        let mut progress = self.progress();
        let known = progress.entry(bucket).or_default();
        let is_due = known.told_at.is_none_or(|told_at| told_at.elapsed() >= age_max);
        if is_due {
            known.told_at = Some(Instant::now());
        }
        is_due
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until an epoch changed, or for a while.
    pub(super) async fn woken_within(&self, most: Duration) {
        let _ = tokio::time::timeout(most, self.wake.notified()).await;
    }
}

const fn rank(state: EpochState) -> u8 {
    match state {
        EpochState::Open => 0,
        EpochState::Draining => 1,
        EpochState::Closed => 2,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::cache::EntryId;
    use holdfast_core::id::PoolId;

    use super::*;

    const BUCKET: BucketKey = BucketKey { pool: PoolId(1), number: 0 };

    fn row(epoch: u64, state: EpochState) -> CacheBucket {
        CacheBucket {
            key: BUCKET,
            epoch: Epoch(epoch),
            state,
            identity: Arc::from("a"),
            base_seq: 0,
            base_available: 0,
            landed: 0,
            changed_at: Timestamp(0),
        }
    }

    #[test]
    fn what_is_told_late_does_not_open_an_epoch_again() {
        let caches = Caches::default();
        caches.keep([row(2, EpochState::Open)]);
        assert_eq!(caches.open_epoch(BUCKET).map(|(epoch, _)| epoch), Some(Epoch(2)));
        caches.keep([row(2, EpochState::Draining)]);
        caches.keep([row(2, EpochState::Open), row(1, EpochState::Closed)]);
        assert_eq!(caches.open_epoch(BUCKET), None);
        assert_eq!(caches.unclosed(), [BUCKET]);
        caches.keep([row(2, EpochState::Closed), row(3, EpochState::Open)]);
        assert_eq!(caches.open_epoch(BUCKET).map(|(epoch, _)| epoch), Some(Epoch(3)));
    }

    #[test]
    fn progress_belongs_to_its_epoch_and_never_goes_back() {
        let caches = Caches::default();
        let accepted = |epoch, number| Accepted {
            bucket: BUCKET,
            epoch: Epoch(epoch),
            entry: EntryId::default(),
            number,
            units: 1,
        };
        caches.note(&accepted(1, 10), 4, Timestamp(0));
        caches.note(&accepted(1, 8), 8, Timestamp(0));
        assert_eq!((caches.seen(BUCKET, Epoch(1)), caches.landed(BUCKET, Epoch(1))), (10, 6));
        caches.note(&accepted(2, 1), 1, Timestamp(0));
        caches.note(&accepted(1, 99), 0, Timestamp(0));
        assert_eq!((caches.seen(BUCKET, Epoch(2)), caches.landed(BUCKET, Epoch(2))), (1, 0));
        assert_eq!(caches.seen(BUCKET, Epoch(1)), 0);
    }
}
