//! Campaigns, as they are shown and closed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Word;
use crate::assortment::AssortmentView;
use crate::request::KeyLimits;

/// `POST /v1/campaigns/{id}/close`: ends the sale for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CloseRequest {
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
    /// The pool, of another campaign that is not closed, into which stock goes that is not sold, or comes back later.
    /// Absent: it stays where it is.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsold_to: Option<String>,
}

/// A campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CampaignView {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// When it begins.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub starts_at: Option<String>,
    /// When it ends.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub ends_at: Option<String>,
    /// `draft`, `scheduled`, `open`, `paused`, `frozen` or `closed`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word,
    /// What it means.
    pub policy: PolicyView,
    /// The sums of its pools.
    pub totals: TotalsView,
    /// The pool into which stock goes that was not sold when it was closed, or comes back later.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub unsold_to: Option<String>,
    /// What it offers besides its pools; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assortment: Option<AssortmentView>,
    /// What the node has made ready; only in the answer to `warm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<WarmView>,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: String,
    /// When it was last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: String,
}

/// The sums of a campaign's pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub capture: Word,
    /// `received_at` or `provider_paid_at`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub deadline_basis: Word,
    /// `retake_else_refund`, `refund` or `review`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub late_payment: Word,
    /// `keep` or `release`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub payment_failed: Word,
    /// How long an order in review waits.
    pub review_seconds: u64,
    /// `release` or `person`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub review_end: Word,
    /// Whether a refund puts stock back when the request does not say.
    pub restock_on_refund: bool,
    /// Most units an account may hold and buy.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub account_limit: Option<u64>,
    /// Most orders an account may hold open.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub account_open_holds: Option<u64>,
    /// Limits of other keys that orders carry, by name.
    pub key_limits: BTreeMap<String, KeyLimits>,
    /// Most orders of an account that a node lets in a second.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub order_rate_per_account: Option<u64>,
    /// Most orders that a node lets in a second.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub order_rate: Option<u64>,
    /// Most orders that wait.
    pub queue_limit: u64,
    /// How long an order may wait.
    pub queue_wait_ms: u64,
    /// Work of operators on more units than this wants a second person.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub approval_threshold: Option<u64>,
}

/// What a node has made ready for a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WarmView {
    /// Whether that is all of the campaign.
    pub ready: bool,
    /// Pools whose settings and stock the node knows.
    pub pools: u64,
    /// Their buckets.
    pub buckets: u64,
    /// Bundles, and SKUs without location, that are made up.
    pub offers: u64,
    /// Connections to the database that are open.
    pub connections: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}
