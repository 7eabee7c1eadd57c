//! The cache path while things break, under load. Afterwards nobody is left waiting, every unit is on the shelf or
//! somebody's, cache and authority agree, and the cache sells again, without a person.

use std::sync::Arc;

use holdfast_testkit::{FaultProxy, Postgres, Redis};

use super::shop::{Authority, Buyers, Sale, Shop, on_each_authority};
use crate::support::wait_until;

/// Buyers at the same time.
const CLIENTS: usize = 16;

on_each_authority! {
    a_killed_node_loses_nobody
    a_killed_cache_that_kept_everything_lands_it
    a_wiped_cache_is_rebuilt
    a_cache_that_forgot_is_rebuilt
    a_cache_restored_from_an_old_snapshot_sells_nothing_twice
    forgotten_scripts_reach_nobody
    a_deleted_stream_or_group_strands_nothing
    a_promoted_replica_without_the_last_writes_is_noticed
    a_frozen_cache_holds_nobody_up
}

/// Lets things happen while people buy, then judges.
async fn through(authority: Authority, sale: Sale, happen: impl AsyncFnOnce(&mut Shop, &Arc<Buyers>)) {
    judged(Shop::open(authority, sale).await, happen).await;
}

async fn judged(mut shop: Shop, happen: impl AsyncFnOnce(&mut Shop, &Arc<Buyers>)) {
    let (available, held, sold) = shop.http.balances(&shop.pool).await;
    let supply = available + held + sold;
    let buyers = Arc::new(Buyers::default());
    happen(&mut shop, &buyers).await;
    shop.rests().await;
    let ends = buyers.judge(&shop).await;
    let held = ends.get("held").copied().unwrap_or(0);
    assert!(held > 0, "{ends:?}");
    for end in ends.keys() {
        let known = ["held", "admission_lost", "failed: sold_out", "refused: sold_out"];
        assert!(known.contains(&end.as_str()), "{ends:?}");
    }
    let (available, all_held, sold) = shop.http.balances(&shop.pool).await;
    // A buyer who gave up without an answer may have an order.
    assert!(
        all_held >= held && available + all_held + sold == supply,
        "{ends:?} {available} {all_held} {sold}"
    );
    // What is left is sold through the cache, all of it.
    let last = Arc::new(Buyers::from(1_000_000));
    last.buy_all(&shop.http, CLIENTS, available + 20).await;
    shop.rests().await;
    assert_eq!(last.judge(&shop).await.get("held").copied().unwrap_or(0), available);
    assert_eq!(shop.http.balances(&shop.pool).await, (0, supply, 0));
    shop.finish().await;
}

fn sale() -> Sale {
    Sale { supply: 3_000, buckets: 2, ..Sale::default() }
}

async fn a_killed_node_loses_nobody(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        for round in 0..5 {
            let crowd = buyers.begin(&shop.http, CLIENTS);
            crowd.hears(40 + 17 * round).await;
            let start = shop.start.clone();
            shop.restart(start).await;
            crowd.stop().await;
        }
    })
    .await;
}

async fn a_killed_cache_that_kept_everything_lands_it(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..3 {
            crowd.hears(100).await;
            shop.redis.kill().unwrap();
            crowd.hears(50).await;
            shop.redis.restart().await.unwrap();
            shop.accepts().await;
        }
        crowd.stop().await;
    })
    .await;
}

async fn a_wiped_cache_is_rebuilt(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..3 {
            crowd.hears(150).await;
            shop.redis.command(&["FLUSHALL"]).await.unwrap();
            shop.accepts().await;
        }
        crowd.stop().await;
    })
    .await;
}

async fn a_cache_that_forgot_is_rebuilt(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..2 {
            crowd.hears(150).await;
            shop.redis.kill().unwrap();
            shop.redis.restart_empty().await.unwrap();
            shop.accepts().await;
        }
        crowd.stop().await;
    })
    .await;
}

async fn a_cache_restored_from_an_old_snapshot_sells_nothing_twice(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        crowd.hears(100).await;
        let snapshot = shop.redis.snapshot().await.unwrap();
        crowd.hears(500).await;
        shop.redis.restore(&snapshot).await.unwrap();
        crowd.hears(200).await;
        shop.accepts().await;
        crowd.stop().await;
    })
    .await;
}

async fn forgotten_scripts_reach_nobody(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..5 {
            crowd.hears(50).await;
            shop.redis.command(&["SCRIPT", "FLUSH"]).await.unwrap();
        }
        crowd.stop().await;
        assert_eq!(shop.metric("holdfast_cache_drains_total").await, 0.0);
    })
    .await;
}

async fn a_deleted_stream_or_group_strands_nothing(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for what in ["group", "stream", "orders"] {
            crowd.hears(100).await;
            let suffix = if what == "orders" { "orders" } else { "stream" };
            let keys = shop.redis.command(&["KEYS", &format!("*{suffix}*")]).await.unwrap();
            let key = keys.lines().next().expect("a key").to_owned();
            if what == "group" {
                let groups = shop.redis.command(&["XINFO", "GROUPS", &key]).await.unwrap();
                let name = groups.lines().nth(1).expect("a group").to_owned();
                shop.redis.command(&["XGROUP", "DESTROY", &key, &name]).await.unwrap();
            } else {
                shop.redis.command(&["DEL", &key]).await.unwrap();
            }
            crowd.hears(100).await;
            shop.accepts().await;
        }
        crowd.stop().await;
    })
    .await;
}

async fn a_promoted_replica_without_the_last_writes_is_noticed(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        crowd.hears(100).await;
        // What a replica has that no longer follows: the state of a moment ago, on a server of another identity.
        let snapshot = shop.redis.snapshot().await.unwrap();
        crowd.hears(100).await;
        shop.redis.restore(&snapshot).await.unwrap();
        wait_until("the other server to be noticed", async || {
            (shop.metric("holdfast_cache_drains_total").await >= 1.0).then_some(())
        })
        .await;
        shop.accepts().await;
        crowd.stop().await;
    })
    .await;
}

async fn a_frozen_cache_holds_nobody_up(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        crowd.hears(100).await;
        shop.redis.pause().unwrap();
        // By the authority, while the cache does not answer.
        crowd.hears(100).await;
        shop.redis.resume().unwrap();
        crowd.hears(100).await;
        shop.accepts().await;
        crowd.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_give_nobody_the_answer_of_another() {
    let redis = Arc::new(Redis::start().await.unwrap());
    let proxy = FaultProxy::start(redis.port()).await.unwrap();
    let url = proxy.through(&redis.url());
    let shop = Shop::open_at(None, Sale { redis_url: Some(url), ..sale() }, redis).await;
    judged(shop, async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..20 {
            crowd.hears(40).await;
            proxy.cut().await;
        }
        crowd.stop().await;
        shop.accepts().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_waits_for_an_authority_that_is_away() {
    let postgres = Postgres::start().await.unwrap();
    let url = postgres.create_database("shop").await.unwrap();
    let redis = Arc::new(Redis::start().await.unwrap());
    let shop = Shop::open_at(Some(&url), sale(), redis).await;
    judged(shop, async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..2 {
            crowd.hears(150).await;
            postgres.kill().unwrap();
            // The cache goes on without it.
            crowd.hears(150).await;
            postgres.restart().await.unwrap();
            shop.accepts().await;
        }
        crowd.stop().await;
    })
    .await;
}
