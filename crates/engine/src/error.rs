//! Why the engine did not answer. Refusals are no errors: they are outcomes.

/// Why the engine did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A queue is full or too old. Nothing was done; try again later with the same key.
    #[error("overloaded")]
    Overloaded,
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
