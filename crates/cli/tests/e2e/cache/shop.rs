//! A shop with one pool on the cached path, its buyers, and the judge of what they were told.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_testkit::{Database, Redis, RedisOptions};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{Answer, Http, LEARNT_WITHIN, Server, Start, place_body, wait_until};

/// How often a buyer asks again who was told to.
const TRIES_MAX: usize = 200;
/// How many orders a crowd may be ahead of what the test waits for: enough that it buys while things happen, and
/// few enough that there is still something to buy afterwards, however fast or slow the machine.
const AHEAD_MAX: usize = 200;

/// What the shop stands on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Authority {
    /// One node on a file.
    File,
    /// Two nodes on PostgreSQL.
    TwoNodes,
}

/// What is sold, and how.
#[derive(Debug, Clone)]
pub(super) struct Sale {
    pub(super) supply: u64,
    pub(super) buckets: u32,
    pub(super) policy: Value,
    pub(super) redis: RedisOptions,
    /// Another address than the server's own: of a proxy.
    pub(super) redis_url: Option<String>,
    /// Orders a second that are landed; none: as fast as it goes.
    pub(super) landing_rate: Option<u32>,
}

impl Default for Sale {
    fn default() -> Self {
        Self {
            supply: 500,
            buckets: 1,
            policy: json!({"queue_wait_ms": 600_000}),
            redis: RedisOptions::default(),
            redis_url: None,
            landing_rate: None,
        }
    }
}

/// The shop.
pub(super) struct Shop {
    pub(super) nodes: Vec<Server>,
    pub(super) http: Http,
    pub(super) redis: Arc<Redis>,
    pub(super) pool: String,
    pub(super) start: Start,
    /// What the nodes share, if the shop made it.
    pub(super) database: Option<Arc<Database>>,
}

impl Shop {
    pub(super) async fn open(authority: Authority, sale: Sale) -> Self {
        let redis = Arc::new(Redis::start_with(sale.redis).await.unwrap());
        Self::open_with(authority, sale, redis).await
    }

    pub(super) async fn open_with(authority: Authority, sale: Sale, redis: Arc<Redis>) -> Self {
        match authority {
            Authority::File => Self::open_at(None, sale, redis).await,
            Authority::TwoNodes => {
                let database = Database::shared().await.unwrap();
                let mut shop = Self::open_at(Some(&database.url()), sale, redis).await;
                shop.database = Some(Arc::new(database));
                shop
            }
        }
    }

    /// With two nodes on a PostgreSQL, or one on a file.
    pub(super) async fn open_at(database: Option<&str>, sale: Sale, redis: Arc<Redis>) -> Self {
        let url = sale.redis_url.clone().unwrap_or_else(|| redis.url());
        let arguments = ["--auth", "off", "--redis", &url].map(str::to_owned).to_vec();
        let mut start = Start { arguments, ..Start::default() };
        if let Some(rate) = sale.landing_rate {
            start.arguments.extend(["--cache-landing-rate".to_owned(), rate.to_string()]);
        }
        let mut nodes = Vec::new();
        match database {
            None => nodes.push(Server::start_with(start.clone()).await),
            Some(database) => {
                for _ in 0..2 {
                    nodes.push(Server::start_at(database, &start).await.expect("a node starts"));
                }
            }
        }
        let http = Http::of_nodes(nodes.iter().map(|node| &node.http));
        http.campaign("drop", sale.policy.clone()).await;
        let body = json!({
            "campaign_id": "drop", "sku": "CUP", "supply": sale.supply, "buckets": sale.buckets, "path": "cached",
        });
        let pool = http.post("/v1/pools", &body).await;
        assert_eq!((pool.status, &pool.body["path"]), (201, &json!("cached")), "{pool:?}");
        let pool = pool.text("id");
        let shop = Self { nodes, http, redis, pool, start, database: None };
        shop.accepts().await;
        shop
    }

    /// Kills every node and starts it anew.
    pub(super) async fn restart(&mut self, start: Start) {
        for node in &mut self.nodes {
            node.kill().await;
        }
        self.start = start;
        for node in &mut self.nodes {
            node.restart(&self.start).await;
        }
        self.http = Http::of_nodes(self.nodes.iter().map(|node| &node.http));
    }

    /// As it was started, but told to die at a point.
    pub(super) fn doomed(&self, point: &str, hits: impl Display) -> Start {
        let armed = ("HOLDFAST_FAILPOINTS".to_owned(), format!("{point}={hits}"));
        Start { environment: vec![armed], ..self.start.clone() }
    }

    /// Waits until a node has died by itself.
    pub(super) async fn loses_a_node(&mut self) {
        wait_until("a node to die", async || self.nodes.iter_mut().any(Server::has_ended).then_some(()))
            .await;
    }

    /// Starts as before, and lands as fast as it goes.
    pub(super) fn unpaced(&self) -> Start {
        let mut start = self.start.clone();
        start.arguments.truncate(4);
        start
    }

    /// The sum of a metric over all nodes and labels.
    pub(super) async fn metric(&self, name: &str) -> f64 {
        let mut sum = 0.0;
        for node in &self.nodes {
            let Some(answer) = node.http.try_send("GET", "/metrics", None).await else { continue };
            let text = String::from_utf8_lossy(&answer.raw).into_owned();
            let of_name =
                |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
            sum += text
                .lines()
                .filter(of_name)
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum::<f64>();
        }
        sum
    }

    /// The caches of all buckets, as an operator sees them; none if no node can say.
    pub(super) async fn caches(&self) -> Option<Vec<Value>> {
        let path = format!("/v1/pools/{}/cache", self.pool);
        let answer = self.http.try_send("GET", &path, None).await.filter(|answer| answer.status == 200)?;
        answer.body["buckets"].as_array().cloned()
    }

    /// Waits until the cache of every bucket accepts, and every node knows.
    pub(super) async fn accepts(&self) {
        wait_until("the caches to accept", async || {
            let caches = self.caches().await?;
            caches.iter().all(|cache| cache["accepts"] == true && cache["state"] == "open").then_some(())
        })
        .await;
        if self.nodes.len() > 1 {
            let _ = tokio::time::timeout(LEARNT_WITHIN, std::future::pending::<()>()).await;
        }
    }

    /// Waits until nothing is under way between cache and authority, they agree, and the cache accepts.
    pub(super) async fn rests(&self) {
        wait_until("cache and authority to agree", async || {
            let caches = self.caches().await?;
            let is_still = |cache: &Value| {
                cache["accepts"] == true
                    && cache["backlog"] == 0
                    && cache["applied_seq"] == cache["ledger_seq"]
                    && cache["difference"] == 0
            };
            caches.iter().all(is_still).then_some(())
        })
        .await;
    }

    /// Ends the shop: every node is drained and the authority audited.
    pub(super) async fn finish(self) {
        for node in self.nodes {
            node.finish().await;
        }
    }
}

/// What a buyer was told first, and what finds it again.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) order_no: String,
    pub(super) first: Answer,
}

/// Buyers who keep what they were told.
#[derive(Default)]
pub(super) struct Buyers {
    next: AtomicU64,
    told: Mutex<Vec<Told>>,
    stopped: AtomicBool,
    /// How many may have been told something before a crowd pauses.
    paused_at: watch::Sender<usize>,
}

impl Buyers {
    /// Buyers whose numbers begin there.
    pub(super) fn from(first: u64) -> Self {
        Self { next: AtomicU64::new(first), ..Self::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.told.lock().unwrap().len()
    }

    pub(super) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// So many buy at the same time until they are stopped, not too far ahead of what is waited for.
    pub(super) fn begin(self: &Arc<Self>, http: &Http, clients: usize) -> Crowd {
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            let (buyers, http) = (Arc::clone(self), http.clone());
            let mut paused_at = self.paused_at.subscribe();
            tasks.spawn(async move {
                while !buyers.stopped.load(Ordering::SeqCst) {
                    let _ = paused_at.wait_for(|at| buyers.count() < *at).await;
                    buyers.buy(&http).await;
                }
            });
        }
        Crowd { buyers: Arc::clone(self), tasks }
    }

    /// So many orders, from so many clients.
    pub(super) async fn buy_all(self: &Arc<Self>, http: &Http, clients: usize, orders: u64) {
        let mut tasks = JoinSet::new();
        let last = self.next.load(Ordering::SeqCst) + orders;
        for _ in 0..clients {
            let (buyers, http) = (Arc::clone(self), http.clone());
            tasks.spawn(async move {
                while buyers.next.load(Ordering::SeqCst) < last {
                    buyers.buy(&http).await;
                }
            });
        }
        tasks.join_all().await;
    }

    /// One purchase: asked again with the same number until there is an answer.
    async fn buy(&self, http: &Http) {
        let order_no = format!("B-{}", self.next.fetch_add(1, Ordering::SeqCst));
        let body = place_body("drop", &order_no, "CUP", 1);
        for _ in 0..TRIES_MAX {
            match http.try_send("POST", "/v1/orders", Some(&body)).await {
                Some(first) if first.status != 503 => {
                    self.told.lock().unwrap().push(Told { order_no, first });
                    return;
                }
                Some(_) | None => tokio::task::yield_now().await,
            }
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Hears the end of everybody's order, and holds it against what was told before and against the pool.
    pub(super) async fn judge(&self, shop: &Shop) -> BTreeMap<String, u64> {
        let mut ends = BTreeMap::new();
        for told in self.told() {
            let end = end_of(&shop.http, &told).await;
            *ends.entry(end).or_default() += 1;
        }
        ends
    }
}

/// Buyers at work.
pub(super) struct Crowd {
    buyers: Arc<Buyers>,
    tasks: JoinSet<()>,
}

impl Crowd {
    /// Waits until so many more were told something.
    pub(super) async fn hears(&self, more: usize) {
        let until = self.buyers.count() + more;
        self.may_hear(more + AHEAD_MAX);
        wait_until("answers", async || (self.buyers.count() >= until).then_some(())).await;
    }

    /// Lets so many more be told something, before it pauses.
    pub(super) fn may_hear(&self, more: usize) {
        self.buyers.paused_at.send_replace(self.buyers.count() + more);
    }

    /// Lets everybody finish.
    pub(super) async fn stop(self) {
        self.buyers.stopped.store(true, Ordering::SeqCst);
        self.buyers.paused_at.send_replace(usize::MAX);
        self.tasks.join_all().await;
        self.buyers.stopped.store(false, Ordering::SeqCst);
    }
}

/// The end of an order in a word, waited for.
pub(super) async fn end_of(http: &Http, told: &Told) -> String {
    let first = &told.first;
    match first.status {
        200 | 201 => {
            let order = http.get(&format!("/v1/orders/{}", first.text("id"))).await;
            assert_eq!(order.status, 200, "{} was told {first:?} and is gone: {order:?}", told.order_no);
            order.text("state")
        }
        202 => {
            let found = decided(http, first).await;
            match found.status {
                200 => {
                    assert_eq!(found.text("order_no"), told.order_no, "the answer of somebody else");
                    match found.text("state").as_str() {
                        "failed" => format!("failed: {}", found.text("reason")),
                        state => state.to_owned(),
                    }
                }
                _ => found.code().to_owned(),
            }
        }
        _ => format!("refused: {}", first.code()),
    }
}

/// Waits for the end of what is queued, by its ticket.
pub(super) async fn decided(http: &Http, first: &Answer) -> Answer {
    let path = format!("/v1/orders/{}?ticket={}&wait=5s", first.text("id"), first.text("ticket"));
    wait_until("the end of a queued order", async || {
        let found = http.try_send("GET", &path, None).await?;
        let is_over = match found.status {
            200 => found.body["state"] != "queued",
            409 => true,
            503 => false,
            status => panic!("{status}: {found:?}"),
        };
        is_over.then_some(found)
    })
    .await
}

/// Makes two tests of each scenario.
macro_rules! on_each_authority {
    ($($name:ident)*) => {
        mod on_a_file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::Authority::File).await;
            })*
        }

        mod on_two_nodes {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::Authority::TwoNodes).await;
            })*
        }
    };
}
pub(super) use on_each_authority;
