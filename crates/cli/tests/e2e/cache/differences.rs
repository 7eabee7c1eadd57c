//! What is wrong with a cache is a difference like any other: it is found by its keeper, its epoch ends, and the next run
//! sees that a new one has begun.

use serde_json::{Value, json};

use super::shop::{Authority, Sale, Shop, on_each_authority};
use crate::support::wait_until;

on_each_authority! {
    a_changed_counter_is_a_difference
    a_lost_entry_is_a_difference
}

/// Waits for a difference of a class that is not older than `known`.
async fn differs(shop: &Shop, class: &str) -> Value {
    wait_until(class, async || {
        let found = shop.http.get(&format!("/v1/discrepancies?class={class}")).await;
        found.body["items"].as_array().unwrap().last().cloned()
    })
    .await
}

/// The keeper has found it and begun anew; the next run sees that.
async fn is_repaired(shop: &Shop, class: &str) {
    let found = differs(shop, class).await;
    assert_eq!(
        (&found["pool_id"], &found["disposition"]),
        (&json!(shop.pool), &json!("repair")),
        "{found:#}"
    );
    shop.accepts().await;
    wait_until("its repair", async || {
        let asked = shop.http.post("/v1/reconciliations", &json!({"scope": "incremental"})).await;
        assert!(matches!(asked.status, 201 | 429), "{asked:?}");
        let seen = differs(shop, class).await;
        (seen["state"] == "repaired").then_some(())
    })
    .await;
}

/// A key of the bucket's cache.
async fn key(shop: &Shop, part: &str) -> String {
    let keys = shop.redis.command(&["KEYS", &format!("*:{part}")]).await.unwrap();
    keys.lines().map(str::trim).find(|key| key.ends_with(part)).expect("a key").to_owned()
}

async fn a_changed_counter_is_a_difference(authority: Authority) {
    let shop = Shop::open(authority, Sale::default()).await;
    let cache = key(&shop, "cache").await;
    for (class, units) in [("cache_ahead", "7"), ("cache_behind", "-7")] {
        shop.redis.command(&["HINCRBY", &cache, "available", units]).await.unwrap();
        is_repaired(&shop, class).await;
    }
    shop.finish().await;
}

async fn a_lost_entry_is_a_difference(authority: Authority) {
    // One order lands a second: the others wait in the stream.
    let shop = Shop::open(authority, Sale { landing_rate: Some(1), ..Sale::default() }).await;
    for number in 0..4 {
        let placed = shop.http.place("drop", &format!("L-{number}"), "CUP", 1).await;
        assert_eq!(placed.status, 202, "{placed:?}");
    }
    let stream = key(&shop, "stream").await;
    let last = shop.redis.command(&["XREVRANGE", &stream, "+", "-", "COUNT", "1"]).await.unwrap();
    let entry = last.lines().map(str::trim).find(|line| line.contains('-')).expect("an entry").to_owned();
    assert_eq!(shop.redis.command(&["XDEL", &stream, &entry]).await.unwrap().trim(), "1");
    is_repaired(&shop, "entry_unlanded").await;
    shop.finish().await;
}
