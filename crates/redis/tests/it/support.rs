//! A server, a cache on it, and orders.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::cache::{Accepted, EntryId, Epoch, Landing};
use holdfast_core::command::{Place, PlaceLine};
use holdfast_core::id::{Account, CampaignId, Location, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_engine::{Accept, Answer, Applied, Cache, CacheError, Credit, Delivery, Position, Seed};
use holdfast_redis::{Address, Options, RedisCache};
use holdfast_testkit::Redis;

pub(crate) const BUCKET: BucketKey = BucketKey { pool: PoolId(7), number: 0 };
/// The position of the base that a test's epochs begin at.
pub(crate) const BASE: u64 = 10;

/// Deadlines that a busy machine keeps: a test that wants a short one says so.
pub(crate) fn patient() -> Options {
    let long = Duration::from_secs(10);
    Options { accept: long, call: long, connect: long, ..Options::default() }
}

pub(crate) fn cache_at(url: &str, options: Options) -> RedisCache {
    RedisCache::new(&Address::parse(url).unwrap(), options).unwrap()
}

/// A bucket's cache and what a node knows of it.
pub(crate) struct Node {
    pub(crate) cache: Arc<RedisCache>,
    pub(crate) bucket: BucketKey,
    pub(crate) epoch: Epoch,
    pub(crate) identity: Arc<str>,
}

/// A server with one bucket's cache on it.
pub(crate) struct Rig {
    pub(crate) server: Redis,
    pub(crate) node: Node,
}

impl Rig {
    /// An open epoch with so much available.
    pub(crate) async fn open(available: u64) -> Self {
        let server = Redis::start().await.unwrap();
        let node = Node::open(&server.url(), patient(), available).await;
        Self { server, node }
    }
}

impl Node {
    /// The first epoch, open.
    pub(crate) async fn open(url: &str, options: Options, available: u64) -> Self {
        let cache = Arc::new(cache_at(url, options));
        let identity = cache.identity(BUCKET).await.unwrap();
        let node = Self { cache, bucket: BUCKET, epoch: Epoch(1), identity };
        node.begin(available).await;
        node
    }

    /// Another node on the same server.
    pub(crate) fn beside(&self, url: &str, options: Options) -> Self {
        let cache = Arc::new(cache_at(url, options));
        Self { cache, bucket: self.bucket, epoch: self.epoch, identity: Arc::clone(&self.identity) }
    }

    /// Seeds and opens the node's epoch.
    pub(crate) async fn begin(&self, available: u64) {
        let seed = Seed { bucket: self.bucket, epoch: self.epoch, base_seq: BASE, base_available: available };
        assert_eq!(self.cache.seed(seed).await, Ok(Applied::Done));
        assert_eq!(self.cache.open(self.bucket, self.epoch).await, Ok(Applied::Done));
    }

    /// The next epoch, on whichever server is there now.
    pub(crate) async fn rebuild(&mut self, available: u64) {
        self.epoch = self.epoch.next();
        self.identity = self.cache.identity(self.bucket).await.unwrap();
        self.begin(available).await;
    }

    pub(crate) fn order(&self, number: u64) -> Accept {
        self.order_of(number, 1, &format!("buyer-{number}"))
    }

    pub(crate) fn order_of(&self, number: u64, units: u32, account: &str) -> Accept {
        let line = PlaceLine {
            sku: Sku::new("tee").unwrap(),
            location: Some(Location::new("main").unwrap()),
            pool: self.bucket.pool,
            made_of: None,
            quantity: units,
        };
        let place = Place {
            id: OrderId(u128::from(number)),
            key: OrderKey {
                campaign: CampaignId::new("sale").unwrap(),
                order_no: OrderNo::new(&number_of(number)).unwrap(),
            },
            account: Account::new(account).unwrap(),
            lines: vec![line],
            hold_seconds: None,
            amount_due: None,
            limit_keys: [].into(),
            metadata: None,
            route: number,
            record_refusals: true,
            assortment: None,
            intake: None,
        };
        Accept {
            bucket: self.bucket,
            epoch: self.epoch,
            identity: Arc::clone(&self.identity),
            seen: 0,
            place: Arc::new(place),
            units: u64::from(units),
            due_at: Timestamp(1),
            account_limit: None,
            backlog_max: 1_000_000,
        }
    }

    pub(crate) async fn accept(&self, accept: &Accept) -> Result<Answer, CacheError> {
        self.cache.accept(accept).await
    }

    /// Accepts an order that must be accepted.
    pub(crate) async fn take(&self, number: u64) -> Accepted {
        match self.accept(&self.order(number)).await {
            Ok(Answer::Accepted { accepted, .. }) => accepted,
            answer => panic!("order {number}: {answer:?}"),
        }
    }

    pub(crate) async fn position(&self) -> Position {
        self.cache.position(self.bucket).await.unwrap().unwrap()
    }

    pub(crate) async fn deliver(&self, count: usize) -> Vec<Delivery> {
        self.cache.deliver(self.bucket, "lander", count, Duration::ZERO).await.unwrap()
    }

    /// The orders of entries that must all be orders.
    pub(crate) async fn deliver_orders(&self, count: usize) -> Vec<Arc<Landing>> {
        self.deliver(count).await.into_iter().map(order).collect()
    }

    pub(crate) async fn settle(&self, entries: &[EntryId]) {
        self.cache.settle(self.bucket, entries).await.unwrap();
    }

    pub(crate) async fn credit(&self, from: u64, to: u64, units: i64) -> Applied {
        let credit = Credit { bucket: self.bucket, epoch: self.epoch, from, to, units };
        self.cache.credit(credit).await.unwrap()
    }

    /// The law of the cache, without credits other than these.
    pub(crate) async fn assert_law(&self, base: i64, credits: i64) {
        let position = self.position().await;
        let accepted = i64::try_from(position.accepted_units).unwrap();
        assert_eq!(position.available, base + credits - accepted, "{position:?}");
        assert!(position.is_whole(), "{position:?}");
    }
}

pub(crate) fn number_of(number: u64) -> String {
    format!("no-{number}")
}

pub(crate) fn order(delivery: Delivery) -> Arc<Landing> {
    match delivery {
        Delivery::Order(landing) => landing,
        Delivery::Poison(set_aside) => panic!("{set_aside:?}"),
    }
}

/// The name of one of a bucket's keys.
pub(crate) fn key(part: &str) -> String {
    format!("{{hf:{}:{}}}:{part}", BUCKET.pool, BUCKET.number)
}

/// Asks until the answer is as wanted. For what heals by itself, in bounded time, and tells nobody when.
pub(crate) async fn until<T: std::fmt::Debug>(
    what: &str,
    mut ask: impl AsyncFnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    let mut last = None;
    for _ in 0..3_000 {
        looks.tick().await;
        let answer = ask().await;
        if is_so(&answer) {
            return answer;
        }
        last = Some(answer);
    }
    panic!("waited in vain for {what}: {last:?}")
}
