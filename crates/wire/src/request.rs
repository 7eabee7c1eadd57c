//! What clients send. Optional fields that are absent are not written; the server takes `null` for absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RawJson;
#[cfg(feature = "openapi")]
use crate::words;

/// An amount of money that somebody else moves; Holdfast only compares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Money {
    /// In the currency's minor unit, not negative.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub amount_minor: i64,
    /// Three upper-case letters of ISO 4217.
    #[cfg_attr(feature = "openapi", schema(min_length = 3, max_length = 3, example = "EUR"))]
    pub currency: String,
}

/// `PUT /v1/campaigns/{id}`: creates or changes a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutCampaignRequest {
    /// Its name, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, min_length = 1, max_length = 200))]
    pub name: String,
    /// When it begins; none = at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "2026-03-29T12:00:00Z"))]
    pub starts_at: Option<String>,
    /// When it ends; none = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "2026-03-30T12:00:00Z"))]
    pub ends_at: Option<String>,
    /// The IANA time zone of times without an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Berlin"))]
    pub time_zone: Option<String>,
    /// What it means; a field that is absent gets its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyRequest>,
}

/// A campaign's policy; a field that is absent gets its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyRequest {
    /// How long a hold lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_536_000))]
    pub hold_seconds: Option<u64>,
    /// How long a hold may last at most, extensions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_536_000))]
    pub hold_seconds_max: Option<u64>,
    /// By how much a begun payment extends the hold, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 31_536_000))]
    pub payment_extension_seconds: Option<u64>,
    /// Skew allowed after the end of a hold before its release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 3_600_000))]
    pub release_grace_ms: Option<u64>,
    /// How long a notice may travel, with `deadline_basis` `provider_paid_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 31_536_000))]
    pub notice_grace_seconds: Option<u64>,
    /// `hold` or `immediate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::capture))]
    pub capture: Option<String>,
    /// `received_at` or `provider_paid_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::deadline_basis))]
    pub deadline_basis: Option<String>,
    /// `retake_else_refund`, `refund` or `review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::late_payment))]
    pub late_payment: Option<String>,
    /// `keep` or `release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::payment_failed))]
    pub payment_failed: Option<String>,
    /// How long an order in review waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_536_000))]
    pub review_seconds: Option<u64>,
    /// `release` or `person`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::review_end))]
    pub review_end: Option<String>,
    /// Whether a refund puts stock back when the request does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restock_on_refund: Option<bool>,
    /// Most units an account may hold and buy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000_000_u64))]
    pub account_limit: Option<u64>,
    /// Most orders an account may hold open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000_000_u64))]
    pub account_open_holds: Option<u64>,
    /// Limits of other keys that orders carry, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::key_limits))]
    pub key_limits: Option<BTreeMap<String, KeyLimits>>,
    /// Most orders of an account that a node lets in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    pub order_rate_per_account: Option<u64>,
    /// Most orders that a node lets in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    pub order_rate: Option<u64>,
    /// Most orders that wait in the queue of one pool; one too many is refused with `queue_full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    pub queue_limit: Option<u64>,
    /// How long an order may wait in the queue; then it fails with `queue_timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86_400_000))]
    pub queue_wait_ms: Option<u64>,
    /// Work of operators on more units than this wants a second person: adjustments, transfers, orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000_000_000_u64))]
    pub approval_threshold: Option<u64>,
}

/// What each key of a name may have in a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyLimits {
    /// Most units that it may hold and buy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000_000_u64))]
    pub units: Option<u64>,
    /// Most orders that it may hold open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000_000_u64))]
    pub open_holds: Option<u64>,
}

/// `POST /v1/campaigns/{id}/{open,pause,resume,freeze,unfreeze,close}` and
/// `POST /v1/pools/{id}/{freeze,unfreeze}`: sets a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SwitchRequest {
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
}

/// `POST /v1/pools`: opens a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OpenPoolRequest {
    /// The campaign.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub campaign_id: String,
    /// What is sold.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub sku: String,
    /// Where it is; `main` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub location: Option<String>,
    /// Opening stock.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000_000_000_u64))]
    pub supply: u64,
    /// How many buckets; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 256))]
    pub buckets: Option<u32>,
    /// How orders reach the authority; `batched` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::path))]
    pub path: Option<String>,
    /// Which bucket an order tries first; `order_hash` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::routing))]
    pub routing: Option<String>,
}

/// `POST /v1/pools/{id}/adjustments`: changes a pool's supply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AdjustPoolRequest {
    /// The business key, global.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub adjustment_id: String,
    /// By how much; not 0.
    #[cfg_attr(feature = "openapi", schema(minimum = -1_000_000_000_000_i64, maximum = 1_000_000_000_000_i64))]
    pub delta: i64,
    /// `inbound` or `adjust`.
    #[cfg_attr(feature = "openapi", schema(schema_with = words::adjustment_kind))]
    pub kind: String,
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
    /// One bucket; absent: by rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 255))]
    pub bucket: Option<u32>,
}

/// `PATCH /v1/pools/{id}`: changes how orders come to a pool, while it sells. What is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangePoolRequest {
    /// How orders reach the authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::path))]
    pub path: Option<String>,
    /// Which bucket an order tries first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::routing))]
    pub routing: Option<String>,
    /// How many buckets; a pool only grows. New ones are empty and have weight 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 256))]
    pub buckets: Option<u32>,
    /// The weight of every bucket, by its number, as many as there are after the change; at least one is not
    /// 0. A bucket of weight 0 gets no new orders while another has enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::weights))]
    pub weights: Option<Vec<u32>>,
    /// Most orders that a node places at the same time; 0: none. `null` (`Some(None)`) takes the limit away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 0, maximum = 4_294_967_295_u64))]
    pub max_concurrency: Option<Option<u32>>,
    /// What a pool on the cached path does while its cache cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::cache_fallback))]
    pub cache_fallback: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: Option<String>,
    /// Who; the key's name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: Option<String>,
}

/// `POST /v1/pools/{id}/sweep`: gathers a pool's available units in one bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepRequest {
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
    /// Into which bucket; absent: the fullest of those that routing chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 255))]
    pub bucket: Option<u32>,
}

/// One end of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TransferEnd {
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub pool_id: String,
    /// One bucket; absent: from the fullest first, to the emptiest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 255))]
    pub bucket: Option<u32>,
}

/// `POST /v1/transfers`: moves available units to another pool or bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TransferRequest {
    /// The business key, global.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub transfer_id: String,
    /// Where from.
    pub from: TransferEnd,
    /// Where to: another pool, or another bucket of the same.
    pub to: TransferEnd,
    /// How many units.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000_000_u64))]
    pub quantity: u64,
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
}

/// One line of an order to place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaceLine {
    /// What is bought.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub sku: String,
    /// Where from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub location: Option<String>,
    /// How many units.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    pub quantity: u32,
}

/// `POST /v1/orders`: places an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaceOrderRequest {
    /// The campaign.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub campaign_id: String,
    /// The business key, per campaign.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub order_no: String,
    /// Whose it is.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub account: String,
    /// What it buys.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1_000))]
    pub lines: Vec<PlaceLine>,
    /// How long to hold, if not by policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 31_536_000))]
    pub hold_seconds: Option<u64>,
    /// What must be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_due: Option<Money>,
    /// Other keys that it counts against, by name: a device, an address. Stored hashed, never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::limit_keys))]
    pub limit_keys: Option<BTreeMap<String, String>>,
    /// A JSON object kept as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub metadata: Option<RawJson>,
}

/// `POST /v1/orders/batch`: places orders, each on its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlaceBatchRequest {
    /// The orders.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 500))]
    pub orders: Vec<PlaceOrderRequest>,
}

/// How far a line is reduced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelLine {
    /// The line, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub line: u32,
    /// Units that stay.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000))]
    pub keep: u32,
}

/// `POST /v1/orders/{id}/cancel`: the whole, or lines reduced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelRequest {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: Option<String>,
    /// Which lines; absent: the whole order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1_000))]
    pub lines: Option<Vec<CancelLine>>,
}

/// `POST /v1/orders/{id}/payment-attempts`: a payment has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentAttemptRequest {
    /// The key, per order.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub attempt_id: String,
    /// With whom.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub provider: String,
}

/// Units refunded of one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundLine {
    /// The line, from 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub line: u32,
    /// How many units.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    pub quantity: u32,
}

/// `POST /v1/orders/{id}/refunds`: units are refunded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundRequest {
    /// The key, per order.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub refund_id: String,
    /// What is refunded.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1_000))]
    pub lines: Vec<RefundLine>,
    /// Whether stock comes back; absent: by policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restock: Option<bool>,
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
}

/// `POST /v1/payments/{provider}/notifications`: a provider says something about a payment. The order is
/// named by `order_id`, or by `campaign_id` and `order_no`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentNotification {
    /// The provider's event: the key, per provider.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub event_id: String,
    /// The provider's payment.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub payment_id: String,
    /// The order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub order_id: Option<String>,
    /// The order's campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub campaign_id: Option<String>,
    /// The order's number there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub order_no: Option<String>,
    /// The attempt concerned; absent: the only open one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub attempt_id: Option<String>,
    /// `succeeded` or `failed`.
    #[cfg_attr(feature = "openapi", schema(schema_with = words::payment_outcome))]
    pub outcome: String,
    /// When the payment was made, by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub paid_at: Option<String>,
    /// How much was paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub amount_minor: Option<i64>,
    /// In which currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 3, max_length = 3, example = "EUR"))]
    pub currency: Option<String>,
}
