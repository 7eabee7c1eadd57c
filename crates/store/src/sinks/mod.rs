//! Sinks (下游): where order events are delivered, and how far each has come. The ledger is the outbox: a sink has a
//! position in every bucket, and what stands after it is undelivered.

mod change;
mod row;
mod start;

use async_trait::async_trait;
use holdfast_core::command::How;
use holdfast_core::id::CampaignId;
use holdfast_core::ledger::Entry;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

pub use change::{ChangeSink, PutSink, SinkChange, SinkEffect, SinkRefusal};
pub use row::{
    ATTEMPTS_MAX, BATCH_MAX, DISABLE_AFTER_SECONDS_MAX, DISABLE_AFTER_SECONDS_MIN, RETRIES_MAX,
    RETRY_SECONDS_MAX, SECRETS_MAX, SINK_NAME_CHARS_MAX, SinkHealth, SinkKind, SinkName, SinkRow, SinkSecret,
    SinkSettings, SinkState, TIMEOUT_MS_MAX, TIMEOUT_MS_MIN,
};
pub use start::Bisection;

use crate::error::Error;
use crate::read::{LedgerPosition, Page};

/// Most sinks of an authority, pull consumers among them.
pub const SINKS_MAX: usize = 100;
/// Most events that a sink may have parked: one that takes so few of them is not a receiver of these events.
pub const PARKED_MAX: u64 = 10_000;
/// Most buckets whose backlog is told exactly.
pub const BACKLOG_BUCKETS_MAX: usize = 1_000;
/// The beginning of every ledger.
pub const BEGINNING: Timestamp = Timestamp(i64::MIN);

/// A bucket in which a sink has something to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// The bucket.
    pub bucket: BucketKey,
    /// Where the sink stands there.
    pub seq: u64,
    /// The last entry there is.
    pub ledger_seq: u64,
    /// How often the next event was refused while others were taken.
    pub strikes: u32,
}

/// Entries of a bucket, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketEntries {
    /// The campaign of the bucket's pool.
    pub campaign: CampaignId,
    /// Ascending, without a gap.
    pub entries: Vec<Entry>,
}

/// Where a sink has come to in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkPosition {
    /// The bucket.
    pub bucket: BucketKey,
    /// The last entry that is done with.
    pub seq: u64,
    /// How often the next event was refused while others were taken.
    pub strikes: u32,
}

/// An event that is set aside, because a sink does not take it while it takes others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    /// Its entry.
    pub position: LedgerPosition,
    /// How often it was tried.
    pub attempts: u32,
    /// What the receiver said at last.
    pub why: String,
}

/// How far a sink has come. Written in one transaction, and only by whoever may deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvanceSink {
    /// Which sink.
    pub name: SinkName,
    /// In which round: after a replay, what was under way counts for nothing.
    pub round: u64,
    /// Who holds the sink's lease; none where nobody needs one, for a pull consumer.
    pub holder: Option<u128>,
    /// Positions. Within a round they never go back.
    pub positions: Vec<SinkPosition>,
    /// Events that are set aside.
    pub parked: Vec<Park>,
    /// Parked events that were delivered after all.
    pub redelivered: Vec<LedgerPosition>,
    /// How it goes, if that has changed.
    pub health: Option<SinkHealth>,
    /// Why nothing is sent any more.
    pub disable: Option<String>,
}

impl AdvanceSink {
    /// Nothing yet.
    pub const fn of(name: SinkName, round: u64, holder: Option<u128>) -> Self {
        Self {
            name,
            round,
            holder,
            positions: Vec::new(),
            parked: Vec::new(),
            redelivered: Vec::new(),
            health: None,
            disable: None,
        }
    }
}

/// Where a parked event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterState {
    /// It is tried no more until somebody asks for it.
    Parked,
    /// Somebody asked for it.
    Waiting,
    /// It was delivered after all.
    Delivered,
}

impl DeadLetterState {
    /// Every state.
    pub const ALL: &'static [Self] = &[Self::Parked, Self::Waiting, Self::Delivered];

    /// The spelling in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
        }
    }

    /// The state with this spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == text)
    }
}

/// A parked event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its entry.
    pub position: LedgerPosition,
    /// How often it was tried.
    pub attempts: u32,
    /// What the receiver said at last.
    pub why: String,
    /// Since when it stands so.
    pub at: Timestamp,
    /// Where it stands.
    pub state: DeadLetterState,
}

/// How much a sink has not looked at yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Buckets in which it is behind.
    pub buckets: u64,
    /// Ledger entries in them: at most so many events, for not every entry carries one.
    pub entries: u64,
    /// The oldest of them, and its time.
    pub oldest: Option<(Timestamp, LedgerPosition)>,
    /// Whether there are more than [`BACKLOG_BUCKETS_MAX`] such buckets; the rest is not counted.
    pub more: bool,
}

/// What became of an event at a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryState {
    /// The sink was told, or does not want events of its kind.
    Delivered,
    /// It will be told.
    Waiting,
    /// It did not take it.
    Parked {
        /// How often it was tried.
        attempts: u32,
        /// What the receiver said at last.
        why: String,
    },
    /// It happened before the time from which this sink is told.
    Before,
}

/// An event and a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOf {
    /// The sink.
    pub sink: SinkName,
    /// The event's entry.
    pub position: LedgerPosition,
    /// What became of it.
    pub state: DeliveryState,
}

/// The part of an authority that knows its sinks. Nothing here is written when an order changes.
#[async_trait]
pub trait SinkStore: Send + Sync + 'static {
    /// Makes a sink or changes its settings, and records who did it.
    async fn put_sink(&self, put: PutSink) -> Result<Result<(SinkRow, How), SinkRefusal>, Error>;

    /// Switches, replays, removes a sink, or changes its secrets, and records who did it and why. None: it is gone.
    async fn change_sink(&self, change: ChangeSink) -> Result<Result<Option<SinkRow>, SinkRefusal>, Error>;

    /// A sink.
    async fn sink(&self, name: SinkName) -> Result<Option<SinkRow>, Error>;

    /// Every sink in order of names: at most [`SINKS_MAX`].
    async fn sinks(&self) -> Result<Vec<SinkRow>, Error>;

    /// Buckets in which a sink has something to look at, ascending, with where it stands there. Entries before the
    /// time from which a sink is told are passed over.
    async fn lagging(&self, name: SinkName, page: Page<BucketKey>) -> Result<Vec<Lag>, Error>;

    /// A bucket's entries after a position; none if there is no such pool.
    async fn entries_after(
        &self,
        bucket: BucketKey,
        seq: u64,
        limit: usize,
    ) -> Result<Option<BucketEntries>, Error>;

    /// Writes how far a sink has come. False, and nothing is written: somebody else has its lease, a replay has begun
    /// a new round, or it is gone.
    async fn advance_sink(&self, advance: AdvanceSink) -> Result<bool, Error>;

    /// Parked events of a sink, in order of (bucket, sequence).
    async fn dead_letters(
        &self,
        name: SinkName,
        state: Option<DeadLetterState>,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<DeadLetter>, bool), Error>;

    /// How much a sink has not looked at yet.
    async fn backlog(&self, name: SinkName) -> Result<Backlog, Error>;

    /// What became of events at every sink, by their entries, in their order and that of the sinks' names.
    async fn deliveries(&self, positions: Vec<LedgerPosition>) -> Result<Vec<DeliveryOf>, Error>;

    /// Sinks that have something of a campaign still to be told of, or parked, in order of names. While there is one,
    /// the campaign's ledger must stay where it is.
    async fn sinks_behind(&self, campaign: CampaignId) -> Result<Vec<SinkName>, Error>;
}
