//! The one place that knows PostgreSQL's codes.

use std::error::Error as _;

use holdfast_metrics::Conflict;
use holdfast_store::Error;
use tokio_postgres::error::SqlState;

/// What an error of the driver means.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The connection is gone, or of no more use. What was not committed is undone; what was being committed is
    /// unknown.
    Lost(Error),
    /// The server refused the statement: the transaction is undone.
    Refused(Error),
    /// Another transaction was in the way: this one is undone, and may run again.
    Raced(Conflict, String),
}

impl Fault {
    /// The error of a transaction that was not being committed.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Lost(error) | Self::Refused(error) => error,
            Self::Raced(_, text) => Error::Conflict(text),
        }
    }
}

/// Keys that another node may have written at the same time: the batch runs again and sees them.
const RACED: &[&str] = &[
    "orders_key",
    // The same order again, after a commit whose answer was lost.
    "orders_pkey",
    "account_usage_pkey",
    "key_usage_pkey",
    "payment_pkey",
    "payment_claim_pkey",
    // The same landing by another node, which locked the bucket first.
    "ledger_settled",
    // The same act by its own key, sent to two nodes at once, that locked different pools.
    "adjustment_pkey",
    "transfer_pkey",
    "approval_pkey",
    "stock_import_pkey",
    "pool_address",
    "campaign_pkey",
    "api_key_pkey",
];

/// What an error of the driver means.
pub(crate) fn of_driver(error: &tokio_postgres::Error) -> Fault {
    let Some(db) = error.as_db_error() else {
        let is_io = error.source().is_some_and(|source| source.is::<std::io::Error>());
        return if error.is_closed() || is_io {
            Fault::Lost(Error::Unavailable(chain(error)))
        } else {
            // A value that cannot be sent or read: the connection may be out of step.
            Fault::Lost(Error::Corrupt(chain(error)))
        };
    };
    let text = format!("{} {}", db.code().code(), db.message());
    let refused = match db.code() {
        &SqlState::T_R_SERIALIZATION_FAILURE => return Fault::Raced(Conflict::Serialization, text),
        &SqlState::T_R_DEADLOCK_DETECTED => return Fault::Raced(Conflict::Deadlock, text),
        &SqlState::LOCK_NOT_AVAILABLE => return Fault::Raced(Conflict::LockTimeout, text),
        &SqlState::UNIQUE_VIOLATION => match db.constraint() {
            Some(name) if RACED.contains(&name) => return Fault::Raced(Conflict::Unique, text),
            // An entry beyond the bucket's own sequence: somebody wrote beside us.
            Some("ledger_pkey") => Error::Corrupt(text),
            Some(_) | None => Error::Data(text),
        },
        &SqlState::QUERY_CANCELED => Error::Timeout,
        &SqlState::DISK_FULL => Error::StorageFull,
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => Error::Corrupt(text),
        // The schema has changed under a prepared statement, or the server has become a standby.
        &SqlState::FEATURE_NOT_SUPPORTED | &SqlState::READ_ONLY_SQL_TRANSACTION => {
            return Fault::Lost(Error::Unavailable(text));
        }
        code => match code.code().get(..2) {
            Some("22" | "23") => Error::Data(text),
            Some("08" | "25" | "57" | "58" | "XX") => return Fault::Lost(Error::Unavailable(text)),
            Some(_) | None => Error::Unavailable(text),
        },
    };
    Fault::Refused(refused)
}

/// An error with what is behind it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Shorthand for the driver's results outside of a commit.
pub(crate) trait Driver<T> {
    /// Maps the driver's error.
    fn store(self) -> Result<T, Error>;
}

impl<T> Driver<T> for Result<T, tokio_postgres::Error> {
    fn store(self) -> Result<T, Error> {
        self.map_err(|error| of_driver(&error).into_error())
    }
}
