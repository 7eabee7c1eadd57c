//! A server process on a port and a database of its own.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{DEADLINE, Http};

/// The binary under test.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    // What the caller's shell says must not leak in, nor of which test run this is: a benchmark's database server is
    // its own, and the servers of the run must not end with it.
    for (name, _) in std::env::vars_os() {
        if ["HOLDFAST_", "NEXTEST_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.kill_on_drop(true);
    command
}

/// Runs a command of the binary to its end.
pub(crate) async fn run(arguments: &[&str]) -> Output {
    binary().args(arguments).stdin(Stdio::null()).output().await.expect("the binary")
}

/// How a server starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Start {
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// Where its log goes; nowhere if it is not said.
    pub(crate) log: Option<PathBuf>,
}

/// A running server, or one that a test has killed.
pub(crate) struct Server {
    child: Child,
    /// The URL of its authority.
    database: String,
    /// Its working directory, in which it keeps what it must remember outside the database.
    home: PathBuf,
    /// Lines that it printed before it was ready.
    pub(crate) printed: Vec<String>,
    pub(crate) http: Http,
    _directory: Option<TempDir>,
}

impl Server {
    /// Starts a server on an empty database, without authentication.
    pub(crate) async fn start() -> Self {
        Self::start_with(Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }).await
    }

    pub(crate) async fn start_with(start: Start) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("test.db");
        let mut server = Self::start_on(&database, &start).await.expect("the server starts");
        server._directory = Some(directory);
        server
    }

    /// Starts a server on a database file that may exist; an error is its exit status.
    pub(crate) async fn start_on(database: &Path, start: &Start) -> Result<Self, ExitStatus> {
        let home = database.parent().expect("a folder");
        Self::start_in(home, &format!("sqlite:{}", database.display()), start).await
    }

    /// Starts a server on any authority, in a folder of its own; an error is its exit status.
    pub(crate) async fn start_at(database: &str, start: &Start) -> Result<Self, ExitStatus> {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Self::start_in(directory.path(), database, start).await?;
        server._directory = Some(directory);
        Ok(server)
    }

    async fn start_in(home: &Path, database: &str, start: &Start) -> Result<Self, ExitStatus> {
        let mut command = binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--database", database]).current_dir(home);
        command.args(&start.arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(match &start.log {
            Some(path) => Stdio::from(std::fs::File::create(path).unwrap()),
            None => Stdio::null(),
        });
        command.envs(start.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().expect("the binary");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut printed = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(address) = line.strip_prefix("listening on ") {
                let http = Http::new(address);
                let (database, home) = (database.to_owned(), home.to_owned());
                return Ok(Self { child, database, home, printed, http, _directory: None });
            }
            printed.push(line);
        }
        Err(child.wait().await.unwrap())
    }

    /// The database file.
    pub(crate) fn database(&self) -> &Path {
        Path::new(self.database.strip_prefix("sqlite:").expect("a file"))
    }

    /// The URL of its authority.
    pub(crate) fn authority(&self) -> &str {
        &self.database
    }

    /// Its process.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().map(|id| i32::try_from(id).unwrap()).expect("it runs")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        // It may have died at a point of its own.
        let _ = self.child.start_kill();
        self.child.wait().await.unwrap();
    }

    /// Whether it has died by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for a server that dies by itself.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        tokio::time::timeout(DEADLINE, self.child.wait()).await.expect("it dies by itself").unwrap()
    }

    /// Freezes the process: its connections stay open and it does nothing.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Whether it stands still, as a point can tell it to.
    pub(crate) fn is_paused(&self) -> bool {
        let Some(pid) = self.child.id() else { return false };
        // The state stands behind the name, which is in brackets.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    }

    /// Lets a frozen process go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends SIGHUP.
    pub(crate) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Sends SIGTERM and does not wait.
    pub(crate) fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Starts again on the same database.
    pub(crate) async fn restart(&mut self, start: &Start) {
        self.kill().await;
        let mut next =
            Self::start_in(&self.home, &self.database, start).await.expect("the server starts again");
        next._directory = self._directory.take();
        *self = next;
    }

    /// Stops it with SIGTERM, wants exit 0, and audits its database.
    pub(crate) async fn finish(mut self) {
        self.signal(Signal::TERM);
        let status = self.child.wait().await.unwrap();
        assert!(status.success(), "drained with {status}");
        self.verify().await;
    }

    /// Audits the database, beside the server if it runs.
    pub(crate) async fn verify(&self) -> Value {
        let output = run(&["verify", "--database", &self.database, "--format", "json"]).await;
        let verdict: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        assert!(output.status.success() && verdict["ok"] == true, "{:#}", verdict["breaches"]);
        verdict
    }
}
