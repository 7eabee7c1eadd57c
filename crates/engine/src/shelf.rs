//! The shelf: what this node last saw of each pool's stock, from commits and reads of the authority. It
//! answers the display read, tells the routing which buckets are empty, and is the sold-out hint. It may
//! delay a sale by its age, never make one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use holdfast_core::id::PoolId;
use holdfast_core::time::Timestamp;
use holdfast_store::{Balance, PoolRow};

/// One pool as last seen.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Available units and ledger position, by bucket number; none = never seen.
    buckets: Vec<Option<(u64, u64)>>,
    /// When all of it was last known to be true.
    as_of: Timestamp,
    /// Somebody is reading it anew.
    refreshing: bool,
    /// How many buckets the pool has, once all of it was read.
    whole: Option<u32>,
}

impl Seen {
    fn keep(&mut self, number: u32, available: u64, ledger_seq: u64) {
        let Ok(number) = usize::try_from(number) else { return };
        if self.buckets.len() <= number {
            self.buckets.resize(number.saturating_add(1), None);
        }
        if let Some(slot) = self.buckets.get_mut(number)
            // Commits of different lanes are seen in any order; the later position is the truth.
            && slot.is_none_or(|(_, seq)| seq <= ledger_seq)
        {
            *slot = Some((available, ledger_seq));
        }
    }

    fn remaining(&self, buckets: u32) -> Option<u64> {
        if u32::try_from(self.buckets.len()).ok()? != buckets {
            return None;
        }
        self.buckets.iter().map(|seen| seen.map(|(available, _)| available)).sum()
    }
}

/// The node's shelf.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<HashMap<PoolId, Seen>>);

impl Shelf {
    fn pools(&self) -> std::sync::MutexGuard<'_, HashMap<PoolId, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a commit has shown.
    pub(crate) fn keep(&self, balances: &[Balance], now: Timestamp) {
        let mut pools = self.pools();
        for balance in balances {
            let seen = pools.entry(balance.bucket.pool).or_default();
            seen.keep(balance.bucket.number, balance.available, balance.ledger_seq);
            // A pool of one bucket is then wholly known; one of many is only as fresh as its last read.
            if seen.buckets.len() == 1 {
                seen.as_of = now;
            }
        }
    }

    /// Keeps what a read of the whole pool has shown.
    pub(crate) fn keep_pool(&self, row: &PoolRow, now: Timestamp) {
        let mut pools = self.pools();
        let seen = pools.entry(row.pool.id).or_default();
        for bucket in &row.buckets {
            seen.keep(bucket.key.number, bucket.available, bucket.ledger_seq);
        }
        seen.as_of = now;
        seen.refreshing = false;
        seen.whole = Some(row.pool.buckets);
    }

    /// Forgets a pool of which a commit's outcome is unknown.
    pub(crate) fn forget(&self, pool: PoolId) {
        self.pools().remove(&pool);
    }

    /// What remains in the pool, and when that was seen, if every bucket was.
    pub(crate) fn remaining(&self, pool: PoolId, buckets: u32) -> Option<(u64, Timestamp)> {
        let pools = self.pools();
        let seen = pools.get(&pool)?;
        Some((seen.remaining(buckets)?, seen.as_of))
    }

    /// What remains in a pool that was once read whole.
    pub(crate) fn remaining_of_known(&self, pool: PoolId) -> Option<(u64, Timestamp)> {
        let pools = self.pools();
        let seen = pools.get(&pool)?;
        Some((seen.remaining(seen.whole?)?, seen.as_of))
    }

    /// Whether the caller is the one who shall read the pool anew.
    pub(crate) fn begin_refresh(&self, pool: PoolId) -> bool {
        let mut pools = self.pools();
        let seen = pools.entry(pool).or_default();
        !std::mem::replace(&mut seen.refreshing, true)
    }

    /// Gives up reading anew.
    pub(crate) fn end_refresh(&self, pool: PoolId) {
        if let Some(seen) = self.pools().get_mut(&pool) {
            seen.refreshing = false;
        }
    }

    /// The bucket to try: from the routed one on, the first that is not known to have too little. None:
    /// every bucket is known to have too little by itself.
    pub(crate) fn choose(
        &self,
        pool: PoolId,
        buckets: u32,
        units: u64,
        route: u64,
        skip: &[u32],
    ) -> Option<u32> {
        let pools = self.pools();
        let seen = pools.get(&pool);
        let start = u32::try_from(route.checked_rem(u64::from(buckets))?).ok()?;
        (0..buckets)
            .map(|step| start.wrapping_add(step).checked_rem(buckets).unwrap_or(0))
            .filter(|number| !skip.contains(number))
            .find(|number| {
                let known =
                    usize::try_from(*number).ok().and_then(|n| seen?.buckets.get(n).copied().flatten());
                known.is_none_or(|(available, _)| available >= units)
            })
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::stock::BucketKey;

    use super::*;

    fn balance(number: u32, available: u64, ledger_seq: u64) -> Balance {
        Balance { bucket: BucketKey { pool: PoolId(1), number }, available, held: 0, sold: 0, ledger_seq }
    }

    #[test]
    fn remaining_is_known_only_when_every_bucket_was_seen_and_the_later_position_wins() {
        let shelf = Shelf::default();
        shelf.keep(&[balance(0, 5, 3)], Timestamp(1));
        assert_eq!(shelf.remaining(PoolId(1), 2), None);
        shelf.keep(&[balance(1, 7, 1), balance(0, 9, 2)], Timestamp(2));
        assert_eq!(shelf.remaining(PoolId(1), 2).map(|(units, _)| units), Some(12));
    }

    #[test]
    fn buckets_known_to_have_too_little_are_skipped() {
        let shelf = Shelf::default();
        shelf.keep(&[balance(0, 0, 1), balance(1, 1, 1)], Timestamp(1));
        assert_eq!(shelf.choose(PoolId(1), 3, 1, 0, &[]), Some(1));
        assert_eq!(shelf.choose(PoolId(1), 3, 2, 0, &[]), Some(2), "never seen may have enough");
        assert_eq!(shelf.choose(PoolId(1), 3, 2, 0, &[2]), None);
    }
}
