//! Migrations: forward only, expand then contract. The lock file keeps two servers apart meanwhile.

use holdfast_store::{Error, Schema, rows, version_of};
use refinery_core::traits::sync::{Migrate, Query, Transaction};
use refinery_core::{Migration, Runner};
use rusqlite::Connection;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::error::Driver;
use crate::examine::has_table;
use crate::load::one;

const MIGRATIONS: &[(&str, &str)] = &[
    ("V1__initial", include_str!("../migrations/V1__initial.sql")),
    ("V2__keys", include_str!("../migrations/V2__keys.sql")),
    ("V3__cases", include_str!("../migrations/V3__cases.sql")),
    ("V4__settlement", include_str!("../migrations/V4__settlement.sql")),
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

/// Brings the schema up to date. A schema that is newer than this binary is refused, unless the migration
/// that made it says that binaries as old as this one may run on it: then it is left as it is.
pub(crate) fn run(connection: &mut Connection) -> Result<(), Error> {
    let schema = schema_of(connection)?;
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
        .run(&mut Adapter(connection))
        .map_err(|error| Error::Unavailable(format!("the schema does not fit this version: {error}")))?;
    if schema.is_newer() {
        tracing::warn!(version = ?schema.version, known = schema.known, "a newer schema that this version may use");
    }
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "schema migrated");
    }
    Ok(())
}

/// Which schema a file has.
pub(crate) fn schema_of(db: &Connection) -> Result<Schema, Error> {
    let known = MIGRATIONS.iter().filter_map(|(name, _)| version_of(name)).max().unwrap_or(0);
    let version: Option<i32> = if has_table(db, "refinery_schema_history")? {
        let sql = "SELECT max(version) FROM refinery_schema_history";
        db.query_row(sql, [], |row| row.get(0)).store()?
    } else {
        None
    };
    // A rule speaks of its own version only: what came after it has not promised anything.
    let sql = "SELECT compatible_from FROM schema_rule WHERE version = ?1";
    let compatible_from = match version {
        Some(version) if has_table(db, "schema_rule")? => {
            one(db, sql, [version], |row| rows::number(row, "compatible_from"))?
        }
        Some(_) | None => None,
    };
    Ok(Schema { version, known, compatible_from })
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
