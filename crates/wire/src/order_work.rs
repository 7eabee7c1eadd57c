//! Work of operators on orders.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::words;
use crate::{CancelLine, Word};

/// `POST /v1/orders/cancellations`: a page of a campaign's orders is cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelOrdersRequest {
    /// The campaign.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub campaign_id: String,
    /// Orders in which state: `held` (if absent) or `queued`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::cancelled_state))]
    pub state: Option<String>,
    /// Only of this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub account: Option<String>,
    /// Only with their home in this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub pool_id: Option<String>,
    /// `next_after` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub after: Option<String>,
    /// Most orders of the page; 100 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
}

/// What became of a page of cancels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancellationsView {
    /// How many were cancelled now.
    pub cancelled: u64,
    /// How many had been cancelled meanwhile.
    pub unchanged: u64,
    /// Those that cannot be cancelled any more.
    pub refused: Vec<RefusedCancelView>,
    /// Where the next page begins; none: that was all.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_after: Option<String>,
}

/// An order that was not cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefusedCancelView {
    /// Which.
    pub order_id: String,
    /// Why, as the code of a problem.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Word,
}

/// `POST /v1/orders/{id}/resolve`: an operator decides on an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResolveOrderRequest {
    /// What is decided: `confirm`, `release`, `extend` (until a time), `reduce` (lines) or `refunded` (money went back).
    #[cfg_attr(feature = "openapi", schema(schema_with = words::order_action))]
    pub action: String,
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
    /// With `extend`: the new end of the hold, at most `hold_seconds_max` after placing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub until: Option<String>,
    /// With `refunded`: which payments of this order went back, also those that were said to have before; absent: all
    /// that are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 100))]
    pub payment_ids: Option<Vec<String>>,
    /// With `reduce`: how many units of which lines stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1_000))]
    pub lines: Option<Vec<CancelLine>>,
    /// The key of this decision on this order, where a second person must agree; under another one it is asked for
    /// anew. `1` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub decision_id: Option<String>,
}
