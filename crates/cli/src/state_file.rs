//! A witness outside the database: a small file that says how far the ledger had come. A database that is
//! behind it is older than it once was: somebody has put back a file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use holdfast_core::case::{CaseKind, CaseState};
use holdfast_core::id::{CaseId, Incarnation};
use holdfast_engine::{IdSource, UuidV7};
use holdfast_server::time_text;
use holdfast_store::{Authority, CaseFilter, NewIncarnation, Page, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often it is written while something happens.
const INTERVAL: Duration = Duration::from_secs(1);
/// Reading how far the ledger has come may take at most one part in so many of the time.
const SHARE: u32 = 100;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    /// The authority's incarnation.
    pub(crate) incarnation: String,
    /// The sum of the last ledger positions of all buckets.
    pub(crate) positions: u64,
    /// When that was so.
    pub(crate) at: String,
}

/// Reads the file; none if there is none. A file that cannot be read is an error: it is flushed before it
/// gets its name, so somebody else has changed it.
pub(crate) fn read(path: &Path) -> Result<Option<Seen>> {
    let read = match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(anyhow::Error::from),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error.into()),
    };
    read.map(Some).with_context(|| {
        format!(
            "{}: the state file cannot be read. It says how far the ledger had come; remove it only if you know that \
             the database is the newest one",
            path.display()
        )
    })
}

/// What is wrong with a database in the light of the file; none if nothing is.
fn doubt(seen: &Seen, authority: &Authority) -> Option<&'static str> {
    if seen.incarnation == authority.incarnation.to_string() {
        let behind = authority.positions < seen.positions;
        return behind.then_some("the ledger is behind where it once was: an older file was put back");
    }
    // It was restored by the command, which has opened its own case.
    if authority.past.iter().any(|past| past.to_string() == seen.incarnation) || seen.positions == 0 {
        return None;
    }
    Some("the state file speaks of another authority: another or an older file was put here")
}

/// Compares the file with the database. Where the database is behind, it becomes a new incarnation, whose
/// case stops all sales until somebody has looked.
pub(crate) async fn check(store: &dyn Store, path: &Path, incarnation: u128) -> Result<()> {
    if let Some(seen) = read(path)? {
        let authority = store.authority().await?;
        if let Some(why) = doubt(&seen, &authority) {
            stop_sales(store, &seen, &authority, why, Incarnation(incarnation)).await?;
        }
    }
    let authority = store.authority().await?;
    write(path, &seen_now(&authority, store)).with_context(|| path.display().to_string())
}

async fn stop_sales(
    store: &dyn Store,
    seen: &Seen,
    authority: &Authority,
    why: &str,
    incarnation: Incarnation,
) -> Result<()> {
    let open = CaseFilter { state: Some(CaseState::Open), kind: Some(CaseKind::Incarnation) };
    let (cases, _) = store.cases(open, Page { after: None, limit: 1 }).await?;
    if let Some(case) = cases.first() {
        tracing::warn!(case = %case.id, "{why}; sales stand still already");
        return Ok(());
    }
    let evidence = json!({
        "found_by": "state_file",
        "why": why,
        "previous_incarnation": authority.incarnation.to_string(),
        "incarnation": incarnation.to_string(),
        "positions": authority.positions,
        "last_ledger_at": authority.last_ledger_at.map(time_text),
        "state_file": seen,
        "entries_missing_at_least": seen.positions.saturating_sub(authority.positions),
    });
    let case = CaseId(UuidV7.next());
    store
        .begin_incarnation(NewIncarnation { incarnation, case, evidence: evidence.to_string().into() })
        .await?;
    tracing::error!(%case, %evidence, "{why}; nothing is sold until the case is resolved");
    Ok(())
}

fn seen_now(authority: &Authority, store: &dyn Store) -> Seen {
    Seen {
        incarnation: authority.incarnation.to_string(),
        positions: authority.positions,
        at: time_text(store.now()),
    }
}

/// Writes the file again and again while the ledger moves, and once more at the end.
pub(crate) struct Keeper {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<()>>,
}

impl Keeper {
    /// Begins.
    pub(crate) fn start(store: Arc<dyn Store>, path: PathBuf) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(keep(store, path, stopped)) }
    }

    /// Ends when nothing more will be written to the ledger. A file that cannot be written is no fault of the
    /// server's: it says less than is true, and never more.
    pub(crate) async fn finish(self) {
        // A task that is gone says so itself.
        let _ = self.stop.send(());
        if let Err(error) = self.task.await.map_err(anyhow::Error::from).flatten() {
            tracing::warn!("the state file was not written at the end: {error:#}");
        }
    }
}

async fn keep(store: Arc<dyn Store>, path: PathBuf, mut stopped: oneshot::Receiver<()>) -> Result<()> {
    let mut known = None;
    let mut failing = false;
    let mut pause = tokio::time::interval(INTERVAL);
    loop {
        let last = tokio::select! {
            _ = &mut stopped => true,
            _ = pause.tick() => false,
        };
        let begin = Instant::now();
        let written = write_if_moved(&*store, &path, &mut known).await;
        if last {
            return written;
        }
        // Told once: a full disk would fill the log.
        if let (Err(error), false) = (&written, failing) {
            tracing::warn!("the state file cannot be written: {error:#}");
        }
        failing = written.is_err();
        pause.reset_after(INTERVAL.max(begin.elapsed().saturating_mul(SHARE)));
    }
}

async fn write_if_moved(
    store: &dyn Store,
    path: &Path,
    known: &mut Option<(Incarnation, u64)>,
) -> Result<()> {
    let authority = store.authority().await?;
    let reached = (authority.incarnation, authority.positions);
    if *known == Some(reached) {
        return Ok(());
    }
    let (seen, target) = (seen_now(&authority, store), path.to_owned());
    let written = tokio::task::spawn_blocking(move || write(&target, &seen)).await?;
    written.with_context(|| path.display().to_string())?;
    *known = Some(reached);
    Ok(())
}

/// Writes it whole or not at all.
fn write(path: &Path, seen: &Seen) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let mut file = std::fs::File::create(&name)?;
    serde_json::to_writer(&mut file, seen)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&name, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(incarnation: u128, positions: u64) -> Seen {
        Seen { incarnation: Incarnation(incarnation).to_string(), positions, at: "T".into() }
    }

    fn authority(incarnation: u128, past: &[u128], positions: u64) -> Authority {
        Authority {
            incarnation: Incarnation(incarnation),
            past: past.iter().copied().map(Incarnation).collect(),
            positions,
            last_ledger_at: None,
        }
    }

    #[test]
    fn a_database_that_is_behind_is_doubted() {
        assert!(doubt(&seen(1, 10), &authority(1, &[], 9)).is_some());
        assert!(doubt(&seen(1, 10), &authority(1, &[], 10)).is_none());
        assert!(doubt(&seen(1, 10), &authority(1, &[], 11)).is_none());
        assert!(doubt(&seen(1, 10), &authority(2, &[1], 5)).is_none(), "restored by the command");
        assert!(doubt(&seen(2, 10), &authority(1, &[], 50)).is_some(), "from before a restore");
        assert!(doubt(&seen(2, 0), &authority(1, &[], 0)).is_none(), "nothing was ever sold");
    }

    #[test]
    fn it_is_read_back_and_never_guessed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.state");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, &seen(1, 10)).unwrap();
        assert_eq!(read(&path).unwrap(), Some(seen(1, 10)));
        std::fs::write(&path, "").unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("cannot be read"));
    }
}
