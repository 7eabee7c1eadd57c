//! Rows for another store, as they stand in the file.

use std::path::Path;

use holdfast_store::{Cell, Error, OWN_TABLES};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Transaction};

use crate::error::Driver;
use crate::reader;

/// A database file, open to be read whole. The caller sees to it that nobody writes meanwhile.
pub struct Source {
    connection: Connection,
}

impl Source {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { connection: reader::open(path)? })
    }

    /// Reads in one view.
    pub fn view(&mut self) -> Result<View<'_>, Error> {
        Ok(View { transaction: self.connection.transaction().store()? })
    }
}

/// The rows at one moment.
pub struct View<'s> {
    transaction: Transaction<'s>,
}

impl View<'_> {
    /// The tables that hold something, in order of their names.
    pub fn tables(&self) -> Result<Vec<String>, Error> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
                   ORDER BY name";
        let mut statement = self.transaction.prepare(sql).store()?;
        let names = statement.query_map([], |row| row.get::<_, String>(0)).store()?;
        let names = names.collect::<Result<Vec<_>, _>>().store()?;
        Ok(names.into_iter().filter(|name| !OWN_TABLES.contains(&name.as_str())).collect())
    }

    /// How often a server has started on it.
    pub fn starts(&self) -> Result<i64, Error> {
        self.transaction.query_row("SELECT starts FROM authority", [], |row| row.get(0)).store()
    }

    /// Gives every row of a table, with these columns.
    pub fn rows(
        &self,
        table: &str,
        columns: &[String],
        each: impl FnMut(&[Cell]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        rows_of(&self.transaction, table, columns, None, each)
    }
}

/// Gives the rows of a table, all or those of a condition with its one parameter.
pub(crate) fn rows_of(
    db: &Connection,
    table: &str,
    columns: &[String],
    of: Option<(&str, &str)>,
    mut each: impl FnMut(&[Cell]) -> Result<(), Error>,
) -> Result<(), Error> {
    let names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
    let mut sql = format!("SELECT {} FROM {}", names.join(", "), quoted(table));
    if let Some((condition, _)) = of {
        sql.push_str(&format!(" WHERE {condition}"));
    }
    let mut statement = db.prepare(&sql).store()?;
    let mut rows = match of {
        Some((_, value)) => statement.query([value]),
        None => statement.query([]),
    }
    .store()?;
    let mut cells = Vec::with_capacity(columns.len());
    while let Some(row) = rows.next().store()? {
        cells.clear();
        for column in 0..columns.len() {
            cells.push(cell(row.get_ref(column).store()?)?);
        }
        each(&cells)?;
    }
    Ok(())
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn cell(value: ValueRef<'_>) -> Result<Cell, Error> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Text(text) => Cell::Text(
            std::str::from_utf8(text).map_err(|_| Error::Corrupt("text that is no UTF-8".into()))?.to_owned(),
        ),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(Error::Corrupt("a number that is no integer".into())),
    })
}
