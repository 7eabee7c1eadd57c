//! Changing how orders come to a pool, and moving stock between pools and buckets: paired entries, one out
//! and one in for every part that moves, all in the batch's one transaction.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::command::{ChangePool, How, Outcome, Signed, Sweep, Transfer, TransferEnd};
use crate::id::PoolId;
use crate::ledger::Action;
use crate::order::Shortage;
use crate::refusal::Refusal;
use crate::stock::{Bucket, BucketKey, Delta, Pool};

use super::stock::signed;
use super::{Blocked, Deltas, Note, Working, blocked};

/// Units that leave one bucket for another.
pub(super) struct Part {
    pub(super) from: BucketKey,
    pub(super) to: BucketKey,
    pub(super) units: u64,
}

/// Why stock cannot be moved.
enum Unmoved {
    /// All of this pool must be locked.
    Elsewhere(PoolId),
    Refused(Refusal),
}

impl Working {
    pub(super) fn change_pool(&mut self, change: &ChangePool) -> Outcome {
        let Some(before) = self.rows.pools.get(&change.pool).cloned() else {
            return Outcome::refused(Refusal::UnknownPool);
        };
        if !self.is_complete(before.id) {
            return Outcome::Elsewhere(vec![before.id]);
        }
        let buckets = change.buckets.unwrap_or(before.buckets);
        if let Err(refusal) = check_change(change, &before, buckets) {
            return Outcome::refused(refusal);
        }
        let after = Pool {
            buckets,
            path: change.path.unwrap_or(before.path),
            routing: change.routing.unwrap_or(before.routing),
            max_concurrency: change.max_concurrency.unwrap_or(before.max_concurrency),
            cache_fallback: change.cache_fallback.unwrap_or(before.cache_fallback),
            ..before.clone()
        };
        let shares = (before.buckets..buckets).map(|number| (number, 0));
        let is_grown = buckets > before.buckets;
        if is_grown && let Err(why) = self.add_buckets(&after, shares, &change.signed) {
            return blocked(why);
        }
        let is_weighted = self.set_weights(after.id, change.weights.as_deref().unwrap_or_default());
        let is_changed = is_weighted || after != before;
        if is_changed {
            // Also for weights alone: the row tells the nodes that something is new.
            self.changed_pools.insert(after.id);
            self.rows.pools.insert(after.id, after.clone());
        }
        let how = if is_changed { How::Changed } else { How::Repeated };
        Outcome::Pool { buckets: self.pool_buckets(after.id), pool: after, how }
    }

    /// Sets the weights of a complete pool's buckets; whether one changed.
    fn set_weights(&mut self, pool: PoolId, weights: &[u32]) -> bool {
        let mut is_changed = false;
        for (number, weight) in (0_u32..).zip(weights.iter().copied()) {
            let key = BucketKey { pool, number };
            if let Some(bucket) = self.rows.buckets.get_mut(&key).filter(|bucket| bucket.weight != weight) {
                bucket.weight = weight;
                self.changed_weights.insert(key);
                is_changed = true;
            }
        }
        is_changed
    }

    pub(super) fn transfer(&mut self, transfer: &Transfer) -> Outcome {
        if let Some(known) = self.rows.transfers.get(&transfer.transfer_id) {
            let fields = mismatch(transfer, known);
            if !fields.is_empty() {
                return Outcome::refused(Refusal::KeyMismatch(fields));
            }
            return Outcome::Transferred { repeated: true };
        }
        let buckets_of = |end: TransferEnd| self.rows.pools.get(&end.pool).map(|pool| pool.buckets);
        let (Some(from), Some(to)) = (buckets_of(transfer.from), buckets_of(transfer.to)) else {
            return Outcome::refused(Refusal::UnknownPool);
        };
        for (bucket, buckets, pointer) in
            [(transfer.from.bucket, from, "/from/bucket"), (transfer.to.bucket, to, "/to/bucket")]
        {
            if bucket.is_some_and(|number| number >= buckets) {
                return Outcome::refused(no_such_bucket(pointer));
            }
        }
        if self.lets_nothing_out(transfer.from.pool) {
            return Outcome::refused(Refusal::Frozen);
        }
        let parts = match self.parts(transfer) {
            Ok(parts) => parts,
            Err(Unmoved::Elsewhere(pool)) => return Outcome::Elsewhere(vec![pool]),
            Err(Unmoved::Refused(refusal)) => return Outcome::refused(refusal),
        };
        let business_no = Arc::from(transfer.transfer_id.as_str());
        match self.move_parts(&parts, "transfer", &business_no, &transfer.signed) {
            Ok(()) => {
                self.rows.transfers.insert(transfer.transfer_id.clone(), transfer.clone());
                self.new_transfers.push(transfer.clone());
                Outcome::Transferred { repeated: false }
            }
            Err(why) => blocked(why),
        }
    }

    /// What leaves where for where. Where a bucket is not named the whole pool must be locked.
    fn parts(&self, transfer: &Transfer) -> Result<Vec<Part>, Unmoved> {
        let (from, to) = (transfer.from, transfer.to);
        let mut sources = self.buckets_at(from)?;
        let mut targets = self.buckets_at(to)?;
        // Within one pool a bucket gives nothing to itself.
        if from.pool == to.pool {
            match (from.bucket, to.bucket) {
                (None, Some(to)) => sources.retain(|bucket| bucket.key.number != to),
                (Some(from), None) => targets.retain(|bucket| bucket.key.number != from),
                (Some(from), Some(to)) if from != to => {}
                (Some(_), Some(_)) | (None, None) => sources.clear(),
            }
        }
        let target = targets.iter().min_by_key(|bucket| (bucket.available, bucket.key.number));
        let (Some(target), false) = (target, sources.is_empty()) else {
            return Err(Unmoved::Refused(Refusal::InvalidValue {
                pointer: "/to".into(),
                why: "must be another pool or another bucket",
            }));
        };
        let available: u64 = sources.iter().map(|bucket| bucket.available).sum();
        if transfer.quantity > available {
            let shortage = Shortage { line: 0, requested: transfer.quantity, available };
            return Err(Unmoved::Refused(Refusal::StockInUse(shortage)));
        }
        sources.sort_unstable_by_key(|bucket| (Reverse(bucket.available), bucket.key.number));
        let mut rest = transfer.quantity;
        let parts = sources.iter().map(|bucket| {
            let units = rest.min(bucket.available);
            rest = rest.saturating_sub(units);
            Part { from: bucket.key, to: target.key, units }
        });
        Ok(parts.filter(|part| part.units > 0).collect())
    }

    fn buckets_at(&self, end: TransferEnd) -> Result<Vec<Bucket>, Unmoved> {
        let elsewhere = || Unmoved::Elsewhere(end.pool);
        match end.bucket {
            Some(number) => {
                let key = BucketKey { pool: end.pool, number };
                self.rows.buckets.get(&key).map(|bucket| vec![*bucket]).ok_or_else(elsewhere)
            }
            None if self.is_complete(end.pool) => Ok(self.pool_buckets(end.pool)),
            None => Err(elsewhere()),
        }
    }

    pub(super) fn sweep(&mut self, sweep: &Sweep) -> Outcome {
        let Some(pool) = self.rows.pools.get(&sweep.pool).cloned() else {
            return Outcome::refused(Refusal::UnknownPool);
        };
        if sweep.bucket.is_some_and(|number| number >= pool.buckets) {
            return Outcome::refused(no_such_bucket("/bucket"));
        }
        if self.lets_nothing_out(pool.id) {
            return Outcome::refused(Refusal::Frozen);
        }
        if !self.is_complete(pool.id) {
            return Outcome::Elsewhere(vec![pool.id]);
        }
        let buckets = self.pool_buckets(pool.id);
        // Into a bucket that routing chooses, if there is one: there the units are found first.
        let rank = |bucket: &&Bucket| (bucket.weight > 0, bucket.available, Reverse(bucket.key.number));
        let named = |bucket: &&Bucket| sweep.bucket.is_none_or(|number| number == bucket.key.number);
        let target = buckets.iter().filter(named).max_by_key(rank).map(|bucket| bucket.key);
        let parts: Vec<Part> = target
            .into_iter()
            .flat_map(|to| buckets.iter().map(move |b| Part { from: b.key, to, units: b.available }))
            .filter(|part| part.from != part.to && part.units > 0)
            .collect();
        let business_no = Arc::from(sweep.id.to_string());
        match self.move_parts(&parts, "sweep", &business_no, &sweep.signed) {
            Ok(()) => {
                let how = if parts.is_empty() { How::Repeated } else { How::Changed };
                Outcome::Pool { buckets: self.pool_buckets(pool.id), pool, how }
            }
            Err(why) => blocked(why),
        }
    }

    /// Writes a pair of entries for every part, or nothing.
    pub(super) fn move_parts(
        &mut self,
        parts: &[Part],
        source: &str,
        business_no: &Arc<str>,
        by: &Signed,
    ) -> Result<(), Blocked> {
        let mut sums = Deltas::new();
        for part in parts {
            let units = signed(part.units);
            for (key, delta) in [(part.from, units.saturating_neg()), (part.to, units)] {
                let sum = sums.entry(key).or_default();
                *sum = sum.and(Delta::supply(delta));
            }
        }
        self.balances_after(&sums)?;
        for part in parts {
            let units = signed(part.units);
            let entries = [
                (part.from, units.saturating_neg(), Action::TransferOut),
                (part.to, units, Action::TransferIn),
            ];
            for (key, delta, action) in entries {
                let note = Note {
                    action,
                    source: source.into(),
                    actor: Arc::clone(&by.actor),
                    reason: Arc::clone(&by.reason),
                    settles: None,
                };
                self.post(&Deltas::from([(key, Delta::supply(delta))]), &note, business_no, None)?;
            }
        }
        Ok(())
    }

    /// Whether a freeze of the pool or its campaign keeps its stock in.
    pub(super) fn lets_nothing_out(&self, pool: PoolId) -> bool {
        self.rows.pools.get(&pool).is_some_and(|pool| {
            pool.frozen || self.campaign(&pool.campaign).is_some_and(|c| c.switches.frozen)
        })
    }
}

pub(super) fn no_such_bucket(pointer: &str) -> Refusal {
    Refusal::InvalidValue { pointer: pointer.into(), why: "the pool has no such bucket" }
}

fn check_change(change: &ChangePool, before: &Pool, buckets: u32) -> Result<(), Refusal> {
    let invalid = |pointer: &str, why| Err(Refusal::InvalidValue { pointer: pointer.into(), why });
    if buckets < before.buckets {
        return invalid("/buckets", "a pool only grows: buckets are never taken away");
    }
    if let Some(weights) = &change.weights {
        if u32::try_from(weights.len()) != Ok(buckets) {
            return invalid("/weights", "must have one weight a bucket");
        }
        if weights.iter().all(|weight| *weight == 0) {
            return invalid("/weights", "at least one must not be 0");
        }
    }
    Ok(())
}

pub(super) fn mismatch(sent: &Transfer, kept: &Transfer) -> Vec<String> {
    [
        (sent.from.pool != kept.from.pool, "/from/pool_id"),
        (sent.from.bucket != kept.from.bucket, "/from/bucket"),
        (sent.to.pool != kept.to.pool, "/to/pool_id"),
        (sent.to.bucket != kept.to.bucket, "/to/bucket"),
        (sent.quantity != kept.quantity, "/quantity"),
        (sent.signed.reason != kept.signed.reason, "/reason"),
        (sent.signed.actor != kept.signed.actor, "/operator"),
    ]
    .into_iter()
    .filter(|(differs, _)| *differs)
    .map(|(_, pointer)| pointer.to_owned())
    .collect()
}
