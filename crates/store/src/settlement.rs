//! Settlement: what became of a campaign's stock, exact as of a ledger position. It is for books, not for
//! display: everything is read in one view, from balances, ledger and orders.

use std::collections::BTreeMap;

use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::ledger::Action;
use holdfast_core::order::{Allocation, Line};
use holdfast_core::stock::{Bucket, Pool};
use holdfast_core::time::Timestamp;

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
    fn add(&mut self, other: &Self) {
        let Self { opening, inbound, adjusted, moved, repaired, .. } = other;
        for (sum, units) in [
            (&mut self.opening, opening),
            (&mut self.inbound, inbound),
            (&mut self.adjusted, adjusted),
            (&mut self.moved, moved),
            (&mut self.repaired, repaired),
        ] {
            *sum = sum.saturating_add(*units);
        }
        let Self { available, held, sold, refunded_restocked, refunded_kept, .. } = other;
        for (sum, units) in [
            (&mut self.available, available),
            (&mut self.held, held),
            (&mut self.sold, sold),
            (&mut self.refunded_restocked, refunded_restocked),
            (&mut self.refunded_kept, refunded_kept),
        ] {
            *sum = sum.saturating_add(*units);
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
    /// Each pool, in order of ids.
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
        let settlement = Settlement { campaign, as_of: now, entries: 0, units, pools: Vec::new() };
        Self { settlement, places: BTreeMap::new() }
    }

    /// Adds a pool with its buckets. Its entries and refunds come after it.
    pub fn pool(&mut self, pool: Pool, buckets: &[Bucket]) {
        let mut units = SettlementUnits::default();
        for bucket in buckets {
            units.available = units.available.saturating_add(bucket.available);
            units.held = units.held.saturating_add(bucket.held);
            units.sold = units.sold.saturating_add(bucket.sold);
            self.settlement.entries = self.settlement.entries.saturating_add(bucket.ledger_seq);
            self.settlement.as_of = self.settlement.as_of.max(bucket.last_at);
        }
        let positions = buckets.iter().map(|bucket| (bucket.key.number, bucket.ledger_seq)).collect();
        self.places.insert(pool.id, self.settlement.pools.len());
        self.settlement.pools.push(PoolSettlement { pool, units, positions });
    }

    fn units(&mut self, pool: PoolId) -> Option<&mut SettlementUnits> {
        let place = self.places.get(&pool)?;
        self.settlement.pools.get_mut(*place).map(|pool| &mut pool.units)
    }

    /// Adds entries of one action of a pool, by the change of supply of them all.
    pub fn entries(&mut self, pool: PoolId, action: Action, supply: i64) {
        let Some(units) = self.units(pool) else { return };
        let sum = match action {
            Action::Opening => &mut units.opening,
            Action::Inbound => &mut units.inbound,
            Action::Adjust => &mut units.adjusted,
            Action::TransferOut | Action::TransferIn => &mut units.moved,
            Action::Repair => &mut units.repaired,
            // These move units within a pool.
            Action::Place
            | Action::Land
            | Action::Confirm
            | Action::Release
            | Action::Refund
            | Action::Reduce
            | Action::Retake
            | Action::OrderEvent => return,
        };
        *sum = sum.saturating_add(supply);
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
            let Some(units) = self.units(allocation.bucket.pool) else { continue };
            units.refunded_restocked = units.refunded_restocked.saturating_add(allocation.restocked);
            units.refunded_kept = units.refunded_kept.saturating_add(here);
        }
    }

    /// The sum.
    pub fn finish(mut self) -> Settlement {
        for pool in &self.settlement.pools {
            self.settlement.units.add(&pool.units);
        }
        self.settlement
    }
}
