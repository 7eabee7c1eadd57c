//! Settlement: what became of a campaign's stock, exact as of a ledger position. It is for books, not for
//! display: everything is read in one view, from balances, ledger and orders.

use std::collections::BTreeMap;

use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::ledger::Action;
use holdfast_core::order::{Allocation, Line};
use holdfast_core::stock::{Bucket, Pool};
use holdfast_core::time::Timestamp;

/// Most pools that a settlement tells one by one. Its sums are of all.
pub const SETTLEMENT_POOLS_MAX: usize = 10_000;

/// Units of one pool, or of all. Supply is opening + inbound + adjusted + moved + repaired, and that is
/// available + held + sold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SettlementUnits {
    /// What the pools were opened with.
    pub opening: i64,
    /// What came in since.
    pub inbound: i64,
    /// What operators corrected.
    pub adjusted: i64,
    /// What came from other pools, less what went there.
    pub moved: i64,
    /// What proved differences added or took.
    pub repaired: i64,
    /// What can be taken.
    pub available: u64,
    /// What is held.
    pub held: u64,
    /// What is sold and did not come back; with it what was refunded and kept.
    pub sold: u64,
    /// What was refunded and came back to the shelf.
    pub refunded_restocked: u64,
    /// What was refunded and did not come back.
    pub refunded_kept: u64,
}

impl SettlementUnits {
    /// Which part of the supply entries of an action change.
    const fn changed_by(&mut self, action: Action) -> Option<&mut i64> {
        match action {
            Action::Opening => Some(&mut self.opening),
            Action::Inbound => Some(&mut self.inbound),
            Action::Adjust => Some(&mut self.adjusted),
            Action::TransferOut | Action::TransferIn => Some(&mut self.moved),
            Action::Repair => Some(&mut self.repaired),
            // These move units within a pool.
            Action::Place
            | Action::Land
            | Action::Confirm
            | Action::Release
            | Action::Refund
            | Action::Reduce
            | Action::Retake
            | Action::OrderEvent => None,
        }
    }
}

/// One pool's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettlement {
    /// The pool.
    pub pool: Pool,
    /// Its units.
    pub units: SettlementUnits,
    /// The last ledger entry of each bucket, by its number, that is part of this.
    pub positions: Vec<(u32, u64)>,
}

/// What became of a campaign's stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The campaign.
    pub campaign: CampaignId,
    /// When it was read; no entry that it counts is later.
    pub as_of: Timestamp,
    /// How many ledger entries it stands on: each bucket's are 1 to its position, without a gap.
    pub entries: u64,
    /// All pools together.
    pub units: SettlementUnits,
    /// How many pools there are.
    pub pool_count: usize,
    /// The pools, in order of ids: the first [`SETTLEMENT_POOLS_MAX`] of them.
    pub pools: Vec<PoolSettlement>,
}

/// Adds up a settlement from rows that were read in one view.
#[derive(Debug)]
pub struct SettlementSum {
    settlement: Settlement,
    places: BTreeMap<PoolId, usize>,
}

impl SettlementSum {
    /// Begins at a time of the authority's clock.
    pub fn new(campaign: CampaignId, now: Timestamp) -> Self {
        let units = SettlementUnits::default();
        let settlement =
            Settlement { campaign, as_of: now, entries: 0, units, pool_count: 0, pools: Vec::new() };
        Self { settlement, places: BTreeMap::new() }
    }

    /// Adds a pool with its buckets. Its entries and refunds come after it.
    pub fn pool(&mut self, pool: Pool, buckets: &[Bucket]) {
        let id = pool.id;
        let settlement = &mut self.settlement;
        for bucket in buckets {
            settlement.entries = settlement.entries.saturating_add(bucket.ledger_seq);
            settlement.as_of = settlement.as_of.max(bucket.last_at);
        }
        settlement.pool_count = settlement.pool_count.saturating_add(1);
        if settlement.pools.len() < SETTLEMENT_POOLS_MAX {
            let positions = buckets.iter().map(|bucket| (bucket.key.number, bucket.ledger_seq)).collect();
            self.places.insert(id, settlement.pools.len());
            settlement.pools.push(PoolSettlement { pool, units: SettlementUnits::default(), positions });
        }
        self.add(id, |units| {
            for bucket in buckets {
                units.available = units.available.saturating_add(bucket.available);
                units.held = units.held.saturating_add(bucket.held);
                units.sold = units.sold.saturating_add(bucket.sold);
            }
        });
    }

    /// Adds to the sums of all, and to those of the pool if it is told.
    fn add(&mut self, pool: PoolId, add: impl Fn(&mut SettlementUnits)) {
        add(&mut self.settlement.units);
        let told = self.places.get(&pool).and_then(|place| self.settlement.pools.get_mut(*place));
        if let Some(told) = told {
            add(&mut told.units);
        }
    }

    /// Adds entries of one action of a pool, by the change of supply of them all.
    pub fn entries(&mut self, pool: PoolId, action: Action, supply: i64) {
        self.add(pool, |units| {
            if let Some(sum) = units.changed_by(action) {
                *sum = sum.saturating_add(supply);
            }
        });
    }

    /// Adds the refunds of an order's lines: what was restocked the allocations know, the rest was kept.
    pub fn refunds(&mut self, lines: &[Line]) {
        for line in lines.iter().filter(|line| line.refunded > 0) {
            match &line.made_of {
                None => self.refunds_of(line, 1, |_| true),
                Some(made_of) => {
                    for part in &made_of.parts {
                        self.refunds_of(line, part.per_unit, |pool| part.has(pool));
                    }
                }
            }
        }
    }

    /// The refunds of one part of a line. Of units that were kept nobody said which they are: they count where
    /// units would have come back to, from the highest (pool, bucket) on.
    fn refunds_of(&mut self, line: &Line, each: u32, has: impl Fn(PoolId) -> bool) {
        let mut own: Vec<Allocation> =
            line.allocations.iter().filter(|a| has(a.bucket.pool)).copied().collect();
        own.sort_unstable_by_key(|a| std::cmp::Reverse(a.bucket));
        let restocked = own.iter().fold(0_u64, |sum, a| sum.saturating_add(a.restocked));
        let refunded = u64::from(line.refunded).saturating_mul(u64::from(each));
        let mut kept = refunded.saturating_sub(restocked);
        for allocation in own {
            let here = kept.min(allocation.standing());
            kept = kept.saturating_sub(here);
            self.add(allocation.bucket.pool, |units| {
                units.refunded_restocked = units.refunded_restocked.saturating_add(allocation.restocked);
                units.refunded_kept = units.refunded_kept.saturating_add(here);
            });
        }
    }

    /// The sum.
    pub fn finish(self) -> Settlement {
        self.settlement
    }
}
