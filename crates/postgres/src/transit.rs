//! Rows from another store, all in one transaction, read again before it is committed.

use std::pin::pin;

use bytes::Bytes;
use futures_util::{SinkExt, TryStreamExt};
use holdfast_core::id::Incarnation;
use holdfast_store::{Cell, Digest, Error, OWN_TABLES};
use tokio::sync::mpsc;
use tokio_postgres::types::Type;

use crate::address::Address;
use crate::connection::{Connection, Mode, Timeouts};
use crate::error::{Driver, Fault};
use crate::row::{all, uuid};
use crate::store::{Options, PostgresStore};
use crate::tls;

/// What a column's values look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Truth,
    Text,
    Bytes,
    Uuid,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    kind: Kind,
}

/// A database that is being filled.
pub struct Target {
    connection: Connection,
}

impl Target {
    /// Makes the schema, begins, and keeps servers from starting meanwhile. Refuses a database that holds anything.
    pub async fn begin(address: &Address) -> Result<Self, Error> {
        drop(PostgresStore::open(address, Options::default()).await?);
        let tls = tls::connector(&address.trust)?;
        let connection = Connection::open(address, tls, Timeouts::default()).await?;
        connection.begin(Mode::Write).await.store()?;
        let target = Self { connection };
        let patient = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; \
                       SET LOCAL enable_seqscan = on";
        target.connection.run(patient).await.map_err(Fault::into_error)?;
        let lock = "SELECT only_row FROM migration_lock FOR UPDATE";
        target.connection.rows_typed(lock, &[], &[]).await.store()?;
        // A new database has made one of its own; hashes of keys that orders carry go with the old one's.
        target.connection.run("DELETE FROM limit_salt").await.map_err(Fault::into_error)?;
        for table in target.tables().await? {
            let sql = format!("SELECT 1 AS one FROM {table} LIMIT 1");
            if !target.connection.rows_typed(&sql, &[], &[]).await.store()?.is_empty() {
                return Err(Error::Unavailable(format!(
                    "the target is not empty: there are rows in {table}; name a new database"
                )));
            }
        }
        Ok(target)
    }

    /// The tables that hold something: those that others refer to first, then in order of their names.
    pub async fn tables(&self) -> Result<Vec<String>, Error> {
        let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() \
                   AND table_type = 'BASE TABLE' ORDER BY table_name <> 'campaign', table_name";
        let found = self.connection.rows_typed(sql, &[], &[]).await.store()?;
        let names = all(&found, |row| Ok(row.text("table_name")?.unwrap_or_default().to_owned()))?;
        Ok(names.into_iter().filter(|name| !OWN_TABLES.contains(&name.as_str())).collect())
    }

    /// The columns of a table.
    pub async fn columns(&self, table: &str) -> Result<Vec<Column>, Error> {
        let sql = "SELECT column_name, data_type FROM information_schema.columns \
                   WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position";
        let found = self.connection.rows_typed(sql, &[&table], &[Type::TEXT]).await.store()?;
        all(&found, |row| {
            let kind = match row.text("data_type")?.unwrap_or_default() {
                "bigint" | "integer" => Kind::Number,
                "boolean" => Kind::Truth,
                "text" => Kind::Text,
                "bytea" => Kind::Bytes,
                "uuid" => Kind::Uuid,
                other => return Err(Error::Corrupt(format!("a column of type {other}"))),
            };
            Ok(Column { name: row.text("column_name")?.unwrap_or_default().to_owned(), kind })
        })
    }

    /// Takes rows, as [`line`] writes them, until there are no more.
    pub async fn take(
        &self,
        table: &str,
        columns: &[Column],
        rows: &mut mpsc::Receiver<Bytes>,
    ) -> Result<(), Error> {
        let sql = format!("COPY {table} ({}) FROM STDIN", names(columns));
        let sink = self.connection.client().copy_in::<_, Bytes>(&sql).await.store()?;
        let mut sink = pin!(sink);
        while let Some(lines) = rows.recv().await {
            sink.send(lines).await.store()?;
        }
        sink.finish().await.store()?;
        Ok(())
    }

    /// Reads a table again.
    pub async fn digest(&self, table: &str, columns: &[Column]) -> Result<Digest, Error> {
        let sql = format!("COPY (SELECT {} FROM {table}) TO STDOUT", names(columns));
        let stream = self.connection.client().copy_out(&sql).await.store()?;
        let mut stream = pin!(stream);
        let (mut digest, mut rest) = (Digest::default(), Vec::new());
        while let Some(piece) = stream.try_next().await.store()? {
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                digest.add(&line);
            }
        }
        Ok(digest)
    }

    /// Makes it the same authority, and commits.
    pub async fn finish(self, incarnation: Incarnation, starts: i64) -> Result<(), Error> {
        // A cache is of the authority that it took from: none moves with it.
        let closed = "UPDATE cache_bucket SET state = 'closed'";
        self.connection.rows_typed(closed, &[], &[]).await.store()?;
        let sql = "UPDATE authority SET incarnation = $1, starts = starts + $2, \
                   acts = (SELECT coalesce(max(id), 0) FROM operator_action), catalog_version = greatest(\
                   catalog_version, (SELECT coalesce(max(catalog_version), 0) FROM campaign), \
                   (SELECT coalesce(max(catalog_version), 0) FROM pool), \
                   (SELECT coalesce(max(catalog_version), 0) FROM cache_bucket))";
        let types = [Type::UUID, Type::INT8];
        self.connection.rows_typed(sql, &[&uuid(incarnation.0), &starts], &types).await.store()?;
        self.connection.commit().await.store()
    }

    /// Ends without having changed anything but the schema.
    pub async fn give_up(self) {
        self.connection.rollback().await;
    }
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Writes a row as a line of the text form of COPY, exactly as the server writes it too.
pub fn line(columns: &[Column], cells: &[Cell], out: &mut Vec<u8>) -> Result<(), Error> {
    for (place, (column, cell)) in columns.iter().zip(cells).enumerate() {
        if place > 0 {
            out.push(b'\t');
        }
        match (column.kind, cell) {
            (_, Cell::Null) => out.extend_from_slice(b"\\N"),
            (Kind::Number, Cell::Integer(number)) => out.extend_from_slice(number.to_string().as_bytes()),
            (Kind::Truth, Cell::Integer(0)) => out.push(b'f'),
            (Kind::Truth, Cell::Integer(1)) => out.push(b't'),
            (Kind::Text, Cell::Text(text)) => text.bytes().for_each(|byte| escaped(byte, out)),
            (Kind::Bytes, Cell::Bytes(bytes)) => {
                out.extend_from_slice(b"\\\\x");
                bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes()));
            }
            (Kind::Uuid, Cell::Bytes(bytes)) => {
                let id = uuid::Uuid::from_slice(bytes)
                    .map_err(|_| Error::Corrupt("an id of a wrong length".into()))?;
                out.extend_from_slice(id.to_string().as_bytes());
            }
            (kind, cell) => {
                return Err(Error::Corrupt(format!("{cell:?} in the column {} ({kind:?})", column.name)));
            }
        }
    }
    out.push(b'\n');
    Ok(())
}

fn escaped(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0b => b'v',
        0x0c => b'f',
        plain => return out.push(plain),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_the_server_writes() {
        let columns = [
            ("a", Kind::Number),
            ("b", Kind::Truth),
            ("c", Kind::Text),
            ("d", Kind::Bytes),
            ("e", Kind::Uuid),
            ("f", Kind::Text),
        ]
        .map(|(name, kind)| Column { name: name.into(), kind });
        let cells = [
            Cell::Integer(-7),
            Cell::Integer(1),
            Cell::Text("a\\b\n\té".into()),
            Cell::Bytes(vec![0, 255]),
            Cell::Bytes(vec![1; 16]),
            Cell::Null,
        ];
        let mut out = Vec::new();
        line(&columns, &cells, &mut out).unwrap();
        let wanted = "-7\tt\ta\\\\b\\n\\té\t\\\\x00ff\t01010101-0101-0101-0101-010101010101\t\\N\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
