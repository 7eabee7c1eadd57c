//! The settlement of a campaign: exact, for the books.

use serde::{Deserialize, Serialize};

/// What became of a campaign's stock, as of a ledger position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettlementView {
    /// The campaign.
    pub campaign_id: String,
    /// When it was read; no entry that it counts is later.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub as_of: String,
    /// How many ledger entries it stands on: each bucket's from 1 to its `ledger_seq`, without a gap.
    pub ledger_entries: u64,
    /// All pools together.
    #[serde(flatten)]
    pub units: SettlementUnitsView,
    /// How many pools there are.
    pub pool_count: u64,
    /// Each pool; at most 10,000 of them, the sums are of all.
    pub pools: Vec<PoolSettlementView>,
}

/// Units. `opening` + `inbound` + `adjusted` + `moved` + `repaired` is `supply`, and that is `available` +
/// `held` + `sold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettlementUnitsView {
    /// What the pools were opened with.
    pub opening: i64,
    /// What came in since.
    pub inbound: i64,
    /// What operators corrected.
    pub adjusted: i64,
    /// What came from other pools, less what went there.
    pub moved: i64,
    /// What proved differences added or took.
    pub repaired: i64,
    /// All units now.
    pub supply: u64,
    /// What can be taken.
    pub available: u64,
    /// What is held.
    pub held: u64,
    /// What is sold and did not come back; with it what was refunded and kept.
    pub sold: u64,
    /// What was refunded and came back to the shelf.
    pub refunded_restocked: u64,
    /// What was refunded and did not come back.
    pub refunded_kept: u64,
}

/// One pool's part of a settlement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolSettlementView {
    /// The pool.
    pub pool_id: String,
    /// What is sold.
    pub sku: String,
    /// Where it is.
    pub location: String,
    /// Its units.
    #[serde(flatten)]
    pub units: SettlementUnitsView,
    /// Its ledger position, bucket by bucket.
    pub buckets: Vec<BucketPositionView>,
}

/// How far a bucket's ledger is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BucketPositionView {
    /// The bucket's number.
    pub number: u32,
    /// Its last entry that is counted.
    pub ledger_seq: u64,
}
