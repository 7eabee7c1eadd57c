//! The ledger (库存流水): one change of one bucket an entry, append-only, numbered without gaps.

use std::sync::Arc;

use crate::campaign::spelled;
use crate::id::OrderId;
use crate::order::State;
use crate::stock::{BucketKey, Delta};
use crate::time::Timestamp;

/// What an entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A bucket's first entry: its opening stock, also 0.
    Opening,
    /// An order took stock.
    Place,
    /// A queued order was landed.
    Land,
    /// Held stock was sold.
    Confirm,
    /// Held stock went back.
    Release,
    /// Sold stock was refunded, restocked or not.
    Refund,
    /// A line was reduced.
    Reduce,
    /// Stock came in.
    Inbound,
    /// Stock was corrected by an operator.
    Adjust,
    /// Stock left for another pool or bucket.
    TransferOut,
    /// Stock came from another pool or bucket.
    TransferIn,
    /// A late payment took stock again.
    Retake,
    /// An order changed and no stock moved.
    OrderEvent,
    /// A proved difference was mended.
    Repair,
}

spelled! {
    Action {
        Opening = "opening", Place = "place", Land = "land", Confirm = "confirm", Release = "release",
        Refund = "refund", Reduce = "reduce", Inbound = "inbound", Adjust = "adjust",
        TransferOut = "transfer_out", TransferIn = "transfer_in", Retake = "retake",
        OrderEvent = "order_event", Repair = "repair",
    }
}

impl Action {
    /// Whether the action may change a bucket's supply; all others only move units within it.
    pub const fn changes_supply(self) -> bool {
        match self {
            Self::Opening
            | Self::Inbound
            | Self::Adjust
            | Self::TransferOut
            | Self::TransferIn
            | Self::Repair => true,
            Self::Place
            | Self::Land
            | Self::Confirm
            | Self::Release
            | Self::Refund
            | Self::Reduce
            | Self::Retake
            | Self::OrderEvent => false,
        }
    }
}

/// Entries of its bucket that a repair stands for: they are missing, or one of them should not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Covers {
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
}

/// One ledger entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The bucket that changed.
    pub bucket: BucketKey,
    /// Its number there, from 1.
    pub seq: u64,
    /// When, by the authority's clock.
    pub at: Timestamp,
    /// The order concerned.
    pub order_id: Option<OrderId>,
    /// The business key: order number, adjustment id, …
    pub business_no: Arc<str>,
    /// What happened.
    pub action: Action,
    /// How the balances changed.
    pub delta: Delta,
    /// Cached units that this entry settles (cached path; 0 elsewhere).
    pub settled: u64,
    /// The order's state before, in the entry that carries the order event.
    pub from_state: Option<State>,
    /// The order's state after, in the entry that carries the order event.
    pub to_state: Option<State>,
    /// The order's version after, in the one entry that carries the order event.
    pub order_version: Option<u32>,
    /// The command's own key, or where it came from.
    pub source: Arc<str>,
    /// Who did it.
    pub actor: Arc<str>,
    /// Why.
    pub reason: Arc<str>,
    /// What a repair stands for, where it is entries.
    pub covers: Option<Covers>,
}
