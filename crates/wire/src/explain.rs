//! How something came to stand where it stands.

use serde::{Deserialize, Serialize};

use crate::{LedgerEntryView, OrderView, PoolView, Word};

/// One step of a chain of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepView {
    /// When, by the clock of the authority; of a `cache` step by the cache's.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: String,
    /// Where it is known from: `request`, `queue`, `cache`, `attempt`, `payment`, `ledger`, `refund_due`, `approval`,
    /// `act` or `case`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Word,
    /// What happened, for people.
    pub text: String,
    /// Who did it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// In which request, where that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The ledger entry that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionView>,
    /// The order concerned, in the chain of a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
}

/// Where a ledger entry stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PositionView {
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub pool_id: String,
    /// The bucket's number there.
    pub bucket: u32,
    /// The entry's number there.
    pub seq: u64,
}

/// Units of a bucket that an order has, as its ledger entries add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OrderUnitsView {
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub pool_id: String,
    /// The bucket's number there.
    pub bucket: u32,
    /// Units held for it now.
    pub held: i64,
    /// Units sold to it that did not come back.
    pub sold: i64,
    /// Units that it gave back to the shelf.
    pub given_back: i64,
}

/// What became of an order's event at a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryView {
    /// The sink.
    pub sink: String,
    /// The event's ledger entry.
    pub position: PositionView,
    /// `delivered` (or of a kind that the sink does not want), `waiting`, `parked`, or `before` the time from which the
    /// sink is told.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word,
    /// How often a parked one was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// What the receiver said at last of a parked one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The chain of evidence of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OrderExplanationView {
    /// The order as it stands.
    pub order: OrderView,
    /// How it came to the authority: by a `lane`, a `queue` or a `cache`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub came_by: Word,
    /// What it has of which bucket, by the ledger.
    pub units: Vec<OrderUnitsView>,
    /// What happened, in time order.
    pub timeline: Vec<StepView>,
    /// What became of its events at every sink: of the first 100.
    pub deliveries: Vec<DeliveryView>,
    /// Its ledger entries, in time order.
    pub ledger: Vec<LedgerEntryView>,
    /// Of what there is more than is told: `ledger`, `cases`, `approvals`, `acts`.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub left_off: Vec<Word>,
}

/// A bucket as of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BucketExplanationView {
    /// Its number.
    pub number: u32,
    /// The last entry that counts.
    pub seq: u64,
    /// Units that could be taken, as the entries add up; none if they are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<i64>,
    /// Units held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<i64>,
    /// Units sold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sold: Option<i64>,
    /// Whether the stored balance says the same; only where the last entry is the bucket's last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
}

/// What entries of one action did, together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionSumView {
    /// The action.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub action: Word,
    /// How many entries.
    pub entries: u64,
    /// Change of available.
    pub delta_available: i64,
    /// Change of held.
    pub delta_held: i64,
    /// Change of sold.
    pub delta_sold: i64,
}

/// An order that had units of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OwnerView {
    /// The order.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub order_id: String,
    /// Its number.
    pub order_no: String,
    /// Units held for it.
    pub held: i64,
    /// Units sold to it.
    pub sold: i64,
}

/// The chain of evidence of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolExplanationView {
    /// The pool as it stands.
    pub pool: PoolView,
    /// The time as of which all below is told; null: now.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub as_of: Option<String>,
    /// The buckets concerned.
    pub buckets: Vec<BucketExplanationView>,
    /// What was done, by action.
    pub actions: Vec<ActionSumView>,
    /// Whose the units were, those with the most held first.
    pub owners: Vec<OwnerView>,
    /// What happened, in time order.
    pub timeline: Vec<StepView>,
    /// Ledger entries in time order: the last ones, or the first of the range.
    pub ledger: Vec<LedgerEntryView>,
    /// Of what there is more than is told: `ledger`, `cases`, `acts`, `owners`, or the `sums` of entries that are too many.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub left_off: Vec<Word>,
}
