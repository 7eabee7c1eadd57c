//! The one place that knows SQLite's codes.

use holdfast_store::Error;
use rusqlite::{ErrorCode, ffi};

/// What an error of the driver means for a batch that was not committed.
pub(crate) fn of_driver(error: &rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(code, _) = error else {
        return Error::Corrupt(error.to_string());
    };
    let text = error.to_string();
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the driver's enum is open; what is left is unavailable"
    )]
    match code.code {
        // A unique key: another writer was first. With one writer this is a bug that bisection isolates.
        ErrorCode::ConstraintViolation
        | ErrorCode::TooBig
        | ErrorCode::TypeMismatch
        | ErrorCode::ParameterOutOfRange => Error::Data(text),
        ErrorCode::DiskFull => Error::StorageFull,
        ErrorCode::OperationInterrupted => Error::Timeout,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Corrupt(text),
        _ => Error::Unavailable(text),
    }
}

/// What it means for a ledger entry. Where its place is taken, the entry stands beyond the bucket's own sequence: somebody
/// wrote beside us.
pub(crate) fn of_entry(error: &rusqlite::Error) -> Error {
    let is_taken =
        error.sqlite_error().is_some_and(|code| code.extended_code == ffi::SQLITE_CONSTRAINT_PRIMARYKEY);
    if is_taken { Error::Corrupt(error.to_string()) } else { of_driver(error) }
}

/// Whether a failed COMMIT leaves the outcome known: the transaction can still be rolled back.
pub(crate) fn commit_is_undone(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy))
}

/// Shorthand for the driver's results.
pub(crate) trait Driver<T> {
    /// Maps the driver's error.
    fn store(self) -> Result<T, Error>;
}

impl<T> Driver<T> for rusqlite::Result<T> {
    fn store(self) -> Result<T, Error> {
        self.map_err(|error| of_driver(&error))
    }
}
