//! Migrations: forward only, expand then contract. A locked row keeps two nodes apart that start at the same time;
//! it is no advisory lock, which some engines that speak PostgreSQL do not have.

use std::time::Duration;

use holdfast_store::rows::{number, text};
use holdfast_store::{Error, Schema, rows, version_of};
use refinery_core::traits::r#async::{AsyncMigrate, AsyncQuery, AsyncTransaction};
use refinery_core::{Migration, Runner};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio_postgres::types::Type;

use crate::connection::{Connection, Mode};
use crate::error::{Driver, chain};
use crate::row::first;

const MIGRATIONS: &[(&str, &str)] = &[
    ("V4__initial", include_str!("../migrations/V4__initial.sql")),
    ("V5__queue", include_str!("../migrations/V5__queue.sql")),
    ("V6__limits", include_str!("../migrations/V6__limits.sql")),
    ("V7__pools", include_str!("../migrations/V7__pools.sql")),
    ("V8__files", include_str!("../migrations/V8__files.sql")),
    ("V9__approvals", include_str!("../migrations/V9__approvals.sql")),
    ("V10__places", include_str!("../migrations/V10__places.sql")),
    ("V11__cache", include_str!("../migrations/V11__cache.sql")),
    ("V12__payment_claims", include_str!("../migrations/V12__payment_claims.sql")),
    ("V13__sinks", include_str!("../migrations/V13__sinks.sql")),
    ("V14__reconciliation", include_str!("../migrations/V14__reconciliation.sql")),
];

/// How long a node waits for another one that migrates.
const LOCK_WAIT: Duration = Duration::from_secs(120);

/// Brings the schema up to date. `lock` holds the lock meanwhile, on a connection of its own. A schema that is
/// newer than this binary is refused, unless the migration that made it says that binaries as old as this one may
/// run on it: then it is left as it is.
pub(crate) async fn run(connection: Connection, lock: &Connection) -> Result<(), Error> {
    take_lock(lock).await?;
    let migrated = locked(connection).await;
    lock.commit().await.store()?;
    migrated
}

/// Takes the lock, made first if it is not there.
async fn take_lock(lock: &Connection) -> Result<(), Error> {
    let make = "CREATE TABLE IF NOT EXISTS migration_lock (only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1)); \
                INSERT INTO migration_lock (only_row) VALUES (1) ON CONFLICT (only_row) DO NOTHING";
    // Two that make it at the same time may meet in the catalog: the second then finds it made.
    if lock.run(make).await.is_err() {
        lock.run(make).await.map_err(crate::error::Fault::into_error)?;
    }
    lock.begin(Mode::Write).await.store()?;
    let wait = format!(
        "SET LOCAL lock_timeout = {0}; SET LOCAL statement_timeout = {0}; \
         SET LOCAL idle_in_transaction_session_timeout = 0",
        LOCK_WAIT.as_millis()
    );
    lock.run(&wait).await.map_err(crate::error::Fault::into_error)?;
    lock.rows_typed("SELECT only_row FROM migration_lock FOR UPDATE", &[], &[]).await.store()?;
    Ok(())
}

async fn locked(connection: Connection) -> Result<(), Error> {
    let schema = schema_of(&connection).await?;
    schema.check()?;
    let migrations = MIGRATIONS
        .iter()
        .map(|(name, sql)| Migration::unapplied(name, sql))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Corrupt(error.to_string()))?;
    let report = Runner::new(&migrations)
        .set_abort_divergent(true)
        // What is applied and not known here has been judged by its own rule.
        .set_abort_missing(!schema.is_newer())
        .set_grouped(true)
        .run_async(&mut Adapter(connection))
        .await
        .map_err(|error| {
            Error::Unavailable(format!("the schema does not fit this version: {}", chain(&error)))
        })?;
    if schema.is_newer() {
        tracing::warn!(version = ?schema.version, known = schema.known, "a newer schema that this version may use");
    }
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "schema migrated");
    }
    Ok(())
}

/// Which schema a database has.
pub(crate) async fn schema_of(connection: &Connection) -> Result<Schema, Error> {
    let known = MIGRATIONS.iter().filter_map(|(name, _)| version_of(name)).max().unwrap_or(0);
    let mut schema = Schema { version: None, known, compatible_from: None };
    if has_table(connection, "refinery_schema_history").await? {
        let sql = "SELECT max(version) AS version FROM refinery_schema_history";
        let found = connection.rows_typed(sql, &[], &[]).await.store()?;
        schema.version =
            first(&found, |row| row.integer("version"))?.flatten().and_then(|v| i32::try_from(v).ok());
    }
    if let Some(version) = schema.version
        && has_table(connection, "schema_rule").await?
    {
        // A rule speaks of its own version only: what came after it has not promised anything.
        let sql = "SELECT compatible_from FROM schema_rule WHERE version = $1";
        let found = connection.rows_typed(sql, &[&version], &[Type::INT4]).await.store()?;
        schema.compatible_from = first(&found, |row| number(row, "compatible_from"))?;
    }
    Ok(schema)
}

async fn has_table(connection: &Connection, name: &str) -> Result<bool, Error> {
    let sql = "SELECT table_name FROM information_schema.tables \
               WHERE table_schema = current_schema() AND table_name = $1";
    let found = connection.rows_typed(sql, &[&name], &[Type::TEXT]).await.store()?;
    Ok(!found.is_empty())
}

/// The migration tool's own adapter prepares statements and takes whatever isolation is the default; this is all
/// that it needs.
struct Adapter(Connection);

impl AsyncTransaction for Adapter {
    type Error = Error;

    async fn execute<'a, T: Iterator<Item = &'a str> + Send + 'a>(
        &'a mut self,
        queries: T,
    ) -> Result<usize, Error> {
        self.0.begin(Mode::Write).await.store()?;
        let mut count = 0;
        // A migration takes as long as it takes.
        for query in ["SET LOCAL statement_timeout = 0"].into_iter().chain(queries) {
            if let Err(fault) = self.0.run(query).await {
                self.0.rollback().await;
                return Err(fault.into_error());
            }
            count += 1;
        }
        self.0.commit().await.store()?;
        Ok(count)
    }
}

impl AsyncQuery<Vec<Migration>> for Adapter {
    async fn query<'a>(&'a mut self, query: &'a str) -> Result<Vec<Migration>, Error> {
        let found = self.0.rows_typed(query, &[], &[]).await.store()?;
        crate::row::all(&found, |row| {
            let bad = |what| rows::corrupt(format_args!("the history of migrations: {what}"));
            let applied_on = OffsetDateTime::parse(text(row, "applied_on")?, &Rfc3339);
            Ok(Migration::applied(
                number(row, "version")?,
                text(row, "name")?.to_owned(),
                applied_on.map_err(|_| bad("a time"))?,
                text(row, "checksum")?.parse().map_err(|_| bad("a checksum"))?,
            ))
        })
    }
}

impl AsyncMigrate for Adapter {}
