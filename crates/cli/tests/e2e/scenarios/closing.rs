//! A campaign's end: unsold stock goes where it was said; and its beginning: nodes make ready.

use serde_json::{Value, json};

use super::site::Site;
use super::together;
use crate::support::{Answer, Http, place_body, wait_until};

super::site::on_each_site! {
    unsold_stock_goes_to_the_named_pool_and_what_comes_back_later_follows
    who_was_let_in_before_the_close_is_served_first
    a_close_is_judged_strictly
    a_campaign_is_warmed_before_it_sells
}

impl Http {
    async fn close(&self, campaign: &str, unsold_to: Option<&str>) -> Answer {
        let mut body = json!({"operator": "olga", "reason": "over"});
        if let Some(pool) = unsold_to {
            body["unsold_to"] = json!(pool);
        }
        self.post(&format!("/v1/campaigns/{campaign}/close"), &body).await
    }

    async fn settled(&self, campaign: &str) -> Value {
        self.get(&format!("/v1/campaigns/{campaign}/settlement")).await.body
    }
}

async fn unsold_stock_goes_to_the_named_pool_and_what_comes_back_later_follows(server: Site) {
    let http = &server.http;
    http.campaign("sale", json!({"hold_seconds": 600})).await;
    http.campaign("shop", json!({})).await;
    let (cups, pots) = (http.pool("sale", "CUP", 50, 3).await, http.pool("sale", "POT", 7, 1).await);
    let (plates, shop) = (http.pool("sale", "PLATE", 0, 1).await, http.pool("shop", "REST", 5, 2).await);
    let (kept, cancelled, sold) = (
        http.place("sale", "kept", "CUP", 3).await.text("id"),
        http.place("sale", "cancelled", "CUP", 4).await.text("id"),
        http.place("sale", "sold", "POT", 2).await.text("id"),
    );
    assert_eq!(http.pay(&sold, "paid").await.body["disposition"], "applied");
    let closed = http.close("sale", Some(&shop)).await;
    assert_eq!(
        (closed.status, closed.text("state"), closed.text("unsold_to")),
        (200, "closed".into(), shop.clone())
    );
    // So little has moved when the answer comes.
    assert_eq!((http.balances(&cups).await, http.balances(&pots).await), ((0, 7, 0), (0, 0, 2)));
    assert_eq!(http.balances(&shop).await, (5 + 43 + 5, 0, 0));
    let moved = http.get(&format!("/v1/ledger?pool_id={pots}&limit=50")).await;
    let entry = moved.body["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (entry["action"].as_str(), entry["source"].as_str()),
        (Some("transfer_out"), Some("unsold")),
        "{entry}"
    );
    // Again, also without naming the pool, it is the same and moves nothing.
    let entries = http.settled("sale").await["ledger_entries"].clone();
    for unsold_to in [Some(shop.as_str()), None] {
        let again = http.close("sale", unsold_to).await;
        assert_eq!((again.status, again.text("unsold_to")), (200, shop.clone()));
    }
    assert_eq!(http.settled("sale").await["ledger_entries"], entries);
    // Holds go on to their end. What comes back goes on to the shop.
    assert_eq!(http.cancel(&cancelled).await.status, 200);
    let refund =
        json!({"refund_id": "r", "lines": [{"line": 1, "quantity": 1}], "restock": true, "reason": "broken"});
    assert_eq!(http.post(&format!("/v1/orders/{sold}/refunds"), &refund).await.status, 201);
    wait_until("what came back is in the shop", async || {
        (http.balances(&shop).await == (53 + 4 + 1, 0, 0)).then_some(())
    })
    .await;
    assert_eq!(http.pay(&kept, "paid-2").await.body["disposition"], "applied");
    for (pool, balance) in [(&cups, (0, 0, 3)), (&pots, (0, 0, 1)), (&plates, (0, 0, 0))] {
        assert_eq!(http.balances(pool).await, balance);
    }
    // What is gone is gone: a late payment finds nothing to take again.
    assert_eq!(http.pay(&cancelled, "late").await.body["disposition"], "refund_due");
    let (sale, of_shop) = (http.settled("sale").await, http.settled("shop").await);
    assert_eq!((sale["moved"].as_i64(), of_shop["moved"].as_i64()), (Some(-53), Some(53)));
    http.accepted(&super::order("shop", "all", "ann", &[("REST", 58)])).await;
    server.finish().await;
}

async fn who_was_let_in_before_the_close_is_served_first(server: Site) {
    let http = &server.http;
    http.campaign("sale", json!({"queue_wait_ms": 60_000})).await;
    http.campaign("shop", json!({})).await;
    let shop = http.pool("shop", "REST", 0, 1).await;
    let body = json!({"campaign_id": "sale", "sku": "CUP", "supply": 30, "path": "queued"});
    let cups = http.post("/v1/pools", &body).await.text("id");
    let taken = together((0..20_u32).map(|n| {
        let (http, body) = (http.clone(), place_body("sale", &n.to_string(), "CUP", 1));
        async move { http.post("/v1/orders", &body).await }
    }))
    .await;
    assert_eq!(http.close("sale", Some(&shop)).await.status, 200);
    for answer in &taken {
        assert_eq!(answer.status, 202, "{answer:?}");
        let ended = http.get(&format!("/v1/orders/{}?wait=20s", answer.text("id"))).await;
        assert_eq!(ended.text("state"), "held", "{ended:?}");
    }
    wait_until("the rest is in the shop", async || (http.balances(&shop).await.0 == 10).then_some(())).await;
    assert_eq!(http.balances(&cups).await, (0, 20, 0));
    server.finish().await;
}

async fn a_close_is_judged_strictly(server: Site) {
    let http = &server.http;
    for campaign in ["a", "b", "over"] {
        http.campaign(campaign, json!({})).await;
    }
    http.campaign("careful", json!({"approval_threshold": 10})).await;
    let (a, b) = (http.pool("a", "s", 5, 1).await, http.pool("b", "s", 5, 1).await);
    let (over, careful) = (http.pool("over", "s", 1, 1).await, http.pool("careful", "s", 1, 1).await);
    let retired = http.pool("b", "old", 1, 1).await;
    let words = json!({"operator": "olga", "reason": "over"});
    assert_eq!(http.post(&format!("/v1/pools/{retired}/retire"), &words).await.status, 200);
    assert_eq!(http.close("over", None).await.status, 200);
    for (to, status, code) in [
        ("x", 400, "invalid_identifier"),
        ("01937a5e-0000-7000-8000-0000000000ff", 404, "not_found"),
        (a.as_str(), 400, "invalid_value"),
        (over.as_str(), 400, "invalid_value"),
        (retired.as_str(), 400, "invalid_value"),
        (careful.as_str(), 409, "conflict"),
    ] {
        let refused = http.close("a", Some(to)).await;
        assert_eq!((refused.status, refused.code()), (status, code), "{to}: {refused:?}");
    }
    let with_pool = json!({"operator": "olga", "reason": "r", "unsold_to": b});
    let refused = http.post("/v1/campaigns/a/pause", &with_pool).await;
    assert_eq!((refused.status, refused.code()), (400, "unknown_field"), "only a close names a pool");
    assert_eq!(http.get("/v1/campaigns/a").await.text("state"), "open", "nothing of it was done");
    // Closed without a pool, it may be named later; another may not.
    assert_eq!(http.close("a", None).await.body["unsold_to"], Value::Null);
    assert_eq!(http.balances(&a).await, (5, 0, 0));
    assert_eq!(http.close("a", Some(&b)).await.text("unsold_to"), b);
    assert_eq!((http.balances(&a).await, http.balances(&b).await), ((0, 0, 0), (10, 0, 0)));
    http.campaign("c", json!({})).await;
    let c = http.pool("c", "s", 0, 1).await;
    let other = http.close("a", Some(&c)).await;
    assert_eq!((other.status, other.code()), (409, "conflict"));
    // Stock never goes in a circle.
    let circle = http.close("b", Some(&a)).await;
    assert_eq!((circle.status, circle.code()), (400, "invalid_value"), "{circle:?}");
    // A freeze keeps everything where it is until it ends.
    assert_eq!(http.post("/v1/campaigns/b/freeze", &words).await.status, 200);
    assert_eq!(http.close("b", Some(&c)).await.status, 200);
    assert_eq!((http.balances(&b).await, http.balances(&c).await), ((10, 0, 0), (0, 0, 0)));
    assert_eq!(http.post("/v1/campaigns/b/unfreeze", &words).await.status, 200);
    wait_until("what was frozen follows", async || (http.balances(&c).await.0 == 11).then_some(())).await;
    server.finish().await;
}

async fn a_campaign_is_warmed_before_it_sells(server: Site) {
    let http = &server.http;
    let words = json!({"operator": "olga", "reason": "soon"});
    assert_eq!(http.put("/v1/campaigns/c", &json!({"name": "Sale"})).await.status, 201);
    for (sku, location) in [("A", "east"), ("A", "west"), ("B", "east")] {
        let body = json!({"campaign_id": "c", "sku": sku, "location": location, "supply": 10, "buckets": 3});
        assert_eq!(http.post("/v1/pools", &body).await.status, 201);
    }
    assert_eq!(http.put("/v1/campaigns/c/locations", &json!({"order": ["east", "west"]})).await.status, 200);
    let made_of = json!({"components": [{"sku": "A", "quantity": 1}, {"sku": "B", "quantity": 1}]});
    assert_eq!(http.put("/v1/bundles/c/SET", &made_of).await.status, 201);
    for _ in 0..2 {
        let warmed = http.post("/v1/campaigns/c/warm", &words).await;
        assert_eq!((warmed.status, warmed.text("state")), (200, "draft".into()), "{warmed:?}");
        let warm = &warmed.body["warm"];
        assert_eq!((&warm["ready"], &warm["pools"], &warm["buckets"]), (&json!(true), &json!(3), &json!(9)));
        assert_eq!(warm["offers"], 3, "A, B and SET: {warm}");
        assert!(warm["connections"].as_u64().is_some_and(|open| open >= 4), "{warm}");
    }
    assert_eq!(http.get("/v1/campaigns/c").await.body.get("warm"), None);
    let acts = http.get("/v1/audit?limit=500").await.body["items"].clone();
    let warmings = acts.as_array().unwrap().iter().filter(|act| act["action"] == "warm").count();
    assert_eq!(warmings, 2, "{acts}");
    assert_eq!(http.post("/v1/campaigns/c/open", &words).await.status, 200);
    assert_eq!(http.accepted(&super::order("c", "1", "ann", &[("SET", 2)])).await.len(), 36);
    assert_eq!(http.close("c", None).await.status, 200);
    let refused = http.post("/v1/campaigns/c/warm", &words).await;
    assert_eq!((refused.status, refused.code()), (409, "campaign_closed"));
    assert_eq!(http.post("/v1/campaigns/none/warm", &words).await.status, 404);
    server.finish().await;
}
