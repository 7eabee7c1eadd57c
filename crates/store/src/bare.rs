//! What the benchmarks write past every decision, to see what a database can do by itself.

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
