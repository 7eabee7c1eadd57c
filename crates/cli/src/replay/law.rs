//! What was answered, what must follow from it, and whether the stock agrees.

use std::collections::HashMap;

use serde::Serialize;

use super::plan::{Order, Plan};
use super::shop::Stock;

/// What the answers say about one SKU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Moves {
    /// Units written off.
    adjusted: u64,
    /// Units held and not known to be sold.
    held: u64,
    /// Units sold and not put back.
    sold: u64,
}

/// What was answered.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Orders placed, whatever the answer.
    pub(crate) orders: u64,
    /// Orders sold.
    pub(crate) sold_orders: u64,
    /// Orders that found too little stock.
    pub(crate) sold_out_orders: u64,
    /// Adjustments done.
    pub(crate) adjustments_applied: u64,
    /// Adjustments that found too little stock.
    pub(crate) adjustments_refused: u64,
    /// Units of those done.
    pub(crate) adjusted_units: u64,
    /// Refunds, by order and row.
    pub(crate) refunds: u64,
    /// Units refunded.
    pub(crate) refunded_units: u64,
    /// Units given back that nobody had bought.
    pub(crate) unmatched_return_units: u64,
    /// Answers that a replay does not expect, in words.
    pub(crate) strange: Vec<String>,
    /// Requests without an answer, in words.
    pub(crate) unanswered: Vec<String>,
    moves: HashMap<String, Moves>,
}

impl Tally {
    fn of(&mut self, sku: &str) -> &mut Moves {
        self.moves.entry(sku.to_owned()).or_default()
    }

    /// Notes that an order is held.
    pub(crate) fn hold(&mut self, order: &Order) {
        for line in &order.lines {
            self.of(&line.sku).held += u64::from(line.quantity);
        }
    }

    /// Notes that a held order is sold.
    pub(crate) fn sell(&mut self, order: &Order) {
        self.sold_orders += 1;
        for line in &order.lines {
            let moves = self.of(&line.sku);
            moves.held -= u64::from(line.quantity);
            moves.sold += u64::from(line.quantity);
        }
    }

    /// Notes units written off.
    pub(crate) fn adjust(&mut self, sku: &str, units: u32) {
        self.adjustments_applied += 1;
        self.adjusted_units += u64::from(units);
        self.of(sku).adjusted += u64::from(units);
    }

    /// Notes units refunded and put back.
    pub(crate) fn refund(&mut self, sku: &str, units: u64) {
        self.refunds += 1;
        self.refunded_units += units;
        self.of(sku).sold -= units;
    }

    /// Notes an answer that a replay does not expect.
    pub(crate) fn strange(&mut self, what: String, words: &str) {
        self.strange.push(format!("{what}: {words}"));
    }
}

/// The result of a replay; the names are those of the JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    pub(crate) pools: usize,
    pub(crate) opening_units: u64,
    pub(crate) orders: u64,
    pub(crate) sold_orders: u64,
    pub(crate) sold_out_orders: u64,
    pub(crate) adjustments_applied: u64,
    pub(crate) adjustments_refused: u64,
    pub(crate) adjusted_units: u64,
    pub(crate) refunds: u64,
    pub(crate) refunded_units: u64,
    pub(crate) unmatched_return_units: u64,
    pub(crate) available_units: u64,
    pub(crate) held_units: u64,
    pub(crate) sold_units: u64,
    pub(crate) law: String,
}

impl Summary {
    /// Sums up. The stock's figures are what the shop says, not what the answers add up to.
    pub(crate) fn new(opening: &Opening, tally: &Tally, stock: &[Stock]) -> Self {
        Self {
            pools: stock.len(),
            opening_units: opening.supply.values().sum(),
            orders: tally.orders,
            sold_orders: tally.sold_orders,
            sold_out_orders: tally.sold_out_orders,
            adjustments_applied: tally.adjustments_applied,
            adjustments_refused: tally.adjustments_refused,
            adjusted_units: tally.adjusted_units,
            refunds: tally.refunds,
            refunded_units: tally.refunded_units,
            unmatched_return_units: tally.unmatched_return_units,
            available_units: stock.iter().map(|pool| pool.available).sum(),
            held_units: stock.iter().map(|pool| pool.held).sum(),
            sold_units: stock.iter().map(|pool| pool.sold).sum(),
            law: law(opening, tally, stock).err().unwrap_or_else(|| "ok".to_owned()),
        }
    }

    /// Whether the law held and every order was answered as a replay expects.
    pub(crate) fn passed(&self) -> bool {
        self.law == "ok" && self.orders == self.sold_orders + self.sold_out_orders
    }
}

/// What each pool opened with.
#[derive(Debug)]
pub(crate) struct Opening {
    supply: HashMap<String, u64>,
}

impl Opening {
    /// As planned.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { supply: plan.pools.iter().map(|pool| (pool.sku.clone(), pool.supply)).collect() }
    }
}

/// The law, pool by pool: units are only where an answer put them. Else the first breach.
fn law(opening: &Opening, tally: &Tally, stock: &[Stock]) -> Result<(), String> {
    if let Some(first) = tally.unanswered.first() {
        let count = tally.unanswered.len();
        return Err(format!("cannot be judged: {count} without an answer, first {first}"));
    }
    if stock.len() != opening.supply.len() {
        return Err(format!("{} pools were opened, there are {}", opening.supply.len(), stock.len()));
    }
    for pool in stock {
        let sku = &pool.sku;
        let Stock { supply, available, held, sold, .. } = *pool;
        let opened = *opening.supply.get(sku).ok_or_else(|| format!("nobody opened the pool {sku:?}"))?;
        let moves = tally.moves.get(sku).copied().unwrap_or_default();
        if Some(supply) != available.checked_add(held).and_then(|sum| sum.checked_add(sold)) {
            return Err(format!("{sku:?}: supply {supply}, but {available} + {held} + {sold} in it"));
        }
        if Some(supply) != opened.checked_sub(moves.adjusted) {
            return Err(format!(
                "{sku:?}: opened with {opened}, {} written off, but supply {supply}",
                moves.adjusted
            ));
        }
        if held != moves.held {
            return Err(format!("{sku:?}: {held} held, but the answers say {}", moves.held));
        }
        if sold != moves.sold {
            return Err(format!("{sku:?}: {sold} sold, but the answers say {}", moves.sold));
        }
    }
    Ok(())
}
