//! What happens to a PostgreSQL in its life: stops, kills, silence, cuts, a read-only time, a failover.

use std::fs;

use anyhow::Result;

use super::{Postgres, SUPERUSER};
use crate::command::{as_server_user, give_to_server_user, output, wait_until};
use crate::daemon::remove_if_there;
use crate::folder::Folder;
use crate::port::Port;

/// The name by which a primary knows its synchronous standby.
const STANDBY: &str = "standby";

impl Postgres {
    /// Ends the server in order; open transactions are rolled back, connections closed.
    pub async fn stop(&self) -> Result<()> {
        let mut stop = self.pg_ctl("stop");
        stop.args(["-m", "fast"]);
        output(&mut stop).await.map(drop)
    }

    /// Kills every process of the server in the same instant.
    pub fn kill(&self) -> Result<()> {
        self.folder.kill()?;
        // A number in it may by now be another process, which would keep the server from starting.
        remove_if_there(&self.data.join("postmaster.pid"))
    }

    /// Freezes every process of the server; connections stay open and nothing answers.
    pub fn pause(&self) -> Result<()> {
        self.folder.pause()
    }

    /// Lets a paused server go on.
    pub fn resume(&self) -> Result<()> {
        self.folder.resume()
    }

    /// Ends all connections of clients; how many there were.
    pub async fn cut_connections(&self) -> Result<usize> {
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        Ok(self.sql(SUPERUSER, cut).await?.parse()?)
    }

    /// Refuses writes, or takes them again, in every transaction that begins from now on.
    pub async fn set_read_only(&self, is_read_only: bool) -> Result<()> {
        let word = if is_read_only { "on" } else { "off" };
        self.set("default_transaction_read_only", word).await
    }

    /// Sets a parameter that a reload is enough for; new sessions have it when this returns.
    pub async fn set(&self, parameter: &str, value: &str) -> Result<()> {
        self.sql(SUPERUSER, &format!("ALTER SYSTEM SET {parameter} = '{value}'")).await?;
        self.sql(SUPERUSER, "SELECT pg_reload_conf()").await?;
        wait_until(&format!("{parameter} = {value}"), || async {
            Ok(self.sql(SUPERUSER, &format!("SHOW {parameter}")).await? == value)
        })
        .await
    }

    /// A standby that every commit of this server waits for from now on, so that it can take over without loss.
    pub async fn synchronous_standby(&self) -> Result<Postgres> {
        let folder = Folder::new("postgres")?;
        give_to_server_user(folder.path()).await?;
        let (environment, data) = (self.environment.clone(), folder.path().join("data"));
        let standby = Self { bin: self.bin.clone(), port: Port::reserve()?, folder, environment, data };
        let mut copy = as_server_user(self.bin.join("pg_basebackup"), standby.folder.path());
        copy.args(["-R", "-X", "stream", "--checkpoint=fast", "-h", "127.0.0.1", "-U", SUPERUSER, "-p"]);
        copy.arg(self.port().to_string()).arg("-D").arg(&standby.data);
        output(&mut copy).await?;
        let own = [format!("port = {}", standby.port.number), format!("cluster_name = '{STANDBY}'")];
        standby.configure(&own)?;
        standby.restart().await?;
        self.set("synchronous_standby_names", STANDBY).await?;
        wait_until("the standby to be synchronous", || async {
            let state = self.sql(SUPERUSER, "SELECT sync_state FROM pg_stat_replication").await?;
            Ok(state == "sync")
        })
        .await?;
        Ok(standby)
    }

    /// Makes a standby the primary. The old one must be fenced first: killed, and never restarted.
    pub async fn promote(&self) -> Result<()> {
        output(&mut self.pg_ctl("promote")).await.map(drop)
    }

    /// Starts the server again, on the same port with the same data.
    pub async fn restart(&self) -> Result<()> {
        let mut start = self.pg_ctl("start");
        start.arg("-l").arg(self.folder.path().join("log"));
        let started = output(&mut start).await;
        started
            .map(drop)
            .map_err(|error| error.context(format!("PostgreSQL does not start:\n{}", self.log())))
    }

    /// Waits until the server answers; starts it if it does not run, as a supervisor does.
    pub async fn revive(&self) -> Result<()> {
        wait_until("PostgreSQL to be back", || async {
            if output(&mut self.pg_ctl("status")).await.is_err() {
                self.restart().await?;
            }
            // One that has crashed may still be recovering, or end instead.
            Ok(self.sql(SUPERUSER, "SELECT 1").await.is_ok())
        })
        .await
    }

    /// What the server has written to its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}
