//! The model's transfers, sweeps, buckets and weights. It has no stock of single buckets: whoever asks looks
//! into the rows before the step.

use super::{Answer, Model, Pool, refused, say};
use crate::steps::Place;

impl Pool {
    pub(super) fn new(available: u64, buckets: u32) -> Self {
        Self { available, weights: (0..buckets).map(|_| 1).collect(), ..Self::default() }
    }
}

impl Model {
    fn keeps_in(&self, pool: usize) -> bool {
        self.frozen || self.pools[pool].frozen
    }

    fn has_bucket(&self, (pool, bucket): Place) -> bool {
        bucket.is_none_or(|number| (number as usize) < self.pools[pool].weights.len())
    }

    /// `there` says whether the source has the units.
    pub(crate) fn transfer(
        &mut self,
        id: u32,
        from: Place,
        to: Place,
        quantity: u64,
        there: impl FnOnce() -> bool,
    ) -> Answer {
        if let Some(known) = self.transfers.get(&id) {
            let same = *known == (from, to, quantity);
            return if same { say("transferred before") } else { refused("key_mismatch") };
        }
        if from.0 >= self.pools.len() || to.0 >= self.pools.len() {
            return refused("not_found");
        }
        if !self.has_bucket(from) || !self.has_bucket(to) {
            return refused("invalid_value");
        }
        if self.keeps_in(from.0) {
            return refused("frozen");
        }
        let only_bucket = |place: Place| self.pools[place.0].weights.len() == 1 && place.1.is_none();
        let nowhere =
            from == to || from.1.is_none() && to.1.is_none() || only_bucket(from) || only_bucket(to);
        if from.0 == to.0 && nowhere {
            return refused("invalid_value");
        }
        if !there() {
            return refused("stock_in_use");
        }
        self.pools[from.0].available -= quantity;
        self.pools[to.0].available += quantity;
        self.transfers.insert(id, (from, to, quantity));
        say("transferred")
    }

    /// A sweep moves units within the pool alone; `moves` says whether there are any to move.
    pub(crate) fn sweep(&self, pool: usize, into: Option<u32>, moves: impl FnOnce() -> bool) -> Answer {
        if pool >= self.pools.len() {
            return refused("not_found");
        }
        if !self.has_bucket((pool, into)) {
            return refused("invalid_value");
        }
        if self.keeps_in(pool) {
            return refused("frozen");
        }
        say(if moves() { "pool changed" } else { "pool as it was" })
    }

    pub(crate) fn change_pool(
        &mut self,
        pool: usize,
        buckets: Option<u32>,
        weights: Option<&[u32]>,
    ) -> Answer {
        let Some(row) = self.pools.get_mut(pool) else { return refused("not_found") };
        let count = buckets.map_or(row.weights.len(), |buckets| buckets as usize);
        let fits = |weights: &[u32]| weights.len() == count && weights.iter().sum::<u32>() > 0;
        if count < row.weights.len() || weights.is_some_and(|weights| !fits(weights)) {
            return refused("invalid_value");
        }
        let mut after = row.weights.clone();
        after.resize(count, 1);
        if let Some(weights) = weights {
            after = weights.to_vec();
        }
        let same = after == row.weights;
        row.weights = after;
        say(if same { "pool as it was" } else { "pool changed" })
    }
}
