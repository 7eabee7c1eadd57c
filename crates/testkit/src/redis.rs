//! A private Redis.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command::{as_server_user, find, output, wait_until};
use crate::daemon::{Daemon, remove_if_there};
use crate::port::Port;

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
    /// Arguments that only this server is started with.
    more: Vec<String>,
    /// Where it speaks TLS, if it does.
    tls: Option<Port>,
}

impl Redis {
    /// A new, empty, durable server.
    pub async fn start() -> Result<Self> {
        Self::start_with(RedisOptions::default()).await
    }

    /// A new, empty server.
    pub async fn start_with(options: RedisOptions) -> Result<Self> {
        Self::start_as(options, Vec::new()).await
    }

    async fn start_as(options: RedisOptions, more: Vec<String>) -> Result<Self> {
        let server = Self::prepare(options, more).await?;
        server.restart().await?;
        Ok(server)
    }

    async fn prepare(options: RedisOptions, more: Vec<String>) -> Result<Self> {
        Ok(Self {
            daemon: Daemon::new(find("redis-server", BIN_VARIABLE, &[], "redis-server")?).await?,
            cli: find("redis-cli", BIN_VARIABLE, &[], "redis-tools")?,
            options,
            more,
            tls: None,
        })
    }

    /// A new, empty, durable server that speaks TLS too, with this certificate and its key in PEM form.
    pub async fn start_with_tls(certificate: &str, key: &str) -> Result<Self> {
        let mut server = Self::prepare(RedisOptions::default(), Vec::new()).await?;
        let port = Port::reserve()?;
        let certificate = server.daemon.write("tls.pem", certificate.as_bytes()).await?;
        let key = server.daemon.write("tls.key", key.as_bytes()).await?;
        let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
        let number = port.number.to_string();
        let words = ["--tls-port", &number, "--tls-cert-file", &certificate, "--tls-key-file", &key];
        server.more.extend(words.map(str::to_owned));
        server
            .more
            .extend(["--tls-auth-clients", "no", "--tls-ca-cert-file", &certificate].map(str::to_owned));
        server.tls = Some(port);
        server.restart().await?;
        Ok(server)
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// The URL for clients that speak TLS; none if the server does not.
    #[must_use]
    pub fn tls_url(&self) -> Option<String> {
        self.tls.as_ref().map(|port| format!("rediss://127.0.0.1:{}", port.number))
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.daemon.port.number
    }

    /// Runs one command; its answer as `redis-cli` prints it to a file. An error reply is an error.
    pub async fn command(&self, words: &[&str]) -> Result<String> {
        let mut cli = as_server_user(&self.cli, self.daemon.folder.path());
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
            wait_until("the append-only file", || async {
                let state = self.command(&["INFO", "persistence"]).await?;
                Ok(!state.contains("aof_rewrite_in_progress:1") && !state.contains("aof_rewrite_scheduled:1"))
            })
            .await?;
        }
        Ok(())
    }

    /// Makes every snapshot from now on fail, as a disk that cannot be written does.
    pub fn break_snapshots(&self) -> Result<()> {
        let path = self.daemon.file("dump.rdb");
        remove_if_there(&path)?;
        fs::create_dir(&path).with_context(|| path.display().to_string())
    }

    /// A second server that follows this one; it has caught up when this returns.
    pub async fn replica(&self) -> Result<Self> {
        self.replica_through(self.port()).await
    }

    /// The same, where what it follows passes another port, of a proxy before this server.
    pub async fn replica_through(&self, port: u16) -> Result<Self> {
        let replica = Self::start_with(self.options).await?;
        replica.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]).await?;
        wait_until("the replica to follow", || async {
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
        arguments.extend(self.more.iter().map(OsString::from));
        self.daemon.start(&arguments).await?;
        // It takes connections before it has read its files.
        wait_until("Redis to be ready", || async {
            Ok(self.command(&["PING"]).await.is_ok_and(|answer| answer == "PONG"))
        })
        .await
    }
}

/// A Sentinel that watches a master of the test's own, and fails over as soon as it is silent.
#[derive(Debug)]
pub struct Sentinel {
    daemon: Daemon,
}

/// The name by which [`Sentinel`] knows its master.
const MASTER: &str = "main";
/// After how many milliseconds of silence a server is taken for gone.
const SILENCE_MILLIS: &str = "500";

impl Sentinel {
    /// Watches a master, and finds its replicas from it.
    pub async fn watch(master: &Redis) -> Result<Self> {
        let daemon = Daemon::new(find("redis-server", BIN_VARIABLE, &[], "redis-server")?).await?;
        let (port, of_master) = (daemon.port.number, master.port());
        let lines = format!(
            "bind 127.0.0.1\nport {port}\nsentinel monitor {MASTER} 127.0.0.1 {of_master} 1\n\
             sentinel down-after-milliseconds {MASTER} {SILENCE_MILLIS}\n\
             sentinel failover-timeout {MASTER} 5000\n"
        );
        let file = daemon.write("sentinel.conf", lines.as_bytes()).await?;
        daemon.start(&[file.into_os_string(), "--sentinel".into()]).await?;
        let sentinel = Self { daemon };
        let cli = &master.cli;
        wait_until("the Sentinel to know the replica", || async {
            let mut command = as_server_user(cli, sentinel.daemon.folder.path());
            command.args(["-p", &port.to_string(), "SENTINEL", "REPLICAS", MASTER]);
            Ok(output(&mut command).await?.contains("master-link-status\nok"))
        })
        .await?;
        Ok(sentinel)
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/{MASTER}", self.daemon.port.number)
    }
}

/// A Redis Cluster of three masters.
#[derive(Debug)]
pub struct RedisCluster {
    /// Its masters, each with a third of the slots.
    pub masters: Vec<Redis>,
    /// The ports on which its servers speak to each other.
    ports: Vec<Port>,
}

impl RedisCluster {
    /// A working Cluster without replicas.
    pub async fn start() -> Result<Self> {
        let mut cluster = Self { masters: Vec::new(), ports: Vec::new() };
        for slots in [["0", "5461"], ["5462", "10922"], ["10923", "16383"]] {
            let master = cluster.server().await?;
            master.command(&["CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1]]).await?;
            cluster.masters.push(master);
        }
        cluster.until_it_works().await?;
        Ok(cluster)
    }

    /// A replica of one of the masters; it has caught up when this returns.
    pub async fn replica_of(&mut self, master: usize) -> Result<Redis> {
        let replica = self.server().await?;
        let master = self.masters.get(master).context("no such master")?;
        let id = master.command(&["CLUSTER", "MYID"]).await?;
        wait_until("the replica to know its master", || async {
            Ok(replica.command(&["CLUSTER", "REPLICATE", &id]).await.is_ok())
        })
        .await?;
        wait_until("the replica to follow", || async {
            let state = replica.command(&["INFO", "replication"]).await?;
            Ok(state.contains("master_link_status:up"))
        })
        .await?;
        // Who does not know it would not believe it either.
        let port = replica.port().to_string();
        wait_until("the masters to know the replica", || async {
            for master in &self.masters {
                if !master.command(&["CLUSTER", "SLOTS"]).await?.lines().any(|line| line == port) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
        Ok(replica)
    }

    /// Makes a replica the master of its slots, whatever the others say.
    pub async fn take_over(&self, replica: &Redis) -> Result<()> {
        replica.command(&["CLUSTER", "FAILOVER", "TAKEOVER"]).await.map(drop)
    }

    /// The URL for clients, which names one of the servers.
    pub fn url(&self) -> Result<String> {
        let seed = self.masters.last().context("no master")?;
        Ok(format!("redis+cluster://127.0.0.1:{}", seed.port()))
    }

    /// A new server that has met the others.
    async fn server(&mut self) -> Result<Redis> {
        let bus = Port::reserve()?;
        let number = bus.number.to_string();
        let words = ["--cluster-enabled", "yes", "--cluster-port", &number, "--cluster-node-timeout", "1000"];
        let server = Redis::start_as(RedisOptions::default(), words.map(str::to_owned).to_vec()).await?;
        self.ports.push(bus);
        if let (Some(first), Some(bus)) = (self.masters.first(), self.ports.first()) {
            let (port, bus) = (first.port().to_string(), bus.number.to_string());
            server.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await?;
        }
        Ok(server)
    }

    async fn until_it_works(&self) -> Result<()> {
        wait_until("the Cluster to work", || async {
            for master in &self.masters {
                let info = master.command(&["CLUSTER", "INFO"]).await?;
                let is_whole = info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
                if !is_whole {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await
    }
}
