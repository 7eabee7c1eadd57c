//! Opening a pool and changing its supply: commands like any other, under the lock of the whole pool.

use std::sync::Arc;

use crate::command::{Adjust, AdjustmentKind, How, OpenPool, Outcome, Signed};
use crate::ledger::Action;
use crate::order::Shortage;
use crate::refusal::Refusal;
use crate::stock::{BALANCE_MAX, Bucket, BucketKey, Delta, Opening, Pool, split_supply};

use super::pool::no_such_bucket;
use super::{Blocked, Deltas, Note, Working, blocked};

impl Working {
    pub(super) fn open_pool(&mut self, open: &OpenPool) -> Outcome {
        let Some(campaign) = self.campaign(&open.campaign) else {
            return Outcome::refused(Refusal::UnknownCampaign);
        };
        let is_bundle = campaign.assortment.is_bundle(&open.sku);
        let opening =
            Opening { supply: open.supply, buckets: open.buckets, path: open.path, routing: open.routing };
        let address = (open.campaign.clone(), open.sku.clone(), open.location.clone());
        if let Some(id) = self.rows.pool_addresses.get(&address) {
            let Some(pool) = self.rows.pools.get(id).cloned() else {
                return Outcome::Elsewhere(vec![*id]);
            };
            if pool.opening != opening {
                return Outcome::refused(Refusal::Conflict("the pool was opened with other content"));
            }
            if !self.is_complete(pool.id) {
                return Outcome::Elsewhere(vec![pool.id]);
            }
            let buckets = self.pool_buckets(pool.id);
            return Outcome::Pool { pool, buckets, how: How::Repeated };
        }
        if is_bundle {
            return Outcome::refused(Refusal::Conflict("the SKU is a bundle: it has no stock of its own"));
        }
        let (campaign, sku, location) = address;
        let pool = Pool::opened(open.id, campaign, sku, location, opening);
        match self.open_new(pool.clone(), &open.signed) {
            Ok(()) => Outcome::Pool { buckets: self.pool_buckets(pool.id), pool, how: How::Created },
            Err(why) => blocked(why),
        }
    }

    /// Opens a pool that there is not.
    pub(super) fn open_new(&mut self, pool: Pool, by: &Signed) -> Result<(), Blocked> {
        if pool.opening.supply > BALANCE_MAX {
            return Err(Blocked::Impossible);
        }
        let shares = (0_u32..).zip(split_supply(pool.opening.supply, pool.buckets));
        self.add_buckets(&pool, shares, by)?;
        let address = (pool.campaign.clone(), pool.sku.clone(), pool.location.clone());
        self.rows.pool_addresses.insert(address, pool.id);
        self.new_pools.insert(pool.id);
        self.rows.pools.insert(pool.id, pool);
        Ok(())
    }

    /// Adds buckets to a pool; the first entry of each is its opening, also with 0.
    pub(super) fn add_buckets(
        &mut self,
        pool: &Pool,
        shares: impl Iterator<Item = (u32, u64)>,
        by: &Signed,
    ) -> Result<(), Blocked> {
        let mut deltas = Deltas::new();
        for (number, share) in shares {
            let key = BucketKey { pool: pool.id, number };
            self.rows.buckets.insert(key, Bucket::empty(key));
            self.base_buckets.insert(key, None);
            deltas.insert(key, Delta::supply(signed(share)));
        }
        let note = Note {
            action: Action::Opening,
            source: Arc::from("pool"),
            actor: Arc::clone(&by.actor),
            reason: Arc::clone(&by.reason),
            settles: None,
        };
        self.post(&deltas, &note, &Arc::from(pool.sku.as_str()), None)
    }

    pub(super) fn adjust(&mut self, adjust: &Adjust) -> Outcome {
        if let Some(known) = self.rows.adjustments.get(&adjust.adjustment_id) {
            let fields = mismatch(adjust, known);
            if !fields.is_empty() {
                return Outcome::refused(Refusal::KeyMismatch(fields));
            }
            return Outcome::Adjusted { buckets: self.pool_buckets(adjust.pool), repeated: true };
        }
        if !self.rows.pools.contains_key(&adjust.pool) {
            return Outcome::refused(Refusal::UnknownPool);
        }
        if adjust.delta < 0 && self.lets_nothing_out(adjust.pool) {
            return Outcome::refused(Refusal::Frozen);
        }
        if !self.is_complete(adjust.pool) {
            return Outcome::Elsewhere(vec![adjust.pool]);
        }
        let mut buckets = self.pool_buckets(adjust.pool);
        if let Some(number) = adjust.bucket {
            buckets.retain(|b| b.key.number == number);
            if buckets.is_empty() {
                return Outcome::refused(no_such_bucket("/bucket"));
            }
        }
        let deltas = match spread(buckets, adjust.delta) {
            Ok(deltas) => deltas,
            Err(shortage) => return Outcome::refused(Refusal::StockInUse(shortage)),
        };
        let note = Note {
            action: match adjust.kind {
                AdjustmentKind::Inbound => Action::Inbound,
                AdjustmentKind::Adjust => Action::Adjust,
            },
            source: Arc::from("adjustment"),
            actor: Arc::clone(&adjust.signed.actor),
            reason: Arc::clone(&adjust.signed.reason),
            settles: None,
        };
        let business_no = Arc::from(adjust.adjustment_id.as_str());
        match self.post(&deltas, &note, &business_no, None) {
            Ok(()) => {
                self.rows.adjustments.insert(adjust.adjustment_id.clone(), adjust.clone());
                self.new_adjustments.push(adjust.clone());
                Outcome::Adjusted { buckets: self.pool_buckets(adjust.pool), repeated: false }
            }
            Err(why) => blocked(why),
        }
    }
}

/// Which of a pool's buckets a change of its supply changes, and by how much: a rise goes to the emptiest, a
/// fall takes from the fullest first.
pub(super) fn spread(mut buckets: Vec<Bucket>, delta: i64) -> Result<Deltas, Shortage> {
    let mut deltas = Deltas::new();
    if delta > 0 {
        let emptiest = buckets.iter().min_by_key(|b| (b.available, b.key.number));
        if let Some(bucket) = emptiest {
            deltas.insert(bucket.key, Delta::supply(delta));
        }
        return Ok(deltas);
    }
    let requested = delta.unsigned_abs();
    let available: u64 = buckets.iter().map(|b| b.available).sum();
    if requested > available {
        return Err(Shortage { line: 0, requested, available });
    }
    buckets.sort_unstable_by_key(|b| (std::cmp::Reverse(b.available), b.key.number));
    let mut rest = requested;
    for bucket in buckets {
        let part = rest.min(bucket.available);
        if part > 0 {
            deltas.insert(bucket.key, Delta::supply(signed(part).saturating_neg()));
            rest = rest.saturating_sub(part);
        }
    }
    Ok(deltas)
}

/// Units as a change. Balances are bounded far below the end of an `i64`; one beyond it fits no balance.
pub(super) fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

pub(super) fn mismatch(sent: &Adjust, kept: &Adjust) -> Vec<String> {
    let mut fields = Vec::new();
    let mut compare = |differs: bool, pointer: &str| {
        if differs {
            fields.push(pointer.to_owned());
        }
    };
    compare(sent.pool != kept.pool, "/pool_id");
    compare(sent.delta != kept.delta, "/delta");
    compare(sent.kind != kept.kind, "/kind");
    compare(sent.bucket != kept.bucket, "/bucket");
    compare(sent.signed.reason != kept.signed.reason, "/reason");
    compare(sent.signed.actor != kept.signed.actor, "/operator");
    fields
}
