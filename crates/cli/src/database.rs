//! Which authority: the one place that knows the stores by name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use holdfast_core::audit::Report;
use holdfast_core::time::Timestamp;
use holdfast_postgres::{Address, PostgresStore};
use holdfast_sqlite::{Check, Contents, Copied, Restore, SqliteStore};
use holdfast_store::{
    AuditWatch, ExplainOrder, ExplainPool, Failpoints, Fill, NewIncarnation, OrderEvidence, PoolEvidence,
    Store,
};

/// Where a server keeps its state file if it is not told and the database is no file.
const STATE_FILE: &str = "holdfast.state";

/// An authority's address. Shown without its secrets.
#[derive(Clone)]
pub(crate) enum Url {
    /// The embedded store, by its file.
    Sqlite(PathBuf),
    /// PostgreSQL.
    Postgres(Box<Address>),
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(address) => address.fmt(f),
        }
    }
}

/// The authority of a command that reads it.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The authority
    #[arg(
        long,
        env = "HOLDFAST_DATABASE",
        hide_env_values = true,
        default_value = "sqlite:holdfast.db",
        value_name = "URL"
    )]
    database: String,
}

impl Named {
    /// Its address.
    pub(crate) fn url(&self) -> Result<Url> {
        Url::parse(&self.database)
    }
}

impl Url {
    /// Reads `sqlite:PATH` or `postgres://…`. What is wrong is told without the text: it may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(Box::new(Address::parse(text)?))),
            Some(_) | None => bail!("not a database: use sqlite:PATH or postgres://USER@HOST/DATABASE"),
        }
    }

    /// Whether several servers may have it at once.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Opens it for a server.
    pub(crate) async fn open(&self, incarnation: u128) -> Result<Arc<dyn Store>> {
        let failpoints = failpoints()?;
        let store: Result<Arc<dyn Store>, _> = match self {
            Self::Sqlite(path) => {
                let options = holdfast_sqlite::Options { incarnation, failpoints, ..Default::default() };
                SqliteStore::open(path, options).map(|store| Arc::new(store) as _)
            }
            Self::Postgres(address) => {
                let options = holdfast_postgres::Options { incarnation, failpoints, clock: None };
                Box::pin(PostgresStore::open(address, options)).await.map(|store| Arc::new(store) as _)
            }
        };
        store.with_context(|| self.to_string())
    }

    /// Checks the invariants, beside a server if one runs.
    pub(crate) async fn audit(&self) -> Result<Report> {
        Ok(self.audit_as_of(None, ()).await?.0)
    }

    /// The same, of its ledger as of a time if one is named; and who has watched it.
    pub(crate) async fn audit_as_of<W: AuditWatch + 'static>(
        &self,
        as_of: Option<Timestamp>,
        mut watch: W,
    ) -> Result<(Report, W)> {
        let (report, watch) = match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                let audit = move || (holdfast_sqlite::audit_file_as_of(&path, as_of, &mut watch), watch);
                tokio::task::spawn_blocking(audit).await?
            }
            Self::Postgres(address) => {
                (Box::pin(holdfast_postgres::audit_as_of(address, as_of, &mut watch)).await, watch)
            }
        };
        Ok((report.with_context(|| self.to_string())?, watch))
    }

    /// Writes a long sale past every decision, for a benchmark.
    pub(crate) async fn fill(&self, fill: Fill) -> Result<()> {
        match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || holdfast_sqlite::fill_file(&path, &fill)).await??;
            }
            Self::Postgres(address) => Box::pin(holdfast_postgres::fill(address, &fill)).await?,
        }
        Ok(())
    }

    /// The file that it is, for what only files have.
    fn file(&self, instead: &str) -> Result<&Path> {
        match self {
            Self::Sqlite(path) => Ok(path),
            Self::Postgres(_) => Err(anyhow!("{self} is no file: {instead}")),
        }
    }

    /// Copies it, beside a server if one runs.
    pub(crate) fn backup(
        &self,
        target: &Path,
        check: Check,
        progress: impl FnMut(u64, u64),
    ) -> Result<Copied> {
        let path = self.file("use pg_dump, or a base backup with its log for any point in time")?;
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
        let target = self.file(
            "restore it with PostgreSQL's own tools and start the server with the state file of before: it finds that \
             the ledger is behind, begins a new incarnation and sells nothing until the loss is acknowledged",
        )?;
        Ok(holdfast_sqlite::restore_file(Restore { source, target, check, now, begin }, progress)?)
    }

    /// Where a server keeps its state file if it is not told.
    pub(crate) fn state_file(&self) -> PathBuf {
        match self {
            Self::Sqlite(path) => {
                let mut name = path.as_os_str().to_owned();
                name.push(".state");
                name.into()
            }
            Self::Postgres(_) => STATE_FILE.into(),
        }
    }

    /// Reads what is known of an order, beside a server if one runs.
    pub(crate) async fn explain_order(&self, order: ExplainOrder) -> Result<Option<OrderEvidence>> {
        let found = match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || holdfast_sqlite::explain_order_file(&path, &order))
                    .await?
            }
            Self::Postgres(address) => Box::pin(holdfast_postgres::explain_order(address, order)).await,
        };
        found.with_context(|| self.to_string())
    }

    /// Reads what is known of a pool, beside a server if one runs.
    pub(crate) async fn explain_pool(&self, of: ExplainPool) -> Result<Option<PoolEvidence>> {
        let found = match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || holdfast_sqlite::explain_pool_file(&path, &of)).await?
            }
            Self::Postgres(address) => Box::pin(holdfast_postgres::explain_pool(address, of)).await,
        };
        found.with_context(|| self.to_string())
    }
}

/// Points at which a test build dies.
#[cfg(feature = "failpoints")]
pub(crate) fn failpoints() -> Result<Failpoints> {
    let armed = std::env::var("HOLDFAST_FAILPOINTS").unwrap_or_default();
    Failpoints::armed(&armed).map_err(|why| anyhow::anyhow!("HOLDFAST_FAILPOINTS: {why}"))
}

#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as in a test build")]
pub(crate) fn failpoints() -> Result<Failpoints> {
    Ok(Failpoints::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_shown_without_its_password() {
        let url = Url::parse("postgres://shop:hush@db/sale?statements=unnamed").unwrap();
        assert_eq!(url.to_string(), "postgres://shop@db:5432/sale");
        assert_eq!(Url::parse("sqlite:a b.db").unwrap().to_string(), "sqlite:a b.db");
        for bad in ["postgres://shop:hush@db:port/sale", "mysql://shop:hush@db/sale", "sqlite:", "hush"] {
            let why = format!("{:#}", Url::parse(bad).err().unwrap());
            assert!(!why.contains("hush"), "{why}");
        }
    }

    #[test]
    fn what_only_files_have_says_what_to_do_instead() {
        let url = Url::parse("postgres://shop@db/sale").unwrap();
        let why = url.backup(Path::new("x"), Check::None, |_, _| {}).err().unwrap().to_string();
        assert!(why.contains("pg_dump"), "{why}");
        assert_eq!(url.state_file(), Path::new("holdfast.state"));
        assert_eq!(Url::parse("sqlite:a.db").unwrap().state_file(), Path::new("a.db.state"));
    }
}
