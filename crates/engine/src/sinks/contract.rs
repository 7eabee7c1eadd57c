//! What the engine asks of whoever carries events to a receiver.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_core::id::{CampaignId, OrderId};
use holdfast_core::ledger::Entry;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{SinkKind, SinkName, SinkRow};

/// An event on its way: the same bytes however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutEvent {
    /// Its id.
    pub id: String,
    /// Its type, as it is told: `dev.holdfast.order.held.v1`.
    pub kind: String,
    /// The last word of its type, for a subject: `held`.
    pub word: &'static str,
    /// The bucket in whose order it stands.
    pub bucket: BucketKey,
    /// Its place there.
    pub seq: u64,
    /// The order; none for a test.
    pub order: Option<OrderId>,
    /// When it happened.
    pub at: Timestamp,
    /// The event, as JSON.
    pub body: Vec<u8>,
}

/// Whom a failure speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// These events, perhaps: others may be taken.
    Events,
    /// The receiver: it cannot be reached, or wants nothing now.
    Receiver,
}

/// Why events were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// For people.
    pub why: String,
    /// Whom it speaks of.
    pub blame: Blame,
    /// When the receiver wants to be asked again.
    pub retry_after: Option<Duration>,
    /// Whether it wants to be asked never again.
    pub gone: bool,
}

impl Failure {
    /// The receiver as a whole.
    pub fn of_receiver(why: impl Into<String>) -> Self {
        Self { why: why.into(), blame: Blame::Receiver, retry_after: None, gone: false }
    }

    /// These events, perhaps.
    pub fn of_events(why: impl Into<String>) -> Self {
        Self { blame: Blame::Events, ..Self::of_receiver(why) }
    }
}

/// What became of events that were sent together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// How many of the first were taken.
    pub taken: usize,
    /// Why the next was not; none: all were taken.
    pub failure: Option<Failure>,
}

impl Delivered {
    /// All were taken.
    pub const fn all(count: usize) -> Self {
        Self { taken: count, failure: None }
    }

    /// None was taken.
    pub const fn none(failure: Failure) -> Self {
        Self { taken: 0, failure: Some(failure) }
    }
}

/// A receiver of events. Implementations bound the time of an attempt and what they read of an answer.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Sends events of one bucket, in their order. What is told as taken is safe with the receiver.
    async fn deliver(&self, events: &[Arc<OutEvent>]) -> Delivered;
}

/// Every way to receivers that a node has, and how events look.
#[async_trait]
pub trait Sinks: Send + Sync + 'static {
    /// Whether a sink may lead there; else why not.
    async fn check(&self, kind: SinkKind, to: &str) -> Result<(), String>;

    /// The way to a sink; else why there is none.
    fn open(&self, sink: &SinkRow) -> Result<Arc<dyn Sink>, String>;

    /// The event that an entry carries, as it is sent; none if it carries none. The same bytes every time.
    fn event(&self, entry: &Entry, campaign: &CampaignId) -> Option<OutEvent>;

    /// An event that tells of nothing, to try a sink with.
    fn test_event(&self, sink: &SinkName, id: u128, now: Timestamp) -> OutEvent;
}
