//! One server a database: a lock on a file beside it, held as long as the process lives.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use holdfast_store::Error;
use rustix::fs::{FlockOperation, flock};

/// Holds the lock until dropped, or until the process ends in any way.
pub(crate) struct ServerLock {
    _file: File,
}

/// The name of a database's lock file.
pub(crate) fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Takes the lock, or says that another server has it. The lock is not on the database file itself: closing
/// any handle on that would drop SQLite's own locks.
pub(crate) fn take(database: &Path) -> Result<ServerLock, Error> {
    let path = path_of(database);
    let unavailable = |why: String| Error::Unavailable(format!("{}: {why}", path.display()));
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| unavailable(error.to_string()))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| unavailable("another server has this database open".into()))?;
    Ok(ServerLock { _file: file })
}
