//! Turns the rows of an export into what is to be done: pools to open, invoices to replay.
//!
//! Nothing here speaks to a server, so the rules can be tested exactly.

use std::collections::HashMap;

use anyhow::{Result, anyhow};

use super::rows::Row;

/// How rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Invoices that begin with C are returns; negative quantities elsewhere are adjustments.
    OnlineRetail,
    /// Every row is a line of an order; rows that are not positive are skipped and counted.
    Plain,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// What.
    pub(crate) sku: String,
    /// How many; above 0.
    pub(crate) quantity: u32,
}

/// An order to place and, when it is held, to pay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// Its place among the invoices: what came later is newer.
    pub(crate) rank: usize,
    /// The invoice number.
    pub(crate) order_no: String,
    /// Whose it is.
    pub(crate) account: String,
    /// Its lines, in the order of the file.
    pub(crate) lines: Vec<Line>,
}

/// Stock that was written off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adjustment {
    /// The invoice that says so.
    pub(crate) invoice: String,
    /// The row, by its line in the file.
    pub(crate) line: u64,
    /// What.
    pub(crate) sku: String,
    /// By how much the supply falls; above 0.
    pub(crate) units: u32,
}

/// Units that a customer gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Return {
    /// The cancelling invoice.
    pub(crate) invoice: String,
    /// The row, by its line in the file.
    pub(crate) line: u64,
    /// Who.
    pub(crate) account: String,
    /// What.
    pub(crate) sku: String,
    /// How many; above 0.
    pub(crate) units: u32,
}

/// One invoice: its parts are done in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Invoice {
    /// The order, if any row of it is one.
    pub(crate) order: Option<Order>,
    /// Then what is written off.
    pub(crate) adjustments: Vec<Adjustment>,
    /// Or what is given back.
    pub(crate) returns: Vec<Return>,
}

/// A pool to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pool {
    /// Exact text: differing in case is differing.
    pub(crate) sku: String,
    /// What it opens with.
    pub(crate) supply: u64,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In order of first appearance.
    pub(crate) pools: Vec<Pool>,
    /// In order of first appearance.
    pub(crate) invoices: Vec<Invoice>,
    /// Rows that say nothing to do.
    pub(crate) skipped_rows: u64,
}

impl Plan {
    /// Makes the plan. Supply is `percent` of what is ordered of each SKU, rounded down.
    pub(crate) fn new(rows: Vec<Row>, rules: Rules, percent: u32) -> Result<Self> {
        let pools = pools(&rows, rules, percent)?;
        let mut invoices: Vec<Invoice> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut skipped_rows: u64 = 0;
        for row in rows {
            let rank = *known.entry(row.order.clone()).or_insert_with(|| {
                invoices.push(Invoice::default());
                invoices.len().saturating_sub(1)
            });
            let taken = invoices.get_mut(rank).is_some_and(|invoice| invoice.take(row, rank, rules));
            skipped_rows = skipped_rows.saturating_add(u64::from(!taken));
        }
        Ok(Self { pools, invoices, skipped_rows })
    }
}

impl Invoice {
    /// Adds a row; whether it said anything to do.
    fn take(&mut self, row: Row, rank: usize, rules: Rules) -> bool {
        let cancels = is_cancellation(&row, rules);
        let units = row.quantity.unsigned_abs();
        let account = if row.account.is_empty() { format!("guest-{}", row.order) } else { row.account };
        let Row { line, order: invoice, sku, quantity, .. } = row;
        if quantity > 0 && !cancels {
            let order = self.order.get_or_insert_with(|| Order {
                rank,
                order_no: invoice,
                account,
                lines: Vec::new(),
            });
            order.lines.push(Line { sku, quantity: units });
            true
        } else if quantity < 0 && cancels {
            self.returns.push(Return { invoice, line, account, sku, units });
            true
        } else if quantity < 0 && rules == Rules::OnlineRetail {
            self.adjustments.push(Adjustment { invoice, line, sku, units });
            true
        } else {
            false
        }
    }
}

fn is_cancellation(row: &Row, rules: Rules) -> bool {
    rules == Rules::OnlineRetail && row.order.starts_with('C')
}

/// One pool a SKU, also for those that are only given back.
fn pools(rows: &[Row], rules: Rules, percent: u32) -> Result<Vec<Pool>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for row in rows {
        let place = *places.entry(&row.sku).or_insert_with(|| {
            sums.push((&row.sku, 0));
            sums.len().saturating_sub(1)
        });
        if row.quantity > 0
            && !is_cancellation(row, rules)
            && let Some((_, sum)) = sums.get_mut(place)
        {
            *sum = sum.saturating_add(u64::from(row.quantity.unsigned_abs()));
        }
    }
    sums.into_iter()
        .map(|(sku, sum)| {
            let supply = u128::from(sum) * u128::from(percent) / 100;
            Ok(Pool { sku: sku.to_owned(), supply: u64::try_from(supply).map_err(|_| too_much(sku))? })
        })
        .collect()
}

fn too_much(sku: &str) -> anyhow::Error {
    anyhow!("the quantities of {sku:?} are too large to add up")
}
