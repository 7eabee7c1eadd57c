//! What can go wrong between a request and its answer.

use holdfast_wire::{Code, Problem};

/// Why there is no answer of the expected kind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused, with a problem. Boxed: it may carry a whole order.
    #[error("{} {}: {}", .0.status, .0.code, .0.detail)]
    Problem(Box<Problem>),
    /// The server was not reached, or its answer was lost, after every attempt.
    #[error("{address} does not answer{}", if *.maybe_done { " (the request may have been done)" } else { "" })]
    Transport {
        /// Where the request went.
        address: String,
        /// Whether any attempt may have reached the server.
        maybe_done: bool,
        /// The last attempt's failure.
        #[source]
        source: reqwest::Error,
    },
    /// The answer is not one of Holdfast's: too long, no JSON, another status than the contract knows.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
    /// The address or the key cannot be used at all.
    #[error("{0}")]
    Configuration(String),
}

impl Error {
    /// The problem's code, if it is a problem that this version knows.
    pub fn code(&self) -> Option<Code> {
        self.problem().and_then(Problem::known_code)
    }

    /// The problem, if the server sent one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            Self::Transport { .. } | Self::Unexpected(_) | Self::Configuration(_) => None,
        }
    }

    /// Whether the write may have happened although there was no answer that says so.
    pub fn outcome_is_unknown(&self) -> bool {
        match self {
            Self::Problem(problem) => problem.known_code() == Some(Code::OutcomeUnknown),
            Self::Transport { maybe_done, .. } => *maybe_done,
            Self::Unexpected(_) => true,
            Self::Configuration(_) => false,
        }
    }
}
