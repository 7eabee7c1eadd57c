//! Which authority: the one place that knows the stores by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use holdfast_core::audit::Report;
use holdfast_core::time::Timestamp;
use holdfast_sqlite::{Check, Contents, Copied, Options, Restore, SqliteStore};
use holdfast_store::{ExplainOrder, Explained, Failpoints, NewIncarnation, Store};

/// An authority's address.
pub(crate) enum Url {
    /// The embedded store, by its file.
    Sqlite(PathBuf),
}

impl Url {
    /// Reads `sqlite:PATH`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", _)) => bail!("PostgreSQL is not built yet; use sqlite:PATH"),
            Some(_) | None => bail!("not a database: use sqlite:PATH"),
        }
    }

    /// Opens it for a server.
    pub(crate) fn open(&self, incarnation: u128) -> Result<Arc<dyn Store>> {
        let Self::Sqlite(path) = self;
        let options = Options { incarnation, failpoints: failpoints()?, ..Options::default() };
        let store = SqliteStore::open(path, options).with_context(|| path.display().to_string())?;
        Ok(Arc::new(store))
    }

    /// Checks the invariants, beside a server if one runs.
    pub(crate) fn audit(&self) -> Result<Report> {
        let Self::Sqlite(path) = self;
        holdfast_sqlite::audit_file(path).with_context(|| path.display().to_string())
    }

    /// Copies it, beside a server if one runs.
    pub(crate) fn backup(
        &self,
        target: &Path,
        check: Check,
        progress: impl FnMut(u64, u64),
    ) -> Result<Copied> {
        let Self::Sqlite(path) = self;
        Ok(holdfast_sqlite::backup_file(path, target, check, progress)?)
    }

    /// Makes it of a copy.
    pub(crate) fn restore(
        &self,
        source: &Path,
        check: Check,
        now: Timestamp,
        begin: impl FnOnce(&Contents) -> NewIncarnation,
        progress: impl FnMut(u64, u64),
    ) -> Result<Copied> {
        let Self::Sqlite(target) = self;
        Ok(holdfast_sqlite::restore_file(Restore { source, target, check, now, begin }, progress)?)
    }

    /// Where a server keeps its state file if it is not told.
    pub(crate) fn state_file(&self) -> PathBuf {
        let Self::Sqlite(path) = self;
        let mut name = path.as_os_str().to_owned();
        name.push(".state");
        name.into()
    }

    /// Reads an order with its entries, beside a server if one runs.
    pub(crate) fn explain(&self, order: &ExplainOrder) -> Result<Option<Explained>> {
        let Self::Sqlite(path) = self;
        holdfast_sqlite::explain_file(path, order).with_context(|| path.display().to_string())
    }
}

/// Points at which a test build dies.
#[cfg(feature = "failpoints")]
fn failpoints() -> Result<Failpoints> {
    let armed = std::env::var("HOLDFAST_FAILPOINTS").unwrap_or_default();
    Failpoints::armed(&armed).map_err(|why| anyhow::anyhow!("HOLDFAST_FAILPOINTS: {why}"))
}

#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as in a test build")]
fn failpoints() -> Result<Failpoints> {
    Ok(Failpoints::default())
}
