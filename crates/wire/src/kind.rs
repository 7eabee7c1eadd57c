//! What `/problems/{code}` says about a kind of problem.

use serde::{Deserialize, Serialize};

use crate::Word;

/// A text in both languages of the documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BilingualView {
    /// English.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub en: Word,
    /// Chinese.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub zh: Word,
}

/// A kind of problem, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProblemKindView {
    /// The address of the kind.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub problem_type: Word,
    /// The kind as a word for programs.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Word,
    /// The HTTP status.
    pub status: u16,
    /// The kind in a few words.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub title: Word,
    /// What it means.
    pub meaning: BilingualView,
    /// Whether the authority keeps the answer: `no`, `yes`, `either` (the answer says it) or `unknown`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub recorded: Word,
    /// Whether the same request may succeed later, unless the answer itself is recorded.
    pub retryable: bool,
    /// When to ask again: `never`, `corrected`, `soon` or `when_changed`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub retry: Word,
    /// The same in a sentence.
    pub wait: BilingualView,
    /// Which key to use then: `same`, `new`, `by_recorded` or `unneeded`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: Word,
    /// What to show the buyer.
    pub buyer: BilingualView,
}
