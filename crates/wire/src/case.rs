//! Cases: what needs a person.

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::words;
use crate::{RawJson, Word};

/// Something that needs a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CaseView {
    /// Its id.
    pub id: String,
    /// What it is about: `incarnation`, `order_mismatch`, `charged_twice`, `payment_under_review`, `hold_overdue`,
    /// `poison_entry`, `ledger_ahead`, or a class of differences.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "incarnation"))]
    pub kind: Word,
    /// The pool concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub pool_id: Option<String>,
    /// The order concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub order_id: Option<String>,
    /// What is known; its fields depend on the kind.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub evidence: RawJson,
    /// The action that is suggested.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "acknowledge"))]
    pub suggested: Word,
    /// Every action that fits, the suggested first.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, example = json!(["acknowledge"])))]
    pub actions: Vec<Word>,
    /// `open` or `resolved`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "open"))]
    pub state: Word,
    /// What was decided; none while it is open.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub resolution: Option<ResolutionView>,
    /// When it was opened.
    pub opened_at: String,
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResolutionView {
    /// What.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "acknowledge"))]
    pub action: Word,
    /// Why.
    pub reason: String,
    /// Who.
    pub operator: String,
    /// When.
    pub at: String,
}

/// `POST /v1/cases/{id}/resolve`: a person decides on a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResolveCaseRequest {
    /// What is decided: one of the case's `actions`.
    #[cfg_attr(feature = "openapi", schema(schema_with = words::case_action))]
    pub action: String,
    /// Why.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: String,
    /// Who.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: String,
}
