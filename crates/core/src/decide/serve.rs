//! Taking stock: which buckets an order's lines are served from. Lines that have one place to take from are served
//! first; then those that have several, line by line, each from its places in their order.

use std::collections::BTreeMap;

use crate::assortment::{MakeUp, Part, Source};
use crate::id::{PoolId, Sku};
use crate::order::{Allocation, Line, Shortage};
use crate::stock::Bucket;

use super::Working;

/// Why lines cannot be served.
pub(crate) enum Unserved {
    /// The locked buckets of these pools have too little, others were not looked at.
    Miss(Vec<PoolId>),
    /// The pools have too little.
    SoldOut(Shortage),
    /// The pools that are not frozen have too little.
    Frozen,
}

/// Whether a line can be taken from somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// From a pool that sells.
    Open,
    /// From frozen pools only.
    Frozen,
    /// Its pools are not there any more, or were never.
    Gone,
}

/// Who asks for stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A new order, or one that takes again: from pools that sell.
    Anew,
    /// One that waited in a queue: it was let in before, and a pool that was retired since serves it.
    Waited,
}

/// What is left in the locked buckets while an order's lines take from them.
type Stock = BTreeMap<PoolId, Vec<Bucket>>;

/// How far a source can serve a need.
enum Reach {
    /// All of it.
    Whole,
    /// Only so much.
    Less(u64),
    /// Nobody knows: more buckets must be locked.
    Unknown,
}

impl Working {
    fn standing_of(&self, pool: PoolId, asker: Asker) -> Standing {
        match self.rows.pools.get(&pool) {
            Some(pool) if pool.retired && asker == Asker::Anew => Standing::Gone,
            Some(pool) if pool.frozen => Standing::Frozen,
            Some(_) => Standing::Open,
            None => Standing::Gone,
        }
    }

    /// Whether a line can be taken from somewhere: split, each part from its best place; else from the best
    /// place of all parts together.
    pub(crate) fn standing(&self, line: &Line, asker: Asker) -> Standing {
        let Some(made_of) = &line.made_of else { return self.standing_of(line.pool, asker) };
        let standing = if made_of.split {
            let of = |source: &Source| self.standing_of(source.pool, asker);
            let best = |part: &Part| part.sources.iter().map(of).min();
            made_of.parts.iter().filter_map(best).max()
        } else {
            (0..places(made_of)).map(|place| self.standing_at(made_of, place, asker)).min()
        };
        standing.unwrap_or(Standing::Gone)
    }

    fn standing_at(&self, made_of: &MakeUp, place: usize, asker: Asker) -> Standing {
        let worst = needs_at(made_of, place).map(|(pool, _)| self.standing_of(pool, asker)).max();
        worst.unwrap_or(Standing::Gone)
    }

    /// Fills in the allocations of every line, all or nothing, from the locked buckets. Lines of one
    /// pool count together. Changes no balance.
    pub(crate) fn allocate(&self, lines: &mut [Line], route: u64, asker: Asker) -> Result<(), Unserved> {
        let mut stock = self.stock_of_fixed(lines, route)?;
        // Lines are changed when all of them are served: an order that is refused keeps nothing.
        let mut served = vec![Vec::new(); lines.len()];
        for (line, taken) in lines.iter().zip(&mut served).filter(|(line, _)| !is_flexible(line)) {
            for (pool, each) in fixed_needs(line) {
                if let Some(buckets) = stock.get_mut(&pool) {
                    take(buckets, u64::from(line.quantity).saturating_mul(each), taken);
                }
            }
        }
        for (index, (line, taken)) in lines.iter().zip(&mut served).enumerate() {
            let Some(made_of) = line.made_of.as_ref().filter(|_| is_flexible(line)) else { continue };
            let quantity = u64::from(line.quantity);
            let mut serving = Serving { working: self, route, asker, stock: &mut stock, quantity };
            *taken = serving.serve(made_of).map_err(|why| match why {
                Unserved::SoldOut(own) => Unserved::SoldOut(together(lines, index, own)),
                other @ (Unserved::Miss(_) | Unserved::Frozen) => other,
            })?;
        }
        for (line, mut taken) in lines.iter_mut().zip(served) {
            taken.sort_unstable_by_key(|a| a.bucket);
            line.allocations = taken;
        }
        Ok(())
    }

    /// The buckets of every pool that a line takes from and that has no choice, if all have enough.
    fn stock_of_fixed(&self, lines: &[Line], route: u64) -> Result<Stock, Unserved> {
        let mut wanted: BTreeMap<PoolId, u64> = BTreeMap::new();
        for line in lines.iter().filter(|line| !is_flexible(line)) {
            for (pool, each) in fixed_needs(line) {
                let total = wanted.entry(pool).or_default();
                *total = total.saturating_add(u64::from(line.quantity).saturating_mul(each));
            }
        }
        let mut missed = Vec::new();
        let mut sold_out: Option<Shortage> = None;
        let mut stock = Stock::new();
        for (pool, total) in &wanted {
            let buckets = self.in_order_of_trial(*pool, *total, route);
            match self.reach(*pool, &buckets, *total) {
                Reach::Whole => drop(stock.insert(*pool, buckets)),
                Reach::Unknown => missed.push(*pool),
                Reach::Less(available) => {
                    let shortage = shortage(&takers(lines, *pool), available);
                    // The lowest line is named, so that the answer does not depend on ids of pools.
                    let rank = |s: &Shortage| (s.line, s.available);
                    if sold_out.is_none_or(|known| rank(&shortage) < rank(&known)) {
                        sold_out = Some(shortage);
                    }
                }
            }
        }
        match sold_out {
            Some(shortage) => Err(Unserved::SoldOut(shortage)),
            None if missed.is_empty() => Ok(stock),
            None => Err(Unserved::Miss(missed)),
        }
    }

    /// Only who has the whole pool may split a line over buckets: elsewhere one bucket has it all, or it is not
    /// known.
    fn reach(&self, pool: PoolId, buckets: &[Bucket], need: u64) -> Reach {
        if buckets.first().map_or(0, |first| first.available) >= need {
            return Reach::Whole;
        }
        if !self.is_complete(pool) {
            return Reach::Unknown;
        }
        let available = buckets.iter().map(|b| b.available).sum();
        if available >= need { Reach::Whole } else { Reach::Less(available) }
    }

    /// The locked buckets of a pool in the order in which they are tried: first one that has enough for
    /// everything, from the routed bucket on; only if none has are several taken together.
    fn in_order_of_trial(&self, pool: PoolId, total: u64, route: u64) -> Vec<Bucket> {
        let mut buckets = self.pool_buckets(pool);
        if buckets.len() > 1 {
            let count = u64::try_from(buckets.len()).unwrap_or(u64::MAX);
            let start = usize::try_from(route.checked_rem(count).unwrap_or(0)).unwrap_or(0);
            buckets.rotate_left(start);
            whole_first(&mut buckets, total);
        }
        buckets
    }
}

/// One line that has several places to take from.
struct Serving<'w> {
    working: &'w Working,
    route: u64,
    asker: Asker,
    stock: &'w mut Stock,
    quantity: u64,
}

impl Serving<'_> {
    /// Where it is served from. A shortage is of this line alone.
    fn serve(&mut self, made_of: &MakeUp) -> Result<Vec<Allocation>, Unserved> {
        if made_of.split { self.serve_split(made_of) } else { self.serve_from_one(made_of) }
    }

    /// Each part by itself, from one place after the other.
    fn serve_split(&mut self, made_of: &MakeUp) -> Result<Vec<Allocation>, Unserved> {
        let mut taken = Vec::new();
        let mut units = self.quantity;
        let mut meets_frozen = false;
        for part in &made_of.parts {
            let mut rest = self.quantity.saturating_mul(u64::from(part.per_unit));
            for (place, source) in part.sources.iter().enumerate() {
                if rest == 0 {
                    break;
                }
                match self.working.standing_of(source.pool, self.asker) {
                    Standing::Gone => continue,
                    Standing::Frozen => {
                        meets_frozen = true;
                        continue;
                    }
                    Standing::Open => {}
                }
                let here = match self.reach(source.pool, rest) {
                    Reach::Whole => rest,
                    Reach::Less(available) => available,
                    Reach::Unknown => return Err(self.miss(made_of, place)),
                };
                self.take(source.pool, here, &mut taken);
                rest = rest.saturating_sub(here);
            }
            if rest > 0 {
                let each = u64::from(part.per_unit);
                let had = self.quantity.saturating_mul(each).saturating_sub(rest);
                units = units.min(had.checked_div(each).unwrap_or(0));
            }
        }
        if units == self.quantity { Ok(taken) } else { Err(self.short(units, meets_frozen)) }
    }

    /// All parts from the first place that has them all.
    fn serve_from_one(&mut self, made_of: &MakeUp) -> Result<Vec<Allocation>, Unserved> {
        let mut most = 0;
        let mut meets_frozen = false;
        for place in 0..places(made_of) {
            match self.working.standing_at(made_of, place, self.asker) {
                Standing::Gone => continue,
                Standing::Frozen => {
                    meets_frozen = true;
                    continue;
                }
                Standing::Open => {}
            }
            let (mut units, mut is_known) = (self.quantity, true);
            for (pool, each) in needs_at(made_of, place) {
                match self.reach(pool, self.quantity.saturating_mul(each)) {
                    Reach::Whole => {}
                    Reach::Less(available) => units = units.min(available.checked_div(each).unwrap_or(0)),
                    Reach::Unknown => is_known = false,
                }
            }
            if units < self.quantity {
                most = most.max(units);
            } else if !is_known {
                return Err(self.miss(made_of, place));
            } else {
                let mut taken = Vec::new();
                for (pool, each) in needs_at(made_of, place) {
                    self.take(pool, self.quantity.saturating_mul(each), &mut taken);
                }
                return Ok(taken);
            }
        }
        Err(self.short(most, meets_frozen))
    }

    fn short(&self, available: u64, meets_frozen: bool) -> Unserved {
        if meets_frozen {
            return Unserved::Frozen;
        }
        Unserved::SoldOut(Shortage { line: 0, requested: self.quantity, available })
    }

    /// Everything from this place on that is not locked whole: one more look shall suffice.
    fn miss(&self, made_of: &MakeUp, place: usize) -> Unserved {
        let later = made_of.parts.iter().flat_map(|part| part.sources.iter().skip(place));
        let pools = later.map(|source| source.pool);
        let is_open = |pool: &PoolId| self.working.standing_of(*pool, self.asker) == Standing::Open;
        Unserved::Miss(pools.filter(|pool| is_open(pool) && !self.working.is_complete(*pool)).collect())
    }

    /// The pool's buckets, one that has enough for the need first, if there is one.
    fn buckets(&mut self, pool: PoolId, need: u64) -> &mut Vec<Bucket> {
        let (working, route) = (self.working, self.route);
        let load = || working.in_order_of_trial(pool, need, route);
        let buckets = self.stock.entry(pool).or_insert_with(load);
        whole_first(buckets, need);
        buckets
    }

    fn reach(&mut self, pool: PoolId, need: u64) -> Reach {
        let working = self.working;
        working.reach(pool, self.buckets(pool, need), need)
    }

    fn take(&mut self, pool: PoolId, units: u64, taken: &mut Vec<Allocation>) {
        take(self.buckets(pool, units), units, taken);
    }
}

fn whole_first(buckets: &mut [Bucket], need: u64) {
    if let Some(whole) = buckets.iter().position(|b| b.available >= need) {
        buckets.rotate_left(whole);
    }
}

/// Whether a line has a choice of places.
fn is_flexible(line: &Line) -> bool {
    line.made_of.as_ref().is_some_and(|made_of| made_of.parts.iter().any(|part| part.sources.len() > 1))
}

/// What one unit of a line takes of each pool, where it has no choice.
fn fixed_needs(line: &Line) -> impl Iterator<Item = (PoolId, u64)> {
    let plain = line.made_of.is_none().then_some((line.pool, 1));
    plain.into_iter().chain(line.made_of.iter().flat_map(|made_of| needs_at(made_of, 0)))
}

/// How many places a line that is not split may be taken from.
fn places(made_of: &MakeUp) -> usize {
    made_of.parts.first().map_or(0, |part| part.sources.len())
}

/// What one unit takes of each pool at one place.
fn needs_at(made_of: &MakeUp, place: usize) -> impl Iterator<Item = (PoolId, u64)> {
    let need = move |part: &Part| Some((part.sources.get(place)?.pool, u64::from(part.per_unit)));
    made_of.parts.iter().filter_map(need)
}

/// A line that takes from a pool.
#[derive(Debug, Clone, Copy)]
pub struct Taker<'l> {
    /// Which, from 1.
    pub line: u32,
    /// What it buys.
    pub sku: &'l Sku,
    /// How many units of it.
    pub quantity: u64,
    /// Units of the pool in one of them.
    pub each: u64,
}

/// What a pool that has too little is short of, in units of the last line that takes from it: lines of the same SKU
/// count together, and others have theirs first.
pub fn shortage(takers: &[Taker<'_>], available: u64) -> Shortage {
    let Some(last) = takers.last() else { return Shortage { line: 1, requested: 0, available } };
    let (mut requested, mut others) = (0_u64, 0_u64);
    for taker in takers {
        if taker.sku == last.sku {
            requested = requested.saturating_add(taker.quantity);
        } else {
            others = others.saturating_add(taker.quantity.saturating_mul(taker.each));
        }
    }
    let available = available.saturating_sub(others).checked_div(last.each).unwrap_or(0);
    Shortage { line: last.line, requested, available }
}

/// The lines that have no choice but this pool.
fn takers(lines: &[Line], pool: PoolId) -> Vec<Taker<'_>> {
    let fixed = (1_u32..).zip(lines).filter(|(_, line)| !is_flexible(line));
    let taker = |(number, line)| {
        let (_, each) = fixed_needs(line).find(|(own, _)| *own == pool)?;
        Some(Taker { line: number, sku: &line.sku, quantity: u64::from(line.quantity), each })
    };
    fixed.filter_map(taker).collect()
}

/// The shortage of a line, with the lines before and after it that take the same from the same places.
fn together(lines: &[Line], index: usize, own: Shortage) -> Shortage {
    let made_of = lines.get(index).and_then(|line| line.made_of.as_ref());
    let same = || lines.iter().zip(0_usize..).filter(|(line, _)| line.made_of.as_ref() == made_of);
    let units = |line: &Line| u64::from(line.quantity);
    let before: u64 = same().filter(|(_, at)| *at < index).map(|(line, _)| units(line)).sum();
    let last = same().map(|(_, at)| at).max().unwrap_or(index);
    Shortage {
        line: u32::try_from(last).unwrap_or(u32::MAX).saturating_add(1),
        requested: same().map(|(line, _)| units(line)).sum(),
        available: before.saturating_add(own.available),
    }
}

/// Takes units from the front buckets on, one allocation a bucket.
fn take(buckets: &mut [Bucket], mut units: u64, taken: &mut Vec<Allocation>) {
    for bucket in buckets {
        if units == 0 {
            break;
        }
        let quantity = units.min(bucket.available);
        if quantity > 0 {
            taken.push(Allocation { bucket: bucket.key, quantity, restocked: 0 });
            bucket.available = bucket.available.saturating_sub(quantity);
            units = units.saturating_sub(quantity);
        }
    }
}
