//! What clients ask for, as they sent it, and what they are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::id::{Account, LimitKey, LimitName, Location, OrderKey, Sku};
use holdfast_core::order::Money;
use holdfast_core::time::Timestamp;

/// One line of an order, as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLine {
    /// What is bought.
    pub sku: Sku,
    /// Where from; none: by the campaign's location order.
    pub location: Option<Location>,
    /// How many units.
    pub quantity: u32,
}

/// An order to place, as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceRequest {
    /// The business key.
    pub key: OrderKey,
    /// Whose it is.
    pub account: Account,
    /// What it buys.
    pub lines: Vec<RequestedLine>,
    /// How long to hold, if not by policy.
    pub hold_seconds: Option<u32>,
    /// What must be paid.
    pub amount_due: Option<Money>,
    /// Keys besides the account that limits may be on.
    pub limit_keys: BTreeMap<LimitName, LimitKey>,
    /// Kept as sent.
    pub metadata: Option<Arc<str>>,
}

/// A pool's stock for display: fast, and with its age stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Availability {
    /// Units that could be taken.
    pub available: u64,
    /// When that was read.
    pub as_of: Timestamp,
    /// How old it is.
    pub age_ms: u64,
    /// Where it comes from: `node` (this node's last commits) or `authority`.
    pub source: &'static str,
}
