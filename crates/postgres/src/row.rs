//! How columns come out of the driver.

use holdfast_store::Error;
use holdfast_store::rows::{self, corrupt};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

/// A row of the driver, read by the names of its columns.
struct Columns<'r>(&'r Row);

impl<'r> Columns<'r> {
    fn get<T: FromSql<'r>>(&self, column: &str) -> Result<T, Error> {
        self.0.try_get(column).map_err(|error| corrupt(format_args!("column {column}: {error}")))
    }
}

impl rows::Row for Columns<'_> {
    fn text(&self, column: &str) -> Result<Option<&str>, Error> {
        self.get(column)
    }

    fn integer(&self, column: &str) -> Result<Option<i64>, Error> {
        let is_short = self.0.columns().iter().any(|c| c.name() == column && *c.type_() == Type::INT4);
        if is_short { Ok(self.get::<Option<i32>>(column)?.map(i64::from)) } else { self.get(column) }
    }

    fn flag(&self, column: &str) -> Result<bool, Error> {
        self.get(column)
    }

    fn id(&self, column: &str) -> Result<Option<u128>, Error> {
        Ok(self.get::<Option<Uuid>>(column)?.map(|id| id.as_u128()))
    }

    fn bytes(&self, column: &str) -> Result<Option<&[u8]>, Error> {
        self.get(column)
    }
}

/// Reads every row.
pub(crate) fn all<T>(
    found: &[Row],
    read: impl Fn(&dyn rows::Row) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    found.iter().map(|row| read(&Columns(row))).collect()
}

/// Reads the first row, if there is one.
pub(crate) fn first<T>(
    found: &[Row],
    read: impl Fn(&dyn rows::Row) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    found.first().map(|row| read(&Columns(row))).transpose()
}

/// An id as stored.
pub(crate) const fn uuid(id: u128) -> Uuid {
    Uuid::from_u128(id)
}
