//! A private NATS server with JetStream.

use std::ffi::OsString;

use anyhow::Result;

use crate::command::find;
use crate::daemon::{Daemon, remove_if_there};

/// A NATS server of the test's own, with JetStream on files. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Nats {
    daemon: Daemon,
}

impl Nats {
    /// A new, empty server.
    pub async fn start() -> Result<Self> {
        let program = find("nats-server", "HOLDFAST_TEST_NATS_BIN", &[], "nats-server")?;
        let server = Self { daemon: Daemon::new(program).await? };
        server.restart().await?;
        Ok(server)
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port())
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.daemon.port.number
    }

    /// Starts a stopped or killed server again, with what its streams had on disk.
    pub async fn restart(&self) -> Result<()> {
        let port = self.port().to_string();
        let arguments = ["-a", "127.0.0.1", "-p", &port, "-js", "-sd", "jetstream"];
        self.daemon.start(&arguments.map(OsString::from)).await
    }

    /// Starts a stopped or killed server again, having lost everything.
    pub async fn restart_empty(&self) -> Result<()> {
        remove_if_there(&self.daemon.file("jetstream"))?;
        self.restart().await
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
}
