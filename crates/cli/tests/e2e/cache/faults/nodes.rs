//! Nodes die between two steps, land what another is landing, and what they are given is given again.

use std::sync::Arc;

use super::{CLIENTS, sale, through};
use crate::cache::shop::{Authority, Sale, Shop, decided, on_each_authority};
use crate::support::{last, outage, place_body, rounds, wait_until};

/// Between which two steps of the cache path a node can be told to die, and at which pass. A backlog may land in one.
pub(super) const POINTS: [(&str, u32); 7] = [
    ("cache.after_accept", 20),
    ("cache.after_deliver", 1),
    ("commit.before_commit", 1),
    ("commit.after_commit", 1),
    ("cache.before_settle", 1),
    ("cache.after_settle", 1),
    ("cache.before_seed", 1),
];

on_each_authority! {
    a_killed_node_loses_nobody
    a_node_that_dies_between_two_steps_loses_nobody
    what_is_delivered_twice_lands_once
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

async fn a_node_that_dies_between_two_steps_loses_nobody(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let plain = shop.start.clone();
        for (point, hits) in POINTS {
            let doomed = shop.doomed(point, hits);
            shop.restart(doomed).await;
            let crowd = buyers.begin(&shop.http, CLIENTS);
            crowd.may_hear(400);
            if point == "cache.before_seed" {
                shop.redis.command(&["FLUSHALL"]).await.unwrap();
            }
            shop.loses_a_node().await;
            crowd.stop().await;
            shop.restart(plain.clone()).await;
            shop.accepts().await;
        }
    })
    .await;
}

/// For a moment the cache lets nothing be settled: what has landed stays in the stream, and is delivered once more.
async fn what_is_delivered_twice_lands_once(authority: Authority) {
    through(authority, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..rounds() * 4 {
            crowd.hears(60).await;
            shop.redis.command(&["ACL", "SETUSER", "default", "-xack"]).await.unwrap();
            crowd.hears(20).await;
            shop.redis.command(&["ACL", "SETUSER", "default", "+xack"]).await.unwrap();
        }
        crowd.stop().await;
        wait_until("one delivery in a hundred to be repeated", async || {
            let landed = shop.metric("holdfast_cache_landed_orders_total").await;
            (shop.metric("holdfast_cache_redeliveries_total").await * 100.0 >= landed).then_some(())
        })
        .await;
    })
    .await;
}

/// Landing takes longer than a lander is waited for: another takes over what the first is landing, and both land it
/// when they can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_landers_land_what_took_too_long_once() {
    through(Authority::TwoNodes, sale(), async |shop, buyers| {
        let crowd = buyers.begin(&shop.http, CLIENTS);
        for _ in 0..rounds() {
            crowd.hears(100).await;
            let before = shop.metric("holdfast_cache_redeliveries_total").await;
            let database = Arc::clone(shop.database.as_ref().expect("nodes share one"));
            let lock = tokio::spawn(async move {
                // Ended by force, which is an error to whoever waits for it.
                let _ = database.sql("BEGIN; SELECT 1 FROM bucket FOR UPDATE; SELECT pg_sleep(600)").await;
            });
            wait_until("another lander", async || {
                (shop.metric("holdfast_cache_redeliveries_total").await > before).then_some(())
            })
            .await;
            crowd.hears(50).await;
            last(outage()).await;
            let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                       WHERE query LIKE '%pg_sleep%' AND datname = current_database() AND pid <> pg_backend_pid()";
            shop.database.as_ref().expect("nodes share one").sql(end).await.unwrap();
            lock.await.unwrap();
            crowd.hears(100).await;
        }
        crowd.stop().await;
    })
    .await;
}

/// A cache goes back and nobody notices: it has taken a second order as an entry that has landed. On one node, so that
/// nobody lands what it leaves behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_is_used_again_lands_for_nobody() {
    let mut shop = Shop::open(Authority::File, Sale { supply: 10, ..Sale::default() }).await;
    let plain = shop.start.clone();
    let first = shop.http.place("drop", "U-1", "CUP", 1).await;
    assert_eq!(decided(&shop.http, &first).await.text("state"), "held");
    let key = |part: &str| format!("{{hf:{}:0}}:{part}", shop.pool);
    let (cache, orders, stream) = (key("cache"), key("orders"), key("stream"));
    let landed = shop.redis.command(&["HGET", &cache, "last"]).await.unwrap();
    let doomed = shop.doomed("cache.after_accept", 1);
    shop.restart(doomed).await;
    shop.accepts().await;
    let body = place_body("drop", "U-2", "CUP", 1);
    assert!(
        shop.http.try_send("POST", "/v1/orders", Some(&body)).await.is_none(),
        "it died before it answered"
    );
    let arguments = ["EVAL", USE_AGAIN, "2", &orders, &stream, landed.trim(), "U-2"];
    assert_eq!(shop.redis.command(&arguments).await.unwrap(), "1");
    shop.restart(plain).await;
    wait_until("the cache to be doubted", async || {
        (shop.metric("holdfast_cache_drains_total").await >= 1.0).then_some(())
    })
    .await;
    let second = shop.http.place("drop", "U-2", "CUP", 1).await;
    let second = if second.status == 202 { decided(&shop.http, &second).await } else { second };
    assert_eq!(second.text("state"), "held", "{second:?}");
    assert_ne!(second.text("id"), first.text("id"));
    shop.rests().await;
    assert_eq!(shop.http.balances(&shop.pool).await, (8, 2, 0));
    shop.finish().await;
}

/// Gives the one entry that waits, and what is known of its order, the id of an entry that was there before.
const USE_AGAIN: &str = "
    local waiting = redis.call('XRANGE', KEYS[2], '-', '+')
    redis.call('XDEL', KEYS[2], waiting[1][1])
    redis.call('XSETID', KEYS[2], '0-1')
    redis.call('XADD', KEYS[2], ARGV[1], unpack(waiting[1][2]))
    redis.call('XGROUP', 'SETID', KEYS[2], 'landing', '0')
    local known = redis.call('HGET', KEYS[1], ARGV[2])
    redis.call('HSET', KEYS[1], ARGV[2], ARGV[1] .. known:sub(#waiting[1][1] + 1))
    return #waiting
";
