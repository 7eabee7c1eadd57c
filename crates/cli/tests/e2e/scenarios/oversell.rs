//! A: more is sold than there is, or less, because many ask at once or one asks in an odd way.

use std::time::{Duration, Instant};

use serde_json::json;

use super::site::Site;
use super::{count, order, together, with};
use crate::support::{place_body, wait_until};

super::site::on_each_site! {
    of_two_orders_that_together_exceed_the_stock_one_is_told_what_is_left
    a_rush_sells_exactly_what_there_is_whatever_the_buckets
    lines_of_one_sku_count_together
    a_line_cannot_be_raised_past_the_check
    an_order_does_not_wait_for_itself
    an_order_that_fails_on_one_line_leaves_nothing_on_the_other
    no_way_to_stock_leads_round_the_check
    a_pool_in_trouble_is_named_and_stops_no_other
    after_the_last_unit_the_display_may_lag_but_no_order_passes
}

// 1
async fn of_two_orders_that_together_exceed_the_stock_one_is_told_what_is_left(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 10, 1).await;
    let answers = together(["1", "2"].map(|no| {
        let (http, body) = (http.clone(), place_body("c", no, "A", 6));
        async move { http.order(&body).await }
    }))
    .await;
    assert_eq!(count(&answers, 201), 1, "{answers:?}");
    let refused = answers.iter().find(|a| a.status == 409).expect("one is refused");
    let error = &refused.body["errors"][0];
    assert_eq!(
        (refused.code(), &error["requested"], &error["available"]),
        ("sold_out", &json!(6), &json!(4))
    );
    assert_eq!(http.balances(&pool).await, (4, 6, 0));
    server.finish().await;
}

// 1
async fn a_rush_sells_exactly_what_there_is_whatever_the_buckets(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    for buckets in [1, 7] {
        let sku = format!("B{buckets}");
        let pool = http.pool("c", &sku, 100, buckets).await;
        let answers = together((0..400).map(|n| {
            let (http, body) = (http.clone(), place_body("c", &format!("{sku}-{n}"), &sku, 1));
            async move { http.order(&body).await }
        }))
        .await;
        assert_eq!((count(&answers, 201), count(&answers, 409)), (100, 300), "{buckets} buckets");
        assert_eq!(http.balances(&pool).await, (0, 100, 0));
    }
    server.finish().await;
}

// 3
async fn lines_of_one_sku_count_together(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 5, 1).await;
    let refused = http.order(&order("c", "1", "ann", &[("A", 3), ("A", 3)])).await;
    assert_eq!((refused.status, refused.code()), (409, "sold_out"));
    assert_eq!(refused.body["errors"][0]["requested"], 6);
    assert_eq!(http.balances(&pool).await, (5, 0, 0));
    let held = http.accepted(&order("c", "2", "ann", &[("A", 2), ("A", 3)])).await;
    assert_eq!(http.balances(&pool).await, (0, 5, 0));
    for _ in 0..2 {
        assert_eq!(http.cancel(&held).await.status, 200);
        assert_eq!(http.balances(&pool).await, (5, 0, 0));
    }
    // White space around a SKU is refused, so that it is never another SKU nor the same.
    let spaced = http.order(&order("c", "3", "ann", &[("A", 3), ("A ", 3)])).await;
    assert_eq!(spaced.faults(), [("invalid_identifier".into(), "/lines/1/sku".into())]);
    assert_eq!(http.balances(&pool).await, (5, 0, 0));
    server.finish().await;
}

// 4
async fn a_line_cannot_be_raised_past_the_check(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 3, 1).await;
    let held = http.accepted(&order("c", "1", "ann", &[("A", 1), ("A", 1)])).await;
    let raised = http.reduce(&held, 1, 2).await;
    assert_eq!((raised.status, raised.code()), (409, "conflict"));
    assert_eq!(http.balances(&pool).await, (1, 2, 0));
    // The same number with more is another order, which the key does not allow.
    let more = http.order(&order("c", "1", "ann", &[("A", 2), ("A", 1)])).await;
    assert_eq!((more.status, more.code()), (422, "order_mismatch"));
    assert_eq!(http.balances(&pool).await, (1, 2, 0));
    server.finish().await;
}

// 6
async fn an_order_does_not_wait_for_itself(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 60, 3).await;
    let answers = together((0..20).map(|n| {
        let body = order("c", &n.to_string(), "ann", &[("A", 1), ("A", 1), ("A", 1)]);
        let http = http.clone();
        async move {
            let start = Instant::now();
            (http.order(&body).await.status, start.elapsed())
        }
    }))
    .await;
    for (status, took) in answers {
        assert_eq!(status, 201);
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
    assert_eq!(http.balances(&pool).await, (0, 60, 0));
    server.finish().await;
}

// 9
async fn an_order_that_fails_on_one_line_leaves_nothing_on_the_other(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let (a, b) = (http.pool("c", "A", 1, 1).await, http.pool("c", "B", 0, 1).await);
    let answers = together((0..200).map(|n| {
        let lines: &[(&str, u32)] = if n % 2 == 0 { &[("A", 1), ("B", 1)] } else { &[("A", 1)] };
        let (http, body) = (http.clone(), order("c", &n.to_string(), "ann", lines));
        async move { (n, http.order(&body).await.status) }
    }))
    .await;
    let accepted: Vec<_> = answers.iter().filter(|(_, status)| *status == 201).collect();
    assert_eq!(accepted.len(), 1);
    assert!(accepted[0].0 % 2 == 1, "an order with a line that cannot be served was accepted");
    assert_eq!(http.balances(&a).await, (0, 1, 0));
    assert_eq!(http.balances(&b).await, (0, 0, 0));
    for (pool, entries) in [(a, 2), (b, 1)] {
        let ledger = http.get(&format!("/v1/ledger?pool_id={pool}")).await;
        assert_eq!(ledger.body["items"].as_array().unwrap().len(), entries, "{:?}", ledger.body);
    }
    server.finish().await;
}

// 10
async fn no_way_to_stock_leads_round_the_check(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    let pool = http.pool("c", "A", 4, 2).await;
    let other = http.pool("c", "B", 9, 1).await;
    // Two orders that could come back: one by a payment that is late, one by a cancel undone.
    let late = http.place("c", "late", "A", 2).await.text("id");
    let cancelled = http.place("c", "cancelled", "A", 2).await.text("id");
    http.cancel(&cancelled).await;
    http.wait_for_state(&late, "released").await;
    let rest = with(order("c", "rest", "ann", &[("A", 4)]), json!({"hold_seconds": 900}));
    let rest = http.accepted(&rest).await;
    let single = place_body("c", "single", "A", 1);
    let batch = json!({"orders": [place_body("c", "b-1", "A", 1), place_body("c", "b-2", "A", 1)]});
    let wide = order("c", "wide", "ann", &[("A", 1); 60]);
    let mixed = order("c", "mixed", "ann", &[("B", 1), ("A", 1)]);
    for body in [&single, &single, &wide, &mixed] {
        assert_eq!(http.order(body).await.code(), "sold_out", "{body}");
    }
    for result in http.post("/v1/orders/batch", &batch).await.body["results"].as_array().unwrap() {
        assert_eq!(result["problem"]["code"], "sold_out");
    }
    assert_eq!(http.reduce(&rest, 1, 5).await.code(), "conflict");
    assert_eq!(http.place("c", "late", "A", 2).await.code(), "already_released");
    assert_eq!(http.place("c", "cancelled", "A", 2).await.code(), "already_released");
    assert_eq!(http.pay(&late, "e1").await.text("disposition"), "refund_due");
    assert_eq!(http.pay(&cancelled, "e2").await.text("disposition"), "refund_due");
    assert_eq!(http.adjust(&pool, "less", -1).await.code(), "stock_in_use");
    for (action, id) in [("confirm", &late), ("confirm", &cancelled), ("extend", &cancelled)] {
        let mut body = json!({"action": action, "operator": "ann", "reason": "please"});
        if action == "extend" {
            body["until"] = json!("2099-01-01T00:00:00Z");
        }
        let refused = http.post(&format!("/v1/orders/{id}/resolve"), &body).await;
        assert_eq!((refused.status, refused.code()), (409, "already_released"), "{action}: {refused:?}");
    }
    let transfer = json!({"transfer_id": "t", "from": {"pool_id": pool}, "to": {"pool_id": other}, "quantity": 1,
        "operator": "ann", "reason": "please"});
    assert_eq!(http.post("/v1/transfers", &transfer).await.code(), "stock_in_use");
    assert_eq!(http.balances(&pool).await, (0, 4, 0));
    assert_eq!(http.balances(&other).await, (9, 0, 0));
    server.finish().await;
}

// 11
async fn after_the_last_unit_the_display_may_lag_but_no_order_passes(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 20, 4).await;
    let shown = format!("/v1/pools/{pool}/availability");
    for n in 0..20 {
        // Kept warm, so that an old figure is there to be believed.
        assert_eq!(http.get(&shown).await.status, 200);
        assert_eq!(http.place("c", &n.to_string(), "A", 1).await.status, 201);
    }
    assert_eq!(http.place("c", "one more", "A", 1).await.code(), "sold_out");
    assert_eq!(http.balances(&pool).await, (0, 20, 0));
    wait_until("the display", async || (http.get(&shown).await.body["available"] == 0).then_some(())).await;
    server.finish().await;
}

// 132
async fn a_pool_in_trouble_is_named_and_stops_no_other(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let trouble = http.pool("c", "A", 2, 1).await;
    let sound = http.pool("c", "B", 9, 1).await;
    assert_eq!(http.place("c", "first", "A", 1).await.status, 201);
    for (code, quantity) in [("sold_out", 2), ("frozen", 1)] {
        if code == "frozen" {
            http.switch(&format!("/v1/pools/{trouble}/freeze")).await;
        }
        for lines in [&[("A", quantity)][..], &[("B", 2), ("A", quantity)], &[("A", quantity), ("B", 2)]] {
            let refused = http.order(&order("c", &format!("{code} {lines:?}"), "ann", lines)).await;
            let at = lines.iter().position(|(sku, _)| *sku == "A").expect("a line");
            assert_eq!((refused.status, refused.code()), (409, code), "{refused:?}");
            let pointers: Vec<_> = refused.faults().into_iter().map(|(_, pointer)| pointer).collect();
            assert_eq!(pointers, [format!("/lines/{at}")], "{refused:?}");
        }
        assert_eq!(http.place("c", &format!("sound {code}"), "B", 1).await.status, 201);
    }
    assert_eq!((http.balances(&trouble).await, http.balances(&sound).await), ((1, 1, 0), (7, 2, 0)));
    server.finish().await;
}
