//! What the node knows of the queues: who waits in each bucket's queue, and how fast they leave it. It tells
//! places and estimates, and wakes who lands; it decides nothing. Rows and their states are the truth, and
//! every line is read anew when somebody asks and it is old.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::command::{How, Outcome};
use holdfast_core::id::OrderId;
use holdfast_core::order::{Order, State};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{Page, QueuePlace};
use tokio::sync::Notify;

use crate::engine::Engine;
use crate::error::Error;
use crate::timer::Timer;

/// Lines beyond so many are forgotten when nobody waits in them.
const LINES_MAX: usize = 10_000;
/// Most ends of queue times that are remembered.
const ENDS_MAX: usize = 1_000_000;
/// A line is not read anew before so many times of what reading it took: a long one costs no more than this.
const REST_FACTOR: u32 = 20;
/// Over how long the pace of a queue is measured.
const PACE_US: u64 = 1_000_000;

/// Where a queued order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its place in its bucket's queue, from 1.
    pub position: u64,
    /// How long it may still wait, by the pace at which the queue moved of late; at most to the end of its
    /// queue time, when it is answered in any case.
    pub estimated_wait: Duration,
}

impl Standing {
    /// At a position, when one place takes so long as far as that is known, and no longer than to the end.
    pub(crate) fn at(position: u64, each_us: Option<u64>, due_at: Timestamp, now: Timestamp) -> Self {
        let most_us = u64::try_from(due_at.0.saturating_sub(now.0)).unwrap_or(0);
        let wait_us = each_us.map_or(most_us, |each_us| each_us.saturating_mul(position));
        Self { position, estimated_wait: Duration::from_micros(wait_us.min(most_us)) }
    }
}

/// How fast a queue moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Microseconds from one who leaves to the next, once that was measured.
    each_us: Option<u64>,
    since: Timestamp,
    left: u64,
}

impl Pace {
    pub(crate) const fn new(now: Timestamp) -> Self {
        Self { each_us: None, since: now, left: 0 }
    }

    fn elapsed_us(&self, now: Timestamp) -> u64 {
        u64::try_from(now.0.saturating_sub(self.since.0)).unwrap_or(0)
    }

    pub(crate) fn left(&mut self, count: u64, now: Timestamp) {
        self.left = self.left.saturating_add(count);
        let elapsed_us = self.elapsed_us(now);
        if elapsed_us >= PACE_US
            && let Some(each_us) = elapsed_us.checked_div(self.left)
        {
            let known_us = self.each_us.unwrap_or(each_us);
            *self = Self { each_us: Some(known_us.midpoint(each_us)), ..Self::new(now) };
        }
    }

    /// What one place in the queue takes. A queue that stands still gets slower with every moment.
    pub(crate) fn each_us(&self, now: Timestamp) -> Option<u64> {
        let stalled_us = self.elapsed_us(now).checked_div(self.left.saturating_add(1))?;
        match self.each_us {
            Some(each_us) => Some(each_us.max(stalled_us)),
            None => self.elapsed_us(now).checked_div(self.left),
        }
    }
}

/// The queues that this node knows, at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueuesSeen {
    /// Orders that wait.
    pub(crate) depth: usize,
    /// When the oldest of them was taken in.
    pub(crate) oldest: Option<Timestamp>,
}

/// One bucket's queue as this node knows it.
#[derive(Debug)]
struct Line {
    waiting: Vec<QueuePlace>,
    /// How many at the front have left: taken away when there are many.
    gone: usize,
    pace: Pace,
    /// When it may be read anew.
    stale_at: Option<Instant>,
    refreshing: bool,
}

impl Line {
    const fn new(now: Timestamp) -> Self {
        Self { waiting: Vec::new(), gone: 0, pace: Pace::new(now), stale_at: None, refreshing: false }
    }

    fn waiting(&self) -> &[QueuePlace] {
        self.waiting.get(self.gone..).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    fn enter(&mut self, place: QueuePlace, now: Timestamp) {
        if self.is_empty() {
            // Nobody left while nobody waited: that says nothing about the pace.
            self.pace = Pace { each_us: self.pace.each_us, ..Pace::new(now) };
        }
        match self.waiting().binary_search(&place) {
            Ok(_) => {}
            Err(at) => self.waiting.insert(self.gone.saturating_add(at), place),
        }
    }

    fn leave(&mut self, place: QueuePlace, now: Timestamp) {
        match self.waiting().binary_search(&place) {
            Ok(0) => self.gone = self.gone.saturating_add(1),
            Ok(at) => drop(self.waiting.remove(self.gone.saturating_add(at))),
            Err(_) => return,
        }
        if self.gone > 1_024 && self.gone.saturating_mul(2) > self.waiting.len() {
            self.waiting.drain(..self.gone);
            self.gone = 0;
        }
        self.pace.left(1, now);
    }

    /// Takes over what was read; who came while it was being read is kept, and leaves with the next read if
    /// he has left already.
    fn refresh(&mut self, read: Vec<QueuePlace>, began: Timestamp, now: Timestamp) {
        let known = self.waiting();
        let left = known.iter().filter(|place| place.0 < began && read.binary_search(place).is_err()).count();
        let came: Vec<_> = known.iter().filter(|place| place.0 >= began).copied().collect();
        self.pace.left(u64::try_from(left).unwrap_or(0), now);
        self.waiting = read;
        self.gone = 0;
        came.into_iter().for_each(|place| self.enter(place, now));
    }

    fn standing(&self, place: QueuePlace, due_at: Timestamp, now: Timestamp) -> Standing {
        let before = self.waiting().partition_point(|known| *known < place);
        let position = u64::try_from(before).unwrap_or(u64::MAX).saturating_add(1);
        Standing::at(position, self.pace.each_us(now), due_at, now)
    }
}

/// The node's view of the queues.
pub(crate) struct Queues {
    timer: Arc<Timer>,
    /// When the timer thinks that the time of those is over whom this node took in.
    ends: Mutex<HashMap<OrderId, Timestamp>>,
    lines: Mutex<HashMap<BucketKey, Line>>,
    /// How many lines there are: read before each look into the map.
    count: AtomicUsize,
    woken: Mutex<BTreeSet<BucketKey>>,
    wake: Notify,
}

impl Queues {
    pub(crate) fn new(timer: Arc<Timer>) -> Self {
        Self {
            timer,
            ends: Mutex::default(),
            lines: Mutex::default(),
            count: AtomicUsize::new(0),
            woken: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// The queues as this node knows them.
    pub(crate) fn seen(&self) -> QueuesSeen {
        let mut seen = QueuesSeen::default();
        for line in self.lines().values() {
            seen.depth += line.waiting().len();
            let first = line.waiting().first().map(|(taken_in, _)| *taken_in);
            seen.oldest = seen.oldest.into_iter().chain(first).min();
        }
        seen
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<OrderId, Timestamp>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<BucketKey, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn woken(&self) -> MutexGuard<'_, BTreeSet<BucketKey>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows what was committed: who came, and who left.
    pub(crate) fn committed(&self, outcomes: &[Outcome], now: Timestamp) {
        let orders = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Order { order, how, .. } => Some((order, *how)),
            Outcome::Refused { .. }
            | Outcome::Pool { .. }
            | Outcome::Adjusted { .. }
            | Outcome::Transferred { .. }
            | Outcome::Imported { .. }
            | Outcome::Proposed { .. }
            | Outcome::Epoch { .. }
            | Outcome::Repaired { .. }
            | Outcome::Miss(_)
            | Outcome::Elsewhere(_)
            | Outcome::Outdated
            | Outcome::NotDue(_) => None,
        });
        for (order, how) in orders {
            let Some(home) = order.home else { continue };
            let place = (order.created_at, order.id);
            if order.state == State::Queued {
                if how == How::Created {
                    self.remember(order);
                    self.enter(home, place, now);
                }
            } else if self.count.load(Ordering::SeqCst) > 0
                && let Some(line) = self.lines().get_mut(&home)
            {
                line.leave(place, now);
                if let Some(due_at) = self.ends().remove(&order.id) {
                    self.timer.forget(due_at, order.id, home);
                }
            }
        }
    }

    fn remember(&self, order: &Order) {
        self.timer.remember(order);
        let mut ends = self.ends();
        // What is forgotten here the timer finds out by asking.
        if ends.len() >= ENDS_MAX {
            ends.clear();
        }
        ends.extend(order.due_at.map(|due_at| (order.id, due_at)));
    }

    fn enter(&self, bucket: BucketKey, place: QueuePlace, now: Timestamp) {
        let mut lines = self.lines();
        if lines.len() >= LINES_MAX {
            lines.retain(|_, line| !line.is_empty());
        }
        lines.entry(bucket).or_insert_with(|| Line::new(now)).enter(place, now);
        self.count.store(lines.len(), Ordering::SeqCst);
        drop(lines);
        if self.woken().insert(bucket) {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until somebody was taken in, or for a while.
    pub(crate) async fn woken_within(&self, most: Duration) {
        let _ = tokio::time::timeout(most, self.wake.notified()).await;
    }

    /// Takes the buckets that somebody came to, but for those that are busy.
    pub(crate) fn take_woken(&self, is_busy: impl Fn(&BucketKey) -> bool) -> Vec<BucketKey> {
        let mut woken = self.woken();
        let taken: Vec<_> = woken.iter().filter(|bucket| !is_busy(bucket)).copied().collect();
        woken.retain(|bucket| !taken.contains(bucket));
        taken
    }

    /// Whether the caller is the one who shall read the line anew.
    fn begin_refresh(&self, bucket: BucketKey, now: Timestamp) -> bool {
        let mut lines = self.lines();
        let line = lines.entry(bucket).or_insert_with(|| Line::new(now));
        if line.refreshing || line.stale_at.is_some_and(|stale_at| monotonic() < stale_at) {
            return false;
        }
        line.refreshing = true;
        true
    }

    fn waits(&self, bucket: BucketKey, order: &Order) -> bool {
        let place = (order.created_at, order.id);
        self.lines().get(&bucket).is_some_and(|line| line.waiting().binary_search(&place).is_ok())
    }

    /// One beat of those who look again and again.
    #[expect(clippy::disallowed_methods, reason = "between two looks at what another node may have done")]
    async fn beat(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }

    fn end_refresh(&self, bucket: BucketKey, stale_at: Option<Instant>) {
        if let Some(line) = self.lines().get_mut(&bucket) {
            line.refreshing = false;
            line.stale_at = stale_at.or(line.stale_at);
        }
    }

    fn refresh(&self, bucket: BucketKey, read: Vec<QueuePlace>, began: Timestamp, now: Timestamp) {
        if let Some(line) = self.lines().get_mut(&bucket) {
            line.refresh(read, began, now);
        }
    }
}

impl Engine {
    /// Where a queued order stands; none if it is not queued.
    pub async fn standing(&self, order: &Order) -> Option<Standing> {
        let (home, due_at) = (order.home?, order.due_at?);
        if order.state != State::Queued {
            return None;
        }
        if let Some(standing) = self.standing_in_cache(order).await {
            return Some(standing);
        }
        let (queues, now) = (&self.shared.queues, self.store().now());
        if queues.begin_refresh(home, now) {
            let began = monotonic();
            let read = self.read_line(home).await;
            let took = began.elapsed();
            let rest = self.shared.config.queue_age_max.max(took.saturating_mul(REST_FACTOR));
            if let Ok(read) = read {
                queues.refresh(home, read, now, self.store().now());
            }
            queues.end_refresh(home, monotonic().checked_add(rest));
        }
        let lines = queues.lines();
        let line = lines.get(&home)?;
        Some(line.standing((order.created_at, order.id), due_at, self.store().now()))
    }

    /// Waits until a queued order seems to have left its queue, by whichever node. It looks at the node's view
    /// of the line, which however many wait is read once in a while; whoever wants to know reads the order.
    pub async fn left_queue(&self, order: &Order) {
        let Some(home) = order.home else { return };
        loop {
            // The first look comes after a while: whoever waits has just read the order.
            self.shared.queues.beat(self.shared.config.queue_poll).await;
            if self.ticket_of(order.id).is_some() {
                if self.has_left_cache(order.id).await {
                    return;
                }
            } else if self.standing(order).await.is_none() || !self.shared.queues.waits(home, order) {
                return;
            }
        }
    }

    async fn read_line(&self, bucket: BucketKey) -> Result<Vec<QueuePlace>, Error> {
        let mut waiting = Vec::new();
        loop {
            let limit = self.shared.config.queue_page_max;
            let page = self.store().queued(bucket, Page { after: waiting.last().copied(), limit }).await?;
            let full = page.len() >= limit;
            waiting.extend(page);
            if !full {
                return Ok(waiting);
            }
        }
    }
}

fn monotonic() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn place(number: u128) -> QueuePlace {
        (Timestamp(i64::try_from(number).unwrap()), OrderId(number))
    }

    fn line(numbers: std::ops::RangeInclusive<u128>) -> Line {
        let mut line = Line::new(Timestamp(0));
        numbers.for_each(|number| line.enter(place(number), Timestamp(0)));
        line
    }

    #[test]
    fn a_position_is_who_waits_before() {
        let mut line = line(1..=10);
        let due_at = Timestamp(30 * SECOND);
        let standing = |line: &Line, number| line.standing(place(number), due_at, Timestamp(0)).position;
        assert_eq!((standing(&line, 1), standing(&line, 10)), (1, 10));
        for number in [1, 2, 5] {
            line.leave(place(number), Timestamp(0));
        }
        assert_eq!((standing(&line, 3), standing(&line, 10)), (1, 7));
        line.enter(place(4), Timestamp(0));
        assert_eq!(standing(&line, 10), 7, "who is known is not counted twice");
        line.refresh(vec![place(9), place(10)], Timestamp(100), Timestamp(0));
        assert_eq!(standing(&line, 10), 2);
        assert_eq!(standing(&line, 12), 3, "one who is not known yet stands behind");
    }

    #[test]
    fn who_came_while_the_line_was_read_stays_in_it() {
        let mut line = line(1..=3);
        line.enter(place(50), Timestamp(0));
        line.refresh(vec![place(3)], Timestamp(40), Timestamp(0));
        assert_eq!(line.waiting(), [place(3), place(50)]);
    }

    #[test]
    fn the_estimate_follows_the_pace_and_never_passes_the_end_of_the_queue_time() {
        let mut line = line(1..=1_000);
        let due_at = Timestamp(30 * SECOND);
        let wait = |line: &Line, number, now| {
            line.standing(place(number), due_at, Timestamp(now)).estimated_wait.as_millis()
        };
        assert_eq!(wait(&line, 1_000, 0), 30_000, "nothing is known yet: the end of the queue time");
        for number in 1..=100 {
            line.leave(place(number), Timestamp(SECOND / 2));
        }
        assert_eq!(wait(&line, 200, SECOND / 2), 500);
        for number in 101..=200 {
            line.leave(place(number), Timestamp(SECOND));
        }
        let moving = wait(&line, 1_000, SECOND);
        assert!((7_000..=9_000).contains(&moving), "800 orders at about 100 a second: {moving}");
        let standing_still = wait(&line, 1_000, 21 * SECOND);
        assert_eq!(standing_still, 9_000, "what stands still is answered at the end of its time");
    }

    #[test]
    fn a_long_line_is_cut_at_its_front() {
        let mut line = line(1..=5_000);
        for number in 1..=4_000 {
            line.leave(place(number), Timestamp(0));
        }
        assert_eq!(line.waiting().len(), 1_000);
        assert!(line.waiting.len() < 3_000);
    }
}
