//! Archives: one closed campaign in a file of its own, of this store's own form, so that everything that reads a
//! database reads it too. It is read again and judged before it gets its name, and nothing is ever sold from it.

use std::path::Path;

use holdfast_core::audit::Report;
use holdfast_core::id::{CampaignId, Incarnation};
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{corrupt, number, number_id};
use holdfast_store::{CAMPAIGN_TABLES, Cell, Digest, Error};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params, params_from_iter};

use crate::backup::{Part, close};
use crate::codec::bytes;
use crate::error::Driver;
use crate::examine::has_table;
use crate::load::one;
use crate::store::beside;
use crate::transit::{quoted, rows_of};
use crate::{audit, migrate};

/// What a file is an archive of. Only archives have this table.
const MARK: &str = "CREATE TABLE archive (campaign_id TEXT NOT NULL, incarnation BLOB NOT NULL, taken_at INTEGER NOT NULL) STRICT";

/// Whether a file is an archive.
pub(crate) fn is_one(db: &Connection) -> Result<bool, Error> {
    has_table(db, "archive")
}

/// Refuses to serve from an archive.
pub(crate) fn refuse(db: &Connection) -> Result<(), Error> {
    if is_one(db)? {
        return Err(Error::Unavailable(
            "it is the archive of a campaign: it is read, and nothing is sold from it".into(),
        ));
    }
    Ok(())
}

/// A table of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedTable {
    /// Its name.
    pub name: &'static str,
    /// What its rows come to, as they were read from the authority and again from the archive.
    pub digest: Digest,
}

/// An archive that was written, read again and judged.
#[derive(Debug)]
pub struct Archived {
    /// Its tables.
    pub tables: Vec<ArchivedTable>,
    /// What the audit of the file found, which is nothing.
    pub report: Report,
    /// The size of the file.
    pub bytes: u64,
}

/// An archive in the making.
pub struct Archive {
    db: Connection,
    part: Part,
    campaign: CampaignId,
    tables: Vec<ArchivedTable>,
}

impl Archive {
    /// Begins a file that is not there yet.
    pub fn create(path: &Path, campaign: CampaignId) -> Result<Self, Error> {
        let part = Part::beside(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(&part.path, flags).store()?;
        // It is flushed once, as a whole, before it gets its name.
        db.execute_batch("PRAGMA synchronous = OFF;").store()?;
        migrate::run(&mut db)?;
        db.execute_batch("BEGIN").store()?;
        Ok(Self { db, part, campaign, tables: Vec::new() })
    }

    /// The campaign.
    pub const fn campaign(&self) -> &CampaignId {
        &self.campaign
    }

    /// Begins with a table; its columns.
    pub fn begin(&mut self, table: &'static str) -> Result<Vec<String>, Error> {
        self.tables.push(ArchivedTable { name: table, digest: Digest::default() });
        self.columns(table)
    }

    fn columns(&self, table: &str) -> Result<Vec<String>, Error> {
        let mut statement = self.db.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid").store()?;
        let names = statement.query_map([table], |row| row.get::<_, String>(0)).store()?;
        names.collect::<Result<_, _>>().store()
    }

    /// Takes a row of the table that was begun last.
    pub fn take(&mut self, columns: &[String], cells: &[Cell]) -> Result<(), Error> {
        let table = self.tables.last_mut().ok_or_else(|| corrupt("a row of no table"))?;
        table.digest.add_cells(cells);
        let names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
        let marks = vec!["?"; columns.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", quoted(table.name), names.join(", "));
        let values = cells.iter().map(|cell| match cell {
            Cell::Null => Value::Null,
            Cell::Integer(number) => Value::Integer(*number),
            Cell::Text(text) => Value::Text(text.clone()),
            Cell::Bytes(bytes) => Value::Blob(bytes.clone()),
        });
        self.db.prepare_cached(&sql).store()?.execute(params_from_iter(values)).store()?;
        Ok(())
    }

    /// Refuses what may still change, reads everything again, judges it, and gives the file its name.
    pub fn finish(self, incarnation: Incarnation, taken_at: Timestamp) -> Result<Archived, Error> {
        self.refuse_unfinished()?;
        self.db.execute_batch(MARK).store()?;
        let sql = "INSERT INTO archive (campaign_id, incarnation, taken_at) VALUES (?1, ?2, ?3)";
        let values = params![self.campaign.as_str(), bytes(incarnation.0), taken_at.0];
        self.db.execute(sql, values).store()?;
        self.db.execute("UPDATE authority SET incarnation = ?1", [bytes(incarnation.0)]).store()?;
        self.db.execute_batch("COMMIT").store()?;
        for table in &self.tables {
            let mut again = Digest::default();
            rows_of(&self.db, table.name, &self.columns(table.name)?, None, |cells| {
                again.add_cells(cells);
                Ok(())
            })?;
            if again != table.digest {
                return Err(corrupt(format_args!("the rows of {} are not those that were read", table.name)));
            }
        }
        let report = audit::audit(&self.db, None, &mut ())?;
        if let Some(breach) = report.breaches.first() {
            let code = breach.invariant.code();
            let (subject, expected, actual) = (&breach.subject, &breach.expected, &breach.actual);
            let told = format!("the campaign breaks {code}: {subject}: expected {expected}, found {actual}");
            return Err(corrupt(told));
        }
        let Self { db, part, tables, campaign: _ } = self;
        close(db)?;
        Ok(Archived { tables, report, bytes: part.place()? })
    }

    fn refuse_unfinished(&self) -> Result<(), Error> {
        let closed = one(&self.db, "SELECT closed FROM campaign", [], |row| row.flag("closed"))?;
        let refuse =
            |why: String| Err(Error::Unavailable(format!("the campaign {:?} {why}", self.campaign.as_str())));
        match closed {
            None => return refuse("does not exist".into()),
            Some(false) => return refuse("is not closed".into()),
            Some(true) => {}
        }
        let sql = "SELECT count(*) AS open FROM orders WHERE state IN ('queued', 'held', 'in_review') \
                   OR refund_due_since IS NOT NULL";
        match one(&self.db, sql, [], |row| number::<u64>(row, "open"))? {
            None | Some(0) => {}
            Some(open) => {
                return refuse(format!("has {open} orders that are not at their end, or owe money"));
            }
        }
        let sql = "SELECT count(*) AS open FROM cases WHERE state = 'open'";
        match one(&self.db, sql, [], |row| number::<u64>(row, "open"))? {
            None | Some(0) => Ok(()),
            Some(open) => refuse(format!("has {open} open cases")),
        }
    }
}

/// Fills an archive from a database file, beside a running server, or without one: in one view. Which authority it is.
pub fn archive_file(source: &Path, archive: &mut Archive) -> Result<Incarnation, Error> {
    let db = beside(source)?;
    db.execute_batch("BEGIN").store()?;
    let incarnation = |row: &dyn holdfast_store::rows::Row| number_id(row, "incarnation").map(Incarnation);
    let known = one(&db, "SELECT incarnation FROM authority", [], incarnation)?;
    let campaign = archive.campaign.as_str().to_owned();
    for (table, condition) in CAMPAIGN_TABLES {
        let columns = archive.begin(table)?;
        rows_of(&db, table, &columns, Some((condition, &campaign)), |cells| archive.take(&columns, cells))?;
    }
    db.execute_batch("ROLLBACK").store()?;
    known.ok_or_else(|| corrupt("it was never served from"))
}
