//! The server of the cache dies, forgets, goes back, is replaced, falls silent.

use super::{CLIENTS, sale, through};
use crate::cache::shop::{Authority, Sale, on_each_authority};
use crate::support::{extent, last, outage, wait_until};

on_each_authority! {
    a_killed_cache_that_kept_everything_lands_it
    a_wiped_cache_is_rebuilt
    a_cache_that_forgot_is_rebuilt
    a_cache_restored_from_an_old_snapshot_sells_nothing_twice
    forgotten_scripts_reach_nobody
    a_deleted_stream_or_group_strands_nothing
    a_promoted_replica_without_the_last_writes_is_noticed
    a_frozen_cache_holds_nobody_up
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
    // `HOLDFAST_FAULT_ORDERS=10000` is for a night.
    let orders = extent("HOLDFAST_FAULT_ORDERS", 500);
    let sale = Sale { supply: 2_000 + orders, ..sale() };
    through(authority, sale, async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        crowd.hears(100).await;
        let snapshot = shop.redis.snapshot().await.unwrap();
        for _ in 0..orders / 100 {
            crowd.hears(100).await;
        }
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
        last(outage()).await;
        crowd.hears(100).await;
        shop.redis.resume().unwrap();
        crowd.hears(100).await;
        shop.accepts().await;
        crowd.stop().await;
    })
    .await;
}
