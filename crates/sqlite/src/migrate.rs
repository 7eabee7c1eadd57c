//! Migrations: forward only, expand then contract. The lock file keeps two servers apart meanwhile.

use holdfast_store::Error;
use refinery_core::traits::sync::{Migrate, Query, Transaction};
use refinery_core::{Migration, Runner};
use rusqlite::Connection;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const MIGRATIONS: &[(&str, &str)] = &[("V1__initial", include_str!("../migrations/V1__initial.sql"))];

/// Brings the schema up to date. A schema that is newer than this binary is refused.
pub(crate) fn run(connection: &mut Connection) -> Result<(), Error> {
    let migrations = MIGRATIONS
        .iter()
        .map(|(name, sql)| Migration::unapplied(name, sql))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Corrupt(error.to_string()))?;
    let report = Runner::new(&migrations)
        .set_abort_divergent(true)
        .set_abort_missing(true)
        .set_grouped(true)
        .run(&mut Adapter(connection))
        .map_err(|error| Error::Unavailable(format!("the schema does not fit this version: {error}")))?;
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "schema migrated");
    }
    Ok(())
}

/// The migration tool knows older drivers only; this is all that it needs.
struct Adapter<'c>(&'c mut Connection);

impl Transaction for Adapter<'_> {
    type Error = rusqlite::Error;

    fn execute<'a, T: Iterator<Item = &'a str>>(&mut self, queries: T) -> Result<usize, Self::Error> {
        let transaction = self.0.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut count = 0;
        for query in queries {
            transaction.execute_batch(query)?;
            count += 1;
        }
        transaction.commit()?;
        Ok(count)
    }
}

impl Query<Vec<Migration>> for Adapter<'_> {
    fn query(&mut self, query: &str) -> Result<Vec<Migration>, Self::Error> {
        let bad = |at: usize, error: Box<dyn std::error::Error + Send + Sync>| {
            rusqlite::Error::FromSqlConversionFailure(at, rusqlite::types::Type::Text, error)
        };
        let mut statement = self.0.prepare(query)?;
        let rows = statement.query_map([], |row| {
            let applied_on: String = row.get(2)?;
            let applied_on = OffsetDateTime::parse(&applied_on, &Rfc3339).map_err(|e| bad(2, e.into()))?;
            let checksum: String = row.get(3)?;
            let checksum = checksum.parse().map_err(|e: std::num::ParseIntError| bad(3, e.into()))?;
            Ok(Migration::applied(row.get(0)?, row.get(1)?, applied_on, checksum))
        })?;
        rows.collect()
    }
}

impl Migrate for Adapter<'_> {}
