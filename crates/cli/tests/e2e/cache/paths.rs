//! The way of an order through the cache, without faults.

use std::sync::Arc;

use serde_json::json;

use super::shop::{Authority, Buyers, Sale, Shop, decided, on_each_authority};
use crate::support::{place_body, wait_until};

on_each_authority! {
    five_thousand_buy_a_hundred_units_and_each_hears_the_truth
    what_comes_back_is_sold_again
    an_account_gets_no_more_than_its_limit_however_many_buckets_accept_it
    nothing_is_taken_before_the_opening
    a_pool_changes_its_path_while_it_sells
    what_other_paths_take_the_cache_does_not_sell
    a_line_that_no_bucket_can_serve_alone_is_split_by_the_authority
}

async fn five_thousand_buy_a_hundred_units_and_each_hears_the_truth(authority: Authority) {
    let shop = Shop::open(authority, Sale { supply: 100, buckets: 4, ..Sale::default() }).await;
    let buyers = Arc::new(Buyers::default());
    buyers.buy_all(&shop.http, 64, 5_000).await;
    shop.rests().await;
    let ends = buyers.judge(&shop).await;
    assert_eq!(ends.get("held"), Some(&100), "{ends:?}");
    let others: u64 = ends.iter().filter(|(end, _)| end.ends_with("sold_out")).map(|(_, count)| count).sum();
    assert!(others >= 4_900, "{ends:?}");
    assert_eq!(shop.http.balances(&shop.pool).await, (0, 100, 0));
    shop.finish().await;
}

async fn what_comes_back_is_sold_again(authority: Authority) {
    let shop = Shop::open(authority, Sale { supply: 10, ..Sale::default() }).await;
    let buyers = Arc::new(Buyers::default());
    buyers.buy_all(&shop.http, 4, 12).await;
    let mut held = Vec::new();
    for told in buyers.told().into_iter().filter(|told| told.first.status == 202) {
        held.push(decided(&shop.http, &told.first).await.text("id"));
    }
    assert_eq!(held.len(), 10);
    for id in &held[..3] {
        let cancelled = shop.http.post(&format!("/v1/orders/{id}/cancel"), &json!({})).await;
        assert_eq!((cancelled.status, cancelled.text("state").as_str()), (200, "released"), "{cancelled:?}");
    }
    // Three units and no more, through the cache as before.
    let mut again = Vec::new();
    for number in 0..3 {
        let placed = wait_until("the unit to come back to the cache", async || {
            let placed = shop.http.place("drop", &format!("A-{number}"), "CUP", 1).await;
            (placed.status == 202).then_some(placed)
        })
        .await;
        again.push(decided(&shop.http, &placed).await.text("state"));
    }
    assert_eq!(again, ["held", "held", "held"]);
    shop.rests().await;
    let refused = shop.http.place("drop", "A-9", "CUP", 1).await;
    assert_eq!((refused.status, refused.code()), (409, "sold_out"), "{refused:?}");
    assert_eq!(shop.http.balances(&shop.pool).await, (0, 10, 0));
    shop.finish().await;
}

async fn an_account_gets_no_more_than_its_limit_however_many_buckets_accept_it(authority: Authority) {
    let policy = json!({"account_limit": 1, "queue_wait_ms": 600_000});
    let shop = Shop::open(authority, Sale { supply: 100, buckets: 4, policy, ..Sale::default() }).await;
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..300 {
        let http = shop.http.clone();
        tries.spawn(async move {
            let mut body = place_body("drop", &format!("G-{number}"), "CUP", 1);
            body["account"] = json!("greedy");
            // Who is told to ask again does, with the same number.
            loop {
                let answer = http.post("/v1/orders", &body).await;
                if answer.status != 503 {
                    return answer;
                }
            }
        });
    }
    let mut held = 0;
    for first in tries.join_all().await {
        let end = match first.status {
            201 => "held".to_owned(),
            202 => {
                let end = decided(&shop.http, &first).await;
                let reason = end.body["reason"].as_str().unwrap_or("held").to_owned();
                assert!(reason == "held" || reason == "account_limit", "{end:?}");
                reason
            }
            409 => first.code().to_owned(),
            status => panic!("{status}: {first:?}"),
        };
        assert!(end == "held" || end == "account_limit", "{first:?}");
        held += u32::from(end == "held");
    }
    assert_eq!(held, 1);
    let buyers = Arc::new(Buyers::default());
    buyers.buy_all(&shop.http, 16, 99).await;
    shop.rests().await;
    let ends = buyers.judge(&shop).await;
    assert_eq!(ends.get("held"), Some(&99), "{ends:?}");
    assert_eq!(shop.http.balances(&shop.pool).await, (0, 100, 0));
    shop.finish().await;
}

async fn nothing_is_taken_before_the_opening(authority: Authority) {
    let shop = Shop::open(authority, Sale { supply: 5, ..Sale::default() }).await;
    let body = json!({"operator": "test", "reason": "not yet"});
    assert_eq!(shop.http.post("/v1/campaigns/drop/pause", &body).await.status, 200);
    for number in 0..50 {
        let early = shop.http.place("drop", &format!("E-{number}"), "CUP", 1).await;
        assert_eq!((early.status, early.code()), (409, "campaign_paused"), "{early:?}");
    }
    assert_eq!(shop.http.post("/v1/campaigns/drop/resume", &body).await.status, 200);
    let buyers = Arc::new(Buyers::default());
    buyers.buy_all(&shop.http, 4, 10).await;
    shop.rests().await;
    assert_eq!(buyers.judge(&shop).await.get("held"), Some(&5));
    shop.finish().await;
}

async fn a_pool_changes_its_path_while_it_sells(authority: Authority) {
    let shop = Shop::open(authority, Sale { supply: 2_000, buckets: 2, ..Sale::default() }).await;
    let buyers = Arc::new(Buyers::default());
    let crowd = buyers.begin(&shop.http, 16);
    for path in ["batched", "cached", "direct", "cached", "queued", "cached"] {
        crowd.hears(100).await;
        let pool = format!("/v1/pools/{}", shop.pool);
        let changed = shop.http.try_send("PATCH", &pool, Some(&json!({"path": path}))).await.unwrap();
        assert_eq!(changed.status, 200, "{changed:?}");
    }
    crowd.hears(100).await;
    crowd.stop().await;
    shop.accepts().await;
    shop.rests().await;
    for told in buyers.told().into_iter().filter(|told| told.first.status == 202) {
        // An order that was queued by the authority has no ticket and needs none.
        let id = told.first.text("id");
        match told.first.body["ticket"].as_str() {
            Some(_) => assert_eq!(decided(&shop.http, &told.first).await.status, 200, "{told:?}"),
            None => assert_eq!(shop.http.get(&format!("/v1/orders/{id}?wait=20s")).await.status, 200),
        }
    }
    let held = buyers.count() as u64;
    assert_eq!(shop.http.balances(&shop.pool).await, (2_000 - held.min(2_000), held.min(2_000), 0));
    shop.finish().await;
}

async fn what_other_paths_take_the_cache_does_not_sell(authority: Authority) {
    let shop = Shop::open(authority, Sale { supply: 10, ..Sale::default() }).await;
    let adjust = json!({"adjustment_id": "count-1", "delta": -4, "kind": "adjust", "reason": "broken", "operator": "test"});
    let adjusted = shop.http.post(&format!("/v1/pools/{}/adjustments", shop.pool), &adjust).await;
    assert_eq!(adjusted.status, 201, "{adjusted:?}");
    let more = json!({"adjustment_id": "count-2", "delta": 2, "kind": "inbound", "reason": "found", "operator": "test"});
    assert_eq!(shop.http.post(&format!("/v1/pools/{}/adjustments", shop.pool), &more).await.status, 201);
    shop.rests().await;
    let buyers = Arc::new(Buyers::default());
    buyers.buy_all(&shop.http, 4, 30).await;
    shop.rests().await;
    let ends = buyers.judge(&shop).await;
    assert_eq!(ends.get("held"), Some(&8), "{ends:?}");
    assert_eq!(shop.http.balances(&shop.pool).await, (0, 8, 0));
    shop.finish().await;
}

async fn a_line_that_no_bucket_can_serve_alone_is_split_by_the_authority(authority: Authority) {
    let shop = Shop::open(authority, Sale { supply: 4, buckets: 4, ..Sale::default() }).await;
    let placed = shop.http.place("drop", "M-1", "CUP", 3).await;
    assert_eq!((placed.status, placed.text("state").as_str()), (201, "held"), "{placed:?}");
    shop.rests().await;
    let last = shop.http.place("drop", "M-2", "CUP", 1).await;
    assert_eq!(last.status, 202, "{last:?}");
    assert_eq!(decided(&shop.http, &last).await.text("state"), "held");
    let none = shop.http.place("drop", "M-3", "CUP", 1).await;
    assert_eq!((none.status, none.code()), (409, "sold_out"), "{none:?}");
    assert_eq!(shop.http.balances(&shop.pool).await, (0, 4, 0));
    shop.finish().await;
}
