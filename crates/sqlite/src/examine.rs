//! What can be told of a database file without trusting it.

use std::path::{Path, PathBuf};

use holdfast_core::id::CaseId;
use holdfast_core::time::Timestamp;
use holdfast_store::{Error, Schema, rows};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};

use crate::backup::quick_check;
use crate::error::Driver;
use crate::load::many;
use crate::{lock, migrate, reader};

/// What stands in a database file and beside it.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The pragma, as the file has it.
    pub journal_mode: String,
    /// The pragma of a connection that sets nothing; the server sets FULL and checks that it is.
    pub synchronous: i64,
    /// What SQLite's own check complains about; empty if the file is sound.
    pub complaints: Vec<String>,
    /// The file's schema and what this binary makes of it.
    pub schema: Schema,
    /// The time of the last ledger entry.
    pub last_ledger_at: Option<Timestamp>,
    /// Open cases that stop all sales.
    pub halting_cases: Vec<CaseId>,
    /// Whether a server has it open.
    pub served: bool,
}

/// The version of SQLite in this binary.
pub fn sqlite_version() -> (&'static str, bool) {
    (rusqlite::version(), rusqlite::version_number() >= crate::store::SQLITE_VERSION_MIN)
}

/// The names of the files that belong to a database: itself, its log, its index, its lock.
pub fn files_of(database: &Path) -> Vec<PathBuf> {
    let beside = |suffix: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    vec![database.to_owned(), beside("-wal"), beside("-shm"), lock::path_of(database)]
}

/// Examines a file, beside a running server or without one. Changes nothing.
pub fn examine_file(database: &Path) -> Result<Examined, Error> {
    let db = reader::open(database)?;
    let journal_mode: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0)).store()?;
    let synchronous = db.pragma_query_value(None, "synchronous", |row| row.get(0)).store()?;
    let complaints = quick_check(&db)?;
    let schema = migrate::schema_of(&db)?;
    let last: Option<i64> = if has_table(&db, "bucket")? {
        db.query_row("SELECT max(last_at) FROM bucket", [], |row| row.get(0)).store()?
    } else {
        None
    };
    let sql = "SELECT id FROM cases WHERE state = 'open' AND kind = 'incarnation'";
    let halting_cases = if has_table(&db, "cases")? {
        many(&db, sql, [], |row| rows::number_id(row, "id").map(CaseId))?
    } else {
        Vec::new()
    };
    Ok(Examined {
        journal_mode,
        synchronous,
        complaints,
        schema,
        last_ledger_at: last.map(Timestamp),
        halting_cases,
        served: is_served(database),
    })
}

pub(crate) fn has_table(db: &Connection, name: &str) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
    db.query_row(sql, [name], |row| row.get(0)).store()
}

/// Whether a server holds the lock. It is looked at and not made.
fn is_served(database: &Path) -> bool {
    let Ok(file) = std::fs::File::open(lock::path_of(database)) else { return false };
    // A shared lock is let go when the file is closed, at the end of this line of sight.
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}
