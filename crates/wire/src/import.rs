//! What became of a stock file.

use serde::{Deserialize, Serialize};

use crate::Word;

/// A stock file that was imported, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportView {
    /// The key of the file.
    pub import_id: String,
    /// The campaign.
    pub campaign_id: String,
    /// What its quantities meant: `open`, `inbound`, `count`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub mode: Word,
    /// Whether it was only judged.
    pub dry_run: bool,
    /// Whether it had been imported before; then nothing was done now.
    pub replayed: bool,
    /// How many rows it has.
    pub rows: u64,
    /// The sum of their quantities.
    pub units: u64,
    /// Pools that are new.
    pub opened: u64,
    /// Rows that changed nothing.
    pub unchanged: u64,
    /// Pools of which the supply changed.
    pub adjusted: u64,
    /// Row by row; none if it had been imported before.
    pub lines: Vec<ImportLineView>,
}

/// What one row of a stock file does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportLineView {
    /// Where it stands in the file, the header being line 1.
    pub line: u64,
    /// What.
    pub sku: String,
    /// Where.
    pub location: String,
    /// The pool; none where a dry run would open one.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub pool_id: Option<String>,
    /// What it does: `opened`, `unchanged`, `adjusted`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub outcome: Word,
    /// By how much the supply changes.
    pub delta: i64,
}
