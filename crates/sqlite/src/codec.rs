//! How columns come out of the driver, and ids go in.

use holdfast_store::Error;
use holdfast_store::rows::{self, corrupt};
use rusqlite::types::ValueRef;

use crate::error::Driver;

/// A row of the driver, read by the names of its columns.
struct Columns<'r, 's>(&'r rusqlite::Row<'s>);

impl Columns<'_, '_> {
    fn value(&self, column: &str) -> Result<ValueRef<'_>, Error> {
        self.0.get_ref(column).map_err(|error| corrupt(format_args!("column {column}: {error}")))
    }
}

impl rows::Row for Columns<'_, '_> {
    fn text(&self, column: &str) -> Result<Option<&str>, Error> {
        let value = self.value(column)?;
        value.as_str_or_null().map_err(|error| corrupt(format_args!("column {column}: {error}")))
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, Error> {
        let value = self.value(column)?;
        value.as_i64_or_null().map_err(|error| corrupt(format_args!("column {column}: {error}")))
    }

    fn flag(&self, column: &str) -> Result<bool, Error> {
        match self.integer(column)? {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            other => Err(corrupt(format_args!("column {column}: {other:?} is neither 0 nor 1"))),
        }
    }

    fn id(&self, column: &str) -> Result<Option<u128>, Error> {
        let Some(bytes) = rows::Row::bytes(self, column)? else { return Ok(None) };
        let bytes = bytes.try_into().map_err(|_| corrupt(format_args!("column {column}: not 16 bytes")))?;
        Ok(Some(u128::from_be_bytes(bytes)))
    }

    fn bytes(&self, column: &str) -> Result<Option<&[u8]>, Error> {
        let value = self.value(column)?;
        value.as_blob_or_null().map_err(|error| corrupt(format_args!("column {column}: {error}")))
    }
}

/// An id as stored.
pub(crate) const fn bytes(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

/// Reads the next row, if there is one more.
pub(crate) fn next<T>(
    rows: &mut rusqlite::Rows<'_>,
    read: impl Fn(&dyn rows::Row) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    rows.next().store()?.map(|row| read(&Columns(row))).transpose()
}

/// Collects rows through a reader.
pub(crate) fn all<T>(
    mut rows: rusqlite::Rows<'_>,
    read: impl Fn(&dyn rows::Row) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    std::iter::from_fn(|| next(&mut rows, &read).transpose()).collect()
}
