//! What a commit costs: batches on one bucket, one after another, beside a bare bulk insert of the same rows into the
//! same tables. Give it the URL of an empty database:
//!
//!     cargo run --release -p holdfast-postgres --example throughput -- postgres://shop@db/bench [SECONDS]

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement may fail"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{Command, OpenPool, Outcome, Place, PlaceLine, Signed};
use holdfast_core::id::{Account, CampaignId, Location, Operator, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path};
use holdfast_metrics::Histogram;
use holdfast_postgres::{Address, Options, PostgresStore};
use holdfast_store::{Batch, PutCampaign, Store, SwitchCampaign};
use tokio_postgres::{NoTls, Statement};
use uuid::Uuid;

const SUPPLY: u64 = 1_000_000_000;
const BATCHES: [usize; 5] = [1, 10, 100, 500, 1_000];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("the URL of an empty database");
    let duration = Duration::from_secs(arguments.next().map_or(5, |text| text.parse().expect("seconds")));
    let address = Address::parse(&url).expect("a URL");
    let store =
        PostgresStore::open(&address, Options { incarnation: 1, ..Options::default() }).await.unwrap();
    let run = u128::from(std::process::id()) << 64;
    let pool = sale(&store, run).await;
    let mut bare = Bare::open(&url, run).await;
    let mut next = run;
    println!(
        "{:>7} {:>12} {:>12} {:>7} {:>9} {:>9} {:>9}",
        "batch", "holdfast/s", "bare/s", "share", "read ms", "decide ms", "write ms"
    );
    for size in BATCHES {
        // Interleaved, so that whatever else the machine does meets both.
        let (mut ours, mut floor) = (Rate::default(), Rate::default());
        let metrics = store.metrics();
        let before = [&metrics.lock_wait, &metrics.lock_hold, &metrics.commit].map(Histogram::seen);
        for _ in 0..3 {
            ours.add(duration / 3, async || {
                let commands = (0..size).map(|_| place(&mut next, pool)).collect();
                let locks = LockSet::bucket(BucketKey { pool, number: 0 });
                let done = store.commit(Batch { locks, commands: Arc::new(commands) }).await.unwrap();
                assert!(done.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Order { .. })));
                size
            })
            .await;
            floor.add(duration / 3, async || bare.insert(size).await).await;
        }
        let after = [&metrics.lock_wait, &metrics.lock_hold, &metrics.commit].map(Histogram::seen);
        let [read, held, write] = [0, 1, 2].map(|at| after[at].since(&before[at]).mean() * 1_000.0);
        println!(
            "{size:>7} {:>12.0} {:>12.0} {:>7.2} {read:>9.2} {:>9.2} {write:>9.2}",
            ours.per_second(),
            floor.per_second(),
            ours.per_second() / floor.per_second(),
            held - write
        );
    }
}

#[derive(Default)]
struct Rate {
    rows: usize,
    took: Duration,
}

impl Rate {
    async fn add(&mut self, duration: Duration, mut work: impl AsyncFnMut() -> usize) {
        let begun = Instant::now();
        while begun.elapsed() < duration {
            self.rows += work().await;
        }
        self.took += begun.elapsed();
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn per_second(&self) -> f64 {
        self.rows as f64 / self.took.as_secs_f64()
    }
}

async fn sale(store: &PostgresStore, run: u128) -> PoolId {
    let id = CampaignId::new("bench").unwrap();
    let policy = Policy { hold_seconds: 86_400, hold_seconds_max: 86_400, ..Policy::default() };
    let put = PutCampaign {
        id: id.clone(),
        name: "bench".into(),
        starts_at: None,
        ends_at: None,
        policy,
        via: None,
    };
    store.put_campaign(put).await.unwrap();
    let operator = Operator::new("bench").unwrap();
    let open =
        SwitchCampaign { id: id.clone(), switch: Switch::Open, operator, reason: String::new(), via: None };
    store.switch_campaign(open).await.unwrap().unwrap();
    let open = Command::OpenPool(OpenPool {
        id: PoolId(run),
        campaign: id,
        sku: Sku::new(&format!("CUP-{run:x}")).unwrap(),
        location: Location::new("main").unwrap(),
        supply: SUPPLY,
        buckets: 1,
        path: Path::Batched,
        routing: holdfast_core::stock::Routing::OrderHash,
        signed: Signed::new("bench", "bench"),
    });
    store.commit(Batch { locks: LockSet::default(), commands: Arc::new(vec![open]) }).await.unwrap();
    PoolId(run)
}

/// An order with an id that rises and a number that is random, as the engine makes them.
fn place(next: &mut u128, pool: PoolId) -> Command {
    *next += 1;
    Command::Place(Arc::new(Place {
        id: OrderId(*next),
        key: OrderKey {
            campaign: CampaignId::new("bench").unwrap(),
            order_no: OrderNo::new(&format!("{:032x}", fastrand::u128(..))).unwrap(),
        },
        account: Account::new(&format!("account-{:06x}", fastrand::u32(..1 << 24))).unwrap(),
        lines: vec![PlaceLine {
            sku: Sku::new("CUP").unwrap(),
            location: Location::new("main").unwrap(),
            pool,
            quantity: 1,
        }],
        hold_seconds: None,
        amount_due: None,
        limit_keys: holdfast_core::limit::LimitKeys::new(),
        metadata: None,
        route: 0,
        record_refusals: true,
        intake: None,
    }))
}

/// The rows of a hold without any decision: one transaction, sent at once.
struct Bare {
    client: tokio_postgres::Client,
    orders: Statement,
    entries: Statement,
    bucket: Statement,
    pool: Uuid,
    next: u128,
    seq: i64,
}

const LINES: &str = r#"[{"sku":"CUP","pool":"07070707070707070707070707070707","quantity":1,"allocations":[{"bucket":0,"quantity":1}]}]"#;

impl Bare {
    async fn open(url: &str, run: u128) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let orders = "INSERT INTO orders (id, campaign_id, order_no, account, state, version, home_pool, home_bucket, \
            lines, hold_seconds, hold_ends_at, due_at, extended, created_at, updated_at) \
            SELECT id, 'bare', no, account, 'held', 1, $4, 0, $5, 900, $6, $6, false, $6, $6 \
            FROM UNNEST($1::uuid[], $2::text[], $3::text[]) AS new (id, no, account)";
        let entries = "INSERT INTO ledger (pool, bucket, seq, at, order_id, business_no, action, delta_available, \
            delta_held, delta_sold, to_state, order_version, source, actor, reason) \
            SELECT $1, 0, seq, $2, id, no, 'place', -1, 1, 0, 'held', 1, 'place', 'buyer', '' \
            FROM UNNEST($3::bigint[], $4::uuid[], $5::text[]) AS new (seq, id, no)";
        let bucket =
            "UPDATE bucket SET available = available - $2, held = held + $2, ledger_seq = $3 WHERE pool = $1";
        let pool = Uuid::from_u128(run + (1 << 63));
        let insert = "INSERT INTO bucket VALUES ($1, 0, 1, 1000000000, 0, 0, 0, 0)";
        client.execute(insert, &[&pool]).await.unwrap();
        Self {
            orders: client.prepare(orders).await.unwrap(),
            entries: client.prepare(entries).await.unwrap(),
            bucket: client.prepare(bucket).await.unwrap(),
            client,
            pool,
            next: run + (1 << 63),
            seq: 0,
        }
    }

    async fn insert(&mut self, size: usize) -> usize {
        let now = 1_700_000_000_000_000_i64;
        let ids: Vec<Uuid> = (0..size)
            .map(|_| {
                self.next += 1;
                Uuid::from_u128(self.next)
            })
            .collect();
        let numbers: Vec<String> = (0..size).map(|_| format!("{:032x}", fastrand::u128(..))).collect();
        let accounts: Vec<String> =
            (0..size).map(|_| format!("account-{:06x}", fastrand::u32(..1 << 24))).collect();
        let count = i64::try_from(size).unwrap();
        let seqs: Vec<i64> = (self.seq + 1..=self.seq + count).collect();
        self.seq += count;
        let begin = async { self.client.batch_execute("BEGIN").await.map(|()| 0) };
        let orders = self
            .client
            .execute_raw(&self.orders, params([&ids, &numbers, &accounts, &self.pool, &LINES, &now]));
        let entries =
            self.client.execute_raw(&self.entries, params([&self.pool, &now, &seqs, &ids, &numbers]));
        let bucket = self.client.execute_raw(&self.bucket, params([&self.pool, &count, &self.seq]));
        let commit = async { self.client.batch_execute("COMMIT").await.map(|()| 0) };
        let flight: Vec<Answer<'_>> =
            vec![Box::pin(begin), Box::pin(orders), Box::pin(entries), Box::pin(bucket), Box::pin(commit)];
        for answer in join_all(flight).await {
            answer.unwrap();
        }
        size
    }
}

type Answer<'a> = std::pin::Pin<Box<dyn Future<Output = Result<u64, tokio_postgres::Error>> + Send + 'a>>;
type Param<'a> = &'a (dyn tokio_postgres::types::ToSql + Sync);

fn params<'a, const N: usize>(params: [Param<'a>; N]) -> [Param<'a>; N] {
    params
}
