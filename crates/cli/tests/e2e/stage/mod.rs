//! The drill's own deployments: each fault is there once it has begun, its end lets the deployment recover by itself,
//! and nothing is left when it is over.

mod authority;
mod cache;
mod machine;
mod nodes;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::support::{Answer, Http, binary, place_body, run, wait_within};

/// How long a stage may take for what it is told: a server is copied, a node stands still for longer than its leases.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stage with one open sale.
struct Stage {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    nodes: Vec<Http>,
    pool: String,
    next: AtomicU64,
}

impl Stage {
    /// Starts it, prepared for some faults, and opens a sale of a pool on a path.
    async fn open(kind: &str, faults: &[&str], path: &str) -> Self {
        let mut command = binary();
        command.args(["drill", "stage", kind]).args(faults.iter().flat_map(|fault| ["--fault", fault]));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (nodes, pool, next) = (Vec::new(), String::new(), AtomicU64::new(0));
        let mut stage = Self { child, input, lines, nodes, pool, next };
        loop {
            let line = stage.line().await;
            match line.strip_prefix("node ") {
                Some(address) => stage.nodes.push(Http::new(address)),
                None => {
                    assert_eq!(line, "ready");
                    break;
                }
            }
        }
        stage.nodes[0].campaign("drop", json!({"queue_wait_ms": 600_000})).await;
        let body =
            json!({"campaign_id": "drop", "sku": "CUP", "supply": 100_000, "buckets": 2, "path": path});
        let pool = stage.nodes[0].post("/v1/pools", &body).await;
        assert_eq!(pool.status, 201, "{pool:?}");
        stage.pool = pool.text("id");
        stage.every_node_sells().await;
        stage
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        line.expect("the stage says nothing").unwrap().expect("the stage has ended")
    }

    async fn tell(&mut self, line: &str) -> String {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let said = self.line().await;
        said.strip_prefix(&format!("{line}: ")).unwrap_or_else(|| panic!("{line}: {said}")).to_owned()
    }

    async fn begin(&mut self, fault: &str) {
        assert_eq!(self.tell(&format!("begin {fault}")).await, "done");
    }

    async fn end(&mut self, fault: &str) {
        assert_eq!(self.tell(&format!("end {fault}")).await, "done");
    }

    /// Places an order at a node: none if there is no answer within a time.
    async fn place_within(&self, node: usize, most: Duration) -> Option<Answer> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let body = place_body("drop", &format!("S-{number}"), "CUP", 1);
        let placed = self.nodes[node].try_send("POST", "/v1/orders", Some(&body));
        tokio::time::timeout(most, placed).await.ok().flatten()
    }

    async fn place(&self, node: usize) -> Option<Answer> {
        self.place_within(node, PATIENCE).await
    }

    /// Waits until a node sells.
    async fn sells(&self, node: usize) {
        wait_within(PATIENCE, "a node to sell", async || {
            let answer = self.place_within(node, Duration::from_secs(5)).await?;
            matches!(answer.status, 201 | 202).then_some(())
        })
        .await;
    }

    /// Waits until every node sells.
    async fn every_node_sells(&self) {
        for node in 0..self.nodes.len() {
            self.sells(node).await;
        }
    }

    /// Waits until a node answers 503; its code.
    async fn is_away(&self) -> String {
        wait_within(PATIENCE, "an outage", async || {
            let answer = self.place(0).await?;
            (answer.status == 503).then(|| {
                assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
                answer.code().to_owned()
            })
        })
        .await
    }

    /// The sum of a metric over all nodes and labels.
    async fn metric(&self, name: &str) -> f64 {
        let mut sum = 0.0;
        for node in &self.nodes {
            let Some(answer) = node.try_send("GET", "/metrics", None).await else { continue };
            let text = String::from_utf8_lossy(&answer.raw).into_owned();
            let is_of =
                |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
            let values =
                text.lines().filter(is_of).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            sum += values.sum::<f64>();
        }
        sum
    }

    /// The caches of the pool's buckets; none if no node can say.
    async fn caches(&self) -> Option<Vec<Value>> {
        let path = format!("/v1/pools/{}/cache", self.pool);
        let answer =
            self.nodes[0].try_send("GET", &path, None).await.filter(|answer| answer.status == 200)?;
        answer.body["buckets"].as_array().cloned()
    }

    /// Waits until every bucket's cache accepts.
    async fn cache_accepts(&self) {
        wait_within(PATIENCE, "the caches to accept", async || {
            self.caches().await?.iter().all(|cache| cache["accepts"] == true).then_some(())
        })
        .await;
    }

    /// The folder of everything that the stage has started.
    fn folder(&self) -> PathBuf {
        let user = rustix::process::getuid().as_raw();
        std::env::temp_dir()
            .join(format!("holdfast-testkit-{user}"))
            .join(format!("process-{}", self.child.id().expect("it runs")))
    }

    /// The connections that nodes have made to servers, by the numbers of their sockets.
    fn connections(&self) -> BTreeSet<u64> {
        let mut sockets = BTreeSet::new();
        for process in processes(&self.folder()).into_iter().filter(|process| is_node(process)) {
            for file in std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
                let target = std::fs::read_link(file.path()).unwrap_or_default().display().to_string();
                let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
                sockets.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
            }
        }
        let own: BTreeSet<u16> = self.nodes.iter().map(|node| port(&node.base)).collect();
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let open = table.lines().skip(1).filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let local = u16::from_str_radix(columns[1].rsplit(':').next()?, 16).ok()?;
            let is_established = columns[3] == "01";
            (is_established && !own.contains(&local)).then(|| columns[9].parse().ok())?
        });
        open.filter(|inode| sockets.contains(inode)).collect()
    }

    /// Waits until none of these connections is there.
    async fn loses(&self, connections: &BTreeSet<u64>) {
        assert!(!connections.is_empty());
        wait_within(PATIENCE, "connections to be gone", async || {
            self.connections().is_disjoint(connections).then_some(())
        })
        .await;
    }

    /// Its rows bear the judgement, and at the end of its input nothing of it is left.
    async fn finish(mut self) {
        self.every_node_sells().await;
        assert_eq!(self.tell("verify").await, "clean");
        let folder = self.folder();
        drop(self.input);
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
        is_gone(&folder).await;
    }
}

fn port(base: &str) -> u16 {
    base.rsplit(':').next().unwrap().parse().unwrap()
}

/// The processes that work in a folder.
fn processes(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(|process| {
        std::fs::read_link(process.join("cwd")).is_ok_and(|folder_of| folder_of.starts_with(folder))
    })
    .collect()
}

fn is_node(process: &Path) -> bool {
    std::fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "holdfast")
}

/// Waits until nothing of a stage is left: no process, no folder, no mounted disk.
async fn is_gone(folder: &Path) {
    wait_within(PATIENCE, "the stage to be gone", async || {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let is_mounted = mounts.contains(&*folder.to_string_lossy());
        (processes(folder).is_empty() && !folder.exists() && !is_mounted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_stage_that_was_killed() {
    let mut stage = Stage::open("sqlite-redis", &["fill-disk", "restore-cache"], "cached").await;
    let folder = stage.folder();
    assert!(processes(&folder).len() >= 2);
    stage.child.kill().await.unwrap();
    is_gone(&folder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_deployment_cannot_have_is_refused_before_anything_starts() {
    for (kind, fault, why) in [
        ("sqlite", "wipe-cache", "it has no cache"),
        ("sqlite-redis", "kill-authority", "for which there is kill-node"),
        ("sqlite", "fail-over-authority", "no standby"),
        ("postgres", "cut-cache", "it has no cache"),
    ] {
        let output = run(&["drill", "stage", kind, "--fault", fault]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_lacks_what_a_fault_needs_says_so() {
    for fault in ["step-clock", "slow-disk"] {
        let mut command = binary();
        command.args(["drill", "stage", "sqlite", "--fault", fault]).env("HOLDFAST_TEST_CC_BIN", "/nowhere");
        let output = command.stdin(Stdio::null()).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("cannot have {fault}")) && said.contains("install gcc"), "{said}");
    }
}
