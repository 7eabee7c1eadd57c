//! A server of one's own: the same executable, a free port, a temporary store.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Its store, in its directory.
pub(crate) const DATABASE: &str = "private.db";

/// How long it may take to start.
const START_MAX: Duration = Duration::from_secs(30);

/// How long it may take to stop when asked; then it is killed.
const STOP_MAX: Duration = Duration::from_secs(15);

/// How much of its log is shown when it does not start.
const LOG_LINES_SHOWN: usize = 20;

/// A running private server. Dropped without [`PrivateServer::stop`], it is killed and its directory removed.
pub(crate) struct PrivateServer {
    // The fields are dropped in this order: the server must be gone before its directory.
    child: Child,
    address: String,
    database: String,
    /// Keeps the server's standard output open: a server that writes to a closed one could stop.
    _stdout: Lines<BufReader<ChildStdout>>,
    directory: TempDir,
}

impl PrivateServer {
    /// Starts it on an empty store and waits until it listens.
    pub(crate) async fn start() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("holdfast-private-").tempdir()?;
        Self::start_in(directory, &[]).await
    }

    /// Starts it in a directory, on the store there if there is one, with more arguments.
    pub(crate) async fn start_in(directory: TempDir, arguments: &[&str]) -> Result<Self> {
        let database = format!("sqlite:{}", directory.path().join(DATABASE).display());
        Self::start_at(directory, &database, arguments).await
    }

    /// Starts it in a directory, on any store, with more arguments.
    pub(crate) async fn start_at(directory: TempDir, database: &str, arguments: &[&str]) -> Result<Self> {
        let log = File::create(directory.path().join("server.log"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--auth", "off", "--database"])
            .arg(database)
            .args(arguments)
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        // What is set for the user's own server is not meant for this one.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDFAST_") {
                command.env_remove(name);
            }
        }
        let mut child = command.spawn().context("the private server cannot be started")?;
        let stdout = child.stdout.take().context("the private server has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        match tokio::time::timeout(START_MAX, address(&mut lines)).await {
            Ok(Ok(Some(address))) => {
                Ok(Self { child, address, database: database.to_owned(), _stdout: lines, directory })
            }
            Ok(Ok(None)) => bail!("the private server ended before it listened: {}", tail(&directory)),
            Ok(Err(error)) => Err(error).context("the private server cannot be heard"),
            Err(_) => bail!("the private server did not listen within {START_MAX:?}: {}", tail(&directory)),
        }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its host and port.
    pub(crate) fn host(&self) -> &str {
        self.address.trim_start_matches("http://")
    }

    /// The store that it is on.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Kills it as a crash would, and starts another on what it leaves.
    pub(crate) async fn restart(mut self, arguments: &[&str]) -> Result<Self> {
        self.child.kill().await.context("the private server cannot be killed")?;
        Self::start_at(self.directory, &self.database, arguments).await
    }

    /// Asks it to stop, waits, removes its directory.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).context("the private server cannot be stopped")?;
        }
        if tokio::time::timeout(STOP_MAX, self.child.wait()).await.is_err() {
            self.child.kill().await.context("the private server cannot be killed")?;
        }
        self.directory.close().context("the private server's directory cannot be removed")
    }
}

/// Reads until the server says where it listens; none if it ends before.
async fn address(lines: &mut Lines<BufReader<ChildStdout>>) -> std::io::Result<Option<String>> {
    while let Some(line) = lines.next_line().await? {
        let said = line.split_once("listening on ").map(|(_, rest)| rest.trim());
        if let Some(address) = said.filter(|address| address.starts_with("http://")) {
            return Ok(Some(address.to_owned()));
        }
    }
    Ok(None)
}

fn tail(directory: &TempDir) -> String {
    let log = std::fs::read_to_string(directory.path().join("server.log")).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    let shown = lines.iter().skip(lines.len().saturating_sub(LOG_LINES_SHOWN));
    let text: Vec<_> = shown.copied().collect();
    if text.is_empty() { "it said nothing".to_owned() } else { format!("it said\n{}", text.join("\n")) }
}
