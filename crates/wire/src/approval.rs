//! Work of operators that waits for a second person.

use serde::{Deserialize, Serialize};

use crate::Word;

/// A request for a second person's agreement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalView {
    /// Its id: the kind of work and that work's own key.
    pub approval_id: String,
    /// `pending_approval`, `approved` (and done), `rejected` or `expired`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word,
    /// What is to be done: `adjustment`, `transfer`, `confirm`, `release`, `extend`, `reduce`, `refund`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub work: Word,
    /// The campaign whose policy asks for it.
    pub campaign_id: String,
    /// The pool concerned; of a transfer the one that gives.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub pool_id: Option<String>,
    /// The order concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub order_id: Option<String>,
    /// How many units are concerned.
    pub units: u64,
    /// What exactly, for people.
    pub detail: String,
    /// Who asked.
    pub operator: String,
    /// Why.
    pub reason: String,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub asked_at: String,
    /// Until when it may be decided.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: String,
    /// What was decided.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub decision: Option<DecisionView>,
}

/// What a second person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecisionView {
    /// `approve` or `reject`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub verdict: Word,
    /// Who.
    pub operator: String,
    /// Why.
    pub reason: String,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: String,
}
