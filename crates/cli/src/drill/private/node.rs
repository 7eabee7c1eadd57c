//! A node of the drill's own: this executable, on a port that stays its own.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use holdfast_testkit::{Folder, Port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::wait;

/// How long a node may take until it is ready for the first time.
const READY_MAX: Duration = Duration::from_secs(60);
/// How long one look at it may take, and how long after that is the next.
const LOOK_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// After what time a node that has ended by itself is started again, as a service manager does.
const RESTART_DELAY: Duration = Duration::from_millis(200);
/// How much of its log is shown when it does not get ready.
const LOG_LINES_SHOWN: usize = 20;

/// How a node is started.
#[derive(Debug, Clone, Default)]
pub(super) struct Start {
    /// The authority, as the node reaches it.
    pub(super) database: String,
    /// The cache, if there is one.
    pub(super) redis: Option<String>,
    /// Its roles; none: all.
    pub(super) roles: Option<&'static str>,
    /// What is in its environment besides.
    pub(super) environment: Vec<(String, String)>,
}

/// A running node, or one that was killed. Whatever way it ends by itself, it is started again.
pub(super) struct Node {
    // The keeper goes before the folder, so that nothing is started any more when the folder kills what it has.
    keeper: Keeper,
    life: Arc<Life>,
    port: Port,
    start: Start,
}

/// What the keeper and the node share.
struct Life {
    folder: Folder,
    /// Whether it is to run. Held while a process is started or killed, so that none slips in between.
    wanted: Mutex<bool>,
    changed: Notify,
}

/// Ends with what it holds.
struct Keeper(JoinHandle<()>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Life {
    fn wanted(&self) -> MutexGuard<'_, bool> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Starts it. [`Node::ready`] waits until it can be asked.
    pub(super) fn start(start: Start) -> Result<Self> {
        let life = Life { folder: Folder::new("node")?, wanted: Mutex::new(true), changed: Notify::new() };
        let (life, port) = (Arc::new(life), Port::reserve()?);
        let program =
            Program { executable: std::env::current_exe()?, port: port.number, start: start.clone() };
        let keeper = Keeper(tokio::spawn(keep(Arc::clone(&life), program)));
        Ok(Self { keeper, life, port, start })
    }

    /// Its base address.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number)
    }

    /// Whether clients may ask it.
    pub(super) fn sells(&self) -> bool {
        self.start.roles.is_none_or(|roles| roles.contains("api"))
    }

    /// Waits until it is ready.
    pub(super) async fn ready(&self) -> Result<()> {
        let looks = async {
            while !self.is_ready().await {
                if self.keeper.0.is_finished() {
                    bail!("the executable {:?} cannot be started", std::env::current_exe()?);
                }
                wait(LOOK_EVERY).await;
            }
            Ok(())
        };
        match tokio::time::timeout(READY_MAX, looks).await {
            Ok(ready) => ready,
            Err(_) => bail!("a node is not ready within {READY_MAX:?}; it said\n{}", self.log_tail()),
        }
    }

    async fn is_ready(&self) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port.number)).await?;
            stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: drill\r\nconnection: close\r\n\r\n").await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200 "))
        };
        matches!(tokio::time::timeout(LOOK_MAX, ask).await, Ok(Ok(true)))
    }

    /// Kills it; it stays dead until it is revived.
    pub(super) fn kill(&self) -> Result<()> {
        let mut wanted = self.life.wanted();
        *wanted = false;
        self.life.folder.kill()
    }

    /// Lets a killed one be started again.
    pub(super) fn revive(&self) {
        *self.life.wanted() = true;
        self.life.changed.notify_one();
    }

    /// Freezes it: its connections stay open, and it does nothing.
    pub(super) fn pause(&self) -> Result<()> {
        self.life.folder.pause()
    }

    /// Lets a frozen one go on.
    pub(super) fn resume(&self) -> Result<()> {
        self.life.folder.resume()
    }

    fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.life.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines.get(lines.len().saturating_sub(LOG_LINES_SHOWN)..).unwrap_or_default().join("\n")
    }
}

/// What is started.
struct Program {
    executable: PathBuf,
    port: u16,
    start: Start,
}

impl Program {
    fn spawn(&self, life: &Life) -> Result<Child> {
        let log = File::options().create(true).append(true).open(life.folder.path().join("log"))?;
        let mut command = Command::new(&self.executable);
        // What is set for the user's own server is not meant for this one.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDFAST_") {
                command.env_remove(name);
            }
        }
        let listen = format!("127.0.0.1:{}", self.port);
        command.args(["serve", "--auth", "off", "--listen", &listen, "--database", &self.start.database]);
        // The drill's own receiver of order events is on this machine.
        command.args(["--sink-private-addresses", "allow"]);
        if let Some(redis) = &self.start.redis {
            command.args(["--redis", redis]);
        }
        if let Some(roles) = self.start.roles {
            command.args(["--roles", roles]);
        }
        command.envs(self.start.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(life.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.kill_on_drop(true).spawn().context("a node cannot be started")
    }
}

/// Keeps a process running as long as one is wanted. Ends if none can be started at all.
async fn keep(life: Arc<Life>, program: Program) {
    loop {
        let started = {
            let wanted = life.wanted();
            wanted.then(|| program.spawn(&life))
        };
        match started {
            Some(Ok(mut child)) => {
                // However it ended: if it is still wanted, there has to be another.
                let _ = child.wait().await;
                wait(RESTART_DELAY).await;
            }
            Some(Err(_)) => return,
            None => life.changed.notified().await,
        }
    }
}
