//! What the server shows. Times are RFC 3339 UTC with milliseconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::request::Money;
use crate::{RawJson, Word};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; none: this was the last.
    pub next_cursor: Option<String>,
}

/// An order as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderView {
    /// Its id.
    pub id: String,
    /// The client's number of it, per campaign.
    pub order_no: String,
    /// The campaign.
    pub campaign_id: String,
    /// Whose it is.
    pub account: String,
    /// `queued`, `held`, `in_review`, `sold`, `refunded`, `released` or `failed`.
    pub state: Word,
    /// Why it stands there.
    pub reason: Option<Word>,
    /// How often it changed; 1 when new.
    pub version: u32,
    /// What it buys.
    pub lines: Vec<LineView>,
    /// When the hold ends, while it is held or in review.
    pub hold_expires_at: Option<String>,
    /// What must be paid.
    pub amount_due: Option<Money>,
    /// Money that must go back.
    pub refund_due: Option<RefundDueView>,
    /// Payments noticed.
    pub payments: Vec<PaymentView>,
    /// When it was placed.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// The client's own JSON object, as sent.
    pub metadata: Option<RawJson>,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineView {
    /// Its number, from 1.
    pub line: u32,
    /// What is bought.
    pub sku: String,
    /// Where from.
    pub location: String,
    /// How many units.
    pub quantity: u32,
    /// How many of them were refunded.
    pub refunded_quantity: u32,
    /// Which stock it holds or bought.
    pub allocations: Vec<AllocationView>,
}

/// Which stock a line holds or bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationView {
    /// The pool.
    pub pool_id: String,
    /// The bucket's number there.
    pub bucket: u32,
    /// Units that it stands for; restocked ones are gone.
    pub quantity: u64,
}

/// Money that must go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundDueView {
    /// Since when.
    pub since: String,
    /// Which payments.
    pub payments: Vec<RefundDuePaymentView>,
}

/// A payment that must go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct PaymentView {
    /// Who said it.
    pub provider: String,
    /// The provider's payment.
    pub payment_id: String,
    /// The provider's event.
    pub event_id: String,
    /// The attempt concerned.
    pub attempt_id: Option<String>,
    /// `succeeded` or `failed`.
    pub outcome: Word,
    /// How much was paid.
    pub amount_minor: Option<i64>,
    /// In which currency.
    pub currency: Option<String>,
    /// When, by the provider.
    pub paid_at: Option<String>,
    /// When the authority decided on it.
    pub received_at: String,
    /// What became of it.
    pub disposition: Word,
}

/// A campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignView {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// When it begins.
    pub starts_at: Option<String>,
    /// When it ends.
    pub ends_at: Option<String>,
    /// `draft`, `scheduled`, `open`, `paused`, `frozen` or `closed`.
    pub state: Word,
    /// What it means.
    pub policy: PolicyView,
    /// The sums of its pools.
    pub totals: TotalsView,
    /// When it was made.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: String,
}

/// The sums of a campaign's pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalsView {
    /// How many pools.
    pub pools: u64,
    /// All units.
    pub supply: u64,
    /// Units that can be taken.
    pub available: u64,
    /// Units held.
    pub held: u64,
    /// Units sold.
    pub sold: u64,
}

/// A campaign's policy, every field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyView {
    /// How long a hold lasts.
    pub hold_seconds: u64,
    /// How long a hold may last at most, extensions included.
    pub hold_seconds_max: u64,
    /// By how much a begun payment extends the hold, once.
    pub payment_extension_seconds: u64,
    /// Skew allowed after the end of a hold before its release.
    pub release_grace_ms: u64,
    /// How long a notice may travel, with `deadline_basis` `provider_paid_at`.
    pub notice_grace_seconds: u64,
    /// `hold` or `immediate`.
    pub capture: Word,
    /// `received_at` or `provider_paid_at`.
    pub deadline_basis: Word,
    /// `retake_else_refund`, `refund` or `review`.
    pub late_payment: Word,
    /// `keep` or `release`.
    pub payment_failed: Word,
    /// How long an order in review waits.
    pub review_seconds: u64,
    /// `release` or `person`.
    pub review_end: Word,
    /// Whether a refund puts stock back when the request does not say.
    pub restock_on_refund: bool,
    /// Most units an account may hold and buy.
    pub account_limit: Option<u64>,
    /// Most orders an account may hold open.
    pub account_open_holds: Option<u64>,
    /// Limits of other named keys.
    pub key_limits: BTreeMap<String, u64>,
    /// Orders a second and account.
    pub order_rate_per_account: Option<u64>,
    /// Orders a second.
    pub order_rate: Option<u64>,
    /// Most orders that wait.
    pub queue_limit: u64,
    /// How long an order may wait.
    pub queue_wait_ms: u64,
    /// From which size on an adjustment wants a second operator.
    pub approval_threshold: Option<u64>,
}

/// A pool with its buckets, exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolView {
    /// Its id.
    pub id: String,
    /// The campaign.
    pub campaign_id: String,
    /// What is sold.
    pub sku: String,
    /// Where it is.
    pub location: String,
    /// How orders reach the authority.
    pub path: Word,
    /// Which bucket an order tries first.
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
    /// Its buckets, ascending.
    pub buckets: Vec<BucketView>,
}

/// A bucket of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct AvailabilityView {
    /// Units that could be taken.
    pub available: u64,
    /// Whether there are any.
    pub in_stock: bool,
    /// When that was read.
    pub as_of: String,
    /// How old it is.
    pub age_ms: u64,
    /// Where it comes from.
    pub source: Word,
}

/// What became of an adjustment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdjustmentView {
    /// The business key.
    pub adjustment_id: String,
    /// `applied`.
    pub state: Word,
    /// The pool after it.
    pub pool: PoolView,
}

/// What became of a payment notice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotificationView {
    /// `applied`, `duplicate`, `retaken`, `parked`, `refund_due`, `review` or `ignored`.
    pub disposition: Word,
    /// The order as it stands now.
    pub order: OrderView,
}

/// The answers to a batch of orders, in its order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BatchView {
    /// One an order.
    pub results: Vec<BatchResult>,
}

/// The answer to one order of a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
pub struct LedgerEntryView {
    /// The pool.
    pub pool_id: String,
    /// The bucket's number there.
    pub bucket: u32,
    /// The entry's number there, from 1.
    pub seq: u64,
    /// When.
    pub at: String,
    /// The order concerned.
    pub order_id: Option<String>,
    /// The business key.
    pub business_no: String,
    /// What happened.
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
    pub from_state: Option<Word>,
    /// The order's state after.
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
pub struct HealthView {
    /// `ok`, or why not.
    pub status: String,
}
