//! A sale from end to end.

use serde_json::json;

use crate::support::{Server, Start, wait_until};

#[tokio::test]
async fn an_order_is_held_paid_and_refunded() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;

    let placed = http.place("spring", "A-1", "CUP", 3).await;
    assert_eq!((placed.status, placed.text("state")), (201, "held".into()));
    let id = placed.text("id");
    assert_eq!(placed.headers["location"], format!("/v1/orders/{id}"));
    assert_eq!(http.balances(&pool).await, (7, 3, 0));

    let attempt = json!({"attempt_id": "t1", "provider": "bank"});
    let path = format!("/v1/orders/{id}/payment-attempts");
    assert_eq!(http.post(&path, &attempt).await.status, 201);
    assert_eq!(http.post(&path, &attempt).await.status, 200);

    let paid = http.pay(&id, "e1").await;
    assert_eq!((paid.status, paid.text("disposition")), (200, "applied".into()));
    assert_eq!(paid.body["order"]["state"], "sold");
    assert_eq!(http.pay(&id, "e1").await.text("disposition"), "duplicate");
    assert_eq!(http.balances(&pool).await, (7, 0, 3));

    let refund = json!({"refund_id": "r1", "lines": [{"line": 1, "quantity": 2}], "restock": true, "reason": "broken"});
    let path = format!("/v1/orders/{id}/refunds");
    for status in [201, 200] {
        let refunded = http.post(&path, &refund).await;
        assert_eq!(refunded.status, status, "{refunded:?}");
        assert_eq!(refunded.body["lines"][0]["refunded_quantity"], 2);
    }
    assert_eq!(http.balances(&pool).await, (9, 0, 1));

    let entries = http.get(&format!("/v1/ledger?order_id={id}")).await;
    let actions: Vec<_> =
        entries.body["items"].as_array().unwrap().iter().map(|e| e["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["place", "order_event", "confirm", "refund"]);
    server.finish().await;
}

#[tokio::test]
async fn an_unpaid_hold_goes_back_by_itself_also_after_a_restart() {
    let mut server = Server::start().await;
    let start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    server.http.campaign("spring", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    let pool = server.http.pool("spring", "CUP", 2, 1).await;
    let first = server.http.place("spring", "A-1", "CUP", 1).await.text("id");
    server.http.wait_for_state(&first, "released").await;
    let second = server.http.place("spring", "A-2", "CUP", 2).await.text("id");
    // Its timer dies with the process; the scan finds it.
    server.restart(&start).await;
    let released = server.http.wait_for_state(&second, "released").await;
    assert_eq!(released["reason"], "expired");
    assert_eq!(server.http.balances(&pool).await, (2, 0, 0));
    // The key does not become new: a new purchase needs a new number.
    let again = server.http.place("spring", "A-2", "CUP", 2).await;
    assert_eq!((again.status, again.code()), (409, "already_released"));
    assert_eq!(again.body["order"]["state"], "released");
    server.finish().await;
}

#[tokio::test]
async fn a_campaign_says_what_it_is_and_refuses_by_its_state() {
    let server = Server::start().await;
    let http = &server.http;
    let put =
        json!({"name": "Spring", "starts_at": "2099-01-01T00:00:00+02:00", "policy": {"hold_seconds": 60}});
    let created = http.put("/v1/campaigns/spring", &put).await;
    assert_eq!((created.status, created.text("state")), (201, "draft".into()));
    assert_eq!(created.text("starts_at"), "2098-12-31T22:00:00.000Z");
    assert_eq!(http.put("/v1/campaigns/spring", &put).await.status, 200);
    http.pool("spring", "CUP", 5, 1).await;
    let body = json!({"operator": "ann", "reason": "test"});
    let switch =
        async |name: &str| http.post(&format!("/v1/campaigns/spring/{name}"), &body).await.text("state");
    let code = async |order_no: &str| http.place("spring", order_no, "CUP", 1).await.code().to_owned();
    assert_eq!(code("A-1").await, "campaign_not_open");
    assert_eq!(switch("open").await, "scheduled");
    assert_eq!(code("A-1").await, "campaign_not_open");
    http.put("/v1/campaigns/spring", &json!({"name": "Spring"})).await;
    let held = http.place("spring", "A-1", "CUP", 1).await;
    assert_eq!(held.status, 201);
    for (name, state, refusal) in [
        ("pause", "paused", "campaign_paused"),
        ("freeze", "frozen", "frozen"),
        ("unfreeze", "paused", "campaign_paused"),
        ("resume", "open", ""),
        ("close", "closed", "campaign_closed"),
    ] {
        assert_eq!(switch(name).await, state);
        assert_eq!(code(&format!("B-{name}")).await, refusal, "{name}");
        // Whoever holds is answered as ever, and may pay.
        assert_eq!(http.place("spring", "A-1", "CUP", 1).await.status, 200);
    }
    assert_eq!(http.pay(&held.text("id"), "e").await.text("disposition"), "applied");
    let campaign = http.get("/v1/campaigns/spring").await;
    assert_eq!(
        campaign.body["totals"],
        json!({"pools": 1, "supply": 5, "available": 3, "held": 1, "sold": 1})
    );
    server.finish().await;
}

#[tokio::test]
async fn a_batch_answers_each_order_on_its_own() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 2, 1).await;
    let order = |order_no: &str, sku: &str| json!({"campaign_id": "spring", "order_no": order_no, "account": "ann", "lines": [{"sku": sku, "quantity": 1}]});
    let mut bad = order("A-3", "CUP");
    bad["lines"][0]["quantity"] = json!(0);
    let orders = json!({"orders": [order("A-1", "CUP"), bad, order("A-4", "none"), order("A-1", "CUP"), order("A-5", "CUP")]});
    let answer = http.post("/v1/orders/batch", &orders).await;
    assert_eq!(answer.status, 207);
    let results = answer.body["results"].as_array().unwrap();
    let codes: Vec<_> =
        results.iter().map(|r| (r["status"].as_u64().unwrap(), r["problem"]["code"].as_str())).collect();
    assert_eq!(codes[1], (400, Some("invalid_quantity")));
    assert_eq!(results[1]["problem"]["errors"][0]["pointer"], "/orders/1/lines/0/quantity");
    assert_eq!(codes[2], (404, Some("unknown_sku")));
    let mut doubled = [codes[0].0, codes[3].0];
    doubled.sort_unstable();
    assert_eq!(doubled, [200, 201], "one key, one order");
    assert_eq!(results[0]["order"]["id"], results[3]["order"]["id"]);
    assert_eq!(codes[4].0, 201);
    assert_eq!(http.balances(&pool).await, (0, 2, 0));
    server.finish().await;
}

#[tokio::test]
async fn stock_comes_in_and_goes_out_by_adjustments() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 3, 2).await;
    let path = format!("/v1/pools/{pool}/adjustments");
    let adjust = |id: &str, delta: i64, kind: &str| json!({"adjustment_id": id, "delta": delta, "kind": kind, "reason": "count", "operator": "ann"});
    for status in [201, 200] {
        let answer = http.post(&path, &adjust("in-1", 5, "inbound")).await;
        assert_eq!((answer.status, answer.text("state")), (status, "applied".into()), "{answer:?}");
        assert_eq!(answer.body["pool"]["available"], 8);
    }
    let other = http.post(&path, &adjust("in-1", 6, "inbound")).await;
    assert_eq!((other.status, other.code()), (422, "key_mismatch"));
    assert_eq!(other.faults(), [("key_mismatch".into(), "/delta".into())]);
    http.place("spring", "A-1", "CUP", 4).await;
    let short = http.post(&path, &adjust("out-1", -5, "adjust")).await;
    assert_eq!((short.status, short.code()), (409, "stock_in_use"));
    assert_eq!(http.post(&path, &adjust("out-2", -4, "adjust")).await.status, 201);
    assert_eq!(http.balances(&pool).await, (0, 4, 0));
    let shown = wait_until("the shelf", async || {
        let shown = http.get(&format!("/v1/pools/{pool}/availability")).await;
        (shown.body["available"] == 0).then_some(shown)
    })
    .await;
    assert_eq!(shown.body["in_stock"], false);
    server.finish().await;
}

#[tokio::test]
async fn without_a_key_nothing_is_answered_but_health() {
    let server = Server::start_with(Start::default()).await;
    let key =
        server.printed.iter().find_map(|line| line.strip_prefix("admin key, shown this once: ")).unwrap();
    let http = &server.http;
    assert_eq!(http.get("/livez").await.status, 200);
    assert_eq!(http.get("/readyz").await.status, 200);
    let refused = http.get("/v1/campaigns").await;
    assert_eq!((refused.status, refused.code()), (401, "unauthenticated"));
    let bearer = format!("Bearer {key}");
    let answer = http.send_raw("GET", "/v1/campaigns", &[("authorization", &bearer)], Vec::new()).await;
    assert_eq!(answer.status, 200);
    let wrong = format!("Bearer {key}x");
    assert_eq!(
        http.send_raw("GET", "/v1/campaigns", &[("authorization", &wrong)], Vec::new()).await.status,
        401
    );
    server.finish().await;
}

#[tokio::test]
async fn an_operator_decides_what_nobody_else_can() {
    let server = Server::start().await;
    let http = &server.http;
    let policy = json!({
        "late_payment": "review", "review_end": "person", "hold_seconds": 1, "release_grace_ms": 0,
        "hold_seconds_max": 600,
    });
    http.campaign("spring", policy).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    let resolve = async |id: &str, more: serde_json::Value| {
        let mut body = json!({"operator": "ann", "reason": "asked the bank"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        http.post(&format!("/v1/orders/{id}/resolve"), &body).await
    };
    // Paid after the release: a person takes the stock again.
    let late = http.place("spring", "late", "CUP", 2).await.text("id");
    http.wait_for_state(&late, "released").await;
    assert_eq!(http.pay(&late, "e1").await.text("disposition"), "review");
    let confirmed = resolve(&late, json!({"action": "confirm"})).await;
    assert_eq!((confirmed.status, confirmed.text("state")), (200, "sold".into()), "{confirmed:?}");
    assert_eq!(resolve(&late, json!({"action": "confirm"})).await.code(), "already_sold");
    // Begun and never heard of again: it waits for a person, who gives it back, or more time.
    let begun = http.place("spring", "begun", "CUP", 3).await.text("id");
    let attempt = json!({"attempt_id": "t1", "provider": "bank"});
    http.post(&format!("/v1/orders/{begun}/payment-attempts"), &attempt).await;
    assert_eq!(
        http.wait_for_state(&begun, "in_review").await["review_ends_at"],
        json!(null),
        "nobody else ends it"
    );
    let no_time = resolve(&begun, json!({"action": "extend"})).await;
    assert_eq!((no_time.status, no_time.faults()), (400, vec![("invalid_time".into(), "/until".into())]));
    let released = resolve(&begun, json!({"action": "release"})).await;
    assert_eq!((released.text("state"), released.text("reason")), ("released".into(), "operator".into()));
    // An operator who lost the answer asks once more.
    let again = resolve(&begun, json!({"action": "release"})).await;
    assert_eq!((again.status, &again.body["version"]), (200, &released.body["version"]), "{again:?}");
    assert_eq!(resolve(&begun, json!({"action": "confirm"})).await.code(), "already_released");
    // Charged twice: the flag is cleared when the money went back.
    http.pay(&late, "e2").await;
    let due = http.get("/v1/orders?refund_due=true").await;
    assert_eq!(due.body["items"][0]["id"], late.as_str());
    assert_eq!(resolve(&late, json!({"action": "refunded", "payment_ids": ["pay-e2"]})).await.status, 200);
    assert_eq!(http.get("/v1/orders?refund_due=true").await.body["items"], json!([]));
    assert_eq!(resolve(&late, json!({"action": "refunded"})).await.code(), "conflict");
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    server.finish().await;
}
