//! Queues: orders that were taken in and wait to be landed, and the leases by which nodes agree who lands
//! them.

use std::time::Duration;

use holdfast_core::id::OrderId;
use holdfast_core::time::Timestamp;

/// Where an order stands in its bucket's queue: orders were taken in in this order.
pub type QueuePlace = (Timestamp, OrderId);

/// A lease to take or to renew. It keeps two nodes from doing the same work; it protects nothing. Whoever
/// lost his lease and does not know it yet is harmless, because the state of what he works on decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What it is for.
    pub name: String,
    /// Who wants it: an id of the run of a node.
    pub holder: u128,
    /// How long it lasts, by the authority's clock.
    pub lasts: Duration,
}
