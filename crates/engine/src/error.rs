//! Why the engine did not answer. Refusals are no errors: they are outcomes.

use holdfast_metrics::Failure;

/// Why the engine did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A queue is full or too old. Nothing was done; try again later with the same key.
    #[error("overloaded")]
    Overloaded,
    /// More orders a second than the campaign's policy lets in. Nothing was done.
    #[error("too many orders a second")]
    RateLimited {
        /// When the next one is let in.
        retry_after: std::time::Duration,
    },
    /// The cache of a pool that wants it cannot be used now, or cannot say yet what became of an order.
    #[error("the cache is not ready")]
    CacheNotReady,
    /// The server is going down. Nothing was done.
    #[error("shutting down")]
    ShuttingDown,
    /// The deadline passed before the answer; whether it was done is unknown.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] holdfast_store::Error),
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        match error {
            Error::Overloaded => Self::Overloaded,
            Error::RateLimited { .. } => Self::RateLimited,
            Error::CacheNotReady => Self::CacheNotReady,
            Error::ShuttingDown => Self::ShuttingDown,
            Error::OutcomeUnknown | Error::Store(holdfast_store::Error::OutcomeUnknown(_)) => {
                Self::OutcomeUnknown
            }
            Error::Store(holdfast_store::Error::Conflict(_)) => Self::Conflict,
            Error::Store(holdfast_store::Error::Data(_)) => Self::Data,
            Error::Store(holdfast_store::Error::Unavailable(_)) => Self::Unavailable,
            Error::Store(holdfast_store::Error::StorageFull) => Self::StorageFull,
            Error::Store(holdfast_store::Error::Timeout) => Self::Timeout,
            Error::Store(holdfast_store::Error::Corrupt(_)) => Self::Corrupt,
        }
    }
}
