//! E: stock comes back twice, not at all, or in the wrong amount. K 125: below an open order.

use serde_json::json;

use super::site::Site;
use super::{count, order, success, together, with};
use crate::support::{Http, Server, Start};

super::site::on_each_site! {
    a_restocked_refund_gives_back_once_whatever_is_called_after
    the_request_decides_on_restock_else_the_policy_and_nothing_later
    parallel_refunds_never_exceed_what_was_sold
    a_cancelled_order_neither_gives_again_nor_comes_back_without_taking
    stock_moves_only_where_stock_is_meant
    a_part_is_given_back_and_the_rest_is_sold
    a_cancel_gives_back_each_unit_once_however_the_lines_are_split
    the_end_of_one_order_leaves_the_other_alone
    each_way_back_restores_every_bucket_as_it_was
    stock_cannot_be_taken_from_under_an_open_order
}

/// Sells an order of one line; its id.
async fn sold(http: &Http, order_no: &str, quantity: u32) -> String {
    let id = http.place("c", order_no, "A", quantity).await.text("id");
    assert_eq!(http.pay(&id, order_no).await.text("disposition"), "applied");
    id
}

// 50
async fn a_restocked_refund_gives_back_once_whatever_is_called_after(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 100, 1).await;
    let id = sold(http, "1", 1).await;
    assert_eq!(http.refund(&id, "r1", 1, Some(true)).await.text("state"), "refunded");
    for _ in 0..2 {
        assert_eq!(http.balances(&pool).await, (100, 0, 0));
        assert_eq!(http.cancel(&id).await.code(), "already_refunded");
        assert_eq!(http.reduce(&id, 1, 0).await.code(), "already_refunded");
        assert_eq!(http.refund(&id, "r2", 1, Some(true)).await.code(), "already_refunded");
        assert_eq!(http.refund(&id, "r1", 1, Some(true)).await.status, 200);
    }
    assert_eq!(http.balances(&pool).await, (100, 0, 0));
    server.finish().await;
}

// 51, 52
async fn the_request_decides_on_restock_else_the_policy_and_nothing_later(server: Site) {
    let http = &server.http;
    for (campaign, policy) in [("never", false), ("always", true)] {
        http.campaign(campaign, json!({"restock_on_refund": policy})).await;
        let pool = http.pool(campaign, "A", 20, 1).await;
        let mut available = 20;
        for (n, (restock, back)) in
            [(Some(false), 0), (Some(true), 5), (None, 5 * u64::from(policy))].into_iter().enumerate()
        {
            let id = http.place(campaign, &n.to_string(), "A", 5).await.text("id");
            http.pay(&id, &format!("{campaign}-{n}")).await;
            let refunded = http.refund(&id, "r", 5, restock).await;
            assert_eq!((refunded.status, refunded.text("state")), (201, "refunded".into()));
            available = available - 5 + back;
            for _ in 0..2 {
                assert_eq!(http.balances(&pool).await, (available, 0, 20 - available), "{restock:?}");
                assert_eq!(http.cancel(&id).await.code(), "already_refunded");
                assert_eq!(http.refund(&id, "again", 5, Some(true)).await.code(), "already_refunded");
            }
        }
    }
    server.finish().await;
}

async fn parallel_refunds_never_exceed_what_was_sold(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 30, 3).await;
    let id = sold(http, "1", 30).await;
    let answers = together((0..40).map(|n| {
        let (http, id) = (http.clone(), id.clone());
        async move { http.refund(&id, &format!("r{n}"), 2, Some(n % 2 == 0)).await }
    }))
    .await;
    assert_eq!((count(&answers, 201), count(&answers, 409)), (15, 25));
    let seen = http.see(&id).await;
    assert_eq!((&seen["state"], &seen["lines"][0]["refunded_quantity"]), (&json!("refunded"), &json!(30)));
    let (available, held, sold) = http.balances(&pool).await;
    assert_eq!((available % 2, held, available + sold), (0, 0, 30));
    // A part that is more than is left is refused whole.
    let id = self::sold(http, "2", 1).await;
    let too_much = http.refund(&id, "r", 2, Some(true)).await;
    assert_eq!((too_much.status, too_much.code()), (409, "refund_exceeds_sold"));
    let error = &too_much.body["errors"][0];
    assert_eq!((&error["requested"], &error["available"]), (&json!(2), &json!(1)));
    server.finish().await;
}

// 54, 55
async fn a_cancelled_order_neither_gives_again_nor_comes_back_without_taking(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 10, 1).await;
    let id = http.place("c", "1", "A", 5).await.text("id");
    for _ in 0..2 {
        let cancelled = http.cancel(&id).await;
        assert_eq!((cancelled.status, cancelled.text("state")), (200, "released".into()));
        assert_eq!(http.reduce(&id, 1, 2).await.code(), "already_released");
        assert_eq!(http.attempt(&id, "t").await.code(), "already_released");
        assert_eq!(http.refund(&id, "r", 5, Some(true)).await.code(), "already_released");
        assert_eq!(http.place("c", "1", "A", 5).await.code(), "already_released");
        assert_eq!(http.balances(&pool).await, (10, 0, 0));
    }
    assert_eq!(http.actions(&id).await, ["place", "release"]);
    // Money for it takes the units again, and only then they can be given back again.
    assert_eq!(http.pay(&id, "e").await.text("disposition"), "retaken");
    assert_eq!(http.balances(&pool).await, (5, 0, 5));
    assert_eq!(http.cancel(&id).await.code(), "already_sold");
    assert_eq!(http.refund(&id, "r", 5, Some(true)).await.status, 201);
    assert_eq!(http.balances(&pool).await, (10, 0, 0));
    server.finish().await;
}

// 56, 66
async fn stock_moves_only_where_stock_is_meant(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 5, 2).await;
    let body = with(order("c", "1", "ann", &[("A", 5)]), json!({"metadata": {"note": "x"}}));
    let id = http.accepted(&body).await;
    let before = http.buckets(&pool).await;
    http.attempt(&id, "t1").await;
    let failed = with(success(&id, "f1", "p1"), json!({"outcome": "failed"}));
    assert_eq!(http.told(&failed).await, "applied");
    // Another note is no other order, and does not change what is kept.
    let again = http.order(&with(body, json!({"metadata": {"note": "y"}}))).await;
    assert_eq!(
        (again.status, again.text("id"), &again.body["metadata"]),
        (200, id.clone(), &json!({"note": "x"}))
    );
    assert_eq!(http.reduce(&id, 1, 5).await.status, 200);
    assert_eq!(http.buckets(&pool).await, before);
    assert_eq!(http.told(&success(&id, "e1", "p2")).await, "applied");
    let after = http.buckets(&pool).await;
    assert_eq!(
        after.iter().map(|b| (b.0, b.2)).collect::<Vec<_>>(),
        before.iter().map(|b| (b.0, b.1)).collect::<Vec<_>>()
    );
    let failed = with(success(&id, "f2", "p2"), json!({"outcome": "failed"}));
    assert_eq!(http.told(&failed).await, "ignored");
    assert_eq!(http.told(&success(&id, "e2", "p2")).await, "duplicate");
    assert_eq!(http.attempt(&id, "t2").await.code(), "already_sold");
    assert_eq!(http.refund(&id, "r1", 2, Some(false)).await.status, 201);
    assert_eq!(http.buckets(&pool).await, after);
    // The home bucket carries the events; the other has its part of the stock.
    let home = ["place", "order_event", "order_event", "confirm", "refund"];
    assert_eq!(http.actions(&id).await, [&home[..], &["place", "confirm"]].concat());
    server.finish().await;
}

// 58
async fn a_part_is_given_back_and_the_rest_is_sold(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 100, 1).await;
    let id = http.place("c", "1", "A", 10).await.text("id");
    assert_eq!(http.reduce(&id, 1, 7).await.status, 200);
    assert_eq!(http.pay(&id, "e").await.text("disposition"), "applied");
    assert_eq!(http.balances(&pool).await, (93, 0, 7));
    assert_eq!(http.cancel(&id).await.code(), "already_sold");
    assert_eq!(http.reduce(&id, 1, 3).await.code(), "already_sold");
    assert_eq!(http.refund(&id, "r", 8, Some(true)).await.code(), "refund_exceeds_sold");
    assert_eq!(http.balances(&pool).await, (93, 0, 7));
    server.finish().await;
}

// 59
async fn a_cancel_gives_back_each_unit_once_however_the_lines_are_split(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 7, 3).await;
    for (no, lines) in [("one", &[("A", 7)][..]), ("seven", &[("A", 1); 7][..])] {
        let before = http.buckets(&pool).await;
        let id = http.accepted(&order("c", no, "ann", lines)).await;
        assert_eq!(http.balances(&pool).await, (0, 7, 0));
        assert_eq!(http.cancel(&id).await.status, 200);
        assert_eq!(http.buckets(&pool).await, before);
    }
    server.finish().await;
}

// 60
async fn the_end_of_one_order_leaves_the_other_alone(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 10, 1).await;
    let first = http.place("c", "1", "A", 5).await.text("id");
    let second = http.place("c", "2", "A", 2).await.text("id");
    http.pay(&first, "e1").await;
    assert_eq!(http.cancel(&first).await.code(), "already_sold");
    assert_eq!(http.refund(&first, "r", 5, Some(true)).await.status, 201);
    assert_eq!(http.balances(&pool).await, (8, 2, 0));
    assert_eq!(http.pay(&second, "e2").await.text("disposition"), "applied");
    assert_eq!(http.balances(&pool).await, (8, 0, 2));
    server.finish().await;
}

// 62
#[tokio::test]
async fn nothing_is_released_that_was_not_held() {
    let mut server = Server::start().await;
    let start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    server.http.campaign("c", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    let pool = server.http.pool("c", "A", 3, 1).await;
    // The node knows nothing of the stock after a start, so the authority decides, and records.
    server.restart(&start).await;
    let http = &server.http;
    let refused = http.place("c", "refused", "A", 4).await;
    assert_eq!((refused.code(), &refused.body["recorded"]), ("sold_out", &json!(true)));
    let refused = refused.body["order"]["id"].as_str().unwrap().to_owned();
    let expired = http.place("c", "expired", "A", 3).await.text("id");
    http.wait_for_state(&expired, "released").await;
    let unknown = "01937a5e-0000-7000-8000-0000000000ff";
    for (id, status, code) in [
        (refused.as_str(), 409, "already_failed"),
        (expired.as_str(), 409, "already_released"),
        (unknown, 404, "not_found"),
        ("17", 404, "not_found"),
    ] {
        for answer in [http.cancel(id).await, http.refund(id, "r", 1, Some(true)).await] {
            assert_eq!((answer.status, answer.code()), (status, code), "{id}");
        }
        assert_eq!(http.attempt(id, "t").await.code(), code, "{id}");
    }
    assert_eq!(http.balances(&pool).await, (3, 0, 0));
    server.finish().await;
}

// 63, 67
async fn each_way_back_restores_every_bucket_as_it_was(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"payment_failed": "release", "release_grace_ms": 0})).await;
    let pool = http.pool("c", "A", 10, 4).await;
    let before = http.buckets(&pool).await;
    assert_eq!(before, [(3, 0, 0), (3, 0, 0), (2, 0, 0), (2, 0, 0)]);
    for way in ["cancel", "reduce", "fail", "refund", "expire"] {
        let hold = if way == "expire" { 1 } else { 900 };
        let body = with(order("c", way, "ann", &[("A", 10)]), json!({"hold_seconds": hold}));
        let id = http.accepted(&body).await;
        assert_eq!(http.balances(&pool).await, (0, 10, 0));
        match way {
            "cancel" => assert_eq!(http.cancel(&id).await.status, 200),
            "reduce" => {
                // The highest bucket gives first.
                assert_eq!(http.reduce(&id, 1, 4).await.status, 200);
                assert_eq!(http.buckets(&pool).await, [(0, 3, 0), (2, 1, 0), (2, 0, 0), (2, 0, 0)]);
                assert_eq!(http.reduce(&id, 1, 0).await.text("state"), "released");
            }
            "fail" => {
                let failed = with(success(&id, "f", "p"), json!({"outcome": "failed"}));
                assert_eq!(http.told(&failed).await, "applied");
            }
            "refund" => {
                http.pay(&id, "e").await;
                assert_eq!(http.refund(&id, "r1", 3, Some(true)).await.status, 201);
                assert_eq!(http.buckets(&pool).await, [(0, 0, 3), (0, 0, 3), (1, 0, 1), (2, 0, 0)]);
                assert_eq!(http.refund(&id, "r2", 7, Some(true)).await.status, 201);
            }
            _ => drop(http.wait_for_state(&id, "released").await),
        }
        assert_eq!(http.buckets(&pool).await, before, "{way}");
    }
    server.finish().await;
}

// 125
async fn stock_cannot_be_taken_from_under_an_open_order(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 8, 3).await;
    let id = http.place("c", "1", "A", 5).await.text("id");
    let refused = http.adjust(&pool, "down-1", -5).await;
    assert_eq!((refused.status, refused.code()), (409, "stock_in_use"));
    assert_eq!(refused.body["errors"][0]["available"], 3);
    assert_eq!(http.adjust(&pool, "down-2", -3).await.status, 201);
    assert_eq!(http.adjust(&pool, "down-3", -1).await.code(), "stock_in_use");
    assert_eq!(http.pay(&id, "e").await.text("disposition"), "applied");
    assert_eq!(http.balances(&pool).await, (0, 0, 5));
    assert_eq!(http.adjust(&pool, "down-4", -1).await.code(), "stock_in_use");
    server.finish().await;
}
