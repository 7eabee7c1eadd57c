//! The shelf: what this node last saw of each pool's stock, from commits and reads of the authority. It
//! answers the display read, tells the routing which buckets are empty, and is the sold-out hint. It may
//! delay a sale by its age, never make one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use holdfast_core::id::PoolId;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{Balance, PoolRow};

use crate::routing;

/// Units of a bucket, of a pool, of all pools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Units {
    pub(crate) available: u64,
    pub(crate) held: u64,
    pub(crate) sold: u64,
}

impl From<&Balance> for Units {
    fn from(balance: &Balance) -> Self {
        Self { available: balance.available, held: balance.held, sold: balance.sold }
    }
}

impl Units {
    pub(crate) fn add(&mut self, more: &Self) {
        self.available = self.available.saturating_add(more.available);
        self.held = self.held.saturating_add(more.held);
        self.sold = self.sold.saturating_add(more.sold);
    }

    pub(crate) const fn less(&self, part: &Self) -> Self {
        Self {
            available: self.available.saturating_sub(part.available),
            held: self.held.saturating_sub(part.held),
            sold: self.sold.saturating_sub(part.sold),
        }
    }

    /// With the words of the domain.
    pub(crate) const fn named(&self) -> [(&'static str, u64); 3] {
        [("available", self.available), ("held", self.held), ("sold", self.sold)]
    }
}

/// A pool as this node last saw it, for those who look at the node.
#[derive(Debug, Clone)]
pub(crate) struct PoolSeen {
    /// The buckets that were seen, by number.
    pub(crate) buckets: Vec<(u32, Units)>,
    pub(crate) as_of: Timestamp,
}

impl PoolSeen {
    pub(crate) fn units(&self) -> Units {
        let mut units = Units::default();
        self.buckets.iter().for_each(|(_, of_bucket)| units.add(of_bucket));
        units
    }
}

/// All pools that this node has seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllSeen {
    pub(crate) pools: usize,
    pub(crate) units: Units,
}

/// One pool as last seen.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// By bucket number; none = never seen.
    buckets: Vec<Option<Balance>>,
    /// When all of it was last known to be true.
    as_of: Timestamp,
    /// Somebody is reading it anew.
    refreshing: bool,
    /// How many buckets the pool has, once all of it was read.
    whole: Option<u32>,
}

impl Seen {
    /// Keeps a balance; whether it is another than before at the same position.
    fn keep(&mut self, balance: Balance, all: &mut Units) -> bool {
        let Ok(number) = usize::try_from(balance.bucket.number) else { return false };
        if self.buckets.len() <= number {
            self.buckets.resize(number.saturating_add(1), None);
        }
        let Some(slot) = self.buckets.get_mut(number) else { return false };
        // Commits of different lanes are seen in any order; the later position is the truth.
        if slot.is_some_and(|known| known.ledger_seq > balance.ledger_seq) {
            return false;
        }
        let before = slot.replace(balance);
        *all = all.less(&before.as_ref().map(Units::from).unwrap_or_default());
        all.add(&Units::from(&balance));
        before.is_some_and(|before| before.ledger_seq == balance.ledger_seq && before != balance)
    }

    fn units(&self) -> Units {
        let mut units = Units::default();
        self.buckets.iter().flatten().for_each(|balance| units.add(&Units::from(balance)));
        units
    }

    fn remaining(&self, buckets: u32) -> Option<u64> {
        if u32::try_from(self.buckets.len()).ok()? != buckets {
            return None;
        }
        self.buckets.iter().map(|seen| seen.map(|balance| balance.available)).sum()
    }
}

#[derive(Debug, Default)]
struct Pools {
    pools: HashMap<PoolId, Seen>,
    /// The units of all of them, kept up so that nobody need add them up.
    units: Units,
}

/// The node's shelf.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<Pools>);

impl Shelf {
    fn lock(&self) -> std::sync::MutexGuard<'_, Pools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a commit has shown; a bucket whose balance moved without a ledger entry, if there is one.
    pub(crate) fn keep(&self, balances: &[Balance], now: Timestamp) -> Option<BucketKey> {
        let Pools { pools, units } = &mut *self.lock();
        let mut drifted = None;
        for balance in balances {
            let seen = pools.entry(balance.bucket.pool).or_default();
            if seen.keep(*balance, units) {
                drifted = Some(balance.bucket);
            }
            // A pool of one bucket is then wholly known; one of many is only as fresh as its last read.
            if seen.buckets.len() == 1 {
                seen.as_of = now;
            }
        }
        drifted
    }

    /// Keeps what a read of the whole pool has shown; as [`Shelf::keep`].
    pub(crate) fn keep_pool(&self, row: &PoolRow, now: Timestamp) -> Option<BucketKey> {
        let Pools { pools, units } = &mut *self.lock();
        let seen = pools.entry(row.pool.id).or_default();
        let mut drifted = None;
        for bucket in &row.buckets {
            if seen.keep(Balance::from(bucket), units) {
                drifted = Some(bucket.key);
            }
        }
        seen.as_of = now;
        seen.refreshing = false;
        seen.whole = Some(row.pool.buckets);
        drifted
    }

    /// Forgets a pool of which a commit's outcome is unknown.
    pub(crate) fn forget(&self, pool: PoolId) {
        let Pools { pools, units } = &mut *self.lock();
        if let Some(seen) = pools.remove(&pool) {
            *units = units.less(&seen.units());
        }
    }

    /// These pools as they were last seen, and the sum of all.
    pub(crate) fn seen(&self, wanted: &[PoolId]) -> (HashMap<PoolId, PoolSeen>, AllSeen) {
        let Pools { pools, units } = &*self.lock();
        let pool_seen = |pool: &PoolId| {
            let seen = pools.get(pool)?;
            let buckets = (0_u32..).zip(&seen.buckets);
            let buckets =
                buckets.filter_map(|(number, balance)| Some((number, Units::from(balance.as_ref()?))));
            Some((*pool, PoolSeen { buckets: buckets.collect(), as_of: seen.as_of }))
        };
        let all = AllSeen { pools: pools.len(), units: *units };
        (wanted.iter().filter_map(pool_seen).collect(), all)
    }

    /// What remains in the pool, and when that was seen, if every bucket was.
    pub(crate) fn remaining(&self, pool: PoolId, buckets: u32) -> Option<(u64, Timestamp)> {
        let Pools { pools, .. } = &*self.lock();
        let seen = pools.get(&pool)?;
        Some((seen.remaining(buckets)?, seen.as_of))
    }

    /// What remains in a pool that was once read whole.
    pub(crate) fn remaining_of_known(&self, pool: PoolId) -> Option<(u64, Timestamp)> {
        let Pools { pools, .. } = &*self.lock();
        let seen = pools.get(&pool)?;
        Some((seen.remaining(seen.whole?)?, seen.as_of))
    }

    /// Whether the caller is the one who shall read the pool anew.
    pub(crate) fn begin_refresh(&self, pool: PoolId) -> bool {
        let Pools { pools, .. } = &mut *self.lock();
        let seen = pools.entry(pool).or_default();
        !std::mem::replace(&mut seen.refreshing, true)
    }

    /// Gives up reading anew.
    pub(crate) fn end_refresh(&self, pool: PoolId) {
        if let Some(seen) = self.lock().pools.get_mut(&pool) {
            seen.refreshing = false;
        }
    }

    /// The bucket to try: the one that routing draws of those that are not known to have too little. None:
    /// every bucket is known to have too little by itself.
    pub(crate) fn choose(
        &self,
        pool: PoolId,
        weights: &[u32],
        units: u64,
        ticket: u64,
        tried: &[u32],
    ) -> Option<u32> {
        let Pools { pools, .. } = &*self.lock();
        let seen = pools.get(&pool);
        let may_have = |number: u32| {
            let known = usize::try_from(number).ok().and_then(|n| seen?.buckets.get(n).copied().flatten());
            known.is_none_or(|balance| balance.available >= units)
        };
        routing::choose(weights, ticket, tried, may_have)
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
    fn a_balance_that_moves_without_an_entry_is_noticed_and_sums_are_kept() {
        let shelf = Shelf::default();
        let key = BucketKey { pool: PoolId(1), number: 0 };
        assert_eq!(shelf.keep(&[balance(0, 5, 3)], Timestamp(1)), None);
        assert_eq!(shelf.keep(&[balance(0, 5, 3)], Timestamp(2)), None, "the same again");
        assert_eq!(shelf.keep(&[balance(0, 4, 2)], Timestamp(3)), None, "an older one");
        assert_eq!(shelf.keep(&[balance(0, 4, 4), balance(1, 2, 1)], Timestamp(4)), None);
        assert_eq!(shelf.keep(&[balance(0, 9, 4)], Timestamp(5)), Some(key));
        let (seen, all) = shelf.seen(&[PoolId(1), PoolId(2)]);
        assert_eq!((seen.len(), all.pools, all.units.available), (1, 1, 11));
        assert_eq!(seen[&PoolId(1)].units().available, 11);
        shelf.forget(PoolId(1));
        assert_eq!(shelf.seen(&[]).1.units, Units::default());
    }

    #[test]
    fn buckets_known_to_have_too_little_are_skipped() {
        let shelf = Shelf::default();
        shelf.keep(&[balance(0, 0, 1), balance(1, 1, 1)], Timestamp(1));
        let choose = |units, tried| shelf.choose(PoolId(1), &[1, 1, 1], units, 0, tried);
        assert_eq!(shelf.choose(PoolId(1), &[1, 1, 0], 1, 0, &[]), Some(1));
        assert_eq!(choose(2, &[]), Some(2), "never seen may have enough");
        assert_eq!(choose(2, &[2]), None);
    }
}
