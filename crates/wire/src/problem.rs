//! Problems: the one form of every answer with a status of 400 or more.

use serde::{Deserialize, Serialize};

use crate::Word;
use crate::code::Code;
use crate::view::OrderView;

/// The media type of a [`Problem`].
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// A problem after RFC 9457.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The address of the kind of problem.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub problem_type: Word,
    /// The kind in a few words.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub title: Word,
    /// The HTTP status.
    pub status: u16,
    /// The kind as a word for programs; see [`Code`].
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Word,
    /// This occurrence, for people.
    pub detail: String,
    /// The request's id, for the log.
    #[serde(default)]
    pub request_id: String,
    /// Whether the authority keeps this answer for the key; none: unknown, ask again with the same key.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub recorded: Option<bool>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// When to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The order concerned, as it stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OrderView>))]
    pub order: Option<Box<OrderView>>,
    /// What is wrong, place by place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemItem>,
}

impl Problem {
    /// The code as this version knows it; none if it is newer.
    pub fn known_code(&self) -> Option<Code> {
        Code::parse(&self.code)
    }
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProblemItem {
    /// Where: a JSON pointer into the body, or `/query/<name>`.
    pub pointer: String,
    /// What, as a word for programs.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Word,
    /// What, for people.
    pub detail: String,
    /// Units asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
    /// Units that there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<u64>,
    /// The line of the file, from 1, where the request is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What is wrong with the file there, more exactly than `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub fault: Option<Word>,
}
