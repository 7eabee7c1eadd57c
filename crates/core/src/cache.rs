//! The cache path (缓存预减): stock that a cache takes ahead of the authority, by epochs, and how its entries land.
//!
//! The law of the cache, a bucket and an epoch, at the ledger position A up to which credits were applied:
//! `cache available = base + Σ credit(entries after the base, up to A) − units accepted in the epoch`, where an
//! entry's credit is its change of available plus the cached units that it settles.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::campaign::spelled;
use crate::command::{Place, Signed};
use crate::stock::BucketKey;
use crate::time::Timestamp;

/// A period in which a bucket's cache may take stock. Each begins from a base of its own; what belongs to a
/// closed one can no longer land. Numbered from 1; 0: there was none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where an epoch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EpochState {
    /// The cache may accept; its entries land.
    Open,
    /// The cache accepts no more; its entries still land.
    Draining,
    /// Nothing of it lands any more: an accepted order without a landing was never held.
    Closed,
}

spelled! { EpochState { Open = "open", Draining = "draining", Closed = "closed" } }

/// An entry of a bucket's stream, as the cache numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId {
    /// Milliseconds by the cache's clock.
    pub millis: u64,
    /// A number within the millisecond.
    pub number: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.number)
    }
}

/// A text that is no entry id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an entry id")]
pub struct NoEntryId;

impl FromStr for EntryId {
    type Err = NoEntryId;

    fn from_str(text: &str) -> Result<Self, NoEntryId> {
        let (millis, number) = text.split_once('-').ok_or(NoEntryId)?;
        let part = |text: &str| text.parse().map_err(|_| NoEntryId);
        Ok(Self { millis: part(millis)?, number: part(number)? })
    }
}

/// What names a landing. The ledger has at most one entry of it, and that entry settles its units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LandingKey {
    /// The bucket whose cache accepted.
    pub bucket: BucketKey,
    /// In which epoch.
    pub epoch: Epoch,
    /// As which entry of the stream.
    pub entry: EntryId,
}

/// How the source of a landing's ledger entry begins.
const SOURCE: &str = "cache:";

impl LandingKey {
    /// The source of its ledger entry.
    pub fn source(&self) -> Arc<str> {
        format!("{SOURCE}{}/{}", self.epoch, self.entry).into()
    }

    /// The landing that a bucket's ledger entry with this source is of; none if it is of none.
    pub fn of_source(bucket: BucketKey, source: &str) -> Option<Self> {
        let (epoch, entry) = source.strip_prefix(SOURCE)?.split_once('/')?;
        Some(Self { bucket, epoch: Epoch(epoch.parse().ok()?), entry: entry.parse().ok()? })
    }
}

/// A bucket's cache as the authority knows it: written only under the bucket's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheBucket {
    /// The bucket.
    pub key: BucketKey,
    /// The present or last epoch.
    pub epoch: Epoch,
    /// Where it stands.
    pub state: EpochState,
    /// Which server the epoch was opened on; another one is another cache.
    pub identity: Arc<str>,
    /// The bucket's last ledger entry when the epoch began.
    pub base_seq: u64,
    /// What was available then, after that entry.
    pub base_available: u64,
    /// The greatest accepted number that has landed in the epoch; the cache is never behind it.
    pub landed: u64,
    /// When the epoch last changed its state.
    pub changed_at: Timestamp,
}

impl CacheBucket {
    /// What the law says that the cache has left, after so many units of credits since the base and so many that
    /// it took.
    pub fn lawful(&self, credits: i64, accepted_units: u64) -> i64 {
        let base = i64::try_from(self.base_available).unwrap_or(i64::MAX);
        let taken = i64::try_from(accepted_units).unwrap_or(i64::MAX);
        base.saturating_add(credits).saturating_sub(taken)
    }
}

/// A step of a bucket's epoch. Each is absolute: the same again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Begin the epoch on this server, after the one before was closed (or if there was none). It is later than that
    /// one, not always the next: a cache may know epochs of an authority that was put back.
    Open {
        /// The server.
        identity: Arc<str>,
    },
    /// Accept no more.
    Drain,
    /// Land no more.
    Close,
}

/// A command that turns a bucket's epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEpoch {
    /// The bucket.
    pub bucket: BucketKey,
    /// Which epoch.
    pub epoch: Epoch,
    /// What becomes of it.
    pub turn: Turn,
    /// By whom.
    pub signed: Signed,
}

/// Where an accepted order stands in its bucket's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Accepted {
    /// The bucket whose cache took the units: the order's home.
    pub bucket: BucketKey,
    /// The epoch.
    pub epoch: Epoch,
    /// The stream entry. (bucket, epoch, entry) is the key of a landing.
    pub entry: EntryId,
    /// How many orders the bucket's cache had accepted in the epoch, this one included.
    pub number: u64,
    /// Units that the cache took.
    pub units: u64,
}

impl Accepted {
    /// What names its landing.
    pub const fn key(&self) -> LandingKey {
        LandingKey { bucket: self.bucket, epoch: self.epoch, entry: self.entry }
    }
}

/// An accepted order to land. Key: (bucket, epoch, entry).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The order.
    pub place: Place,
    /// Where it was accepted.
    pub accepted: Accepted,
    /// When its time in the queue is over.
    pub due_at: Timestamp,
}

/// A stream entry that cannot be landed: its units are settled, and a person is told. Key: as a landing's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was accepted.
    pub accepted: Accepted,
    /// What is wrong with it.
    pub why: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_landing_is_told_from_its_source() {
        let bucket = BucketKey { pool: crate::id::PoolId(1), number: 2 };
        let key = LandingKey { bucket, epoch: Epoch(3), entry: EntryId { millis: 4, number: 5 } };
        assert_eq!(&*key.source(), "cache:3/4-5");
        assert_eq!(LandingKey::of_source(bucket, &key.source()), Some(key));
        for source in ["place", "cache:", "cache:3", "cache:x/4-5", "cache:3/4"] {
            assert_eq!(LandingKey::of_source(bucket, source), None, "{source}");
        }
    }

    #[test]
    fn an_entry_id_is_written_as_it_is_read() {
        let id = EntryId { millis: 1_700_000_000_123, number: 7 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "1", "1-", "-1", "1-2-3", "a-1"] {
            assert_eq!(text.parse::<EntryId>(), Err(NoEntryId), "{text}");
        }
    }
}
