//! What the server shows. Times are RFC 3339 UTC with milliseconds.

use serde::{Deserialize, Serialize};

use crate::assortment::ComponentView;
use crate::problem::Problem;
use crate::request::Money;
use crate::{RawJson, Word};

/// [`Money`] as it is shown: unlike the one that is sent, a later version may know more fields of it.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct MoneyView {
    /// In the currency's minor unit.
    amount_minor: i64,
    /// Three upper-case letters of ISO 4217.
    currency: String,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; none: this was the last.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

/// An order as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OrderView {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub id: String,
    /// The client's number of it, per campaign.
    pub order_no: String,
    /// The campaign.
    pub campaign_id: String,
    /// Whose it is.
    pub account: String,
    /// `queued`, `held`, `in_review`, `sold`, `refunded`, `released` or `failed`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word,
    /// Why it stands there.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = true))]
    pub reason: Option<Word>,
    /// How often it changed; 1 when new.
    pub version: u32,
    /// What it buys.
    pub lines: Vec<LineView>,
    /// When the hold ends, while it is held or in review.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub hold_expires_at: Option<String>,
    /// When the review ends by itself, while it is in review; null where a person must decide.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub review_ends_at: Option<String>,
    /// What must be paid.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<MoneyView>, required = true))]
    pub amount_due: Option<Money>,
    /// Money that must go back.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub refund_due: Option<RefundDueView>,
    /// Payments noticed.
    pub payments: Vec<PaymentView>,
    /// Where it stands in the queue, while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueView>,
    /// What its buyer keeps while it is queued by a cache: `GET /v1/orders/{id}?ticket=…` says on any node what
    /// became of it, also after the cache is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// When it was placed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: String,
    /// When it last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: String,
    /// The client's own JSON object, as sent.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>, required = true))]
    pub metadata: Option<RawJson>,
}

/// Where an order stands in the queue. For display: it is as old as a quarter of a second, and more for a very
/// long queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// Its place, from 1.
    pub position: u64,
    /// How long it may still wait, by the pace of late; at most to the end of its queue time.
    pub estimated_wait_ms: u64,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LineView {
    /// Its number, from 1.
    pub line: u32,
    /// What is bought.
    pub sku: String,
    /// The location that was named, or the one that the line is from by the campaign's location order; null if it
    /// is from several, or none is chosen yet.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub location: Option<String>,
    /// How many units.
    pub quantity: u32,
    /// How many of them were refunded.
    pub refunded_quantity: u32,
    /// What one unit of it is made of, if it is a bundle: as it was when the order was placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<ComponentView>>,
    /// Which stock it holds or bought.
    pub allocations: Vec<AllocationView>,
}

/// Which stock a line holds or bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AllocationView {
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub pool_id: String,
    /// The bucket's number there.
    pub bucket: u32,
    /// Units that it stands for; restocked ones are gone.
    pub quantity: u64,
    /// Of which SKU they are, where the line is a bundle or had a choice of locations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
    /// Where they are, on such a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// Money that must go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundDueView {
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: String,
    /// Which payments.
    pub payments: Vec<RefundDuePaymentView>,
}

/// A payment that must go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundDuePaymentView {
    /// The provider's payment.
    pub payment_id: String,
    /// How much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_minor: Option<i64>,
    /// In which currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// A payment notice that the order keeps as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentView {
    /// Who said it.
    pub provider: String,
    /// The provider's payment.
    pub payment_id: String,
    /// The provider's event.
    pub event_id: String,
    /// The attempt concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub attempt_id: Option<String>,
    /// `succeeded` or `failed`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub outcome: Word,
    /// How much was paid.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub amount_minor: Option<i64>,
    /// In which currency.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub currency: Option<String>,
    /// When, by the provider.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub paid_at: Option<String>,
    /// When the authority decided on it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub received_at: String,
    /// What became of it.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub disposition: Word,
}

/// What became of a payment notice.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotificationView {
    /// `applied`, `duplicate`, `retaken`, `parked`, `refund_due`, `review` or `ignored`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub disposition: Word,
    /// The order as it stands now.
    pub order: OrderView,
}

/// The answers to a batch of orders, in its order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchView {
    /// One an order.
    pub results: Vec<BatchResult>,
}

/// The answer to one order of a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchResult {
    /// The status that the order would have got alone.
    pub status: u16,
    /// The order, if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderView>,
    /// The problem, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// One change of one bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerEntryView {
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub pool_id: String,
    /// The bucket's number there.
    pub bucket: u32,
    /// The entry's number there, from 1.
    pub seq: u64,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: String,
    /// The order concerned.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid", required = true))]
    pub order_id: Option<String>,
    /// The business key.
    pub business_no: String,
    /// What happened.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub action: Word,
    /// Change of available.
    pub delta_available: i64,
    /// Change of held.
    pub delta_held: i64,
    /// Change of sold.
    pub delta_sold: i64,
    /// Cached units that it settles.
    pub settled: u64,
    /// The order's state before.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = true))]
    pub from_state: Option<Word>,
    /// The order's state after.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = true))]
    pub to_state: Option<Word>,
    /// The command's own key, or where it came from.
    pub source: String,
    /// Who did it.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// `/livez` and `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HealthView {
    /// `ok`, or why not.
    pub status: String,
}
