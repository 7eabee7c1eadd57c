//! Readers: a few connections that cannot write, each used by one read at a time, each read bounded in
//! time, so that none holds back the checkpoint.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_metrics::{StoreMetrics, Use};
use holdfast_store::Error;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::error::Driver;

/// Reads that run at the same time.
const READERS: usize = 4;
/// How long a read waits for a connection.
const WAIT: Duration = Duration::from_secs(5);
/// How long a read may run: a snapshot that stays open keeps the log from being checkpointed.
const READ: Duration = Duration::from_secs(5);

/// The pool of reading connections.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    metrics: Arc<StoreMetrics>,
}

impl Readers {
    pub(crate) fn new(path: &Path, metrics: Arc<StoreMetrics>) -> Self {
        let permits = Arc::new(Semaphore::new(READERS));
        Self { path: path.to_owned(), idle: Arc::default(), permits, metrics }
    }

    /// Opens the connections that no read has opened yet; how many are open then.
    pub(crate) async fn warm(&self) -> Result<usize, Error> {
        let (path, idle) = (self.path.clone(), Arc::clone(&self.idle));
        let in_use = READERS.saturating_sub(self.permits.available_permits());
        let open_all = move || {
            let mut opened = in_use;
            loop {
                let idle_now = idle.lock().unwrap_or_else(PoisonError::into_inner).len();
                opened = opened.max(in_use.saturating_add(idle_now));
                if opened >= READERS {
                    return Ok(READERS);
                }
                let connection = open(&path)?;
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
        };
        tokio::task::spawn_blocking(open_all).await.map_err(|error| Error::Unavailable(error.to_string()))?
    }

    /// Runs a read on a connection of its own. It is interrupted when its time is over.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let waiting = self.metrics.connections_waiting.of(Use::Read).hold();
        let permit = tokio::time::timeout(WAIT, Arc::clone(&self.permits).acquire_owned())
            .await
            .map_err(|_| Error::Timeout)?
            .map_err(|_| Error::Unavailable("the store is closed".into()))?;
        drop(waiting);
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open(&self.path)?,
        };
        let interrupt = connection.get_interrupt_handle();
        let pool = Arc::clone(&self.idle);
        let metrics = Arc::clone(&self.metrics);
        let task = tokio::task::spawn_blocking(move || {
            let executing = metrics.connections_executing.of(Use::Read).hold();
            let begun = Instant::now();
            let result = read(&connection);
            metrics.read.observe(begun.elapsed());
            drop(executing);
            // One that still holds a snapshot would keep the log from being checkpointed for ever.
            if connection.is_autocommit() {
                pool.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            drop(permit);
            result
        });
        match tokio::time::timeout(READ, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Error::Unavailable("a read panicked".into())),
            Err(_) => {
                interrupt.interrupt();
                Err(Error::Timeout)
            }
        }
    }
}

/// Opens a connection that cannot write.
pub(crate) fn open(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).store()?;
    connection.busy_timeout(Duration::from_secs(5)).store()?;
    connection
        .execute_batch(
            "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;
             PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA cache_size = -8192;",
        )
        .store()?;
    Ok(connection)
}
