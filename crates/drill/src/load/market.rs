//! Where buyers meet nodes: every exchange goes through here and is kept.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use uuid::Uuid;

use super::answer::{Heard, read};
use super::node::{NoAnswer, Node, Sent};
use super::request::Wanted;
use crate::history::{Answered, Exchange, History};
use crate::sale::Sale;

/// The longest that anybody waits for an answer. It is longer than a server may take, so that one that takes too long
/// is seen as such.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long before the next attempt where a server does not say, in milliseconds; it doubles up to the second.
const BACKOFF_MS: (u64, u64) = (100, 2_000);

/// The longest that a buyer waits because a server asks for it.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(5);

/// How often somebody asks until there is an answer; time ends it before, as a rule.
const ATTEMPTS_MAX: u32 = 200;

/// What all who take part share.
pub(super) struct Market {
    pub(super) sale: Sale,
    /// The nodes; there is at least one.
    pub(super) nodes: (Node, Vec<Node>),
    pub(super) history: History,
    /// Where orders are sent: another route only to see what the load itself can do.
    pub(super) place_path: &'static str,
    /// When the load began.
    pub(super) zero: Instant,
    /// From when on nobody asks again.
    pub(super) over: watch::Sender<bool>,
    /// Orders that are queued and that nobody follows any more.
    pub(super) waiting: Mutex<Vec<Waiting>>,
}

/// An order that is queued, as its buyer knows it.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) buyer: u64,
    pub(super) id: Uuid,
    pub(super) ticket: Option<Box<str>>,
}

/// Who asks, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    pub(super) buyer: u64,
    /// The node that is asked first.
    pub(super) node: u32,
    /// Whether it asks only once.
    pub(super) gives_up: bool,
}

impl Market {
    pub(super) fn now_ns(&self) -> u64 {
        self.ns_of(Instant::now())
    }

    fn ns_of(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.zero).as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn instant(&self, ns: u64) -> Instant {
        self.zero.checked_add(Duration::from_nanos(ns)).unwrap_or(self.zero)
    }

    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Sends one request and keeps what comes of it.
    pub(super) async fn exchange(&self, buyer: u64, node: u32, wanted: &Wanted, due_ns: u64) -> Heard {
        let (number, node) = self.node(node);
        let Sent { at, came } = match tokio::time::timeout(PATIENCE, node.send(wanted)).await {
            Ok(sent) => sent,
            Err(_) => Sent { at: self.instant(due_ns), came: Err(NoAnswer::Lost) },
        };
        let heard = match came {
            Ok(raw) => read(wanted.ask, &raw),
            Err(why) => Heard::nothing(Answered::Lost { never_sent: why == NoAnswer::NeverSent }),
        };
        self.note(buyer, number, wanted, (due_ns, self.ns_of(at)), heard.answered.clone());
        heard
    }

    /// Sends one request and hangs up soon, whatever has come by then.
    pub(super) async fn hang_up(&self, asker: Asker, wanted: &Wanted, due_ns: u64, after: Duration) {
        let (number, node) = self.node(asker.node);
        let begun = self.now_ns();
        // An answer that came in time is one that this buyer did not read.
        let _ = tokio::time::timeout(after, node.send(wanted)).await;
        self.note(asker.buyer, number, wanted, (due_ns, begun), Answered::HungUp);
    }

    /// Asks, node after node, until there is an answer to the question; none if this buyer gives up, or all is over.
    pub(super) async fn ask(&self, asker: Asker, wanted: &Wanted, first_due_ns: u64) -> Option<Heard> {
        let mut due_ns = first_due_ns;
        for attempt in 0..ATTEMPTS_MAX {
            let heard = self.exchange(asker.buyer, asker.node.wrapping_add(attempt), wanted, due_ns).await;
            if !heard.is_open() {
                return Some(heard);
            }
            if asker.gives_up || self.is_over() {
                return None;
            }
            let wait = pause_after(attempt, heard.again_after);
            due_ns = self.now_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
            self.wait_until(due_ns).await;
        }
        None
    }

    /// Waits for a moment of the load's time, or until all is over.
    pub(super) async fn wait_until(&self, ns: u64) {
        let mut over = self.over.subscribe();
        tokio::select! {
            () = tokio::time::sleep_until(self.instant(ns).into()) => {}
            // An error says that nobody can end it any more.
            _ = over.wait_for(|over| *over) => {}
        }
    }

    /// Leaves an order to whoever asks at the end.
    pub(super) fn leave(&self, waiting: Waiting) {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(waiting);
    }

    fn node(&self, number: u32) -> (u16, &Node) {
        let (first, more) = &self.nodes;
        let number = usize::try_from(number).unwrap_or_default() % more.len().saturating_add(1);
        let node = number.checked_sub(1).and_then(|further| more.get(further)).unwrap_or(first);
        (u16::try_from(number).unwrap_or(u16::MAX), node)
    }

    fn note(
        &self,
        buyer: u64,
        node: u16,
        wanted: &Wanted,
        (due_ns, sent_ns): (u64, u64),
        answered: Answered,
    ) {
        let ended_ns = self.now_ns();
        let (ask, about) = (wanted.ask, wanted.about);
        self.history.note(Exchange { buyer, node, ask, about, due_ns, sent_ns, ended_ns, answered });
    }
}

/// How long to wait before the next attempt: as long as the server says, or twice as long each time; and a part of that
/// by chance, so that those who were refused together do not come back together.
fn pause_after(attempt: u32, asked: Option<Duration>) -> Duration {
    let (least, most) = BACKOFF_MS;
    let backoff = least.saturating_mul(2_u64.saturating_pow(attempt.min(8))).min(most);
    let wait = asked.map_or(Duration::from_millis(backoff), |asked| asked.min(AGAIN_AFTER_MAX));
    wait.mul_f64(fastrand::f64().mul_add(0.5, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_are_spread_and_keep_what_was_asked_for() {
        for _ in 0..50 {
            let first = pause_after(0, None);
            assert!((100..=150).contains(&first.as_millis()), "{first:?}");
            assert!(pause_after(u32::MAX, None).as_millis() <= 3_000);
            let asked = pause_after(0, Some(Duration::from_secs(1)));
            assert!((1_000..=1_500).contains(&asked.as_millis()), "{asked:?}");
            assert!(pause_after(0, Some(Duration::MAX)) <= AGAIN_AFTER_MAX * 2);
        }
    }
}
