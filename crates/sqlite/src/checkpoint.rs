//! Checkpoints: copying the write-ahead log into the database, beside the writer instead of inside its
//! commits. A thread of its own copies while the writer goes on; when the log has grown long, the writer
//! copies the small rest between two transactions, so that the log begins anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_store::Error;
use rusqlite::Connection;

use crate::error::Driver;

/// Commands committed after which the thread copies. Little and often: the flush of a large copy holds up the
/// flushes of the log, which the buyers wait for.
const COMMANDS: u64 = 300;
/// Frames (pages) of the log beyond which the writer makes it begin anew.
const FRAMES: i64 = 4_000;
/// How long the thread waits for work before it looks by itself: after a lull the log is copied whole.
const LULL: Duration = Duration::from_millis(500);

/// The handle that the writer holds.
pub(crate) struct Checkpoints {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    commands: AtomicU64,
    is_long: Arc<AtomicBool>,
}

impl Checkpoints {
    /// Starts the thread on a connection of its own.
    pub(crate) fn start(path: &Path) -> Result<Self, Error> {
        let connection = Connection::open(path).store()?;
        connection.busy_timeout(Duration::ZERO).store()?;
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA mmap_size = 0;")
            .store()?;
        let (wake, woken) = sync_channel(1);
        let is_long = Arc::new(AtomicBool::new(false));
        let long = Arc::clone(&is_long);
        let thread = std::thread::Builder::new()
            .name("sqlite-checkpoint".into())
            .spawn(move || run(&connection, &woken, &long))
            .map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(Self { wake: Some(wake), thread: Some(thread), commands: AtomicU64::new(0), is_long })
    }

    /// So many commands were committed. Between two transactions: the writer's connection copies the rest of a
    /// log that has grown long.
    pub(crate) fn committed(&self, commands: u64, writer: &Connection) {
        if self.is_long.swap(false, Ordering::SeqCst)
            && let Err(error) = copy(writer)
        {
            tracing::warn!(%error, "the log could not be copied; it grows until it can");
        }
        if self.commands.fetch_add(commands, Ordering::Relaxed).saturating_add(commands) >= COMMANDS {
            self.commands.store(0, Ordering::Relaxed);
            // A full channel means that the thread is about to look anyway.
            if let Some(wake) = &self.wake {
                let _ = wake.try_send(());
            }
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, woken: &Receiver<()>, is_long: &AtomicBool) {
    let mut idle = true;
    loop {
        match woken.recv_timeout(LULL) {
            Ok(()) => idle = false,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if idle => continue,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => idle = true,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
        }
        match copy(connection) {
            Ok(frames) => is_long.store(frames > FRAMES, Ordering::SeqCst),
            Err(error) => tracing::warn!(%error, "a checkpoint failed; the log grows until one succeeds"),
        }
    }
}

/// Copies what readers let it copy, without waiting for anybody; the frames that the log has.
fn copy(connection: &Connection) -> Result<i64, Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)).store()
}
