//! How pools, their buckets and caches are shown, and what changed their stock.

use serde::{Deserialize, Serialize};

use crate::Word;

/// A pool with its buckets, exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolView {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub id: String,
    /// The campaign.
    pub campaign_id: String,
    /// What is sold.
    pub sku: String,
    /// Where it is.
    pub location: String,
    /// How orders reach the authority.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub path: Word,
    /// Which bucket an order tries first.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub routing: Word,
    /// All units.
    pub supply: u64,
    /// Units that can be taken.
    pub available: u64,
    /// Units held.
    pub held: u64,
    /// Units sold.
    pub sold: u64,
    /// No stock moves out.
    pub frozen: bool,
    /// Nothing is sold from it any more.
    #[serde(default)]
    pub retired: bool,
    /// Most orders that a node places at the same time; null: no limit of the pool's own.
    #[serde(default)]
    pub max_concurrency: Option<u32>,
    /// What it does on the cached path while its cache cannot be used.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub cache_fallback: Word,
    /// Its buckets, ascending.
    pub buckets: Vec<BucketView>,
}

/// A pool's caches beside the authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CacheView {
    /// The pool.
    pub pool_id: String,
    /// One a bucket, ascending.
    pub buckets: Vec<BucketCacheView>,
}

/// A bucket's cache. What the cache says of itself is null if it does not answer or its keys are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BucketCacheView {
    /// The bucket's number.
    pub number: u32,
    /// The authority's present or last epoch; null if there was none.
    pub epoch: Option<u64>,
    /// `open`, `draining` or `closed`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word,
    /// Whether the cache answers.
    pub reachable: bool,
    /// Whether it accepts orders in this epoch.
    pub accepts: bool,
    /// The epoch that the cache has.
    pub cache_epoch: Option<u64>,
    /// Units that the cache has left; below 0 after others took from the authority.
    pub available: Option<i64>,
    /// Orders that it accepted in its epoch.
    pub accepted: Option<u64>,
    /// Of these, orders that have not landed, or whose entry is not settled yet.
    pub backlog: Option<u64>,
    /// Of these, orders that were delivered for landing.
    pub delivered: Option<u64>,
    /// The ledger entry up to which it was credited.
    pub applied_seq: Option<u64>,
    /// The bucket's last ledger entry.
    pub ledger_seq: u64,
    /// Units that the cache has more than the ledger says, at `applied_seq`; not 0 drains the epoch. Null where
    /// it cannot be said.
    pub difference: Option<i64>,
}

/// A bucket of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BucketView {
    /// Its number, from 0.
    pub number: u32,
    /// Its share in routing.
    pub weight: u32,
    /// Units that can be taken.
    pub available: u64,
    /// Units held.
    pub held: u64,
    /// Units sold.
    pub sold: u64,
    /// The number of its last ledger entry.
    pub ledger_seq: u64,
}

/// A pool's stock for display, with its age stated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AvailabilityView {
    /// Units that could be taken.
    pub available: u64,
    /// Whether there are any.
    pub in_stock: bool,
    /// When that was read.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub as_of: String,
    /// How old it is.
    pub age_ms: u64,
    /// Where it comes from.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub source: Word,
}

/// What became of an adjustment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AdjustmentView {
    /// The business key.
    pub adjustment_id: String,
    /// `applied`, `pending_approval`, `rejected` or `expired`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word,
    /// The pool as it is now.
    pub pool: PoolView,
    /// The request for a second person, where one is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

/// What became of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TransferView {
    /// The business key.
    pub transfer_id: String,
    /// `applied`, `pending_approval`, `rejected` or `expired`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word,
    /// How many units move.
    pub quantity: u64,
    /// The pool that gave them, as it is now.
    pub from: PoolView,
    /// The pool that has them, as it is now.
    pub to: PoolView,
    /// The request for a second person, where one is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}
