//! What clients send. Optional fields that are absent are not written; the server takes `null` for absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// An amount of money that somebody else moves; Holdfast only compares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    /// In the currency's minor unit, not negative.
    pub amount_minor: i64,
    /// Three upper-case letters of ISO 4217.
    pub currency: String,
}

/// `PUT /v1/campaigns/{id}`: creates or changes a campaign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutCampaignRequest {
    /// Its name, for people.
    pub name: String,
    /// When it begins; none = at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<String>,
    /// When it ends; none = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
    /// The IANA time zone of times without an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// What it means; a field that is absent gets its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyRequest>,
}

/// A campaign's policy; a field that is absent gets its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRequest {
    /// How long a hold lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_seconds: Option<u64>,
    /// How long a hold may last at most, extensions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_seconds_max: Option<u64>,
    /// By how much a begun payment extends the hold, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_extension_seconds: Option<u64>,
    /// Skew allowed after the end of a hold before its release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_grace_ms: Option<u64>,
    /// How long a notice may travel, with `deadline_basis` `provider_paid_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice_grace_seconds: Option<u64>,
    /// `hold` or `immediate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<String>,
    /// `received_at` or `provider_paid_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_basis: Option<String>,
    /// `retake_else_refund`, `refund` or `review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_payment: Option<String>,
    /// `keep` or `release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_failed: Option<String>,
    /// How long an order in review waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_seconds: Option<u64>,
    /// `release` or `person`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_end: Option<String>,
    /// Whether a refund puts stock back when the request does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restock_on_refund: Option<bool>,
    /// Most units an account may hold and buy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_limit: Option<u64>,
    /// Most orders an account may hold open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_open_holds: Option<u64>,
    /// Limits of other named keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_limits: Option<BTreeMap<String, u64>>,
    /// Orders a second and account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_rate_per_account: Option<u64>,
    /// Orders a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_rate: Option<u64>,
    /// Most orders that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<u64>,
    /// How long an order may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_wait_ms: Option<u64>,
    /// From which size on an adjustment wants a second operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_threshold: Option<u64>,
}

/// `POST /v1/campaigns/{id}/{open,pause,resume,freeze,unfreeze,close}` and
/// `POST /v1/pools/{id}/{freeze,unfreeze}`: sets a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchRequest {
    /// Why.
    pub reason: String,
    /// Who.
    pub operator: String,
}

/// `POST /v1/pools`: opens a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPoolRequest {
    /// The campaign.
    pub campaign_id: String,
    /// What is sold.
    pub sku: String,
    /// Where it is; `main` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Opening stock.
    pub supply: u64,
    /// How many buckets; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<u32>,
    /// How orders reach the authority; `batched` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which bucket an order tries first; `order_hash` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<String>,
}

/// `POST /v1/pools/{id}/adjustments`: changes a pool's supply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdjustPoolRequest {
    /// The business key, global.
    pub adjustment_id: String,
    /// By how much; not 0.
    pub delta: i64,
    /// `inbound` or `adjust`.
    pub kind: String,
    /// Why.
    pub reason: String,
    /// Who.
    pub operator: String,
    /// One bucket; absent: by rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<u32>,
}

/// One line of an order to place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceLine {
    /// What is bought.
    pub sku: String,
    /// Where from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// How many units.
    pub quantity: u32,
}

/// `POST /v1/orders`: places an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlaceOrderRequest {
    /// The campaign.
    pub campaign_id: String,
    /// The business key, per campaign.
    pub order_no: String,
    /// Whose it is.
    pub account: String,
    /// What it buys.
    pub lines: Vec<PlaceLine>,
    /// How long to hold, if not by policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_seconds: Option<u64>,
    /// What must be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_due: Option<Money>,
    /// Other named keys that it counts against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_keys: Option<BTreeMap<String, String>>,
    /// A JSON object kept as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawJson>,
}

/// `POST /v1/orders/batch`: places orders, each on its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlaceBatchRequest {
    /// The orders.
    pub orders: Vec<PlaceOrderRequest>,
}

/// How far a line is reduced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelLine {
    /// The line, from 1.
    pub line: u32,
    /// Units that stay.
    pub keep: u32,
}

/// `POST /v1/orders/{id}/cancel`: the whole, or lines reduced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which lines; absent: the whole order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<CancelLine>>,
}

/// `POST /v1/orders/{id}/payment-attempts`: a payment has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentAttemptRequest {
    /// The key, per order.
    pub attempt_id: String,
    /// With whom.
    pub provider: String,
}

/// Units refunded of one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundLine {
    /// The line, from 1.
    pub line: u32,
    /// How many units.
    pub quantity: u32,
}

/// `POST /v1/orders/{id}/refunds`: units are refunded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundRequest {
    /// The key, per order.
    pub refund_id: String,
    /// What is refunded.
    pub lines: Vec<RefundLine>,
    /// Whether stock comes back; absent: by policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restock: Option<bool>,
    /// Why.
    pub reason: String,
}

/// `POST /v1/payments/{provider}/notifications`: a provider says something about a payment. The order is
/// named by `order_id`, or by `campaign_id` and `order_no`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentNotification {
    /// The provider's event: the key, per provider.
    pub event_id: String,
    /// The provider's payment.
    pub payment_id: String,
    /// The order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// The order's campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<String>,
    /// The order's number there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_no: Option<String>,
    /// The attempt concerned; absent: the only open one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// `succeeded` or `failed`.
    pub outcome: String,
    /// When the payment was made, by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_at: Option<String>,
    /// How much was paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_minor: Option<i64>,
    /// In which currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}
