//! What the benchmarks write past every decision, to see what a database can do by itself.

use holdfast_core::time::Timestamp;

/// The rows of one hold of one unit.
#[derive(Debug, Clone)]
pub struct BareHold {
    /// The order's id, and its entry's reference to it.
    pub id: u128,
    /// The order's number.
    pub order_no: String,
    /// The account.
    pub account: String,
}

/// A long sale of one unit an order, from the first bucket of a pool.
#[derive(Debug, Clone)]
pub struct Fill {
    /// The pool; as many units must be available in its first bucket.
    pub pool: u128,
    /// Its campaign.
    pub campaign: String,
    /// What is sold there.
    pub sku: String,
    /// How many orders.
    pub orders: u64,
    /// When all of it happened.
    pub at: Timestamp,
}

impl Fill {
    /// The lines of every order, as a store writes them.
    pub fn lines(&self) -> String {
        let (sku, pool) = (&self.sku, self.pool);
        format!(
            r#"[{{"sku":"{sku}","pool":"{pool:032x}","quantity":1,"allocations":[{{"bucket":0,"quantity":1}}]}}]"#
        )
    }
}
