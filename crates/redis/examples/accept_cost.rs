//! What an accept costs Redis, by its own count, with few and with a million known orders, and how much memory an
//! order takes: `cargo run --release -p holdfast-redis --example accept_cost`.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use holdfast_core::cache::Epoch;
use holdfast_core::command::{Place, PlaceLine};
use holdfast_core::id::{Account, CampaignId, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_engine::{Accept, Answer, Cache, Seed};
use holdfast_redis::{Address, Options, RedisCache};
use holdfast_testkit::{Redis, RedisOptions};
use tokio::task::JoinSet;

const BUCKET: BucketKey = BucketKey { pool: PoolId(7), number: 0 };
const ORDERS: u64 = 20_000;
const KNOWN: u64 = 1_000_000;
const AT_ONCE: u64 = 64;
/// Puts known orders where accepted ones are, as if all of them had been settled.
const FILL: &str = "for at = 1, ARGV[1] do redis.call('HSET', KEYS[2], 'known-' .. at, ARGV[2]) end \
    redis.call('HINCRBY', KEYS[1], 'accepted', ARGV[1]) return redis.call('HINCRBY', KEYS[1], 'settled', ARGV[1])";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let server = Redis::start_with(RedisOptions { is_durable: false }).await?;
    let cache = Arc::new(RedisCache::new(&Address::parse(&server.url())?, Options::default())?);
    let identity = cache.identity(BUCKET).await?;
    let seed = Seed { bucket: BUCKET, epoch: Epoch(1), base_seq: 0, base_available: 1 << 50 };
    cache.seed(seed).await?;
    cache.open(BUCKET, Epoch(1)).await?;

    accept_many(&cache, &identity, 0).await?;
    let before = memory(&server).await?;
    report(&server, &cache, &identity, ORDERS, "with few known orders").await?;
    let each = (memory(&server).await? - before) / ORDERS;
    println!("{each} bytes an order that waits (known, counted for its account, in the stream)");

    let keys = |part: &str| format!("{{hf:{}:{}}}:{part}", BUCKET.pool, BUCKET.number);
    let value = format!("{} 1 {:032x} {:032x}", "1764460800000-0 1000000", 1, 2);
    let (first, second, many) = (keys("cache"), keys("orders"), KNOWN.to_string());
    let before = memory(&server).await?;
    server.command(&["EVAL", FILL, "2", &first, &second, &many, &value]).await?;
    println!("{} bytes an order that is known", (memory(&server).await? - before) / KNOWN);
    report(&server, &cache, &identity, ORDERS * 2, "with 1,000,000 known orders").await
}

async fn report(
    server: &Redis,
    cache: &Arc<RedisCache>,
    identity: &Arc<str>,
    from: u64,
    what: &str,
) -> Result<()> {
    server.command(&["CONFIG", "RESETSTAT"]).await?;
    let begun = tokio::time::Instant::now();
    accept_many(cache, identity, from).await?;
    let rate = u128::from(ORDERS) * 1_000 / begun.elapsed().as_millis().max(1);
    let stats = server.command(&["INFO", "commandstats"]).await?;
    let line =
        stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).context("no accept was counted")?;
    let of = |name: &str| -> Result<f64> {
        let value = line.split([':', ',']).find_map(|part| part.strip_prefix(name)).context("no figure")?;
        Ok(value.parse()?)
    };
    let orders = f64::from(u32::try_from(ORDERS)?);
    let (cost, together) = (of("usec=")? / orders, orders / of("calls=")?);
    println!(
        "{what}: {cost:.1} µs of Redis an accept, {together:.1} in a call, {rate} accepts a second from here"
    );
    Ok(())
}

async fn accept_many(cache: &Arc<RedisCache>, identity: &Arc<str>, from: u64) -> Result<()> {
    let mut placing = JoinSet::new();
    for task in 0..AT_ONCE {
        let (cache, identity) = (Arc::clone(cache), Arc::clone(identity));
        placing.spawn(async move {
            for number in (from..from + ORDERS).filter(|number| number % AT_ONCE == task) {
                let answer = cache.accept(&order(number, &identity)?).await?;
                ensure!(matches!(answer, Answer::Accepted { .. }), "{answer:?}");
            }
            Ok(())
        });
    }
    placing.join_all().await.into_iter().collect()
}

fn order(number: u64, identity: &Arc<str>) -> Result<Accept> {
    let line =
        PlaceLine { sku: Sku::new("tee")?, location: None, pool: BUCKET.pool, made_of: None, quantity: 1 };
    let place = Place {
        id: OrderId(u128::from(number)),
        key: OrderKey {
            campaign: CampaignId::new("sale")?,
            order_no: OrderNo::new(&format!("order-{number:012}"))?,
        },
        account: Account::new(&format!("buyer-{number:09}"))?,
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
    Ok(Accept {
        bucket: BUCKET,
        epoch: Epoch(1),
        identity: Arc::clone(identity),
        seen: 0,
        place: Arc::new(place),
        units: 1,
        due_at: Timestamp(0),
        account_limit: Some(5),
        backlog_max: 10_000_000,
    })
}

async fn memory(server: &Redis) -> Result<u64> {
    let info = server.command(&["INFO", "memory"]).await?;
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).context("no used_memory")?;
    Ok(used.trim().parse()?)
}
