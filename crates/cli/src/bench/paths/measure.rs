//! One turn of one path: a server of its own, load over HTTP, and what the server says of itself meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use holdfast_client::Client;
use serde::Serialize;

use crate::bench::load::{self, Measured, Pace, Requests};
use crate::bench::scrape::{Scrape, Times};
use crate::bench::stage::{Sale, Stage};
use crate::private::PrivateServer;

/// How long a queue may take to be empty after the load.
const DRAIN_MAX: Duration = Duration::from_secs(120);
/// An open load comes to a server that has served for so long: the first plans of a new database connection would be
/// most of what a few seconds show, and a sale is long.
const WARM_UP: Duration = Duration::from_millis(300);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A path over so many buckets, on one hot pool or on many even ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) path: &'static str,
    pub(crate) buckets: u32,
    pub(crate) pools: u32,
    /// Servers on the one database.
    pub(crate) nodes: u32,
}

impl Variant {
    /// One server.
    pub(crate) const fn new(path: &'static str, buckets: u32, pools: u32) -> Self {
        Self { path, buckets, pools, nodes: 1 }
    }

    pub(crate) const fn is_hot(&self) -> bool {
        self.pools == 1
    }

    fn is_queued(&self) -> bool {
        self.path == "queued"
    }

    /// Its name in words.
    pub(crate) fn name(&self) -> String {
        let buckets =
            if self.buckets == 1 { "1 bucket".to_owned() } else { format!("{} buckets", self.buckets) };
        if self.nodes > 1 {
            format!("{}, {buckets}, {} nodes", self.path, self.nodes)
        } else if self.is_hot() {
            format!("{}, {buckets}", self.path)
        } else {
            format!("{}, {} pools", self.path, self.pools)
        }
    }
}

/// Where an order waits, in milliseconds of its mean, in the order of its way.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Waits {
    /// Before and after the engine: the connection, parsing, the answer; where processors are short, all of it.
    pub(crate) entry: f64,
    /// In its lane, while other batches are committed; of the queued path, in its queue.
    pub(crate) lane: f64,
    /// For the locks of its batch.
    pub(crate) lock: f64,
    /// Under the locks, until it is flushed.
    pub(crate) commit: f64,
    /// For the flush: a part of `commit`.
    pub(crate) flush: f64,
}

impl Waits {
    /// Where it waits longest.
    pub(crate) fn queues_at(&self) -> &'static str {
        let places =
            [("entry", self.entry), ("lane", self.lane), ("lock", self.lock), ("commit", self.commit)];
        places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("entry", |(place, _)| place)
    }
}

/// What one turn has shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Holds a second.
    pub(crate) holds_rps: f64,
    /// Orders taken in a second, where they are decided later.
    pub(crate) accepted_rps: Option<f64>,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) lock_wait_p99_ms: f64,
    pub(crate) batch_size_mean: f64,
    pub(crate) waits: Waits,
    /// Bytes that the database wrote to its log for one hold, where it tells.
    pub(crate) log_bytes: Option<f64>,
    pub(crate) recovery: Option<Recovery>,
}

/// What a crash leaves to do.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Recovery {
    /// From the kill until the next server listens.
    pub(crate) restart_ms: f64,
    /// Orders that were stored then.
    pub(crate) stored_orders: f64,
    /// Orders that were taken in and not decided when it was killed: they are landed after the start.
    pub(crate) left_orders: f64,
}

/// How one turn is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load<'d> {
    /// A database that holds orders already; none: an empty one.
    pub(crate) database: Option<&'d str>,
    pub(crate) connections: usize,
    pub(crate) pace: Pace,
    pub(crate) seconds: Duration,
    pub(crate) seed: u64,
    /// Whether the server is killed at the end, to see what that costs.
    pub(crate) crash: bool,
}

/// Takes one turn.
pub(crate) async fn turn(stage: &Stage, variant: Variant, load: Load<'_>) -> Result<Turn> {
    let server = stage.server_on(load.database).await?;
    let mut others = Vec::new();
    for _ in 1..variant.nodes {
        others.push(stage.server_on(Some(server.database())).await?);
    }
    let campaign = format!("bench-{}-{}-{}-{:x}", variant.path, variant.buckets, variant.pools, load.seed);
    let sale = Sale {
        campaign: &campaign,
        sku: "CUP",
        pools: variant.pools,
        path: variant.path,
        buckets: variant.buckets,
    };
    let pool = sale.open(&server).await?;
    let addresses = std::iter::once(&server).chain(&others).map(|node| node.host().to_owned()).collect();
    let requests = sale.requests(addresses, load.seed);
    if matches!(load.pace, Pace::Open(_)) {
        let other = Requests { seed: !load.seed, ..requests.clone() };
        load::run(other, load.connections, Pace::Closed, WARM_UP).await?;
    }
    let before = Scrape::take(server.address()).await?;
    let log_before = stage.log_bytes(server.database()).await?;
    let begun = Instant::now();
    let measured = load::run(requests, load.connections, load.pace, load.seconds).await?;
    let after = Scrape::take(server.address()).await?;
    let mut turn = read(&before, &after, &measured);
    let log_bytes = stage.log_bytes(server.database()).await?.zip(log_before);
    turn.log_bytes = log_bytes.map(|(after, before)| (after - before) / measured.count());
    for node in others {
        node.stop().await?;
    }
    if variant.is_queued() {
        let left = measured.count() - held(&server, &pool).await?;
        turn.accepted_rps = Some(measured.rps);
        let landed = drained(&server, &pool, measured.count(), begun).await?;
        turn.holds_rps = landed;
        turn.recovery = finish(server, load, measured.count(), left).await?;
    } else {
        turn.recovery = finish(server, load, measured.count(), 0.0).await?;
    }
    Ok(turn)
}

fn read(before: &Scrape, after: &Scrape, measured: &Measured) -> Turn {
    let times = |name: &str, labels: &str| after.times(before, name, labels);
    let place = times("holdfast_entry_place_seconds", "");
    let lane = times("holdfast_lane_wait_seconds", "class=\"placing\"");
    let lock = times("holdfast_store_lock_wait_seconds", "");
    let hold = times("holdfast_store_lock_hold_seconds", "");
    let commit = times("holdfast_store_commit_seconds", "");
    let ms = |times: &Times| times.mean() * 1e3;
    Turn {
        holds_rps: measured.rps,
        accepted_rps: None,
        p50_ms: measured.percentile_ms(50.0),
        p99_ms: measured.percentile_ms(99.0),
        p999_ms: measured.percentile_ms(99.9),
        lock_wait_p99_ms: lock.quantile(0.99) * 1e3,
        batch_size_mean: times("holdfast_store_batch_commands", "").mean(),
        waits: Waits {
            entry: (measured.mean_ms() - ms(&place)).max(0.0),
            lane: ms(&lane),
            lock: ms(&lock),
            commit: ms(&hold),
            flush: ms(&commit),
        },
        log_bytes: None,
        recovery: None,
    }
}

/// Stops the server; or kills it and starts another on what it leaves.
async fn finish(server: PrivateServer, load: Load<'_>, stored: f64, left: f64) -> Result<Option<Recovery>> {
    if !load.crash {
        server.stop().await?;
        return Ok(None);
    }
    let begun = Instant::now();
    let server = server.restart(&[]).await?;
    let restart_ms = begun.elapsed().as_secs_f64() * 1e3;
    server.stop().await?;
    Ok(Some(Recovery { restart_ms, stored_orders: stored, left_orders: left.max(0.0) }))
}

/// Units that the pool holds: one an order.
async fn held(server: &PrivateServer, pool: &str) -> Result<f64> {
    let pool = Client::new(server.address(), None)?.pool(pool).await?;
    Ok(f64::from(u32::try_from(pool.held).context("too many holds for one measurement")?))
}

/// Waits until as many orders are held as were taken in; holds a second from the first to the last.
#[expect(clippy::disallowed_methods, reason = "between two looks at the queue")]
async fn drained(server: &PrivateServer, pool: &str, accepted: f64, begun: Instant) -> Result<f64> {
    let ended = Instant::now();
    while ended.elapsed() < DRAIN_MAX {
        if held(server, pool).await? >= accepted {
            return Ok(accepted / begun.elapsed().as_secs_f64());
        }
        tokio::time::sleep(LOOK).await;
    }
    bail!("the queue was not empty {DRAIN_MAX:?} after the load")
}
