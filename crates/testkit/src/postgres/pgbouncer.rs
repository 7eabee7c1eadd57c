//! A pooler in front of a PostgreSQL.

use std::ffi::OsString;

use anyhow::Result;

use super::{OWNER, Postgres, url};
use crate::command::find;
use crate::daemon::Daemon;

/// When a client gives its server connection back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// When it disconnects.
    Session,
    /// After each transaction; what a session has prepared or set is gone.
    Transaction,
}

/// A PgBouncer of the test's own. Dropping it kills it.
#[derive(Debug)]
pub struct PgBouncer {
    daemon: Daemon,
}

impl PgBouncer {
    /// A pooler for all databases of `server`.
    pub async fn start(server: &Postgres, pool_mode: PoolMode) -> Result<Self> {
        let daemon = Daemon::new(find("pgbouncer", "HOLDFAST_TEST_PGBOUNCER_BIN", &[], "pgbouncer")?).await?;
        daemon.write("users.txt", format!("\"{OWNER}\" \"\"\n").as_bytes()).await?;
        let mode = match pool_mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
        };
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = users.txt\npool_mode = {mode}\n\
             max_client_conn = 1000\ndefault_pool_size = 20\n",
            server.port(),
            daemon.port.number
        );
        daemon.write("pgbouncer.ini", settings.as_bytes()).await?;
        let pooler = Self { daemon };
        pooler.restart().await?;
        Ok(pooler)
    }

    /// The URL of a database through the pooler.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        url(self.daemon.port.number, database)
    }

    /// Starts a killed pooler again.
    pub async fn restart(&self) -> Result<()> {
        self.daemon.start(&[OsString::from("pgbouncer.ini")]).await
    }

    /// Kills the pooler.
    pub fn kill(&self) -> Result<()> {
        self.daemon.kill()
    }

    /// Freezes the pooler.
    pub fn pause(&self) -> Result<()> {
        self.daemon.pause()
    }

    /// Lets a paused pooler go on.
    pub fn resume(&self) -> Result<()> {
        self.daemon.resume()
    }

    /// What the pooler has written to its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.daemon.log()
    }
}
