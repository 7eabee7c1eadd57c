//! Which authority: the one place that knows the stores by name.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use holdfast_core::audit::Report;
use holdfast_sqlite::{ExplainOrder, Explained, Failpoints, Options, SqliteStore};
use holdfast_store::Store;

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
