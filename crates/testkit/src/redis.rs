//! A private Redis.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::{as_server_user, find, output, wait_until};
use crate::daemon::{Daemon, remove_if_there};

/// Environment variable that names the folder of Redis's programs.
const BIN_VARIABLE: &str = "HOLDFAST_TEST_REDIS_BIN";

/// How a server is set up.
#[derive(Debug, Clone, Copy)]
pub struct RedisOptions {
    /// Whether each write is flushed to the append-only file before it is answered. Off, a kill loses everything
    /// that no snapshot has.
    pub is_durable: bool,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { is_durable: true }
    }
}

/// What a server held at one time, to be brought back later.
#[derive(Debug, Clone)]
pub struct Snapshot(Vec<u8>);

/// A Redis of the test's own on 127.0.0.1. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Redis {
    daemon: Daemon,
    cli: PathBuf,
    options: RedisOptions,
}

impl Redis {
    /// A new, empty, durable server.
    pub async fn start() -> Result<Self> {
        Self::start_with(RedisOptions::default()).await
    }

    /// A new, empty server.
    pub async fn start_with(options: RedisOptions) -> Result<Self> {
        let server = Self {
            daemon: Daemon::new(find("redis-server", BIN_VARIABLE, &[], "redis-server")?).await?,
            cli: find("redis-cli", BIN_VARIABLE, &[], "redis-tools")?,
            options,
        };
        server.restart().await?;
        Ok(server)
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.daemon.port.number
    }

    /// Runs one command; its answer as `redis-cli` prints it to a file. An error reply is an error.
    pub async fn command(&self, words: &[&str]) -> Result<String> {
        let mut cli = as_server_user(&self.cli, &self.daemon.folder);
        cli.args(["-e", "-h", "127.0.0.1", "-p", &self.port().to_string()]).args(words);
        output(&mut cli).await
    }

    /// Starts a stopped or killed server again, with what it had written.
    pub async fn restart(&self) -> Result<()> {
        self.run(self.options.is_durable).await
    }

    /// Starts a stopped or killed server again, having lost everything.
    pub async fn restart_empty(&self) -> Result<()> {
        self.forget()?;
        self.restart().await
    }

    /// What the server holds now.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.command(&["SAVE"]).await?;
        let path = self.daemon.file("dump.rdb");
        Ok(Snapshot(fs::read(&path).with_context(|| path.display().to_string())?))
    }

    /// Kills the server and starts it with an older snapshot, as a careless restore does.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<()> {
        self.kill()?;
        self.forget()?;
        self.daemon.write("dump.rdb", &snapshot.0).await?;
        // With the append-only file on at the start, Redis would begin empty beside the snapshot.
        self.run(false).await?;
        if self.options.is_durable {
            self.command(&["CONFIG", "SET", "appendonly", "yes"]).await?;
            wait_until("the append-only file", async || {
                let state = self.command(&["INFO", "persistence"]).await?;
                Ok(!state.contains("aof_rewrite_in_progress:1") && !state.contains("aof_rewrite_scheduled:1"))
            })
            .await?;
        }
        Ok(())
    }

    /// A second server that follows this one; it has caught up when this returns.
    pub async fn replica(&self) -> Result<Self> {
        let replica = Self::start_with(self.options).await?;
        replica.command(&["REPLICAOF", "127.0.0.1", &self.port().to_string()]).await?;
        wait_until("the replica to follow", async || {
            let state = replica.command(&["INFO", "replication"]).await?;
            Ok(state.contains("master_link_status:up"))
        })
        .await?;
        Ok(replica)
    }

    /// Makes a replica a master of its own.
    pub async fn promote(&self) -> Result<()> {
        self.command(&["REPLICAOF", "NO", "ONE"]).await.map(drop)
    }

    /// Ends the server in order.
    pub async fn stop(&self) -> Result<()> {
        self.daemon.stop().await
    }

    /// Kills the server.
    pub fn kill(&self) -> Result<()> {
        self.daemon.kill()
    }

    /// Freezes the server; connections stay open and nothing answers.
    pub fn pause(&self) -> Result<()> {
        self.daemon.pause()
    }

    /// Lets a paused server go on.
    pub fn resume(&self) -> Result<()> {
        self.daemon.resume()
    }

    /// What the server has written to its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    fn forget(&self) -> Result<()> {
        remove_if_there(&self.daemon.file("appendonlydir"))?;
        remove_if_there(&self.daemon.file("dump.rdb"))
    }

    async fn run(&self, is_durable: bool) -> Result<()> {
        let port = self.port().to_string();
        let append = if is_durable { "yes" } else { "no" };
        let arguments = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", append];
        let mut arguments: Vec<OsString> = arguments.map(OsString::from).to_vec();
        arguments.extend(["--appendfsync", "always", "--repl-diskless-sync-delay", "0"].map(OsString::from));
        self.daemon.start(&arguments).await?;
        // It takes connections before it has read its files.
        wait_until("Redis to be ready", async || {
            Ok(self.command(&["PING"]).await.is_ok_and(|answer| answer == "PONG"))
        })
        .await
    }
}
