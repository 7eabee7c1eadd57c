//! One stretch of delivery in one bucket: reads on where the events that were read are sent, sends, cuts what is
//! refused until one event is left. It keeps nothing; what came of it goes back to the course.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::stock::BucketKey;
use holdfast_store::SinkSettings;

use super::contract::{Blame, Failure, OutEvent, Sink, Sinks};
use super::shown::SinkFigures;
use crate::engine::Engine;

/// Most entries that are read at a time.
const READ_MAX: usize = 500;
/// How long a stretch goes on before it says how far it has come.
const STRETCH: Duration = Duration::from_millis(100);

/// Where a bucket's delivery stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stand {
    /// The last entry that is done with.
    pub(crate) position: u64,
    /// The last entry that was read.
    pub(crate) read_to: u64,
    /// Events that were read and not taken yet.
    pub(crate) events: VecDeque<Arc<OutEvent>>,
    /// Events beyond them that the receiver has taken already.
    pub(crate) ahead: BTreeSet<u64>,
    /// Most events that are sent at once.
    pub(crate) size: usize,
}

/// What is to be done in a bucket.
pub(crate) struct Job {
    pub(crate) bucket: BucketKey,
    pub(crate) stand: Stand,
    /// The last entry that is known to be there.
    pub(crate) known: u64,
    /// Whether one event beyond a refused one is tried, to tell a refused event from a receiver that takes nothing.
    pub(crate) probes: bool,
}

/// What came of it.
pub(crate) struct Done {
    pub(crate) bucket: BucketKey,
    pub(crate) stand: Stand,
    /// Events that were taken.
    pub(crate) taken: usize,
    /// Why the first that is left was not.
    pub(crate) failure: Option<Failure>,
    /// Whether an event beyond it was taken; none: none was tried.
    pub(crate) probed: Option<bool>,
    /// Whether there was none that could be tried.
    pub(crate) lonely: bool,
    /// Whether the ledger could not be read, or has not what it should.
    pub(crate) unread: bool,
}

/// What a delivery goes by.
pub(crate) struct Way {
    pub(crate) engine: Engine,
    pub(crate) sinks: Arc<dyn Sinks>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) settings: SinkSettings,
    pub(crate) figures: Arc<SinkFigures>,
}

impl Way {
    /// Delivers for a while.
    pub(crate) async fn deliver(&self, job: Job) -> Done {
        let Job { bucket, stand, known, probes } = job;
        let (failure, probed) = (None, None);
        let mut done = Done { bucket, stand, taken: 0, failure, probed, lonely: false, unread: false };
        let begun = Instant::now();
        while begun.elapsed() < STRETCH {
            if done.stand.events.is_empty() {
                if done.stand.read_to >= known || !self.read_on(&mut done).await {
                    break;
                }
                continue;
            }
            if let Some(failure) = self.send(&mut done).await {
                if probes && failure.blame == Blame::Events {
                    done.probed = self.probe(&mut done, known).await;
                    done.lonely = done.probed.is_none();
                }
                done.failure = Some(failure);
                break;
            }
        }
        done
    }

    /// Reads on; whether there was anything.
    async fn read_on(&self, done: &mut Done) -> bool {
        let stand = &mut done.stand;
        let found = match self.engine.store().entries_after(done.bucket, stand.read_to, READ_MAX).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "the ledger could not be read for a sink");
                None
            }
        };
        let last = found.as_ref().and_then(|found| found.entries.last()).map(|entry| entry.seq);
        let (Some(found), Some(last)) = (found, last) else {
            // There is more by all that is known: a little later.
            done.unread = true;
            return false;
        };
        let wanted = found.entries.iter().filter(|entry| {
            holdfast_core::event::OrderEventKind::of(entry).is_some_and(|kind| self.settings.wants(kind))
        });
        let events = wanted.filter_map(|entry| self.sinks.event(entry, &found.campaign));
        let is_left = |event: &OutEvent| !stand.ahead.contains(&event.seq);
        let events: Vec<_> = events.filter(is_left).map(Arc::new).collect();
        stand.events.extend(events);
        stand.read_to = last;
        stand.settle();
        true
    }

    /// Sends the next events; why the first of them was not taken.
    async fn send(&self, done: &mut Done) -> Option<Failure> {
        let stand = &mut done.stand;
        let size = stand.size.max(1);
        let batch: Vec<_> = stand.events.iter().take(size).cloned().collect();
        let delivered = self.sink.deliver(&batch).await;
        let now = self.engine.store().now();
        self.figures.attempted(delivered.failure.as_ref());
        let taken = delivered.taken.min(batch.len());
        for event in stand.events.drain(..taken) {
            self.figures.delivered(event.at, now);
            stand.position = event.seq;
        }
        stand.settle();
        done.taken = done.taken.saturating_add(taken);
        let most = usize::try_from(self.settings.batch_max).unwrap_or(usize::MAX);
        let Some(failure) = delivered.failure else {
            stand.size = size.saturating_mul(2).min(most).max(1);
            return None;
        };
        let left = batch.len().saturating_sub(taken);
        let may_be_one = left > 1 && failure.blame == Blame::Events && !failure.gone;
        stand.size = if may_be_one { left / 2 } else { size };
        // Half of them is tried at once: it is one of them that is looked for, and the others shall not wait.
        (!may_be_one).then_some(failure)
    }

    /// Tries one event of another order beyond the first one; whether it was taken. None: there is none.
    async fn probe(&self, done: &mut Done, known: u64) -> Option<bool> {
        if done.stand.other().is_none() && done.stand.read_to < known {
            self.read_on(done).await;
        }
        let other = done.stand.other()?;
        let delivered = self.sink.deliver(&[Arc::clone(&other)]).await;
        self.figures.attempted(delivered.failure.as_ref());
        let is_taken = delivered.failure.is_none();
        if is_taken {
            self.figures.delivered(other.at, self.engine.store().now());
            done.stand.events.retain(|event| event.seq != other.seq);
            done.stand.ahead.insert(other.seq);
        }
        Some(is_taken)
    }
}

impl Stand {
    /// What was read and not kept needs no delivery: with nothing left, all that was read is done with.
    pub(crate) fn settle(&mut self) {
        self.position = match self.events.front() {
            Some(first) => self.position.max(first.seq.saturating_sub(1)),
            None => self.read_to,
        };
        let position = self.position;
        self.ahead.retain(|seq| *seq > position);
    }

    /// The first event of another order than the first one's.
    fn other(&self) -> Option<Arc<OutEvent>> {
        let first = self.events.front()?;
        self.events.iter().find(|event| event.order != first.order).cloned()
    }
}
