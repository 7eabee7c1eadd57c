//! The model's lines: what each is made of, and from where it is taken, unit by unit.

use std::collections::BTreeMap;

use super::{Model, Pool, St};
use crate::steps::Ware;

#[derive(Debug, Clone)]
pub(super) struct Line {
    ware: Ware,
    pub(super) quantity: u64,
    pub(super) refunded: u64,
    /// What stands, by part and pool.
    taken: Vec<Taken>,
}

type Taken = BTreeMap<usize, u64>;

/// Whether a line can be taken from somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Open,
    Frozen,
    Gone,
}

/// Whether an order that let its units go could take them again.
pub(super) enum Again {
    Yes,
    Frozen,
    No,
}

impl Line {
    pub(super) fn new(kind: usize, quantity: u32) -> Self {
        Self { ware: Ware::of(kind), quantity: quantity.into(), refunded: 0, taken: Vec::new() }
    }

    pub(super) fn units(&self) -> u64 {
        let each: u64 = self.ware.parts.iter().map(|part| part.each).sum();
        (self.quantity - self.refunded) * each
    }

    fn has_choice(&self) -> bool {
        self.ware.parts.iter().any(|part| part.pools.len() > 1)
    }
}

/// Takes one unit of a part away from what stands, at the highest pool that has one.
fn one_less(taken: &mut Taken) -> usize {
    let (pool, units) = taken.iter_mut().rev().find(|(_, units)| **units > 0).unwrap();
    *units -= 1;
    *pool
}

impl Model {
    fn standing_of(&self, pool: usize, waited: bool) -> Standing {
        match self.pools.get(pool) {
            None => Standing::Gone,
            Some(pool) if pool.retired && !waited => Standing::Gone,
            Some(pool) if pool.frozen => Standing::Frozen,
            Some(_) => Standing::Open,
        }
    }

    /// How a line stands: in pieces each part at its best pool, else all parts at their best place.
    fn standing(&self, line: &Line, waited: bool) -> Standing {
        let parts = &line.ware.parts;
        if line.ware.split {
            let best = parts.iter().map(|part| part.pools.iter().map(|p| self.standing_of(*p, waited)).min());
            return best.map(Option::unwrap).max().unwrap();
        }
        let places = 0..parts[0].pools.len();
        places.map(|place| self.standing_at(line, place, waited)).min().unwrap()
    }

    fn standing_at(&self, line: &Line, place: usize, waited: bool) -> Standing {
        line.ware.parts.iter().map(|part| self.standing_of(part.pools[place], waited)).max().unwrap()
    }

    pub(super) fn any_gone(&self, lines: &[Line]) -> bool {
        lines.iter().any(|line| self.standing(line, false) == Standing::Gone)
    }

    pub(super) fn any_frozen(&self, lines: &[Line], waited: bool) -> bool {
        self.frozen || lines.iter().any(|line| self.standing(line, waited) == Standing::Frozen)
    }

    /// What each line would take, by part and pool, or the code with which it is refused. Lines without a choice
    /// come first.
    pub(super) fn served(&self, lines: &[Line], waited: bool) -> Result<Vec<Vec<Taken>>, &'static str> {
        let mut shelf: Vec<u64> = self.pools.iter().map(|pool| pool.available).collect();
        let mut all = vec![Vec::new(); lines.len()];
        for (line, taken) in lines.iter().zip(&mut all).filter(|(line, _)| !line.has_choice()) {
            for part in &line.ware.parts {
                let (pool, units) = (part.pools[0], line.quantity * part.each);
                shelf[pool] = shelf[pool].checked_sub(units).ok_or("sold_out")?;
                taken.push(Taken::from([(pool, units)]));
            }
        }
        for (line, taken) in lines.iter().zip(&mut all).filter(|(line, _)| line.has_choice()) {
            *taken = if line.ware.split {
                self.in_pieces(line, &mut shelf, waited)?
            } else {
                self.in_one_place(line, &mut shelf, waited)?
            };
        }
        Ok(all)
    }

    fn in_pieces(&self, line: &Line, shelf: &mut [u64], waited: bool) -> Result<Vec<Taken>, &'static str> {
        let (mut all, mut is_short, mut meets_frozen) = (Vec::new(), false, false);
        for part in &line.ware.parts {
            let (mut rest, mut taken) = (line.quantity * part.each, Taken::new());
            for pool in &part.pools {
                let standing = self.standing_of(*pool, waited);
                meets_frozen |= rest > 0 && standing == Standing::Frozen;
                while rest > 0 && standing == Standing::Open && shelf[*pool] > 0 {
                    shelf[*pool] -= 1;
                    rest -= 1;
                    *taken.entry(*pool).or_default() += 1;
                }
            }
            is_short |= rest > 0;
            all.push(taken);
        }
        match (is_short, meets_frozen) {
            (false, _) => Ok(all),
            (true, true) => Err("frozen"),
            (true, false) => Err("sold_out"),
        }
    }

    fn in_one_place(&self, line: &Line, shelf: &mut [u64], waited: bool) -> Result<Vec<Taken>, &'static str> {
        let parts = &line.ware.parts;
        let mut meets_frozen = false;
        for place in 0..parts[0].pools.len() {
            let standing = self.standing_at(line, place, waited);
            meets_frozen |= standing == Standing::Frozen;
            let has_all = parts.iter().all(|part| shelf[part.pools[place]] >= line.quantity * part.each);
            if standing == Standing::Open && has_all {
                let take = |part: &crate::steps::Part| {
                    let (pool, units) = (part.pools[place], line.quantity * part.each);
                    shelf[pool] -= units;
                    Taken::from([(pool, units)])
                };
                return Ok(parts.iter().map(take).collect());
            }
        }
        Err(if meets_frozen { "frozen" } else { "sold_out" })
    }

    /// Moves what an order has, from one balance to another.
    fn move_taken(&mut self, id: u32, from: fn(&mut Pool) -> &mut u64, to: fn(&mut Pool) -> &mut u64) {
        for (pool, units) in self.orders[&id].lines.iter().flat_map(|line| &line.taken).flatten() {
            *from(&mut self.pools[*pool]) -= units;
            *to(&mut self.pools[*pool]) += units;
        }
    }

    /// Takes what an order asks for into a balance.
    pub(super) fn take_into(&mut self, id: u32, waited: bool, to: fn(&mut Pool) -> &mut u64) {
        let served = self.served(&self.orders[&id].lines, waited).unwrap();
        for (line, taken) in self.orders.get_mut(&id).unwrap().lines.iter_mut().zip(served) {
            line.taken = taken;
        }
        self.move_taken(id, |p| &mut p.available, to);
    }

    pub(super) fn sell_held(&mut self, id: u32) {
        self.move_taken(id, |p| &mut p.held, |p| &mut p.sold);
        self.orders.get_mut(&id).unwrap().state = St::Sold;
    }

    pub(super) fn retake(&mut self, id: u32) {
        self.take_into(id, false, |p| &mut p.sold);
        self.orders.get_mut(&id).unwrap().state = St::Sold;
    }

    pub(super) fn release_held(&mut self, id: u32, why: &'static str) {
        self.move_taken(id, |p| &mut p.held, |p| &mut p.available);
        let order = self.orders.get_mut(&id).unwrap();
        (order.state, order.why) = (St::Released, why);
        order.waiting_go_back();
    }

    /// A line is held with so many units less, each with all its parts.
    pub(super) fn give_back_held(&mut self, id: u32, line: usize, units: u64) {
        self.give_back(id, line, units, |p| &mut p.held);
        self.orders.get_mut(&id).unwrap().lines[line].quantity -= units;
    }

    pub(super) fn restock(&mut self, id: u32, line: usize, units: u64) {
        self.give_back(id, line, units, |p| &mut p.sold);
    }

    fn give_back(&mut self, id: u32, line: usize, units: u64, from: fn(&mut Pool) -> &mut u64) {
        let line = &mut self.orders.get_mut(&id).unwrap().lines[line];
        for (part, taken) in line.ware.parts.iter().zip(&mut line.taken) {
            for _ in 0..units * part.each {
                let pool = &mut self.pools[one_less(taken)];
                *from(pool) -= 1;
                pool.available += 1;
            }
        }
    }

    /// Retaken units are sold at once: no hold is opened.
    pub(super) fn again(&self, id: u32) -> Again {
        let order = &self.orders[&id];
        if self.any_gone(&order.lines) {
            return Again::No;
        }
        if self.any_frozen(&order.lines, false) {
            return Again::Frozen;
        }
        if self.limits(&order.sent, order.units(), false).is_some() {
            return Again::No;
        }
        match self.served(&order.lines, false) {
            Ok(_) => Again::Yes,
            Err("frozen") => Again::Frozen,
            Err(_) => Again::No,
        }
    }
}
