//! What the authority says when all is at rest: read over its own API, or made up by a test.

use holdfast_core::ledger::Action;
use holdfast_core::order::{Disposition, State};
use uuid::Uuid;

/// All of one campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Its pools.
    pub(crate) pools: Vec<PoolFact>,
    /// Its orders.
    pub(crate) orders: Vec<OrderFact>,
    /// Its ledger: each bucket's entries in their order.
    pub(crate) entries: Vec<EntryFact>,
    /// What the settlement says: supply, available, held, sold.
    pub(crate) settled: Option<Units>,
    /// Order events of each bucket in the order in which the pull feed has them; none if nobody read it.
    pub(crate) events: Option<Vec<EventFact>>,
    /// Whether the campaign sells.
    pub(crate) is_open: bool,
}

/// Units, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Units {
    /// Available.
    pub(crate) available: i64,
    /// Held.
    pub(crate) held: i64,
    /// Sold.
    pub(crate) sold: i64,
}

impl Units {
    /// All of them.
    pub(crate) const fn supply(self) -> i64 {
        self.available.saturating_add(self.held).saturating_add(self.sold)
    }

    /// These and others.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            available: self.available.saturating_add(other.available),
            held: self.held.saturating_add(other.held),
            sold: self.sold.saturating_add(other.sold),
        }
    }

    /// Whether none is below 0.
    pub(crate) const fn are_there(self) -> bool {
        self.available >= 0 && self.held >= 0 && self.sold >= 0
    }
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolFact {
    /// Its id.
    pub(crate) id: Uuid,
    /// What it sells.
    pub(crate) sku: String,
    /// What it says of all buckets together.
    pub(crate) units: Units,
    /// What it says that its supply is.
    pub(crate) supply: i64,
    /// Whether it is frozen.
    pub(crate) frozen: bool,
    /// Its buckets, by number.
    pub(crate) buckets: Vec<BucketFact>,
}

/// A bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketFact {
    /// Its balance.
    pub(crate) units: Units,
    /// Its last entry.
    pub(crate) ledger_seq: u64,
    /// What its cache still has to land, if it has one.
    pub(crate) backlog: Option<u64>,
    /// What its cache would still give, if it has one that accepts.
    pub(crate) cached: Option<i64>,
}

/// Which bucket: the pool's place in [`Facts::pools`], and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bucket {
    /// The pool.
    pub(crate) pool: u16,
    /// The number.
    pub(crate) number: u16,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderFact {
    /// Its id.
    pub(crate) id: Uuid,
    /// Its key.
    pub(crate) order_no: Box<str>,
    /// Whose it is.
    pub(crate) account: Box<str>,
    /// Its state.
    pub(crate) state: State,
    /// Its version.
    pub(crate) version: u32,
    /// What it buys, line by line.
    pub(crate) lines: Vec<(Box<str>, u32)>,
    /// Which stock it holds or bought.
    pub(crate) allocations: Vec<(Bucket, i64)>,
    /// Its payments.
    pub(crate) payments: Vec<PaymentFact>,
}

/// A payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaymentFact {
    /// Its name.
    pub(crate) payment_id: Box<str>,
    /// Whether it succeeded.
    pub(crate) succeeded: bool,
    /// What became of it.
    pub(crate) disposition: Disposition,
}

/// A ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryFact {
    /// Its bucket.
    pub(crate) bucket: Bucket,
    /// Its number there.
    pub(crate) seq: u64,
    /// When, in milliseconds of the authority's clock.
    pub(crate) at_ms: i64,
    /// Of which order.
    pub(crate) order: Option<Uuid>,
    /// What happened.
    pub(crate) action: Action,
    /// What it changed.
    pub(crate) change: Units,
    /// Cached units that it settles.
    pub(crate) settled: u64,
    /// The order's state before.
    pub(crate) from: Option<State>,
    /// The order's state after, if it carries an order event.
    pub(crate) to: Option<State>,
}

/// An order event as it was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventFact {
    /// Of which bucket.
    pub(crate) bucket: Bucket,
    /// The entry's number there.
    pub(crate) seq: u64,
    /// Of which order.
    pub(crate) order: Uuid,
}
