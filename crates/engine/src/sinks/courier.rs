//! The courier of one sink: it holds the sink's lease, learns what there is, has it delivered, and writes down how far
//! it has come. It ends when the sink changes or the lease is lost; a new one begins where the positions are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::stock::BucketKey;
use holdfast_store::{
    AdvanceSink, DeadLetter, DeadLetterState, LedgerPosition, PARKED_MAX, Page, Park, SinkRow, SinkState,
};
use tokio::task::{JoinError, JoinSet};

use super::contract::{Blame, Sink, Sinks};
use super::course::Course;
use super::deliver::{Done, Way};
use super::outbox::Inbox;
use crate::engine::Engine;

/// How often positions are written down, if they moved: what broke off between is delivered again.
const WRITE: Duration = Duration::from_millis(100);
/// How often the sink's own row and the lease are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often the authority is asked what other nodes committed.
const POLL: Duration = Duration::from_millis(150);
/// The same where there are none: the commits of this node wake the courier.
const POLL_ALONE: Duration = Duration::from_secs(5);
/// A poll is not repeated before so many times of what it took.
const POLL_REST_FACTOR: u32 = 10;
/// Buckets that are read at a time.
const LAGS: usize = 500;
/// Parked events that are tried again at a time.
const LETTERS: usize = 100;
/// How long what is under way may still take when a courier ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a task of the courier came back with.
enum Came {
    Done(Done),
    Letters { parked: Vec<Park>, redelivered: Vec<LedgerPosition> },
}

/// The courier.
pub(super) struct Courier {
    engine: Engine,
    row: SinkRow,
    way: Arc<Way>,
    inbox: Arc<Inbox>,
    course: Course,
    tasks: JoinSet<Came>,
    reads_letters: bool,
    is_broken: bool,
    parked: Vec<Park>,
    redelivered: Vec<LedgerPosition>,
    poll_at: Instant,
    polls_on: Option<BucketKey>,
    look_at: Instant,
    write_at: Instant,
}

impl Courier {
    pub(super) fn new(engine: Engine, sinks: Arc<dyn Sinks>, sink: Arc<dyn Sink>, row: SinkRow) -> Self {
        let inbox = engine.shared.outbox.open(&row.name);
        let figures = engine.shared.couriers.figures.of(&row.name);
        let settings = row.settings.clone();
        let way = Arc::new(Way { engine: engine.clone(), sinks, sink, settings, figures });
        let now = monotonic();
        let course = Course::new(&row, engine.store().now(), now);
        let later = now.checked_add(LOOK).unwrap_or(now);
        Self {
            engine,
            row,
            way,
            inbox,
            course,
            tasks: JoinSet::new(),
            reads_letters: false,
            is_broken: false,
            parked: Vec::new(),
            redelivered: Vec::new(),
            poll_at: now,
            polls_on: None,
            look_at: later,
            write_at: now,
        }
    }

    /// Delivers until the sink is no more as it was.
    pub(super) async fn run(mut self) {
        while !self.engine.is_draining() && self.go_on().await {
            self.rest().await;
        }
        let farewell = async {
            while let Some(came) = self.tasks.join_next().await {
                self.came(came);
            }
        };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
        self.write().await;
    }

    /// One round; whether there is another.
    async fn go_on(&mut self) -> bool {
        let now = monotonic();
        let woken = self.inbox.take();
        // What was changed at this node holds before the next event is sent.
        if woken.look || now >= self.look_at {
            self.look_at = now.checked_add(LOOK).unwrap_or(now);
            if !self.is_as_it_was().await || !self.engine.has_lease(self.row.name.lease()).await {
                return false;
            }
        }
        let mut unknown = woken.more;
        for (bucket, ledger_seq) in woken.buckets {
            unknown |= !self.course.went_on(bucket, ledger_seq);
        }
        if unknown || now >= self.poll_at {
            self.poll().await;
        }
        if self.is_broken {
            return false;
        }
        self.begin_tasks();
        if monotonic() >= self.write_at && self.is_dirty() {
            return self.write().await && self.course.disable.is_none();
        }
        true
    }

    fn is_dirty(&self) -> bool {
        self.course.is_dirty() || !self.parked.is_empty() || !self.redelivered.is_empty()
    }

    /// Waits for whatever comes first.
    async fn rest(&mut self) {
        let writes_at = self.is_dirty().then_some(self.write_at);
        let now = monotonic();
        let next = [Some(self.look_at), Some(self.poll_at), writes_at, self.course.next_at(now)];
        let until = next.into_iter().flatten().min().unwrap_or(now);
        // A time that has passed waits for something else: what is ready is at work already.
        let wait = until.saturating_duration_since(now).max(Duration::from_millis(1));
        let came = tokio::select! {
            came = self.tasks.join_next(), if !self.tasks.is_empty() => came,
            () = self.inbox.woken_up() => None,
            _ = tokio::time::timeout(wait, std::future::pending::<()>()) => None,
        };
        if let Some(came) = came {
            self.came(came);
        }
    }

    fn came(&mut self, came: Result<Came, JoinError>) {
        match came {
            Ok(Came::Done(done)) => {
                let jitter = self.jitter();
                self.course.done(done, self.engine.store().now(), monotonic(), jitter);
            }
            Ok(Came::Letters { parked, redelivered }) => {
                // They are read again once it is written down what became of them.
                self.reads_letters = !parked.is_empty() || !redelivered.is_empty();
                self.parked.extend(parked);
                self.redelivered.extend(redelivered);
            }
            // Where it stood is not known any more: the next courier begins at the positions.
            Err(_) => self.is_broken = true,
        }
    }

    /// Between 0 and 1, from the random part of an id.
    fn jitter(&self) -> f64 {
        let low = u16::try_from(self.engine.shared.ids.next() & 0xffff).unwrap_or(0);
        f64::from(low) / f64::from(u16::MAX)
    }

    /// Whether the sink is still the one that this courier began with. Its health does not count: that is the
    /// courier's own.
    async fn is_as_it_was(&mut self) -> bool {
        match self.engine.store().sink(self.row.name.clone()).await {
            Ok(Some(sink)) => {
                let is_same = sink.state == SinkState::Active
                    && (sink.round, sink.updated_at) == (self.row.round, self.row.updated_at);
                (self.row.parked, self.row.waiting) = (sink.parked, sink.waiting);
                self.show().await;
                is_same
            }
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(%error, "a sink could not be read");
                true
            }
        }
    }

    /// Shows how far it is behind.
    async fn show(&self) {
        if let Ok(backlog) = self.engine.store().backlog(self.row.name.clone()).await {
            self.way.figures.show(&backlog, self.row.parked, self.course.is_failing());
        }
    }

    /// Asks the authority where the sink is behind.
    async fn poll(&mut self) {
        let begun = monotonic();
        let rest = if self.engine.store().is_shared() { POLL } else { POLL_ALONE };
        let mut rest = rest;
        while self.course.has_room() {
            let page = Page { after: self.polls_on, limit: LAGS };
            let lags = match self.engine.store().lagging(self.row.name.clone(), page).await {
                Ok(lags) => lags,
                Err(error) => {
                    tracing::warn!(%error, sink = %self.row.name, "what a sink is behind could not be read");
                    break;
                }
            };
            lags.iter().for_each(|lag| self.course.lags(lag));
            self.polls_on = lags.last().map(|lag| lag.bucket).filter(|_| lags.len() >= LAGS);
            if self.polls_on.is_none() {
                break;
            }
        }
        if self.polls_on.is_some() || !self.course.has_room() {
            // There are more than are followed: as soon as some are done.
            rest = POLL;
        }
        let took = begun.elapsed();
        let pause = rest.max(took.saturating_mul(POLL_REST_FACTOR));
        self.poll_at = monotonic().checked_add(pause).unwrap_or(begun);
    }

    fn begin_tasks(&mut self) {
        let way = &self.way;
        for job in self.course.next(monotonic()) {
            let way = Arc::clone(way);
            self.tasks.spawn(async move { Came::Done(way.deliver(job).await) });
        }
        let asks = self.row.waiting > 0 && !self.course.is_failing();
        if asks && !self.reads_letters {
            self.reads_letters = true;
            self.row.waiting = 0;
            let (way, name) = (Arc::clone(way), self.row.name.clone());
            self.tasks.spawn(async move {
                let page = Page { after: None, limit: LETTERS };
                let found = way.engine.store().dead_letters(name, Some(DeadLetterState::Waiting), page).await;
                let (letters, _) = found.unwrap_or_default();
                way.try_again(letters).await
            });
        }
    }

    /// Writes down how far it has come; whether it may go on.
    async fn write(&mut self) -> bool {
        let now = monotonic();
        self.write_at = now.checked_add(WRITE).unwrap_or(now);
        let mut progress = self.course.progress();
        let parked = u64::try_from(progress.parked.len()).unwrap_or(u64::MAX).saturating_add(self.row.parked);
        if parked > PARKED_MAX && !progress.parked.is_empty() {
            progress.disable = Some("as many of its events are parked as may be".into());
            self.course.disable.clone_from(&progress.disable);
        }
        let advance = AdvanceSink {
            positions: progress.positions.clone(),
            parked: progress.parked.iter().chain(&self.parked).cloned().collect(),
            redelivered: self.redelivered.clone(),
            health: progress.health.clone(),
            disable: progress.disable.clone(),
            ..AdvanceSink::of(self.row.name.clone(), self.row.round, Some(self.engine.shared.run))
        };
        match self.engine.store().advance_sink(advance).await {
            Ok(true) => {
                self.course.written(&progress);
                if !self.parked.is_empty() || !self.redelivered.is_empty() {
                    self.reads_letters = false;
                }
                self.parked.clear();
                self.redelivered.clear();
                true
            }
            Ok(false) => {
                self.engine.forget_lease(&self.row.name.lease());
                false
            }
            Err(error) => {
                // It may have been written all the same; writing it again is harmless.
                tracing::warn!(%error, sink = %self.row.name, "how far a sink has come could not be written down");
                self.course.unwritten(progress);
                true
            }
        }
    }
}

impl Way {
    /// Tries parked events again, one by one.
    async fn try_again(&self, letters: Vec<DeadLetter>) -> Came {
        let (mut parked, mut redelivered) = (Vec::new(), Vec::new());
        for letter in letters {
            let (bucket, seq) = letter.position;
            let found = self.engine.store().entries_after(bucket, seq.saturating_sub(1), 1).await;
            let Ok(Some(found)) = found else { break };
            let event = found.entries.first().filter(|entry| entry.seq == seq);
            let Some(event) = event.and_then(|entry| self.sinks.event(entry, &found.campaign)) else {
                let (attempts, why) = (letter.attempts, "its entry carries no event".into());
                parked.push(Park { position: letter.position, attempts, why });
                continue;
            };
            let at = event.at;
            let delivered = self.sink.deliver(&[Arc::new(event)]).await;
            self.figures.attempted(delivered.failure.as_ref());
            match delivered.failure {
                None => {
                    self.figures.delivered(at, self.engine.store().now());
                    redelivered.push(letter.position);
                }
                Some(failure) if failure.blame == Blame::Receiver => break,
                Some(failure) => {
                    let attempts = letter.attempts.saturating_add(1);
                    parked.push(Park { position: letter.position, attempts, why: failure.why });
                }
            }
        }
        Came::Letters { parked, redelivered }
    }
}

fn monotonic() -> Instant {
    Instant::now()
}
