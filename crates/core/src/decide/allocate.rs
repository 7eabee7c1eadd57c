//! Taking stock: which buckets an order's lines are served from.

use std::collections::BTreeMap;

use crate::campaign::{Campaign, CampaignStatus};
use crate::id::PoolId;
use crate::limit::{limited_of, refusal_of_limit};
use crate::order::{Allocation, Line, Order, Reason, Shortage};
use crate::refusal::Refusal;
use crate::snapshot::UsageKey;
use crate::stock::{Bucket, BucketKey};

use super::Working;

/// Why lines cannot be served.
pub(crate) enum Unserved {
    /// The locked buckets of these pools have too little, others were not looked at.
    Miss(Vec<PoolId>),
    /// The whole pool has too little.
    SoldOut(Shortage),
}

impl Working {
    /// Fills in the allocations of every line, all or nothing, from the locked buckets. Lines of one
    /// pool count together. Changes no balance.
    pub(crate) fn allocate(&self, lines: &mut [Line], route: u64) -> Result<(), Unserved> {
        let mut wanted: BTreeMap<PoolId, (u64, usize)> = BTreeMap::new();
        for (index, line) in lines.iter().enumerate() {
            let (total, last) = wanted.entry(line.pool).or_insert((0, index));
            *total = total.saturating_add(u64::from(line.quantity));
            *last = index;
        }
        let mut missed = Vec::new();
        let mut sold_out: Option<Shortage> = None;
        let mut stock: BTreeMap<PoolId, Vec<Bucket>> = BTreeMap::new();
        for (pool, (total, last)) in &wanted {
            let buckets = self.in_order_of_trial(*pool, *total, route);
            let available: u64 = buckets.iter().map(|b| b.available).sum();
            // Only who has the whole pool may split a line: elsewhere one bucket has it all, or it is a miss.
            let here =
                if self.is_complete(*pool) { available } else { buckets.first().map_or(0, |b| b.available) };
            if here >= *total {
                stock.insert(*pool, buckets);
            } else if self.is_complete(*pool) {
                let line = u32::try_from(*last).unwrap_or(u32::MAX).saturating_add(1);
                let shortage = Shortage { line, requested: *total, available };
                // The lowest line is named, so that the answer does not depend on ids of pools.
                if sold_out.is_none_or(|known| line < known.line) {
                    sold_out = Some(shortage);
                }
            } else {
                missed.push(*pool);
            }
        }
        if let Some(shortage) = sold_out {
            return Err(Unserved::SoldOut(shortage));
        }
        if !missed.is_empty() {
            return Err(Unserved::Miss(missed));
        }
        for line in lines {
            if let Some(buckets) = stock.get_mut(&line.pool) {
                line.allocations = take(buckets, u64::from(line.quantity));
            }
        }
        Ok(())
    }

    /// The locked buckets of a pool in the order in which they are tried: first one that has enough for
    /// everything, from the routed bucket on; only if none has are several taken together.
    fn in_order_of_trial(&self, pool: PoolId, total: u64, route: u64) -> Vec<Bucket> {
        let mut buckets = self.pool_buckets(pool);
        if buckets.len() > 1 {
            let count = u64::try_from(buckets.len()).unwrap_or(u64::MAX);
            let start = usize::try_from(route.checked_rem(count).unwrap_or(0)).unwrap_or(0);
            buckets.rotate_left(start);
            if let Some(whole) = buckets.iter().position(|b| b.available >= total) {
                buckets.rotate_left(whole);
            }
        }
        buckets
    }

    /// Whether the account and each key of the order may have its units besides their other orders, and one
    /// more open hold where the order becomes one.
    pub(crate) fn check_limits(
        &self,
        campaign: &Campaign,
        order: &Order,
        opens_hold: bool,
    ) -> Result<(), Refusal> {
        let units = order.lines.iter().map(|line| u64::from(line.quantity)).sum();
        for (limited, limits) in limited_of(&campaign.policy, &order.account, &order.limit_keys) {
            let key = UsageKey { campaign: campaign.id.clone(), limited };
            if let Some(reached) = limits.reached(self.usage(&key), units, opens_hold) {
                return Err(refusal_of_limit(&order.limit_keys, &key.limited, reached, units));
            }
        }
        Ok(())
    }

    /// Whether every line names a pool that is there and not retired.
    pub(crate) fn check_known(&self, lines: &[Line]) -> Result<(), Refusal> {
        let is_gone = |pool: &PoolId| self.rows.pools.get(pool).is_none_or(|pool| pool.retired);
        match lines.iter().zip(1_u32..).find(|(line, _)| is_gone(&line.pool)) {
            Some((_, line)) => Err(Refusal::UnknownSku { line }),
            None => Ok(()),
        }
    }

    /// Whether the campaign sells now, and the pools of these lines do: closed > halted > frozen > paused >
    /// not open.
    pub(crate) fn check_open(&self, campaign: &Campaign, lines: &[Line]) -> Result<(), Refusal> {
        let status = campaign.status(self.now);
        if status != CampaignStatus::Closed && self.rows.halted {
            return Err(Refusal::Halted);
        }
        if status != CampaignStatus::Closed && self.any_frozen(lines) {
            return Err(Refusal::Frozen);
        }
        refusal_of_status(status).map_or(Ok(()), Err)
    }

    /// Whether a pool of these lines is frozen.
    pub(crate) fn any_frozen(&self, lines: &[Line]) -> bool {
        lines.iter().any(|line| self.rows.pools.get(&line.pool).is_some_and(|pool| pool.frozen))
    }
}

/// What a campaign that does not sell answers.
pub fn refusal_of_status(status: CampaignStatus) -> Option<Refusal> {
    match status {
        CampaignStatus::Open => None,
        CampaignStatus::Closed => Some(Refusal::CampaignClosed),
        CampaignStatus::Frozen => Some(Refusal::Frozen),
        CampaignStatus::Paused => Some(Refusal::CampaignPaused),
        CampaignStatus::Draft | CampaignStatus::Scheduled => Some(Refusal::CampaignNotOpen),
    }
}

/// The state reason with which a queued order fails on a refusal at landing.
pub(crate) fn reason_of(refusal: &Refusal) -> (Reason, Option<Shortage>) {
    match refusal {
        Refusal::SoldOut(shortage) => (Reason::SoldOut, Some(*shortage)),
        Refusal::AccountLimit(shortage) => (Reason::AccountLimit, Some(*shortage)),
        Refusal::AccountOpenHolds { limit } => {
            (Reason::AccountOpenHolds, Some(Shortage { line: 1, requested: 1, available: *limit }))
        }
        Refusal::KeyOpenHolds(_, shortage) => (Reason::KeyOpenHolds, Some(*shortage)),
        Refusal::KeyLimit(_, shortage) => (Reason::KeyLimit, Some(*shortage)),
        Refusal::QueueTimeout => (Reason::QueueTimeout, None),
        Refusal::Cancelled => (Reason::Cancelled, None),
        Refusal::OrderMismatch(_)
        | Refusal::KeyMismatch(_)
        | Refusal::UnknownCampaign
        | Refusal::UnknownOrder
        | Refusal::UnknownPool
        | Refusal::UnknownCase
        | Refusal::UnknownApproval
        | Refusal::SamePerson
        | Refusal::UnknownSku { .. }
        | Refusal::InvalidValue { .. }
        | Refusal::CampaignClosed
        | Refusal::Halted
        | Refusal::Frozen
        | Refusal::CampaignPaused
        | Refusal::CampaignNotOpen
        | Refusal::QueueFull { .. }
        | Refusal::AlreadySold
        | Refusal::AlreadyReleased
        | Refusal::AlreadyFailed
        | Refusal::AlreadyRefunded
        | Refusal::NotHeld
        | Refusal::NotSold
        | Refusal::HoldExpired
        | Refusal::InReview
        | Refusal::RefundExceedsSold(_)
        | Refusal::StockInUse(_)
        | Refusal::Rows(_)
        | Refusal::Conflict(_) => (Reason::CampaignClosed, None),
    }
}

/// Takes units from the front buckets on, one allocation a bucket.
fn take(buckets: &mut [Bucket], mut units: u64) -> Vec<Allocation> {
    let mut allocations = Vec::with_capacity(1);
    for bucket in buckets {
        if units == 0 {
            break;
        }
        let quantity = units.min(bucket.available);
        if quantity > 0 {
            allocations.push(Allocation { bucket: bucket.key, quantity, restocked: 0 });
            bucket.available = bucket.available.saturating_sub(quantity);
            units = units.saturating_sub(quantity);
        }
    }
    allocations.sort_unstable_by_key(|a: &Allocation| -> BucketKey { a.bucket });
    allocations
}
