//! What can go wrong with an authority. Refusals are no errors: they are outcomes.

/// Why a store did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Another transaction was in the way (serialization failure, deadlock, the same new key from
    /// another node). Nothing was written; the batch may run again, a bounded number of times.
    #[error("conflict: {0}")]
    Conflict(String),
    /// One of the batch's commands cannot be stored. Nothing was written; the batch is bisected until
    /// the culprit fails alone.
    #[error("the batch holds data that cannot be stored: {0}")]
    Data(String),
    /// The authority cannot be reached or refuses to work. Nothing was written.
    #[error("the authority is unavailable: {0}")]
    Unavailable(String),
    /// There is no space left. Nothing was written.
    #[error("the authority has no space left")]
    StorageFull,
    /// The authority did not answer in time. Nothing was written.
    #[error("the authority did not answer in time")]
    Timeout,
    /// The connection was lost at commit: whether it was written is unknown.
    #[error("the outcome is unknown: {0}")]
    OutcomeUnknown(String),
    /// What is stored contradicts itself. A person must look.
    #[error("stored data contradicts itself: {0}")]
    Corrupt(String),
}

impl Error {
    /// Whether the same batch may be tried again at once.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Conflict(_))
    }
}
