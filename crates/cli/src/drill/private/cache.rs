//! The cache of a private deployment, and all that can happen to it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use holdfast_drill::Fault;
use holdfast_testkit::{FaultProxy, Redis, Snapshot, Way};
use tokio::sync::Mutex;

use super::task::Task;
use super::wait;

/// How often a snapshot is kept, and how many: the oldest of them is what a careless restore brings back.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(1);
const SNAPSHOTS: usize = 3;
/// How long the server may take to answer, and how often it is asked to be whole again.
const ANSWER_MAX: Duration = Duration::from_secs(1);
const TRIES_MAX: u32 = 20;
/// For how long a replica has heard nothing when it takes over.
const LAG: Duration = Duration::from_millis(300);
/// For how long of which time nothing can be acknowledged, so that it is delivered again: a tenth of all deliveries.
const REFUSED: Duration = Duration::from_millis(100);
const ACKNOWLEDGED: Duration = Duration::from_millis(900);

/// A Redis behind a proxy.
pub(super) struct Cache {
    /// By which nodes reach whichever server is the primary.
    proxy: FaultProxy,
    servers: Arc<Servers>,
    keeping: Task,
    repeating: Task,
}

struct Servers {
    pair: Mutex<Pair>,
    snapshots: Mutex<VecDeque<Snapshot>>,
}

struct Pair {
    primary: Redis,
    replica: Option<Replica>,
}

/// Who takes over, and the network by which it follows.
struct Replica {
    network: FaultProxy,
    server: Redis,
}

impl Replica {
    async fn of(primary: &Redis) -> Result<Self> {
        let network = FaultProxy::start(primary.port()).await?;
        let server = primary.replica_through(network.port()).await?;
        Ok(Self { network, server })
    }
}

impl Cache {
    /// Starts it, such that it can have the faults.
    pub(super) async fn start(faults: &BTreeSet<Fault>) -> Result<Self> {
        let primary = Redis::start().await.context("a Redis for the drill")?;
        let proxy = FaultProxy::start(primary.port()).await?;
        let replica = match faults.contains(&Fault::FailOverCache) {
            true => Some(Replica::of(&primary).await?),
            false => None,
        };
        let pair = Mutex::new(Pair { primary, replica });
        let servers = Arc::new(Servers { pair, snapshots: Mutex::default() });
        let cache = Self { proxy, servers, keeping: Task::default(), repeating: Task::default() };
        if faults.contains(&Fault::RestoreCache) {
            cache.servers.keep_snapshot().await?;
            cache.keeping.begin(keep_snapshots(Arc::clone(&cache.servers)));
        }
        Ok(cache)
    }

    /// Its URL, as nodes reach it.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.proxy.port())
    }

    /// Cuts every connection to it.
    pub(super) async fn cut(&self) {
        self.proxy.cut().await;
    }

    /// Freezes it.
    pub(super) async fn pause(&self) -> Result<()> {
        self.servers.pair.lock().await.primary.pause()
    }

    /// Lets a frozen one go on.
    pub(super) async fn resume(&self) -> Result<()> {
        self.servers.pair.lock().await.primary.resume()
    }

    /// It loses everything.
    pub(super) async fn wipe(&self) -> Result<()> {
        self.servers.command(&["FLUSHALL"]).await
    }

    /// It comes back as it was some seconds before.
    pub(super) async fn restore(&self) -> Result<()> {
        let pair = self.servers.pair.lock().await;
        let snapshots = self.servers.snapshots.lock().await;
        pair.primary.restore(snapshots.front().context("no snapshot was kept")?).await
    }

    /// The primary dies, and a replica that has not heard of its last writes takes over.
    pub(super) async fn fail_over(&self) -> Result<()> {
        let mut pair = self.servers.pair.lock().await;
        let replica = match pair.replica.take() {
            Some(replica) => replica,
            None => Replica::of(&pair.primary).await?,
        };
        replica.network.hold(Way::ToClient);
        wait(LAG).await;
        pair.primary.kill()?;
        replica.server.promote().await?;
        self.proxy.lead_to(replica.server.port());
        // Connections through the proxy died with the server.
        pair.primary = replica.server;
        Ok(())
    }

    /// Refuses to hear that entries have landed, so that they are delivered again: at once, and then now and then until
    /// it is told to stop.
    pub(super) async fn repeat_deliveries(&self) -> Result<()> {
        self.servers.refuse_a_moment().await?;
        let servers = Arc::clone(&self.servers);
        self.repeating.begin(async move {
            loop {
                wait(ACKNOWLEDGED).await;
                // A server that is just away repeats what it has when it is back.
                let _ = servers.refuse_a_moment().await;
            }
        });
        Ok(())
    }

    /// Hears everything again.
    pub(super) async fn deliver_once(&self) -> Result<()> {
        self.repeating.end().await;
        let mut last = Ok(());
        for _ in 0..TRIES_MAX {
            last = self.servers.acknowledge(true).await;
            if last.is_ok() {
                break;
            }
            wait(REFUSED).await;
        }
        last
    }
}

impl Servers {
    async fn refuse_a_moment(&self) -> Result<()> {
        self.acknowledge(false).await?;
        wait(REFUSED).await;
        self.acknowledge(true).await
    }

    /// Whether entries may be acknowledged.
    async fn acknowledge(&self, may: bool) -> Result<()> {
        self.command(&["ACL", "SETUSER", "default", if may { "+xack" } else { "-xack" }]).await
    }

    /// Asks the primary something, and does not wait for one that stands still: who resumes it has to get at it.
    async fn command(&self, words: &[&str]) -> Result<()> {
        let pair = self.pair.lock().await;
        let asked = tokio::time::timeout(ANSWER_MAX, pair.primary.command(words)).await;
        asked.context("the cache does not answer")?.map(drop)
    }

    async fn keep_snapshot(&self) -> Result<()> {
        let taken = {
            let pair = self.pair.lock().await;
            tokio::time::timeout(ANSWER_MAX, pair.primary.snapshot()).await??
        };
        let mut snapshots = self.snapshots.lock().await;
        snapshots.push_back(taken);
        while snapshots.len() > SNAPSHOTS {
            snapshots.pop_front();
        }
        Ok(())
    }
}

async fn keep_snapshots(servers: Arc<Servers>) {
    let mut turns = tokio::time::interval(SNAPSHOT_EVERY);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        // Of a server that is just away there is none.
        let _ = servers.keep_snapshot().await;
    }
}
