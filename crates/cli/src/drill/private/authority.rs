//! The authority of a private deployment, and all that can happen to it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use holdfast_drill::{Fault, Kind};
use holdfast_testkit::{Disk, FaultProxy, Folder, Postgres, PostgresOptions, Shim};
use tokio::sync::Mutex;

use super::task::Task;

/// The database that the drill sells from.
const DATABASE: &str = "drill";
/// How large the disk is that can be full. It is in memory, and only what is written takes room.
const DISK_BYTES: u64 = 4 << 30;
/// How late a flush is on a slow disk: a hundred times what a disk in a server needs.
const FLUSH_DELAY: Duration = Duration::from_millis(50);
/// How often the answer to a commit is lost.
const LOSE_EVERY: Duration = Duration::from_millis(100);
/// At the end of a log that fits on the disk whatever the load.
const LOG_SETTING: &str = "max_wal_size = '512MB'";

/// Where the truth of the drill's sale is.
pub(super) enum Authority {
    /// In a file of the one node.
    File(FileAuthority),
    /// In a PostgreSQL.
    Server(Box<ServerAuthority>),
}

/// The embedded store.
pub(super) struct FileAuthority {
    disk: Option<Disk>,
    folder: Folder,
}

/// A PostgreSQL behind proxies.
pub(super) struct ServerAuthority {
    servers: Mutex<Servers>,
    /// The first leads to the first primary, the second, if there is one, to its standby; after a failover the other
    /// way round.
    proxies: Arc<Vec<FaultProxy>>,
    disk: Option<Disk>,
    losing: Task,
}

struct Servers {
    primary: Postgres,
    /// By which proxy nodes reach the primary.
    at: usize,
    standby: Option<Postgres>,
}

impl Authority {
    /// Starts what the kind has, such that it can have the faults.
    pub(super) async fn start(kind: Kind, faults: &BTreeSet<Fault>, shim: Option<&Shim>) -> Result<Self> {
        let disk = faults.contains(&Fault::FillDisk).then(|| Disk::mount(DISK_BYTES)).transpose()?;
        if !kind.has_many_nodes() {
            return Ok(Self::File(FileAuthority { disk, folder: Folder::new("store")? }));
        }
        let mut options = PostgresOptions::default();
        if let Some(disk) = &disk {
            options.disk = Some(disk.path().to_path_buf());
            options.settings.push(LOG_SETTING.to_owned());
        }
        if let Some(shim) = shim.filter(|_| faults.contains(&Fault::SlowDisk)) {
            options.environment = shim.environment();
        }
        let primary = Postgres::start_with(options).await.context("a PostgreSQL for the drill")?;
        primary.create_database(DATABASE).await?;
        let mut proxies = vec![FaultProxy::postgres(primary.port()).await?];
        let mut standby = None;
        if faults.contains(&Fault::FailOverAuthority) {
            let server = primary.synchronous_standby().await?;
            proxies.push(FaultProxy::postgres(server.port()).await?);
            standby = Some(server);
        }
        let servers = Mutex::new(Servers { primary, at: 0, standby });
        let proxies = Arc::new(proxies);
        Ok(Self::Server(Box::new(ServerAuthority { servers, proxies, disk, losing: Task::default() })))
    }

    /// Its URL, as nodes reach it.
    pub(super) fn url(&self) -> String {
        match self {
            Self::File(of) => format!("sqlite:{}", of.path().display()),
            Self::Server(of) => {
                let hosts: Vec<String> =
                    of.proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
                let only_primary = if hosts.len() > 1 { "?target_session_attrs=read-write" } else { "" };
                format!("postgres://holdfast@{}/{DATABASE}{only_primary}", hosts.join(","))
            }
        }
    }

    /// Its URL past everything that may be broken between it and the nodes.
    pub(super) async fn direct_url(&self) -> String {
        match self {
            Self::File(_) => self.url(),
            Self::Server(of) => of.servers.lock().await.primary.url(DATABASE),
        }
    }

    /// Makes its disk slow, or quick again. The shim is in whatever flushes: its server, or the node.
    pub(super) fn slow_disk(shim: Option<&Shim>, is_slow: bool) -> Result<()> {
        let delay = if is_slow { FLUSH_DELAY } else { Duration::ZERO };
        shim.context("nothing was prepared to be slow")?.delay_flushes(delay)
    }

    /// Leaves no room on its disk.
    pub(super) fn fill_disk(&self) -> Result<()> {
        self.disk().context("no disk was prepared to be full")?.fill()
    }

    /// Gives the room back. A server that died of it is started again, as a supervisor does.
    pub(super) async fn clear_disk(&self) -> Result<()> {
        self.disk().context("no disk was prepared to be full")?.clear()?;
        match self {
            Self::File(_) => Ok(()),
            Self::Server(of) => of.servers.lock().await.primary.revive().await,
        }
    }

    const fn disk(&self) -> Option<&Disk> {
        match self {
            Self::File(of) => of.disk.as_ref(),
            Self::Server(of) => of.disk.as_ref(),
        }
    }

    /// The server, for what only servers can have.
    pub(super) fn server(&self) -> Result<&ServerAuthority> {
        match self {
            Self::Server(of) => Ok(of),
            Self::File(_) => bail!("the embedded store has no server of its own"),
        }
    }
}

impl FileAuthority {
    fn path(&self) -> PathBuf {
        let folder = self.disk.as_ref().map_or_else(|| self.folder.path(), Disk::path);
        folder.join("drill.db")
    }
}

impl ServerAuthority {
    /// Kills the primary.
    pub(super) async fn kill(&self) -> Result<()> {
        self.servers.lock().await.primary.kill()
    }

    /// Starts a killed primary again.
    pub(super) async fn restart(&self) -> Result<()> {
        self.servers.lock().await.primary.restart().await
    }

    /// Freezes the primary.
    pub(super) async fn pause(&self) -> Result<()> {
        self.servers.lock().await.primary.pause()
    }

    /// Lets a frozen primary go on.
    pub(super) async fn resume(&self) -> Result<()> {
        self.servers.lock().await.primary.resume()
    }

    /// The primary dies and its standby takes over. The old primary is fenced by being gone.
    pub(super) async fn fail_over(&self) -> Result<()> {
        let mut servers = self.servers.lock().await;
        let other = 1 - servers.at;
        let proxy = self.proxies.get(other).context("no standby was prepared")?;
        let standby = match servers.standby.take() {
            Some(standby) => standby,
            // It has failed over before: there has to be another to fail over to.
            None => {
                let standby = servers.primary.synchronous_standby().await?;
                proxy.lead_to(standby.port());
                standby
            }
        };
        servers.primary.kill()?;
        standby.promote().await?;
        servers.primary = standby;
        servers.at = other;
        Ok(())
    }

    /// Cuts every connection to it.
    pub(super) async fn cut(&self) {
        for proxy in self.proxies.iter() {
            proxy.cut().await;
        }
    }

    /// Loses the answer to a commit every now and then, until it is told to stop.
    pub(super) fn lose_commit_answers(&self) {
        let proxies = Arc::clone(&self.proxies);
        self.losing.begin(async move {
            let mut turns = tokio::time::interval(LOSE_EVERY);
            loop {
                turns.tick().await;
                for proxy in proxies.iter() {
                    // One at a time: what no commit has used up does not add up.
                    proxy.keep_commit_answers();
                    proxy.lose_commit_answers(1);
                }
            }
        });
    }

    /// Loses no more.
    pub(super) async fn keep_commit_answers(&self) {
        self.losing.end().await;
        for proxy in self.proxies.iter() {
            proxy.keep_commit_answers();
        }
    }
}
