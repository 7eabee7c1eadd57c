//! One server a database: a lock on a file beside it, held as long as the process lives.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
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

/// The one name of a database: through symbolic links, so that the lock is the same whichever is given. A file
/// with several hard links has no one name, and its logs would not meet.
pub(crate) fn one_name(database: &Path) -> Result<PathBuf, Error> {
    let unavailable = |why: String| Error::Unavailable(format!("{}: {why}", database.display()));
    match std::fs::canonicalize(database) {
        Ok(path) => {
            let links = std::fs::metadata(&path).map_err(|error| unavailable(error.to_string()))?.nlink();
            if links > 1 {
                return Err(unavailable(format!(
                    "the file has {links} names (hard links); it must have one"
                )));
            }
            Ok(path)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(database.to_owned()),
        Err(error) => Err(unavailable(error.to_string())),
    }
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
