//! Databases on the server that the tests of a run share.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;

use super::{
    Postgres, PostgresOptions, SUPERUSER, admin_url, create_database, lock, psql, psql_command, url,
};
use crate::folder::Folder;
use crate::scratch;

/// An empty database of the test's own on the run's shared server; dropped with this.
///
/// The shared server does not flush: nobody kills it, so flushing would prove nothing. A test of durability or of
/// faults starts a [`Postgres`] of its own.
#[derive(Debug)]
pub struct Database {
    port: u16,
    name: String,
}

impl Database {
    /// Creates the database. The first test of a run that asks starts the server.
    pub async fn shared() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let port = shared_server().await?;
        let name = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        create_database(port, &name).await?;
        Ok(Self { port, name })
    }

    /// The URL, for the owner of the database.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.port, &self.name)
    }

    /// Runs SQL as the superuser; the answer's rows as lines, columns parted by `|`.
    pub async fn sql(&self, sql: &str) -> Result<String> {
        psql(&admin_url(self.port, &self.name), sql).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // By force: the test's connections may still be closing. What fails here dies with the server.
        let sql = format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name);
        if let Ok(mut drop) = psql_command(&admin_url(self.port, SUPERUSER), &sql) {
            let _ = drop.as_std_mut().output();
        }
    }
}

/// The port of the run's server: found by the port in its folder, started by whoever does not find it.
async fn shared_server() -> Result<u16> {
    let run = scratch::of_run()?;
    let folder = run.join("shared");
    let port = run.join("shared.port");
    let _lock = lock(&run.join("shared.lock")).await?;
    if !port.exists() {
        // A start that failed leaves its log behind in the message; begin anew.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        let options = PostgresOptions {
            fsync: false,
            settings: vec!["full_page_writes = off".to_owned(), "max_connections = 500".to_owned()],
            ..PostgresOptions::default()
        };
        let server = Postgres::start_in(Folder::at(folder), options).await?;
        fs::write(&port, server.port.number.to_string())?;
        // It belongs to the run from here on; the guard of the run ends it.
        std::mem::forget(server);
    }
    Ok(fs::read_to_string(&port)?.parse()?)
}
