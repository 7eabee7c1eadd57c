//! Rows of the SQL stores. Their tables have the same names and columns, so one codec reads both; only how a
//! column comes out of a driver differs. The JSON inside a row belongs here; the public JSON is elsewhere.

mod approvals;
mod assortment;
mod codec;
mod detail;
mod evidence;
mod files;
mod limits;
mod reconcile;
mod sinks;

pub use approvals::{approval, write_proposal};
pub use assortment::write_assortment;
pub use codec::*;
pub use detail::{write_detail, write_lines};
pub use evidence::{action_sum, owner, position_at};
pub use files::{imported, since};
pub use limits::{write_keys, write_limits};
pub use reconcile::{bucket_head, discrepancy, odd_pool, range, run, sums, write_found, write_proof};
pub use sinks::{
    Lagging, dated_entry, dead_letter, delivery, lagging, sink, sink_name, write_secrets, write_settings,
};

use crate::error::Error;

/// A row as a driver gives it, read by the names of its columns. A column that is not there or of another
/// type is [`Error::Corrupt`].
pub trait Row {
    /// A text.
    fn text(&self, column: &str) -> Result<Option<&str>, Error>;
    /// A whole number.
    fn integer(&self, column: &str) -> Result<Option<i64>, Error>;
    /// Yes or no.
    fn flag(&self, column: &str) -> Result<bool, Error>;
    /// An id that Holdfast made.
    fn id(&self, column: &str) -> Result<Option<u128>, Error>;
    /// Bytes.
    fn bytes(&self, column: &str) -> Result<Option<&[u8]>, Error>;
}

/// A row that does not say what it must.
pub fn corrupt(what: impl std::fmt::Display) -> Error {
    Error::Corrupt(what.to_string())
}

/// A count as stored; all counts are bounded far below the end of an `i64`.
pub fn integer(count: u64) -> Result<i64, Error> {
    i64::try_from(count).map_err(|_| Error::Data(format!("{count} is out of range")))
}
