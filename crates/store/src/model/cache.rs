//! The model's caches.

use holdfast_core::cache::{CacheBucket, EpochState, LandingKey};
use holdfast_core::id::OrderId;
use holdfast_core::ledger::Entry;
use holdfast_core::snapshot::CacheChange;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

use super::Rows;
use crate::authority::NewIncarnation;
use crate::cache::Credits;
use crate::error::Error;
use crate::read::{Page, page_of};

impl Rows {
    pub(super) fn cache_buckets(&self, page: &Page<BucketKey>) -> (Vec<CacheBucket>, bool) {
        let found = super::after(&self.caches, page.after.as_ref()).into_iter().map(|(_, row)| row);
        page_of(found.collect(), page.limit)
    }

    pub(super) fn credits(&self, bucket: BucketKey, after: u64, entries_max: u32) -> Credits {
        let later = self.ledger.range((bucket, after.saturating_add(1))..=(bucket, u64::MAX));
        let most = usize::try_from(entries_max).unwrap_or(usize::MAX);
        later.take(most).fold(Credits { to: after, units: 0 }, |sum, ((_, seq), entry)| Credits {
            to: *seq,
            units: sum.units + entry.delta.available + entry.settled.cast_signed(),
        })
    }

    pub(super) fn landed(&self, key: LandingKey) -> Option<Entry> {
        let mut of_bucket = self.ledger.range((key.bucket, 0)..=(key.bucket, u64::MAX));
        of_bucket.find(|(_, entry)| is_of(entry, key)).map(|(_, entry)| entry.clone())
    }

    /// Every landing that is in the ledger, with its order.
    pub(super) fn landings(&self) -> impl Iterator<Item = (LandingKey, Option<OrderId>)> {
        let settling = self.ledger.values().filter(|entry| entry.settled > 0);
        settling
            .filter_map(|entry| Some((LandingKey::of_source(entry.bucket, &entry.source)?, entry.order_id)))
    }

    /// What a database would check before it writes.
    pub(super) fn check_caches(&self, changes: &[CacheChange], entries: &[Entry]) -> Result<(), Error> {
        let unexpected = |what: &str| Err(Error::Data(format!("unexpected row: {what}")));
        if changes.iter().any(|change| self.caches.get(&change.row.key) != change.base.as_ref()) {
            return unexpected("cache");
        }
        let settling = entries.iter().filter(|entry| entry.settled > 0);
        let mut keys = settling.filter_map(|entry| LandingKey::of_source(entry.bucket, &entry.source));
        if keys.any(|key| self.landed(key).is_some()) { unexpected("landing") } else { Ok(()) }
    }

    pub(super) fn write_caches(&mut self, changes: Vec<CacheChange>) {
        for change in changes {
            if change.is_turned() {
                self.catalog.cache_turned(change.row.key);
            }
            self.caches.insert(change.row.key, change.row);
        }
    }

    /// Begins a new incarnation: what a cache took of the authority before is nothing to it.
    pub(super) fn begin_incarnation(&mut self, begin: &NewIncarnation, now: Timestamp) {
        self.own.begin(begin, now);
        self.close_epochs(now);
    }

    fn close_epochs(&mut self, now: Timestamp) {
        for row in self.caches.values_mut().filter(|row| row.state != EpochState::Closed) {
            (row.state, row.changed_at) = (EpochState::Closed, now);
            self.catalog.cache_turned(row.key);
        }
    }
}

fn is_of(entry: &Entry, key: LandingKey) -> bool {
    entry.settled > 0 && LandingKey::of_source(entry.bucket, &entry.source) == Some(key)
}
