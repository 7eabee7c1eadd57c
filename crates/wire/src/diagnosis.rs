//! What is wrong with a sale.

use serde::{Deserialize, Serialize};

use crate::Word;

/// A figure, with what is usual for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FigureView {
    /// What, with its unit.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Word,
    /// How much.
    pub value: f64,
    /// How much at other times of the half hour; null if there is nothing to compare with.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub usual: Option<f64>,
}

/// When something began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OnsetView {
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: String,
    /// What, for people.
    pub text: String,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FindingView {
    /// `lock_queueing`, `slow_commit`, `slow_transaction`, `connections_exhausted`, `overload`, `repeated_deduct`,
    /// `client_retries`, `state_race`, `async_loss`, `holds_overdue` or `sold_out_storm`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Word,
    /// Whether somebody should do something about it.
    pub is_trouble: bool,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: String,
    /// Until when; null: it goes on.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub until: Option<String>,
    /// What, for people.
    pub text: String,
    /// The evidence.
    pub figures: Vec<FigureView>,
    /// What began when: before the locks or behind them.
    pub timeline: Vec<OnsetView>,
    /// What to do next.
    pub next_step: String,
    /// Where more is said.
    pub see: String,
}

/// What was found in the last half hour of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DiagnosisView {
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: String,
    /// Whether nothing that is wrong goes on.
    pub healthy: bool,
    /// The first sample that it stands on; null: there is none yet.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required = true))]
    pub samples_from: Option<String>,
    /// How many samples, one a second.
    pub samples: u64,
    /// What was found, the deepest cause first.
    pub findings: Vec<FindingView>,
    /// How things stand: the last minute, beside the half hour.
    pub grounds: Vec<FigureView>,
}
