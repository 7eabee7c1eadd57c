//! What a courier does next, and what it makes of what came of it. Pure: time is an argument.
//!
//! An event that is refused while others are taken, and a receiver that takes nothing, look the same at first. They are
//! told apart by what else is taken meanwhile: only with such evidence is an event counted as refused, and parked in
//! the end; without it the receiver is left in peace as a whole, and nothing is parked however long that lasts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{Lag, Park, SinkHealth, SinkPosition, SinkRow, SinkSettings};

use super::contract::{Blame, Failure};
use super::deliver::{Done, Job, Stand};

/// Most buckets in which a sink is delivered to at the same time.
const BUCKETS_AT_ONCE: usize = 16;
/// Most buckets that are followed at the same time; the others are found when one of them is done.
const BUCKETS_MAX: usize = 1_000;
/// Different buckets that must fail, with nothing taken between, until the rest is not tried any more.
const FAILING_BUCKETS_MAX: usize = 3;
/// The longest that a receiver's own wish is followed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// How long a bucket rests when the authority could not be read.
const UNREAD_REST: Duration = Duration::from_secs(1);

/// One bucket.
#[derive(Default)]
struct Bucket {
    stand: Stand,
    known: u64,
    stored: u64,
    stored_strikes: u32,
    /// How often the first event was refused while others were taken.
    strikes: u32,
    /// How often it was tried in vain.
    attempts: u32,
    /// When it failed at last, and when it was tried, by the count of the course.
    failed: Option<u64>,
    tried: u64,
    wait_until: Option<Instant>,
    /// Whether there was nothing beyond it that could be tried.
    lonely: bool,
    busy: bool,
}

impl Bucket {
    fn is_idle(&self) -> bool {
        !self.busy && self.stand.position >= self.known && self.stand.events.is_empty() && !self.is_dirty()
    }

    fn is_dirty(&self) -> bool {
        self.stand.position != self.stored || self.strikes != self.stored_strikes
    }

    fn is_ready(&self, now: Instant) -> bool {
        let has_work = !self.stand.events.is_empty() || self.stand.position < self.known;
        has_work && !self.busy && self.wait_until.is_none_or(|until| until <= now)
    }

    fn forgive(&mut self) {
        (self.strikes, self.attempts, self.failed, self.wait_until) = (0, 0, None, None);
        self.lonely = false;
    }
}

/// Where a sink stands.
pub(crate) struct Course {
    settings: SinkSettings,
    buckets: BTreeMap<BucketKey, Bucket>,
    /// Counts what happens, to tell what was before what.
    count: u64,
    last_taken: u64,
    /// Buckets that failed since something was taken.
    failing: usize,
    busy: usize,
    next_at: Option<Instant>,
    health: SinkHealth,
    health_is_new: bool,
    parked: Vec<Park>,
    pub(crate) disable: Option<String>,
}

/// What is to be written down.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) positions: Vec<SinkPosition>,
    pub(crate) parked: Vec<Park>,
    pub(crate) health: Option<SinkHealth>,
    pub(crate) disable: Option<String>,
}

impl Course {
    /// Of a sink as it is stored: a receiver that took nothing is not hurried by a courier that begins.
    pub(crate) fn new(sink: &SinkRow, clock: Timestamp, now: Instant) -> Self {
        let rest = sink.health.next_attempt_at.map(|at| Duration::from_micros(micros(clock, at)));
        Self {
            settings: sink.settings.clone(),
            buckets: BTreeMap::new(),
            count: 0,
            last_taken: 0,
            failing: if sink.health.failures > 0 { FAILING_BUCKETS_MAX } else { 0 },
            busy: 0,
            next_at: rest.filter(|_| sink.health.failures > 0).and_then(|rest| now.checked_add(rest)),
            health: sink.health.clone(),
            health_is_new: false,
            parked: Vec::new(),
            disable: None,
        }
    }

    fn step(&mut self) -> u64 {
        self.count = self.count.saturating_add(1);
        self.count
    }

    /// A bucket's ledger went on. False: the course does not know where the sink stands there.
    pub(crate) fn went_on(&mut self, key: BucketKey, ledger_seq: u64) -> bool {
        let Some(bucket) = self.buckets.get_mut(&key) else { return false };
        if bucket.known < ledger_seq {
            bucket.known = ledger_seq;
            if std::mem::take(&mut bucket.lonely) {
                // There is something now by which the two cases can be told apart.
                bucket.wait_until = None;
                if self.failing < FAILING_BUCKETS_MAX {
                    self.next_at = None;
                }
            }
        }
        true
    }

    /// The authority says where the sink stands in a bucket. What is followed already is known better here.
    pub(crate) fn lags(&mut self, lag: &Lag) {
        if self.went_on(lag.bucket, lag.ledger_seq) || !self.has_room() {
            return;
        }
        let stand = Stand { position: lag.seq, read_to: lag.seq, size: 1, ..Stand::default() };
        let bucket = Bucket {
            stand,
            known: lag.ledger_seq,
            stored: lag.seq,
            stored_strikes: lag.strikes,
            strikes: lag.strikes,
            ..Bucket::default()
        };
        self.buckets.insert(lag.bucket, bucket);
    }

    /// Whether more buckets can be followed.
    pub(crate) fn has_room(&self) -> bool {
        self.buckets.len() < BUCKETS_MAX
    }

    /// Whether the receiver takes nothing.
    pub(crate) const fn is_failing(&self) -> bool {
        self.health.failures > 0
    }

    /// What is to be done now, the longest untried first.
    pub(crate) fn next(&mut self, now: Instant) -> Vec<Job> {
        let is_held = self.next_at.is_some_and(|at| at > now);
        // A bucket that never failed may still show that only the others' events are refused.
        let may_try_others = self.failing < FAILING_BUCKETS_MAX;
        if self.disable.is_some() || (is_held && !may_try_others) {
            return Vec::new();
        }
        let at_once = if self.is_failing() { 1 } else { BUCKETS_AT_ONCE };
        let ready = self.buckets.iter().filter(|(_, b)| b.is_ready(now) && (!is_held || b.failed.is_none()));
        let mut ready: Vec<_> = ready.map(|(key, bucket)| (bucket.tried, *key)).collect();
        ready.sort_unstable();
        let room = at_once.saturating_sub(self.busy);
        let is_failing = self.is_failing();
        let last_taken = self.last_taken;
        let mut jobs = Vec::new();
        for (_, key) in ready.into_iter().take(room) {
            let tried = self.step();
            let Some(bucket) = self.buckets.get_mut(&key) else { continue };
            (bucket.busy, bucket.tried) = (true, tried);
            self.busy = self.busy.saturating_add(1);
            let mut stand = std::mem::take(&mut bucket.stand);
            if is_failing {
                stand.size = 1;
            }
            // Where nothing else shows it, the event beyond the refused one must.
            let probes = bucket.failed.is_some_and(|failed| last_taken < failed);
            jobs.push(Job { bucket: key, stand, known: bucket.known, probes });
        }
        jobs
    }

    /// When something may be done again that cannot be done now.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        let waits =
            self.buckets.values().filter(|bucket| !bucket.busy).filter_map(|bucket| bucket.wait_until);
        waits.chain(self.next_at).filter(|at| *at > now).min()
    }

    /// Takes in what came of a job. `jitter` is between 0 and 1.
    pub(crate) fn done(&mut self, done: Done, clock: Timestamp, now: Instant, jitter: f64) {
        let Done { bucket: key, stand, taken, failure, probed, lonely, unread } = done;
        let step = self.step();
        self.busy = self.busy.saturating_sub(1);
        let Some(bucket) = self.buckets.get_mut(&key) else { return };
        (bucket.busy, bucket.stand) = (false, stand);
        if taken > 0 {
            bucket.forgive();
            self.was_taken(step, clock);
        }
        let Some(bucket) = self.buckets.get_mut(&key) else { return };
        if unread {
            bucket.wait_until = now.checked_add(UNREAD_REST);
        }
        let Some(failure) = failure else { return };
        bucket.attempts = bucket.attempts.saturating_add(1);
        let since = bucket.failed.replace(step);
        bucket.lonely = lonely;
        let was_elsewhere = since.is_some_and(|since| self.last_taken > since);
        if failure.gone {
            self.disable = Some(format!("the receiver wants no more: {}", failure.why));
        } else if was_elsewhere || probed == Some(true) {
            self.refused(key, &failure, step, (clock, now), jitter);
        } else {
            self.failed(key, &failure, since.is_none(), (clock, now), jitter);
        }
    }

    fn was_taken(&mut self, step: u64, clock: Timestamp) {
        self.last_taken = step;
        self.failing = 0;
        self.next_at = None;
        if self.is_failing() {
            // What was tried in vain meanwhile was not refused for what it is.
            self.buckets.values_mut().for_each(|bucket| bucket.wait_until = None);
        }
        let last_error = self.health.last_error.take();
        self.health = SinkHealth { delivered_at: Some(clock), last_error, ..SinkHealth::default() };
        self.health_is_new = true;
    }

    /// The receiver takes others and not this one.
    fn refused(
        &mut self,
        key: BucketKey,
        failure: &Failure,
        step: u64,
        (clock, now): (Timestamp, Instant),
        jitter: f64,
    ) {
        self.was_taken(step, clock);
        self.health.last_error = Some(failure.why.clone());
        let Some(bucket) = self.buckets.get_mut(&key) else { return };
        // The next failure asks for new evidence.
        bucket.failed = Some(self.count.saturating_add(1));
        self.count = self.count.saturating_add(1);
        bucket.strikes = bucket.strikes.saturating_add(1);
        if bucket.strikes < self.settings.attempts_max {
            let wait = jittered(self.settings.wait_seconds(bucket.strikes), jitter);
            bucket.wait_until = now.checked_add(wait);
            return;
        }
        if let Some(event) = bucket.stand.events.pop_front() {
            let why = failure.why.clone();
            self.parked.push(Park { position: (key, event.seq), attempts: bucket.attempts, why });
            bucket.stand.position = event.seq;
            bucket.stand.settle();
        }
        bucket.forgive();
    }

    /// Nothing shows that the receiver takes anything.
    fn failed(
        &mut self,
        key: BucketKey,
        failure: &Failure,
        is_first: bool,
        (clock, now): (Timestamp, Instant),
        jitter: f64,
    ) {
        self.failing = self.failing.saturating_add(usize::from(is_first));
        if failure.blame == Blame::Receiver {
            self.failing = FAILING_BUCKETS_MAX;
        }
        let is_alone = is_first && self.failing < FAILING_BUCKETS_MAX && !self.is_failing();
        if is_alone && let Some(bucket) = self.buckets.get_mut(&key) {
            bucket.wait_until = now.checked_add(jittered(self.settings.wait_seconds(1), jitter));
            return;
        }
        self.health.last_error = Some(failure.why.clone());
        self.health_is_new = true;
        if self.next_at.is_some_and(|at| at > now) {
            // It was under way when another one failed: both are one failure of the receiver.
            return;
        }
        self.health.failures = self.health.failures.saturating_add(1);
        let wait = jittered(self.settings.wait_seconds(self.health.failures), jitter);
        let wished = failure.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        let wait = wait.max(wished);
        self.next_at = now.checked_add(wait);
        let since = *self.health.failing_since.get_or_insert(clock);
        self.health.next_attempt_at = Some(clock.plus(wait));
        let disable_at = since.plus_seconds(self.settings.disable_after_seconds);
        if clock >= disable_at {
            self.disable = Some(format!("the receiver has taken nothing since {since}: {}", failure.why));
        }
    }

    /// Whether there is something to write down.
    pub(crate) fn is_dirty(&self) -> bool {
        self.health_is_new
            || self.disable.is_some()
            || !self.parked.is_empty()
            || self.buckets.values().any(|bucket| !bucket.busy && bucket.is_dirty())
    }

    /// What is to be written down, as of now. Buckets that are at work follow when they are done.
    pub(crate) fn progress(&mut self) -> Progress {
        let mut progress = Progress {
            parked: std::mem::take(&mut self.parked),
            health: std::mem::take(&mut self.health_is_new).then(|| self.health.clone()),
            disable: self.disable.clone(),
            positions: Vec::new(),
        };
        for (key, bucket) in self.buckets.iter().filter(|(_, bucket)| !bucket.busy && bucket.is_dirty()) {
            let (seq, strikes) = (bucket.stand.position, bucket.strikes);
            progress.positions.push(SinkPosition { bucket: *key, seq, strikes });
        }
        progress
    }

    /// It is written down. What is done with is followed no more.
    pub(crate) fn written(&mut self, progress: &Progress) {
        for place in &progress.positions {
            if let Some(bucket) = self.buckets.get_mut(&place.bucket) {
                (bucket.stored, bucket.stored_strikes) = (place.seq, place.strikes);
            }
        }
        if self.buckets.len() >= BUCKETS_MAX {
            self.buckets.retain(|_, bucket| !bucket.is_idle());
        }
    }

    /// It could not be written down: it is to be written again.
    pub(crate) fn unwritten(&mut self, progress: Progress) {
        self.parked.splice(0..0, progress.parked);
        self.health_is_new |= progress.health.is_some();
    }
}

fn micros(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

/// A wait, a fifth longer or shorter, so that those who failed together do not come again together.
fn jittered(seconds: u32, jitter: f64) -> Duration {
    Duration::from_secs(u64::from(seconds)).mul_f64(0.8 + 0.4 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
