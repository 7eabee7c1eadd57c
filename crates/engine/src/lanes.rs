//! Lanes (车道): the serial point of one bucket in a node. A lane is a bounded queue and a loop that commits
//! batches: while one commits, the next gathers. There is no timer, no delay when idle; a batch grows with
//! the load up to a named maximum. Confirms and releases have room of their own.
//!
//! A lane exists while it has work: the last loop that finds its queue empty takes the lane away with it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::command::{Command, Outcome};
use holdfast_core::id::PoolId;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_metrics::{NodeMetrics, Overload};
use holdfast_store::{Batch, Committed, Store};
use tokio::sync::{Notify, oneshot};

/// Whose room in the lane a command takes: placing is turned away when the lane is full or old, settling has
/// room of its own.
pub(crate) use holdfast_metrics::Class;

use crate::ahead;
use crate::config::Config;
use crate::error::Error;
use crate::ids::IdSource;
use crate::measure::Measures;
use crate::queue::Queues;
use crate::shelf::Shelf;
use crate::sinks::Outbox;
use crate::watch::Watch;

/// Which commands share a batch: those that share their locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LaneKey {
    /// One bucket.
    Bucket(BucketKey),
    /// New orders of one bucket of a pool on the direct path: one transaction each, several at a time.
    Direct(BucketKey),
    /// All buckets of a pool: the wide lane of the pool.
    Pool(PoolId),
    /// Several pools: the wide lane of the node.
    Node,
    /// The queues of a pool: takes orders in, and locks nothing.
    Intake(PoolId),
    /// Stock files: one after another, so that one of many rows does not keep orders over several pools waiting.
    Files,
}

struct Task {
    command: Command,
    class: Class,
    locks: LockSet,
    queued_at: Instant,
    reply: oneshot::Sender<Result<Outcome, Error>>,
}

#[derive(Default)]
struct Lane {
    /// Loops that take batches from it.
    flights: usize,
    placing: VecDeque<Task>,
    settling: VecDeque<Task>,
}

impl Lane {
    /// Where a task of this class waits, or why there is no room for it.
    fn room(&mut self, class: Class, config: &Config) -> Result<&mut VecDeque<Task>, Overload> {
        match class {
            Class::Settling if self.settling.len() >= config.lane_reserved_max => Err(Overload::LaneReserved),
            Class::Settling => Ok(&mut self.settling),
            Class::Placing => {
                let old = self.placing.front().is_some_and(|t| age(t.queued_at) > config.lane_age_max);
                if old {
                    return Err(Overload::LaneAge);
                }
                if self.placing.len() >= config.lane_depth_max {
                    return Err(Overload::LaneDepth);
                }
                Ok(&mut self.placing)
            }
        }
    }

    /// The next batch: settling first, but never more than half of it while orders wait.
    fn take(&mut self, size_max: usize) -> Vec<Task> {
        let half = size_max.div_ceil(2);
        let settling_max = if self.placing.len() >= half { half } else { size_max };
        let settling = self.settling.len().min(settling_max);
        let placing = self.placing.len().min(size_max.saturating_sub(settling));
        self.settling.drain(..settling).chain(self.placing.drain(..placing)).collect()
    }
}

/// Takes a lane away if its last loop panics: who waits is told that the outcome is unknown, and the next
/// command starts a new loop.
struct LaneGuard<'l> {
    lanes: &'l Lanes,
    key: LaneKey,
    finished: bool,
}

impl Drop for LaneGuard<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let mut lanes = self.lanes.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = lanes.get_mut(&self.key).is_none_or(|lane| {
            lane.flights = lane.flights.saturating_sub(1);
            lane.flights == 0
        });
        if is_last {
            lanes.remove(&self.key);
        }
    }
}

/// Who is told of what was committed.
pub(crate) struct Told {
    pub(crate) watch: Arc<Watch>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) outbox: Arc<Outbox>,
}

/// Where lanes put down what they see.
pub(crate) struct Measured {
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) measures: Arc<Measures>,
}

/// The lanes as they are at one moment.
#[derive(Debug, Default)]
pub(crate) struct LanesSeen {
    /// Lanes with work.
    pub(crate) alive: usize,
    /// Commands that wait: placing, settling.
    pub(crate) depth: [usize; 2],
    /// How long the oldest waits: placing, settling.
    pub(crate) oldest: [Duration; 2],
    /// Commands that wait in the lanes of each pool.
    pub(crate) of_pools: HashMap<PoolId, usize>,
}

impl LanesSeen {
    fn add(&mut self, key: LaneKey, lane: &Lane, now: Instant) {
        self.alive += 1;
        let queues = [&lane.placing, &lane.settling];
        for ((depth, oldest), queue) in self.depth.iter_mut().zip(&mut self.oldest).zip(queues) {
            *depth += queue.len();
            let first = queue.front().map(|task| now.saturating_duration_since(task.queued_at));
            *oldest = (*oldest).max(first.unwrap_or_default());
        }
        let pool = match key {
            LaneKey::Bucket(bucket) | LaneKey::Direct(bucket) => bucket.pool,
            LaneKey::Pool(pool) | LaneKey::Intake(pool) => pool,
            LaneKey::Node | LaneKey::Files => return,
        };
        *self.of_pools.entry(pool).or_default() += lane.placing.len() + lane.settling.len();
    }
}

/// The node's lanes.
pub(crate) struct Lanes {
    store: Arc<dyn Store>,
    shelf: Arc<Shelf>,
    told: Told,
    config: Arc<Config>,
    ids: Arc<dyn IdSource>,
    measured: Measured,
    lanes: Mutex<HashMap<LaneKey, Lane>>,
    idle: Notify,
}

impl Lanes {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        shelf: Arc<Shelf>,
        told: Told,
        config: Arc<Config>,
        ids: Arc<dyn IdSource>,
        measured: Measured,
    ) -> Self {
        let (lanes, idle) = (Mutex::default(), Notify::new());
        Self { store, shelf, told, config, ids, measured, lanes, idle }
    }

    /// The lanes as they are now. A lane exists only while it has work, so there are never more than writes.
    pub(crate) fn seen(&self) -> LanesSeen {
        let mut seen = LanesSeen::default();
        let now = now();
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().for_each(|(key, lane)| seen.add(*key, lane, now));
        seen
    }

    /// Sends a command through a lane and waits for its outcome. Who stops waiting does not stop the
    /// command.
    pub(crate) async fn run(
        self: &Arc<Self>,
        key: LaneKey,
        class: Class,
        command: Command,
        locks: LockSet,
    ) -> Result<Outcome, Error> {
        let outcomes = self.run_all(key, class, vec![command], &locks).await;
        outcomes.into_iter().next().unwrap_or(Err(Error::OutcomeUnknown))
    }

    /// Sends commands that share their locks through a lane, in their order and as close together as the
    /// lane's batches allow; one outcome a command.
    pub(crate) async fn run_all(
        self: &Arc<Self>,
        key: LaneKey,
        class: Class,
        commands: Vec<Command>,
        locks: &LockSet,
    ) -> Vec<Result<Outcome, Error>> {
        let queued_at = now();
        let (tasks, answers): (Vec<_>, Vec<_>) = commands
            .into_iter()
            .map(|command| {
                let (reply, answer) = oneshot::channel();
                (Task { command, class, locks: locks.clone(), queued_at, reply }, answer)
            })
            .unzip();
        self.submit(key, class, tasks);
        let patience = match key {
            LaneKey::Files => self.config.import_deadline,
            LaneKey::Bucket(_)
            | LaneKey::Direct(_)
            | LaneKey::Pool(_)
            | LaneKey::Node
            | LaneKey::Intake(_) => self.config.answer_deadline,
        };
        let deadline = tokio::time::Instant::now() + patience;
        let mut outcomes = Vec::with_capacity(answers.len());
        for answer in answers {
            outcomes.push(match tokio::time::timeout_at(deadline, answer).await {
                Ok(Ok(outcome)) => outcome,
                // The lane is gone without an answer, or the deadline passed.
                Ok(Err(_)) | Err(_) => Err(Error::OutcomeUnknown),
            });
        }
        outcomes
    }

    fn submit(self: &Arc<Self>, key: LaneKey, class: Class, tasks: Vec<Task>) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry(key).or_default();
        for task in tasks {
            match lane.room(class, &self.config) {
                Ok(tasks) => tasks.push_back(task),
                Err(overload) => {
                    self.measured.metrics.overloads.of(overload).inc();
                    // Whoever asked may have gone.
                    drop(task.reply.send(Err(Error::Overloaded)));
                }
            }
        }
        // Also where nobody was let in: a lane without a loop would stay for ever.
        let is_new = lane.flights < self.flights_max(key);
        lane.flights += usize::from(is_new);
        drop(lanes);
        if is_new {
            // The loop is a task of its own, so that no caller can drop it half-way.
            let lanes = Arc::clone(self);
            tokio::spawn(async move { lanes.drive(key).await });
        }
    }

    /// One batch at a time, so that the next gathers; on the direct path there is nothing to gather.
    fn flights_max(&self, key: LaneKey) -> usize {
        match key {
            LaneKey::Bucket(_) | LaneKey::Pool(_) | LaneKey::Node | LaneKey::Intake(_) | LaneKey::Files => 1,
            LaneKey::Direct(_) => self.config.direct_flights_max.max(1),
        }
    }

    /// A lane's loop.
    async fn drive(self: Arc<Self>, key: LaneKey) {
        let size_max = match key {
            LaneKey::Bucket(_) | LaneKey::Intake(_) => self.config.batch_size_max,
            LaneKey::Direct(_) | LaneKey::Files => 1,
            LaneKey::Pool(_) | LaneKey::Node => self.config.wide_batch_size_max,
        };
        let mut guard = LaneGuard { lanes: &self, key, finished: false };
        while let Some(batch) = self.next(key, size_max.max(1)) {
            self.commit(batch).await;
        }
        guard.finished = true;
    }

    fn next(&self, key: LaneKey, size_max: usize) -> Option<Vec<Task>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.get_mut(&key)?;
        let batch = lane.take(size_max);
        if !batch.is_empty() {
            drop(lanes);
            let closed_at = now();
            for task in &batch {
                let wait = closed_at.saturating_duration_since(task.queued_at);
                self.measured.metrics.lane_wait.of(task.class).observe(wait);
            }
            return Some(batch);
        }
        lane.flights = lane.flights.saturating_sub(1);
        if lane.flights == 0 {
            lanes.remove(&key);
            if lanes.is_empty() {
                self.idle.notify_waiters();
            }
        }
        None
    }

    /// Commits a batch. Data that cannot be stored, or rows that cannot be read, bisect it, halves in order, until
    /// the culprit fails alone; every other error fails or retries the part whole. Where a bucket is the culprit, its
    /// pool is frozen before, once a batch, and what is refused then fails no more.
    async fn commit(&self, batch: Vec<Task>) {
        let mut parts = vec![batch];
        let mut looked = false;
        while let Some(mut part) = parts.pop() {
            let result = self.commit_part(&mut part).await;
            let are_rows_odd =
                matches!(result, Err(holdfast_store::Error::Data(_) | holdfast_store::Error::Corrupt(_)));
            if are_rows_odd && !looked {
                looked = true;
                if ahead::freeze(&*self.store, pools_of(&part)).await {
                    parts.push(part);
                    continue;
                }
            }
            match result {
                Ok(outcomes) => {
                    self.told.queues.committed(&outcomes, self.store.now());
                    self.told.watch.committed(&outcomes);
                    for (task, outcome) in part.into_iter().zip(outcomes) {
                        self.measured.metrics.committed(&task.command, &outcome);
                        // A caller that went away does not undo what is committed.
                        let _ = task.reply.send(Ok(outcome));
                    }
                }
                Err(_) if are_rows_odd && part.len() > 1 => {
                    self.measured.metrics.bisections.inc();
                    let second = part.split_off(part.len() / 2);
                    parts.push(second);
                    parts.push(part);
                }
                Err(error) => {
                    self.forget(&part, &error);
                    for task in part {
                        let _ = task.reply.send(Err(Error::Store(error.clone())));
                    }
                }
            }
        }
    }

    async fn commit_part(&self, part: &mut [Task]) -> Result<Vec<Outcome>, holdfast_store::Error> {
        let mut locks = LockSet::default();
        part.iter().for_each(|task| locks.extend(&task.locks));
        let commands = Arc::new(part.iter().map(|task| task.command.clone()).collect::<Vec<_>>());
        let mut tries = 0;
        loop {
            let batch = Batch { locks: locks.clone(), commands: Arc::clone(&commands) };
            match self.store.commit(batch).await {
                Ok(committed) => {
                    self.keep(&committed);
                    return Ok(committed.outcomes);
                }
                Err(error) if error.is_transient() && tries < self.config.retries_max => {
                    tries += 1;
                    self.measured.metrics.retries.inc();
                    self.backoff(tries).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps what a commit has shown.
    fn keep(&self, committed: &Committed) {
        let now = self.store.now();
        self.told.outbox.committed(&committed.balances);
        if let Some(bucket) = self.shelf.keep(&committed.balances, now) {
            self.measured.metrics.note_drift(bucket);
        }
        let mut pool = None;
        for balance in &committed.balances {
            // Balances come in order: the buckets of a pool stand together.
            if pool.replace(balance.bucket.pool) != Some(balance.bucket.pool) {
                let commands = committed.outcomes.len();
                self.measured.measures.busiest.committed(balance.bucket.pool, commands, now);
            }
        }
    }

    /// Doubles from 2 ms, with jitter, so that those who collided do not collide again.
    #[expect(
        clippy::disallowed_methods,
        reason = "a bounded backoff after a conflict, at most `retries_max` times"
    )]
    async fn backoff(&self, tries: u32) {
        let base_us = 1_000_u64 << tries.min(6);
        let jitter_us = u64::try_from(self.ids.next() & 0x3ff).unwrap_or(0);
        tokio::time::sleep(Duration::from_micros(base_us + jitter_us)).await;
    }

    /// What the shelf says of these buckets may be wrong after an unknown outcome.
    fn forget(&self, part: &[Task], error: &holdfast_store::Error) {
        tracing::warn!(%error, commands = part.len(), "a batch was not committed");
        pools_of(part).into_iter().for_each(|pool| self.shelf.forget(pool));
    }

    /// Waits until no lane has work, or until the deadline.
    pub(crate) async fn drained(&self, deadline: Duration) -> Result<(), Error> {
        let wait = async {
            loop {
                let idle = self.idle.notified();
                if self.lanes.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                    return;
                }
                idle.await;
            }
        };
        tokio::time::timeout(deadline, wait).await.map_err(|_| Error::OutcomeUnknown)
    }
}

/// The pools that tasks lock in.
fn pools_of(tasks: &[Task]) -> BTreeSet<PoolId> {
    let locks = tasks.iter().map(|task| &task.locks);
    locks
        .flat_map(|locks| locks.buckets.iter().map(|key| key.pool).chain(locks.pools.iter().copied()))
        .collect()
}

fn now() -> Instant {
    Instant::now()
}

fn age(since: Instant) -> Duration {
    since.elapsed()
}
