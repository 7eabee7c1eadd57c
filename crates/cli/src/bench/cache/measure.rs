//! Turns on the cached path: a server, a Redis and an empty store of their own, load over HTTP.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use holdfast_client::Client;
use holdfast_testkit::{FaultProxy, Redis, RedisOptions, Way};

use crate::bench::load::{self, Measured, Pace, Requests};
use crate::bench::scrape::Scrape;
use crate::bench::stage::{Sale, Stage, directory};
use crate::private::PrivateServer;

/// How long a cache may take to accept, and a backlog to be landed.
const WAIT_MAX: Duration = Duration::from_secs(180);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// How one turn is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) connections: usize,
    pub(super) seconds: Duration,
    pub(super) seed: u64,
    pub(super) buckets: u32,
    /// Whether the cache flushes each write before it answers.
    pub(super) is_durable: bool,
    /// What the authority's answers are delayed by, on their way to the server.
    pub(super) delay: Option<Duration>,
}

/// Orders that came much faster than they were landed.
pub(super) struct Burst {
    pub(super) accepted: Measured,
    /// Orders that waited when the load ended.
    pub(super) backlog: f64,
    /// Of these, landed in a second, with nothing else to do.
    pub(super) landed_rps: f64,
}

/// The servers of one turn. The store must outlive the server, and the proxy both.
struct Shop {
    server: PrivateServer,
    pool: String,
    requests: Requests,
    redis: Redis,
    _proxy: Option<FaultProxy>,
}

impl Shop {
    async fn open(stage: &Stage, path: &'static str, load: Load, more: &[&str]) -> Result<Self> {
        let redis = Redis::start_with(RedisOptions { is_durable: load.is_durable }).await?;
        let directory = directory()?;
        let mut database = stage.empty(&directory).await?;
        let mut proxy = None;
        if let Some(delay) = load.delay {
            let port = stage.port().context("only a PostgreSQL of the benchmark's own can be made slow")?;
            let slow = FaultProxy::start(port).await?;
            slow.delay(Way::ToClient, delay);
            database = slow.through(&database);
            proxy = Some(slow);
        }
        let (url, base) = (redis.url(), ["--constant-answer", "--redis"]);
        let arguments = [&base[..], &[url.as_str()], more].concat();
        let server = PrivateServer::start_at(directory, &database, &arguments).await?;
        let campaign = format!("bench-{path}-{:x}", load.seed);
        let sale = Sale { campaign: &campaign, sku: "CUP", pools: 1, path, buckets: load.buckets };
        let pool = sale.open(&server).await?;
        let requests = sale.requests(vec![server.host().to_owned()], load.seed);
        let shop = Self { server, pool, requests, redis, _proxy: proxy };
        if path == "cached" {
            shop.until("accepts", |accepts, _| accepts).await?;
        }
        Ok(shop)
    }

    /// Waits until the caches of all buckets are so: whether they accept, and how many orders wait in them. When it
    /// was so.
    async fn until(&self, what: &str, mut is_so: impl FnMut(bool, u64) -> bool) -> Result<Instant> {
        let (client, begun) = (Client::new(self.server.address(), None)?, Instant::now());
        while begun.elapsed() < WAIT_MAX {
            let cache = client.cache(&self.pool).await?;
            let accepts = cache.buckets.iter().all(|bucket| bucket.accepts);
            let backlog = cache.buckets.iter().map(|bucket| bucket.backlog).sum::<Option<u64>>();
            if is_so(accepts, backlog.unwrap_or(u64::MAX)) {
                return Ok(Instant::now());
            }
            pause().await;
        }
        bail!("the cache did not come to this within {WAIT_MAX:?}: {what}")
    }

    async fn stop(self) -> Result<()> {
        self.server.stop().await?;
        self.redis.stop().await
    }
}

#[expect(clippy::disallowed_methods, reason = "between two looks at the cache")]
async fn pause() {
    tokio::time::sleep(LOOK).await;
}

/// Orders as fast as they are accepted, of which so many a second are landed meanwhile; then another server lands
/// what waits, as fast as it goes.
pub(super) async fn burst(stage: &Stage, load: Load, landing_rate: u32) -> Result<Burst> {
    let rate = landing_rate.max(1).to_string();
    let mut shop = Shop::open(stage, "cached", load, &["--cache-landing-rate", &rate]).await?;
    let accepted = load::run(shop.requests.clone(), load.connections, Pace::Closed, load.seconds)
        .await
        .context("a burst")?;
    let redis = shop.redis.url();
    shop.server = shop.server.restart(&["--redis", &redis]).await?;
    // The first look that sees less than before stands at the end of what was landed until then.
    let (mut backlog, mut begun) = (0, Instant::now());
    let ended = shop
        .until("nothing waits", |_, left| {
            if left != u64::MAX && left >= backlog {
                (backlog, begun) = (left, Instant::now());
            }
            left == 0
        })
        .await?;
    ensure!(backlog > 0, "nothing was left to land: measure for longer");
    let backlog = f64::from(u32::try_from(backlog)?);
    shop.stop().await?;
    Ok(Burst { accepted, backlog, landed_rps: backlog / (ended - begun).as_secs_f64() })
}

/// The batched path under the same load; what was held.
pub(super) async fn batched(stage: &Stage, load: Load) -> Result<Measured> {
    let shop = Shop::open(stage, "batched", load, &[]).await?;
    let held = load::run(shop.requests.clone(), load.connections, Pace::Closed, load.seconds).await;
    shop.stop().await?;
    held.context("the batched path")
}

/// So many orders a second, landed as they come: the lag's p50 and p99 in milliseconds.
pub(super) async fn lag(stage: &Stage, load: Load, rate: f64) -> Result<[f64; 2]> {
    let shop = Shop::open(stage, "cached", load, &[]).await?;
    let before = Scrape::take(shop.server.address()).await?;
    load::run(shop.requests.clone(), load.connections, Pace::Open(rate), load.seconds)
        .await
        .context("a lag")?;
    shop.until("nothing waits", |_, left| left == 0).await?;
    let after = Scrape::take(shop.server.address()).await?;
    let lag = after.times(&before, "holdfast_cache_landing_lag_seconds", "");
    shop.stop().await?;
    Ok([lag.quantile(0.5) * 1e3, lag.quantile(0.99) * 1e3])
}
