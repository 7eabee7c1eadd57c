//! The busiest pools of this node: a small table, however many pools there are. It is looked at once a batch.

use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_core::id::PoolId;
use holdfast_core::time::Timestamp;

/// Pools that are kept an eye on, more than are shown, so that one that becomes busy is not thrown out by
/// those that were.
const TRACKED_MAX: usize = 64;
/// How fast the past is forgotten.
const WINDOW_SECONDS: f64 = 10.0;

#[derive(Debug, Clone, Copy)]
struct Entry {
    pool: PoolId,
    /// Commands a second, as of then.
    rate: f64,
    at: Timestamp,
}

impl Entry {
    /// The rate now, had nothing come since.
    #[expect(clippy::cast_precision_loss, reason = "microseconds between two batches, for display")]
    fn rate(&self, now: Timestamp) -> f64 {
        let seconds = now.0.saturating_sub(self.at.0).max(0) as f64 / 1e6;
        self.rate * (-seconds / WINDOW_SECONDS).exp()
    }
}

/// A busy pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Busy {
    pub(crate) pool: PoolId,
    /// Committed commands a second, over the last ten seconds or so.
    pub(crate) rate: f64,
}

/// The node's busiest pools.
#[derive(Debug, Default)]
pub(crate) struct Busiest(Mutex<Vec<Entry>>);

impl Busiest {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch with so many commands of this pool was committed. A pool that is new here takes the place of
    /// the quietest.
    pub(crate) fn committed(&self, pool: PoolId, commands: usize, now: Timestamp) {
        let more = f64::from(u32::try_from(commands).unwrap_or(u32::MAX)) / WINDOW_SECONDS;
        let mut entries = self.entries();
        if let Some(known) = entries.iter_mut().find(|entry| entry.pool == pool) {
            *known = Entry { pool, rate: known.rate(now) + more, at: now };
            return;
        }
        let new = Entry { pool, rate: more, at: now };
        if entries.len() < TRACKED_MAX {
            entries.push(new);
        } else if let Some(quietest) = entries.iter_mut().min_by(|a, b| a.rate(now).total_cmp(&b.rate(now))) {
            *quietest = new;
        }
    }

    /// The busiest now, the busiest first.
    pub(crate) fn most(&self, most: usize, now: Timestamp) -> Vec<Busy> {
        let entries = self.entries();
        let mut busy: Vec<Busy> =
            entries.iter().map(|entry| Busy { pool: entry.pool, rate: entry.rate(now) }).collect();
        drop(entries);
        busy.sort_by(|a, b| b.rate.total_cmp(&a.rate).then(a.pool.cmp(&b.pool)));
        busy.truncate(most);
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn the_busiest_are_found_among_thousands_and_forgotten_when_they_are_quiet() {
        let busiest = Busiest::default();
        for second in 0..30 {
            let now = Timestamp(second * SECOND);
            for pool in 0..5_000 {
                busiest.committed(PoolId(pool), 1, now);
            }
            busiest.committed(PoolId(7_777), 100, now);
        }
        let now = Timestamp(30 * SECOND);
        let most = busiest.most(20, now);
        assert_eq!(most.len(), 20);
        assert_eq!(most[0].pool, PoolId(7_777));
        assert!((50.0..=110.0).contains(&most[0].rate), "{}", most[0].rate);
        let later = busiest.most(1, Timestamp(90 * SECOND));
        assert!(later[0].rate < 1.0, "{}", later[0].rate);
    }
}
