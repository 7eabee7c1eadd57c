//! Reconciliation: runs, and the differences that they found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::words;
use crate::{RawJson, Word};

/// `POST /v1/reconciliations`: asks for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconcileRequest {
    /// How much it looks at; absent: everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::run_scope))]
    pub scope: Option<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReconciliationView {
    /// Its id.
    pub id: String,
    /// `running`, `done` or `failed`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "running"))]
    pub state: Word,
    /// `full` or `incremental`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "full"))]
    pub scope: Word,
    /// Whose key asked for it, or `reconciliation` for the node itself.
    pub asked_by: String,
    /// When it was asked for.
    pub started_at: String,
    /// When it ended; none while it is under way.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub finished_at: Option<String>,
    /// Buckets compared so far.
    pub buckets_read: u64,
    /// Ledger entries read so far.
    pub entries_read: u64,
    /// Orders compared so far.
    pub orders_read: u64,
    /// How many differences it found, by class. What was there before and still is counts again.
    pub found: BTreeMap<String, u64>,
    /// Why it failed.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub failure: Option<String>,
}

/// A difference that a run found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DiscrepancyView {
    /// Its id: the same for the same difference, however often it is found. Its case has the same.
    pub id: String,
    /// What kind it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "balance_drift"))]
    pub class: Word,
    /// The pool concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub pool_id: Option<String>,
    /// The bucket concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub bucket: Option<u32>,
    /// The order concerned.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub order_id: Option<String>,
    /// What should be; units, or a text.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub expected: RawJson,
    /// What is.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub actual: RawJson,
    /// What was seen; its fields depend on the class.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub evidence: RawJson,
    /// When it was found first.
    pub first_seen_at: String,
    /// When it was found last.
    pub last_seen_at: String,
    /// How many runs found it.
    pub cycles: u32,
    /// `repair`, `freeze` or `watch`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "freeze"))]
    pub disposition: Word,
    /// `open`, `repaired` or `resolved`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "open"))]
    pub state: Word,
}
