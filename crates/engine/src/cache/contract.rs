//! What the engine needs of a cache. It refuses early and takes stock ahead of the authority; it decides
//! nothing. Every call has a deadline, is sent once, and answers for what it was asked or fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_core::cache::{Accepted, EntryId, Epoch, Landing, SetAside};
use holdfast_core::command::Place;
use holdfast_core::id::{OrderId, OrderNo};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

/// An order for a bucket's cache.
#[derive(Debug, Clone)]
pub struct Accept {
    /// The bucket.
    pub bucket: BucketKey,
    /// The epoch that the node knows as open.
    pub epoch: Epoch,
    /// The server that the epoch was opened on. Held against the connection that would carry the call, so that
    /// no server that took over behind the node's back ever takes an order.
    pub identity: Arc<str>,
    /// The greatest number of an accepted order that this node has seen in the epoch: a cache that is
    /// behind it went back.
    pub seen: u64,
    /// The order, of lines of the bucket's pool alone.
    pub place: Arc<Place>,
    /// Its units.
    pub units: u64,
    /// When its time in the queue is over.
    pub due_at: Timestamp,
    /// Most units of the account in this bucket's cache, all of its orders of the epoch together.
    pub account_limit: Option<u64>,
    /// Most orders that may wait in the bucket's stream.
    pub backlog_max: u64,
}

/// What a cache says of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its units are taken and its entry is in the stream: both or neither.
    Accepted {
        /// Where it stands.
        accepted: Accepted,
        /// How many wait in the stream, this one included.
        backlog: u64,
    },
    /// Its number is known in this epoch.
    Known {
        /// Where it stands.
        accepted: Accepted,
        /// The id that it was accepted with.
        order: OrderId,
        /// How many wait in the stream.
        backlog: u64,
    },
    /// The bucket's cache has too little.
    Short {
        /// What it has left: less than nothing after others took from the authority.
        available: i64,
    },
    /// The account has had as much as it may have, by this bucket's cache alone, which forgets nothing that was
    /// released or refused since: the authority has the last word.
    AccountLimit,
    /// As many wait as may.
    QueueFull,
    /// The epoch is not open here: another one, draining, or no keys at all.
    NotReady,
    /// The cache is behind what the node has seen, keys or entries of it are gone, or another server answers:
    /// the epoch is in doubt.
    WentBack,
}

/// A stream entry to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// An order.
    Order(Arc<Landing>),
    /// An entry that is no order.
    Poison(SetAside),
}

impl Delivery {
    /// Where it was accepted.
    #[must_use]
    pub fn accepted(&self) -> Accepted {
        match self {
            Self::Order(landing) => landing.accepted,
            Self::Poison(aside) => aside.accepted,
        }
    }
}

/// What a bucket's cache says of itself, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The epoch.
    pub epoch: Epoch,
    /// Whether it accepts.
    pub is_open: bool,
    /// What is left.
    pub available: i64,
    /// How many orders were accepted in the epoch.
    pub accepted: u64,
    /// How many units they took.
    pub accepted_units: u64,
    /// The ledger position up to which credits were applied.
    pub applied: u64,
    /// The last entry of the stream ever written in the epoch; none: none yet.
    pub last: Option<EntryId>,
    /// Entries that were settled in the epoch.
    pub settled: u64,
    /// Entries that wait.
    pub backlog: u64,
    /// Entries that were delivered and not settled.
    pub delivered: u64,
}

impl Position {
    /// Whether every accepted order's entry was settled or still waits. If not, some were trimmed, or somebody
    /// else writes to the stream: orders were accepted that nothing will land.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.accepted == self.settled.saturating_add(self.backlog)
    }
}

/// A bucket's new epoch to prepare. It accepts nothing until it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// The bucket.
    pub bucket: BucketKey,
    /// The epoch.
    pub epoch: Epoch,
    /// The ledger position of the base.
    pub base_seq: u64,
    /// What was available then.
    pub base_available: u64,
}

/// Stock for a bucket's cache: the sum of the credits of the entries after one position, up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credit {
    /// The bucket.
    pub bucket: BucketKey,
    /// The epoch.
    pub epoch: Epoch,
    /// The position that the cache must be at.
    pub from: u64,
    /// The position after it.
    pub to: u64,
    /// How many units; below 0: other paths took them.
    pub units: i64,
}

/// What came of a credit, a drain, a seed or an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is applied.
    Done,
    /// The cache is at another position, epoch or state; nothing was done. Whoever asks reads its position.
    Elsewhere,
}

/// Why a cache did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// It cannot be asked: nothing was done.
    #[error("the cache is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// The answer was lost: it may have been done or not.
    #[error("the cache's answer was lost: {0}")]
    Unknown(Arc<str>),
    /// It answers what it may not, or is set up in a way that loses what it takes.
    #[error("the cache cannot be used: {0}")]
    Unfit(Arc<str>),
}

/// A cache that takes stock ahead of the authority, bucket by bucket.
#[async_trait]
pub trait Cache: Send + Sync + 'static {
    /// Takes an order's units and appends its entry, in one step.
    async fn accept(&self, accept: &Accept) -> Result<Answer, CacheError>;

    /// Where an order number stands in a bucket's epoch; none if it is not known there.
    async fn look_up(
        &self,
        bucket: BucketKey,
        epoch: Epoch,
        order_no: &OrderNo,
    ) -> Result<Option<(Accepted, OrderId)>, CacheError>;

    /// One entry that waits; none if it has left, or never was.
    async fn entry(&self, bucket: BucketKey, entry: EntryId) -> Result<Option<Delivery>, CacheError>;

    /// Entries that nobody has been given yet, in their order; waits a while for the first.
    async fn deliver(
        &self,
        bucket: BucketKey,
        consumer: &str,
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, CacheError>;

    /// Takes over entries that somebody was given and has not settled for so long, in their order.
    async fn claim(
        &self,
        bucket: BucketKey,
        consumer: &str,
        count: usize,
        idle: Duration,
    ) -> Result<Vec<Delivery>, CacheError>;

    /// Removes entries that have landed, or can no longer land.
    async fn settle(&self, bucket: BucketKey, entries: &[EntryId]) -> Result<(), CacheError>;

    /// Applies a credit if the cache is at its position.
    async fn credit(&self, credit: Credit) -> Result<Applied, CacheError>;

    /// A bucket's cache as it stands; none if its keys are gone, in part or all.
    async fn position(&self, bucket: BucketKey) -> Result<Option<Position>, CacheError>;

    /// Makes a bucket's epoch accept no more.
    async fn drain(&self, bucket: BucketKey, epoch: Epoch) -> Result<Applied, CacheError>;

    /// Replaces what the cache has of a bucket by a new epoch that does not accept yet; never by an older one.
    async fn seed(&self, seed: Seed) -> Result<Applied, CacheError>;

    /// Makes a seeded epoch accept.
    async fn open(&self, bucket: BucketKey, epoch: Epoch) -> Result<Applied, CacheError>;

    /// Removes what the cache has of a bucket, of this epoch or an older one.
    async fn forget(&self, bucket: BucketKey, epoch: Epoch) -> Result<(), CacheError>;

    /// Which server keeps a bucket now: its run and its replication. Asked anew of each connection; another
    /// one than an epoch was opened on is another cache.
    async fn identity(&self, bucket: BucketKey) -> Result<Arc<str>, CacheError>;

    /// Whether the server that keeps a bucket may be relied on: evicts nothing, has room, keeps what it takes.
    async fn examine(&self, bucket: BucketKey) -> Result<(), CacheError>;
}
