//! Copies of a database from which somebody may sell again: taken beside a running server, checked, and put
//! in place whole or not at all.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use holdfast_core::id::Incarnation;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{Row, corrupt, number, number_id};
use holdfast_store::{Error, NewIncarnation};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use sha2::{Digest, Sha256};

use crate::codec::next;
use crate::error::Driver;
use crate::{audit, cases, lock, migrate, reader};

/// Pages that are copied in one step: 8 MiB, so that progress is shown and a signal is heard.
const STEP_PAGES: i32 = 1_024;

/// What a database holds, in a few numbers that two copies of it share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Which authority it is.
    pub incarnation: Incarnation,
    /// Rows of orders.
    pub orders: u64,
    /// Ledger entries.
    pub entries: u64,
    /// Buckets.
    pub buckets: u64,
    /// The sum of the last ledger positions of all buckets.
    pub positions: u64,
    /// A hash of (pool, bucket, last ledger position) of every bucket, in order.
    pub positions_sha256: [u8; 32],
    /// The time of the last ledger entry.
    pub last_ledger_at: Option<Timestamp>,
}

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// What it holds.
    pub contents: Contents,
    /// Its size.
    pub bytes: u64,
}

/// Whether a copy is checked before it is put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// SQLite's own check and the audit of every row.
    Full,
    /// Not at all.
    None,
}

/// Copies a database as it stands at one moment, beside a running server or without one. `progress` is told
/// how many of how many pages are copied.
///
/// One read snapshot spans the copy: without it, every commit of the server would start the copy anew. The
/// server's log cannot be shortened meanwhile, so it grows by what is sold in that time.
pub fn backup_file(
    database: &Path,
    target: &Path,
    check: Check,
    mut progress: impl FnMut(u64, u64),
) -> Result<Copied, Error> {
    let part = Part::beside(target)?;
    let source = reader::open(database)?;
    copy(&source, &part.path, &mut progress)?;
    if check == Check::Full {
        check_file(&part.path)?;
    }
    let contents = contents(&reader::open(&part.path)?)?;
    part.place().map(|bytes| Copied { contents, bytes })
}

/// How a database is brought back.
pub struct Restore<'a, F> {
    /// The copy.
    pub source: &'a Path,
    /// Where the database shall be; nothing may be there.
    pub target: &'a Path,
    /// Whether the copy is checked first.
    pub check: Check,
    /// Now.
    pub now: Timestamp,
    /// Makes the new incarnation from what the copy holds.
    pub begin: F,
}

/// Makes a database of a copy. It is another authority than before: what was sold after the copy was taken
/// is not in it, so it has a new incarnation, and nothing is sold until its case is resolved.
pub fn restore_file<F: FnOnce(&Contents) -> NewIncarnation>(
    restore: Restore<'_, F>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Copied, Error> {
    let Restore { source, target, check, now, begin } = restore;
    // Before the lock file is made, which would stay.
    refuse_existing(target)?;
    let _lock = lock::take(target)?;
    for suffix in ["-wal", "-shm", "-journal"] {
        // A log that belongs to another file would be played into this one.
        refuse_existing(&with_suffix(target, suffix))?;
    }
    let part = Part::beside(target)?;
    copy(&reader::open(source)?, &part.path, &mut progress)?;
    if check == Check::Full {
        check_file(&part.path)?;
    }
    let contents = contents(&reader::open(&part.path)?)?;
    let mut connection = Connection::open(&part.path).store()?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;").store()?;
    migrate::run(&mut connection)?;
    let transaction = connection.transaction().store()?;
    cases::begin_incarnation(&transaction, &begin(&contents), now)?;
    transaction.commit().store()?;
    close(connection)?;
    part.place().map(|bytes| Copied { contents, bytes })
}

/// Whether a file is sound: SQLite's own check, then the invariants from the rows.
fn check_file(path: &Path) -> Result<(), Error> {
    let db = reader::open(path)?;
    let complaints = quick_check(&db)?;
    if let Some(first) = complaints.first() {
        return Err(corrupt(format_args!("{}: {first}", path.display())));
    }
    let report = audit::audit(&db, None, &mut ())?;
    match report.breaches.first() {
        None => Ok(()),
        Some(breach) => Err(corrupt(format_args!(
            "the copy breaks {}: {}: expected {}, found {}",
            breach.invariant.code(),
            breach.subject,
            breach.expected,
            breach.actual
        ))),
    }
}

/// What SQLite's own check complains about; empty if the file is sound.
pub(crate) fn quick_check(db: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = db.prepare("PRAGMA quick_check(20)").store()?;
    let lines: Vec<String> =
        statement.query_map([], |row| row.get(0)).store()?.collect::<Result<_, _>>().store()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// What a database holds. Reads only what has been there since the first schema.
pub(crate) fn contents(db: &Connection) -> Result<Contents, Error> {
    let count = |table: &str| -> Result<u64, Error> {
        let rows: i64 =
            db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).store()?;
        u64::try_from(rows).map_err(|_| corrupt("a negative count"))
    };
    let incarnation = |row: &dyn Row| number_id(row, "incarnation").map(Incarnation);
    let incarnation = crate::load::one(db, "SELECT incarnation FROM authority", [], incarnation)?;
    let mut hash = Sha256::new();
    let (mut buckets, mut positions, mut last) = (0_u64, 0_u64, None);
    let mut statement =
        db.prepare("SELECT pool, number, ledger_seq, last_at FROM bucket ORDER BY pool, number").store()?;
    let mut found = statement.query([]).store()?;
    let read = |row: &dyn Row| {
        let (bucket, seq): (u32, u64) = (number(row, "number")?, number(row, "ledger_seq")?);
        Ok((number_id(row, "pool")?, bucket, seq, Timestamp(number(row, "last_at")?)))
    };
    while let Some((pool, bucket, seq, last_at)) = next(&mut found, read)? {
        hash.update(pool.to_be_bytes());
        hash.update(bucket.to_be_bytes());
        hash.update(seq.to_be_bytes());
        buckets = buckets.saturating_add(1);
        positions = positions.saturating_add(seq);
        last = last.max(Some(last_at));
    }
    Ok(Contents {
        incarnation: incarnation.ok_or_else(|| corrupt("it was never served from"))?,
        orders: count("orders")?,
        entries: count("ledger")?,
        buckets,
        positions,
        positions_sha256: hash.finalize().into(),
        last_ledger_at: last,
    })
}

/// Copies every page into a file that is complete without a log beside it.
fn copy(source: &Connection, path: &Path, progress: &mut impl FnMut(u64, u64)) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(path, flags).store()?;
    // It is flushed once, as a whole, before it gets its name.
    target.execute_batch("PRAGMA synchronous = OFF;").store()?;
    source.execute_batch("BEGIN").store()?;
    source.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).store()?;
    let copied = copy_pages(source, &mut target, progress);
    source.execute_batch("ROLLBACK").store()?;
    copied?;
    close(target)
}

fn copy_pages(
    source: &Connection,
    target: &mut Connection,
    progress: &mut impl FnMut(u64, u64),
) -> Result<(), Error> {
    let backup = Backup::new(source, target).store()?;
    loop {
        let step = backup.step(STEP_PAGES).store()?;
        let pages = backup.progress();
        let total = u64::try_from(pages.pagecount).unwrap_or(0);
        let left = u64::try_from(pages.remaining).unwrap_or(0);
        progress(total.saturating_sub(left), total);
        #[expect(clippy::wildcard_enum_match_arm, reason = "the driver's enum is open; what is left is busy")]
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => return Err(Error::Unavailable("the database is locked by something else".into())),
        }
    }
}

/// Closes a file so that nothing of it is in a log beside it.
pub(crate) fn close(connection: Connection) -> Result<(), Error> {
    let mode: String = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0)).store()?;
    if mode != "delete" {
        return Err(Error::Unavailable(format!("the copy kept its journal mode {mode:?}")));
    }
    connection.close().map_err(|(_, error)| error).store()
}

fn unavailable(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::Unavailable(format!("{}: {why}", path.display()))
}

fn refuse_existing(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unavailable(path, error)),
        Ok(_) => Err(unavailable(path, "is there already; nothing is overwritten")),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A file in the making, under a name of its own. It goes away unless it is put in place.
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    target: PathBuf,
}

impl Part {
    pub(crate) fn beside(target: &Path) -> Result<Self, Error> {
        refuse_existing(target)?;
        let path = with_suffix(target, &format!(".{}.part", std::process::id()));
        // It holds what customers bought: for its owner only.
        let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        options.map_err(|error| unavailable(&path, error))?;
        Ok(Self { path, target: target.to_owned() })
    }

    /// Flushes it and gives it its name, if that is still free. Its size.
    pub(crate) fn place(self) -> Result<u64, Error> {
        let file = File::open(&self.path).map_err(|error| unavailable(&self.path, error))?;
        file.sync_all().map_err(|error| unavailable(&self.path, error))?;
        let bytes = file.metadata().map_err(|error| unavailable(&self.path, error))?.len();
        rename_to_free(&self.path, &self.target).map_err(|error| unavailable(&self.target, error))?;
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new("."));
        let flushed = File::open(directory).and_then(|directory| directory.sync_all());
        flushed.map_err(|error| unavailable(directory, error))?;
        Ok(bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            // After it was put in place there is nothing of this name.
            let _ = std::fs::remove_file(with_suffix(&self.path, suffix));
        }
    }
}

/// Renames, never over something. Where the file system cannot do that in one step, a second name does.
fn rename_to_free(from: &Path, to: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        Err(error) => Err(error.into()),
    }
}
