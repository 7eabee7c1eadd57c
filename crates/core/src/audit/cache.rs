//! The checks of what landings settle: what the authority's rows alone can show of the cache path.

use std::collections::BTreeSet;

use crate::cache::{CacheBucket, EntryId, Epoch, LandingKey};
use crate::invariant::Invariant;
use crate::ledger::{Action, Entry};
use crate::stock::BucketKey;

use super::Auditor;

/// What the entries of one bucket have settled so far.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// The epoch of the last landing: one after the other.
    epoch: Epoch,
    /// Its landings.
    entries: BTreeSet<EntryId>,
    /// What was available after the entry at which the row says that the epoch began.
    available_at_base: Option<i64>,
}

impl Auditor {
    /// Reads the row of a bucket's cache, before the bucket.
    pub fn cache(&mut self, row: &CacheBucket) {
        self.caches.insert(row.key, row.clone());
    }

    /// INV13: only landings settle, each once and in its epoch.
    pub(super) fn settles(&mut self, entry: &Entry, available: i64) {
        let row = self.caches.get(&entry.bucket);
        let (epoch, base_seq) = row.map_or((Epoch::default(), 0), |row| (row.epoch, row.base_seq));
        if row.is_some() && entry.seq == base_seq {
            self.settled.available_at_base = Some(available);
        }
        if entry.settled == 0 {
            return;
        }
        let known = LandingKey::of_source(entry.bucket, &entry.source);
        let Some(key) = known.filter(|_| entry.action == Action::Land) else {
            let actual = format!("{} by {} at {}", entry.action.as_str(), entry.source, entry.seq);
            self.bucket_breach(entry.bucket, Invariant::LandingsSettleOnce, "a landing that settles", actual);
            return;
        };
        let is_in_time = if key.epoch == epoch { entry.seq > base_seq } else { entry.seq <= base_seq };
        if key.epoch > epoch || key.epoch < self.settled.epoch || !is_in_time {
            let expected =
                format!("landings of epoch {epoch} after entry {base_seq}, of those before up to it");
            let actual = format!("{} at {}", entry.source, entry.seq);
            self.bucket_breach(entry.bucket, Invariant::LandingsSettleOnce, expected, actual);
        }
        if key.epoch != self.settled.epoch {
            self.settled.epoch = key.epoch;
            self.settled.entries.clear();
        }
        if !self.settled.entries.insert(key.entry) {
            let actual = format!("{} again at {}", entry.source, entry.seq);
            self.bucket_breach(entry.bucket, Invariant::LandingsSettleOnce, "one entry a landing", actual);
        }
    }

    /// INV13: the row stands on the ledger.
    pub(super) fn end_settled(&mut self, bucket: BucketKey) {
        let settled = std::mem::take(&mut self.settled);
        let Some(row) = self.caches.remove(&bucket) else { return };
        if settled.available_at_base != i64::try_from(row.base_available).ok() {
            let expected = format!("{:?} after entry {}", settled.available_at_base, row.base_seq);
            self.bucket_breach(bucket, Invariant::LandingsSettleOnce, expected, row.base_available);
        }
        let has_landed = settled.epoch == row.epoch && !settled.entries.is_empty();
        if row.landed > 0 && !has_landed {
            let expected = format!("nothing landed in epoch {}", row.epoch);
            self.bucket_breach(bucket, Invariant::LandingsSettleOnce, expected, row.landed);
        }
    }

    /// INV13: every row is of a bucket.
    pub(super) fn end_caches(&mut self) {
        for key in std::mem::take(&mut self.caches).into_keys() {
            self.bucket_breach(key, Invariant::LandingsSettleOnce, "a bucket", "a cache row alone");
        }
    }
}
