//! What a replay asks of whoever keeps the stock.

use std::future::Future;

use anyhow::Result;

use super::book::Taken;
use super::plan::{Adjustment, Order, Return};

/// The answer to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Held, under this id.
    Held(String),
    /// There was too little stock.
    SoldOut,
    /// Anything else, in words: a replay knows no other answer.
    Other(String),
}

/// The answer to anything that moves units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It was done.
    Done,
    /// There was too little stock.
    Refused,
    /// Anything else, in words.
    Other(String),
}

/// One pool as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stock {
    /// What.
    pub(crate) sku: String,
    /// All units.
    pub(crate) supply: u64,
    /// Units that can be taken.
    pub(crate) available: u64,
    /// Units held.
    pub(crate) held: u64,
    /// Units sold.
    pub(crate) sold: u64,
}

/// Keeps the stock: a server, or a table in a test. An error means that there was no answer, so that
/// nobody knows what was done.
pub(crate) trait Shop: Send + Sync + 'static {
    /// Places an order.
    fn place(&self, order: &Order) -> impl Future<Output = Result<Placed>> + Send;

    /// Says that a held order was paid; done = it is sold.
    fn pay(&self, order: &Order, order_id: &str) -> impl Future<Output = Result<Moved>> + Send;

    /// Takes units out of the supply.
    fn adjust(&self, adjustment: &Adjustment) -> impl Future<Output = Result<Moved>> + Send;

    /// Refunds units of one order and puts them back on sale.
    fn refund(&self, row: &Return, taken: &Taken) -> impl Future<Output = Result<Moved>> + Send;

    /// Every pool as it stands now.
    fn stock(&self) -> impl Future<Output = Result<Vec<Stock>>> + Send;
}
