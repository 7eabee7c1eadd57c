//! The last half hour of this node, a sample a second: what a person looks at when the entry began to back up,
//! to see whether it was before or after the lock.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::time::Timestamp;
use holdfast_metrics::{CacheMetrics, Class, NodeMetrics, Seen, StoreMetrics, Use};
use tokio::time::MissedTickBehavior;

use super::counts::Counts;
use crate::engine::Engine;

/// Samples that are kept: half an hour.
const SAMPLES_MAX: usize = 1_800;
/// How often one is taken.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Waits or work of one second, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_ms: f64,
    /// The step of the histogram below which 99 of 100 lie.
    pub p99_ms: f64,
}

impl Times {
    fn of(seen: &Seen) -> Self {
        Self { count: seen.count(), mean_ms: seen.mean() * 1e3, p99_ms: seen.quantile(0.99) * 1e3 }
    }
}

/// One second of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// When it ended.
    pub at: Timestamp,
    /// How long it was: a busy machine is late.
    pub span: Duration,
    /// How often things happened.
    pub counts: Counts,
    /// Places that were answered, and how long they took.
    pub placing: Times,
    /// Lanes with work, at the end.
    pub lanes: usize,
    /// Commands that wait in lanes, at the end: placing and settling.
    pub lane_depth: [usize; 2],
    /// How long the oldest of them waits, in milliseconds.
    pub lane_age_ms: [f64; 2],
    /// Orders that wait in queues, at the end, as far as this node knows them.
    pub queue_depth: usize,
    /// How long the oldest of them waits, in milliseconds.
    pub queue_age_ms: f64,
    /// How long placing commands waited in their lane.
    pub lane_wait: Times,
    /// How long batches waited for their locks.
    pub lock_wait: Times,
    /// How long transactions held them.
    pub lock_hold: Times,
    /// How long commits took.
    pub commit: Times,
    /// The mean number of commands of a batch.
    pub batch_commands: f64,
    /// Transactions that wait for their locks, at the end.
    pub transactions_waiting: i64,
    /// Connections that execute, at the end: write and read.
    pub connections_executing: [i64; 2],
    /// Work that waits for a connection, at the end: write and read.
    pub connections_waiting: [i64; 2],
    /// Orders that caches accepted and that have not landed, at the end, of the buckets that this node keeps.
    pub cache_backlog: i64,
    /// From the acceptance by a cache to the landing.
    pub landing_lag: Times,
    /// The share of their holds that payments used, that of the latest 1 in 20: 1 is the end.
    pub confirm_share_p95: f64,
}

/// The samples of the last half hour.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<VecDeque<Sample>>);

impl Samples {
    fn keep(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() >= SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    fn all(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Where everything stood: the next sample is what came since.
pub(crate) struct Marks {
    at: Instant,
    place: Seen,
    lane_wait: Seen,
    lock_wait: Seen,
    lock_hold: Seen,
    commit: Seen,
    batch_commands: Seen,
    landing_lag: Seen,
    confirm_share: Seen,
    counts: Counts,
}

impl Marks {
    fn now(node: &NodeMetrics, store: &StoreMetrics, cache: &CacheMetrics) -> Self {
        Self {
            at: Instant::now(),
            place: node.place.seen(),
            lane_wait: node.lane_wait.of(Class::Placing).seen(),
            lock_wait: store.lock_wait.seen(),
            lock_hold: store.lock_hold.seen(),
            commit: store.commit.seen(),
            batch_commands: store.batch_commands.seen(),
            landing_lag: cache.landing_lag.seen(),
            confirm_share: node.confirm_share.seen(),
            counts: Counts::now(node, store, cache),
        }
    }
}

impl Engine {
    /// The last half hour, the oldest first: a sample a second while the workers run.
    pub fn samples(&self) -> Vec<Sample> {
        self.shared.measures.samples.all()
    }

    /// The worker: takes no input, ends when the engine drains.
    pub(crate) async fn run_sampling(&self) {
        let mut every = tokio::time::interval(INTERVAL);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut marks = self.mark();
        every.tick().await;
        while !self.is_draining() {
            every.tick().await;
            marks = self.sample(&marks);
        }
    }

    pub(crate) fn mark(&self) -> Marks {
        Marks::now(&self.shared.metrics, self.store().metrics(), &self.shared.caches.metrics)
    }

    /// Keeps a sample of what came since the marks; the marks for the next one.
    pub(crate) fn sample(&self, before: &Marks) -> Marks {
        let store = self.store().metrics();
        let marks = self.mark();
        let (lanes, queues) = (self.shared.lanes.seen(), self.shared.queues.seen());
        let both = |gauges: &holdfast_metrics::By<Use, holdfast_metrics::Gauge>| {
            [gauges.of(Use::Write).get(), gauges.of(Use::Read).get()]
        };
        let now = self.store().now();
        self.shared.measures.samples.keep(Sample {
            at: now,
            span: marks.at.duration_since(before.at),
            counts: marks.counts.since(before.counts),
            placing: Times::of(&marks.place.since(&before.place)),
            lanes: lanes.alive,
            lane_depth: lanes.depth,
            lane_age_ms: lanes.oldest.map(|age| age.as_secs_f64() * 1e3),
            queue_depth: queues.depth,
            queue_age_ms: queues.oldest.map_or(0.0, |taken_in| super::seconds_between(taken_in, now) * 1e3),
            lane_wait: Times::of(&marks.lane_wait.since(&before.lane_wait)),
            lock_wait: Times::of(&marks.lock_wait.since(&before.lock_wait)),
            lock_hold: Times::of(&marks.lock_hold.since(&before.lock_hold)),
            commit: Times::of(&marks.commit.since(&before.commit)),
            batch_commands: marks.batch_commands.since(&before.batch_commands).mean(),
            transactions_waiting: store.transactions_waiting.get(),
            connections_executing: both(&store.connections_executing),
            connections_waiting: both(&store.connections_waiting),
            cache_backlog: self.shared.caches.metrics.backlog.get(),
            landing_lag: Times::of(&marks.landing_lag.since(&before.landing_lag)),
            confirm_share_p95: marks.confirm_share.since(&before.confirm_share).quantile(0.95),
        });
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_half_hour_is_kept() {
        let samples = Samples::default();
        (0..2_000).for_each(|at| samples.keep(Sample { at: Timestamp(at), ..Sample::default() }));
        let kept = samples.all();
        assert_eq!((kept.len(), kept[0].at, kept[1_799].at), (1_800, Timestamp(200), Timestamp(1_999)));
    }
}
