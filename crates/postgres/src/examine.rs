//! What can be told of a server and a database without serving from them.

use holdfast_core::id::CaseId;
use holdfast_core::time::Timestamp;
use holdfast_store::rows::number_id;
use holdfast_store::{Error, Schema};

use crate::address::Address;
use crate::connection::{Connection, Mode, Timeouts};
use crate::error::Driver;
use crate::row::{all, first};
use crate::{load, migrate, tls};

/// A setting of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, as the server shows it; none if this server does not know it.
    pub value: Option<String>,
}

/// What stands in a database, and how its server is set up.
#[derive(Debug, Clone)]
pub struct Examined {
    /// Settings on which the promises rest.
    pub settings: Vec<Setting>,
    /// The schema and what this binary makes of it.
    pub schema: Schema,
    /// The time of the last ledger entry.
    pub last_ledger_at: Option<Timestamp>,
    /// The server's clock.
    pub now: Timestamp,
    /// Open cases that stop all sales.
    pub halting_cases: Vec<CaseId>,
}

/// Settings that are looked at.
const SETTINGS: &[&str] = &[
    "server_version",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "data_checksums",
    "max_connections",
    "default_transaction_read_only",
];

/// Examines a database; it changes nothing.
pub async fn examine(address: &Address) -> Result<Examined, Error> {
    let connection = Connection::open(address, tls::connector(&address.trust)?, Timeouts::default()).await?;
    connection.begin(Mode::View).await.store()?;
    let mut settings = Vec::new();
    for name in SETTINGS {
        let sql = "SELECT current_setting($1, TRUE) AS value";
        let found =
            connection.rows_typed(sql, &[name], &[tokio_postgres::types::Type::TEXT]).await.store()?;
        let value = first(&found, |row| Ok(row.text("value")?.map(str::to_owned)))?.flatten();
        settings.push(Setting { name: (*name).to_owned(), value });
    }
    let schema = migrate::schema_of(&connection).await?;
    let (mut last_ledger_at, mut halting_cases) = (None, Vec::new());
    if schema.version.is_some() {
        let sql = "SELECT max(last_at) AS last_at FROM bucket";
        let found = connection.rows_typed(sql, &[], &[]).await.store()?;
        last_ledger_at = first(&found, |row| row.integer("last_at"))?.flatten().map(Timestamp);
        let sql = "SELECT id FROM cases WHERE state = 'open' AND kind = 'incarnation' ORDER BY id";
        let found = connection.rows_typed(sql, &[], &[]).await.store()?;
        halting_cases = all(&found, |row| number_id(row, "id").map(CaseId))?;
    }
    let now = load::clock(&connection).await.store()?;
    connection.rollback().await;
    Ok(Examined { settings, schema, last_ledger_at, now, halting_cases })
}
