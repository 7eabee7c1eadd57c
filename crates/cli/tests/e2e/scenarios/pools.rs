//! Pools that change while they sell: buckets, weights, paths, limits; and stock that moves.

use serde_json::{Value, json};

use super::site::Site;
use super::{count, order, together, with};
use crate::support::{Answer, Http, place_body, wait_until};

super::site::on_each_site! {
    the_last_unit_sells_on_every_path_and_by_every_routing
    what_is_released_returns_to_its_bucket_and_is_sold_again
    a_pool_grows_and_is_weighted_while_it_sells
    a_change_of_a_pool_is_judged_strictly
    a_pool_that_may_place_nothing_turns_everybody_away_and_goes_on_with_what_it_holds
    stock_moves_between_pools_of_campaigns_under_load
    a_transfer_is_refused_for_what_is_wrong_with_it
    fragments_are_swept_so_that_a_line_of_many_fits_one_bucket
    a_retired_pool_sells_nothing_and_what_it_holds_goes_on
    a_path_changes_under_load_and_nobody_is_lost
}

/// Shorthands for what is done to a pool.
impl Http {
    async fn change_pool(&self, pool: &str, change: Value) -> Answer {
        let path = format!("/v1/pools/{pool}");
        self.try_send("PATCH", &path, Some(&change)).await.expect("an answer")
    }

    async fn changed_pool(&self, pool: &str, change: Value) -> Value {
        let changed = self.change_pool(pool, change).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        changed.body
    }

    async fn transfer(&self, id: &str, from: Value, to: Value, quantity: u64) -> Answer {
        let body = json!({"transfer_id": id, "from": from, "to": to, "quantity": quantity,
            "reason": "balance", "operator": "ann"});
        self.post("/v1/transfers", &body).await
    }

    async fn available(&self, pool: &str) -> Vec<u64> {
        self.buckets(pool).await.into_iter().map(|(available, ..)| available).collect()
    }
}

fn in_pool(pool: &str) -> Value {
    json!({"pool_id": pool})
}

fn in_bucket(pool: &str, bucket: u32) -> Value {
    json!({"pool_id": pool, "bucket": bucket})
}

/// Places orders of one unit, all at once.
async fn rush(http: &Http, sku: &str, orders: std::ops::Range<u32>) -> Vec<Answer> {
    let send = |n: u32| {
        let (http, body) = (http.clone(), place_body("c", &format!("{sku}-{n}"), sku, 1));
        async move { http.order(&body).await }
    };
    together(orders.map(send)).await
}

// 1
async fn the_last_unit_sells_on_every_path_and_by_every_routing(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    for path in ["direct", "batched"] {
        for routing in ["order_hash", "round_robin", "random", "account_hash", "node_affinity"] {
            let sku = format!("{path}-{routing}");
            let body = json!({"campaign_id": "c", "sku": sku, "supply": 50, "buckets": 9, "path": path,
                "routing": routing});
            let opened = http.post("/v1/pools", &body).await;
            assert_eq!(
                (opened.status, opened.text("path"), opened.text("routing")),
                (201, path.into(), routing.into())
            );
            let pool = opened.text("id");
            let answers = rush(http, &sku, 0..80).await;
            assert_eq!((count(&answers, 201), count(&answers, 409)), (50, 30), "{sku}");
            assert!(answers.iter().filter(|a| a.status == 409).all(|a| a.code() == "sold_out"), "{sku}");
            assert_eq!(http.balances(&pool).await, (0, 50, 0));
        }
    }
    server.finish().await;
}

async fn what_is_released_returns_to_its_bucket_and_is_sold_again(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 12, 4).await;
    let answers = rush(http, "A", 0..12).await;
    assert_eq!(count(&answers, 201), 12);
    let orders: Vec<_> = answers.iter().map(|answer| answer.text("id")).collect();
    let held = http.buckets(&pool).await;
    together(orders.iter().step_by(2).map(|id| {
        let (http, id) = (http.clone(), id.clone());
        async move { http.cancel(&id).await }
    }))
    .await;
    let after = http.buckets(&pool).await;
    assert_eq!(after.iter().map(|b| b.0).sum::<u64>(), 6);
    for (before, after) in held.iter().zip(&after) {
        assert_eq!(before.0 + before.1, after.0 + after.1, "a unit stays in its bucket");
    }
    // No false sold-out while units lie about in whatever bucket.
    let answers = rush(http, "A", 100..110).await;
    assert_eq!((count(&answers, 201), count(&answers, 409)), (6, 4));
    server.finish().await;
}

async fn a_pool_grows_and_is_weighted_while_it_sells(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 300, 1).await;
    let selling = rush(http, "A", 0..200);
    let growing = async {
        let grown = http.changed_pool(&pool, json!({"buckets": 3})).await;
        assert_eq!(grown["buckets"].as_array().map(Vec::len), Some(3));
        http.changed_pool(&pool, json!({"weights": [1, 5, 5], "routing": "round_robin"})).await;
        // Weights alone move no stock: a transfer does.
        let moved = http.transfer("t", in_bucket(&pool, 0), in_bucket(&pool, 1), 40).await;
        assert_eq!(moved.status, 201, "{moved:?}");
    };
    let (answers, ()) = tokio::join!(selling, growing);
    assert_eq!(count(&answers, 201), 200);
    let answers = rush(http, "A", 200..400).await;
    assert_eq!((count(&answers, 201), count(&answers, 409)), (100, 100));
    assert_eq!(http.balances(&pool).await, (0, 300, 0));
    let shown = http.get(&format!("/v1/pools/{pool}")).await.body;
    let weights: Vec<_> = shown["buckets"].as_array().unwrap().iter().map(|b| b["weight"].clone()).collect();
    assert_eq!(weights, [1, 5, 5]);
    // Every bucket's first entry is its opening, also of those that came later.
    let ledger = http.get(&format!("/v1/ledger?pool_id={pool}&limit=500")).await;
    let openings = ledger.body["items"].as_array().unwrap().iter().filter(|entry| entry["seq"] == 1);
    assert_eq!(openings.filter(|entry| entry["action"] == "opening").count(), 3);
    server.finish().await;
}

async fn a_change_of_a_pool_is_judged_strictly(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 4, 2).await;
    for (change, pointer) in [
        (json!({"buckets": 1}), "/buckets"),
        (json!({"buckets": 257}), "/buckets"),
        (json!({"weights": [1]}), "/weights"),
        (json!({"weights": [0, 0]}), "/weights"),
        (json!({"weights": [1, -1]}), "/weights/1"),
        (json!({"path": "cached"}), "/path"),
        (json!({"routing": "nearest"}), "/routing"),
        (json!({"max_concurrency": 1.5}), "/max_concurrency"),
    ] {
        let refused = http.change_pool(&pool, change.clone()).await;
        assert_eq!(
            (refused.status, refused.faults()),
            (400, vec![("invalid_value".into(), pointer.into())]),
            "{change}"
        );
    }
    let unknown = http.change_pool(&pool, json!({"supply": 9})).await;
    assert_eq!((unknown.status, unknown.code()), (400, "unknown_field"));
    let nowhere = http.change_pool("01937a5e-0000-7000-8000-0000000000ff", json!({"buckets": 3})).await;
    assert_eq!((nowhere.status, nowhere.code()), (404, "not_found"));
    // The same again changes nothing, and the trail has it once.
    let change = json!({"path": "direct", "max_concurrency": 5, "operator": "olga", "reason": "rush"});
    for _ in 0..2 {
        let changed = http.changed_pool(&pool, change.clone()).await;
        assert_eq!((&changed["path"], &changed["max_concurrency"]), (&json!("direct"), &json!(5)));
    }
    let unlimited = http.changed_pool(&pool, json!({"max_concurrency": null})).await;
    assert_eq!((&unlimited["path"], &unlimited["max_concurrency"]), (&json!("direct"), &Value::Null));
    let acts = http.get(&format!("/v1/audit?subject=pool%20{pool}")).await;
    let told: Vec<_> =
        acts.body["items"].as_array().unwrap().iter().map(|act| act["detail"].clone()).collect();
    assert_eq!(told[..2], [json!("max_concurrency none"), json!("path direct, max_concurrency 5")]);
    assert_eq!(acts.body["items"][1]["operator"], "olga");
    // The pool was opened as it was opened, whatever became of it.
    let again =
        http.post("/v1/pools", &json!({"campaign_id": "c", "sku": "A", "supply": 4, "buckets": 2})).await;
    assert_eq!(again.status, 200);
    let other = http
        .post(
            "/v1/pools",
            &json!({"campaign_id": "c", "sku": "A", "supply": 4, "buckets": 2, "path": "direct"}),
        )
        .await;
    assert_eq!((other.status, other.code()), (409, "conflict"));
    server.finish().await;
}

async fn a_pool_that_may_place_nothing_turns_everybody_away_and_goes_on_with_what_it_holds(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 4, 1).await;
    let (first, second) = (order("c", "1", "ann", &[("A", 1)]), order("c", "2", "ann", &[("A", 1)]));
    let (paid, cancelled) = (http.accepted(&first).await, http.accepted(&second).await);
    http.changed_pool(&pool, json!({"max_concurrency": 0})).await;
    let refused = http.order(&order("c", "3", "ann", &[("A", 1)])).await;
    assert_eq!((refused.status, refused.code()), (503, "overloaded"));
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    assert_eq!(http.order(&first).await.status, 200, "a key that is known is answered");
    assert_eq!(http.pay(&paid, "e1").await.status, 200);
    assert_eq!(http.cancel(&cancelled).await.status, 200);
    http.changed_pool(&pool, json!({"max_concurrency": null})).await;
    http.accepted(&order("c", "3", "ann", &[("A", 1)])).await;
    assert_eq!(http.balances(&pool).await, (2, 1, 1));
    server.finish().await;
}

async fn stock_moves_between_pools_of_campaigns_under_load(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    http.campaign("everyday", json!({})).await;
    let (sale, shelf) = (http.pool("c", "A", 100, 3).await, http.pool("everyday", "A", 100, 2).await);
    let buying = rush(http, "A", 0..90);
    let moving = together((0..20).map(|n| {
        let (http, sale, shelf) = (http.clone(), sale.clone(), shelf.clone());
        async move {
            let (from, to) = if n % 2 == 0 { (&shelf, &sale) } else { (&sale, &shelf) };
            let answers = [
                http.transfer(&format!("t{n}"), in_pool(from), in_pool(to), 1 + n % 3).await,
                http.transfer(&format!("t{n}"), in_pool(from), in_pool(to), 1 + n % 3).await,
            ];
            let swept = http
                .post(&format!("/v1/pools/{from}/sweep"), &json!({"operator": "ann", "reason": "tidy"}))
                .await;
            assert_eq!(swept.status, 200, "{swept:?}");
            answers
        }
    }));
    let (answers, moved) = tokio::join!(buying, moving);
    assert_eq!(count(&answers, 201), 90);
    for [first, again] in moved {
        // Stock may be gone at the moment; then it is for both.
        if first.status == 201 {
            assert_eq!(
                (again.status, &again.headers["idempotent-replayed"]),
                (200, &"true".parse().unwrap())
            );
        } else {
            assert_eq!((first.status, first.code()), (409, "stock_in_use"), "{first:?}");
        }
    }
    let (here, there) = (http.balances(&sale).await, http.balances(&shelf).await);
    assert_eq!((here.0 + here.1 + there.0, here.1), (200, 90));
    let settled = http.get("/v1/campaigns/c/settlement").await.body;
    let moved_in = settled["moved"].as_i64().expect("moved");
    assert_eq!(100 + moved_in, i64::try_from(here.0 + here.1).unwrap());
    server.finish().await;
}

async fn a_transfer_is_refused_for_what_is_wrong_with_it(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let (a, b) = (http.pool("c", "A", 5, 2).await, http.pool("c", "B", 0, 1).await);
    let nowhere = "01937a5e-0000-7000-8000-0000000000ff";
    let first = http.transfer("t1", in_pool(&a), in_pool(&b), 2).await;
    assert_eq!(
        (first.status, first.text("state"), &first.body["to"]["available"]),
        (201, "applied".into(), &json!(2))
    );
    for (id, from, to, quantity, status, code, pointer) in [
        ("t1", in_pool(&a), in_pool(&b), 3, 422, "key_mismatch", "/quantity"),
        ("t1", in_pool(&b), in_pool(&a), 2, 422, "key_mismatch", "/from/pool_id"),
        ("t2", in_pool(&a), in_pool(&b), 4, 409, "stock_in_use", ""),
        ("t2", in_pool(nowhere), in_pool(&b), 1, 404, "not_found", "/from/pool_id"),
        ("t2", in_pool(&a), in_pool(nowhere), 1, 404, "not_found", "/to/pool_id"),
        ("t2", in_bucket(&a, 7), in_pool(&b), 1, 400, "invalid_value", "/from/bucket"),
        ("t2", in_pool(&a), in_bucket(&b, 1), 1, 400, "invalid_value", "/to/bucket"),
        ("t2", in_pool(&a), in_pool(&a), 1, 400, "invalid_value", "/to"),
        ("t2", in_bucket(&a, 0), in_bucket(&a, 0), 1, 400, "invalid_value", "/to"),
    ] {
        let refused = http.transfer(id, from.clone(), to.clone(), quantity).await;
        assert_eq!((refused.status, refused.code()), (status, code), "{from} {to}: {refused:?}");
        let pointers: Vec<_> = refused.faults().into_iter().map(|(_, pointer)| pointer).collect();
        assert!(pointer.is_empty() || pointers.contains(&pointer.to_owned()), "{from} {to}: {pointers:?}");
    }
    http.switch(&format!("/v1/pools/{a}/freeze")).await;
    let frozen = http.transfer("t2", in_pool(&a), in_pool(&b), 1).await;
    assert_eq!((frozen.status, frozen.code()), (409, "frozen"));
    let back = http.transfer("t2", in_pool(&b), in_pool(&a), 1).await;
    assert_eq!(back.status, 201, "what comes in may come");
    assert_eq!((http.balances(&a).await.0, http.balances(&b).await.0), (4, 1));
    server.finish().await;
}

async fn fragments_are_swept_so_that_a_line_of_many_fits_one_bucket(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 8, 4).await;
    let sweep = json!({"operator": "ann", "reason": "tidy"});
    let path = format!("/v1/pools/{pool}/sweep");
    for _ in 0..2 {
        let swept = http.post(&path, &sweep).await;
        assert_eq!(swept.status, 200, "{swept:?}");
        assert_eq!(http.available(&pool).await, [8, 0, 0, 0]);
    }
    let held = http.accepted(&order("c", "1", "ann", &[("A", 7)])).await;
    let lines = http.see(&held).await;
    assert_eq!(lines["lines"][0]["allocations"].as_array().map(Vec::len), Some(1));
    let into = http.post(&path, &with(sweep, json!({"bucket": 3}))).await;
    assert_eq!(into.status, 200);
    assert_eq!(http.available(&pool).await, [0, 0, 0, 1]);
    let acts = http.get(&format!("/v1/audit?subject=pool%20{pool}")).await;
    let told: Vec<_> =
        acts.body["items"].as_array().unwrap().iter().map(|act| act["action"].clone()).collect();
    assert_eq!(told, ["sweep", "sweep", "open_pool"], "a sweep of nothing is none");
    server.finish().await;
}

async fn a_retired_pool_sells_nothing_and_what_it_holds_goes_on(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let (old, new) = (http.pool("c", "old", 5, 2).await, http.pool("c", "new", 0, 1).await);
    let first = order("c", "1", "ann", &[("old", 1)]);
    let (paid, cancelled) =
        (http.accepted(&first).await, http.accepted(&order("c", "2", "ann", &[("old", 1)])).await);
    for _ in 0..2 {
        http.switch(&format!("/v1/pools/{old}/retire")).await;
    }
    assert_eq!(http.get(&format!("/v1/pools/{old}")).await.body["retired"], true);
    let refused = http.order(&order("c", "3", "ann", &[("old", 1)])).await;
    assert_eq!((refused.status, refused.faults()), (404, vec![("unknown_sku".into(), "/lines/0".into())]));
    assert_eq!(http.order(&first).await.status, 200);
    assert_eq!(http.pay(&paid, "e1").await.status, 200);
    assert_eq!(http.cancel(&cancelled).await.status, 200);
    // Nothing is taken again for a payment that comes too late.
    assert_eq!(http.told(&super::success(&cancelled, "e2", "p2")).await, "refund_due");
    assert_eq!(http.transfer("t", in_pool(&old), in_pool(&new), 4).await.status, 201);
    http.accepted(&order("c", "3", "ann", &[("new", 4)])).await;
    assert_eq!(http.balances(&old).await, (0, 0, 1));
    server.finish().await;
}

async fn a_path_changes_under_load_and_nobody_is_lost(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 200, 2).await;
    let buying = rush(http, "A", 0..240);
    let changing = async {
        for path in ["direct", "batched", "direct", "batched"] {
            http.changed_pool(&pool, json!({"path": path})).await;
            let left = http.balances(&pool).await.0;
            wait_until("some more orders", async || {
                let now = http.balances(&pool).await.0;
                (now == 0 || now < left).then_some(())
            })
            .await;
        }
    };
    let (answers, ()) = tokio::join!(buying, changing);
    assert_eq!((count(&answers, 201), count(&answers, 409)), (200, 40));
    assert_eq!(http.balances(&pool).await, (0, 200, 0));
    server.finish().await;
}
