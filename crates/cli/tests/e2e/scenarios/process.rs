//! N: clients that hang up, loads that are torn off, and figures that must agree.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::site::Site;
use super::{order, success, together};
use crate::support::{Http, Server, place_body, wait_until};

super::site::on_each_site! {
    an_order_whose_client_hangs_up_is_placed_whole_or_not_at_all
    a_notice_a_cancel_or_a_refund_whose_sender_hangs_up_is_done_whole_or_not_at_all
    a_load_that_is_torn_off_leaves_the_server_fast
    every_place_that_shows_stock_shows_the_same
}

/// Sends the first `share` percent of a request and hangs up.
async fn hang_up(http: &Http, path: &str, body: &Value, share: usize) {
    hang_up_with(http, path, "application/json", &body.to_string(), share).await;
}

/// The same with a body of any kind.
pub(super) async fn hang_up_with(http: &Http, path: &str, content_type: &str, body: &str, share: usize) {
    let address = http.base.strip_prefix("http://").expect("plain HTTP");
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let sent = request.len() * share / 100;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(&request.as_bytes()[..sent]).await.expect("sent");
}

// 146
async fn an_order_whose_client_hangs_up_is_placed_whole_or_not_at_all(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 100, 4).await;
    together((0..60).map(|n| {
        let (http, body) = (http.clone(), place_body("c", &n.to_string(), "A", 1));
        // A third is torn off in the middle of its body.
        async move { hang_up(&http, "/v1/orders", &body, if n % 3 == 0 { 95 } else { 100 }).await }
    }))
    .await;
    for n in 0..60 {
        let answer = http.place("c", &n.to_string(), "A", 1).await;
        let expected: &[u16] = if n % 3 == 0 { &[201] } else { &[200, 201] };
        assert!(expected.contains(&answer.status), "{n}: {answer:?}");
    }
    assert_eq!(http.balances(&pool).await, (40, 60, 0));
    assert_eq!(http.listed("campaign_id=c&state=held").await, 60);
    server.finish().await;
}

// 146
async fn a_notice_a_cancel_or_a_refund_whose_sender_hangs_up_is_done_whole_or_not_at_all(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 60, 1).await;
    for n in 0..20 {
        let id = http.place("c", &n.to_string(), "A", 2).await.text("id");
        let notice = success(&id, &format!("e{n}"), &format!("p{n}"));
        hang_up(http, "/v1/payments/bank/notifications", &notice, 100).await;
        // The provider tells again: it is applied exactly once.
        assert!(["applied", "duplicate"].contains(&http.told(&notice).await.as_str()));
        let refund =
            json!({"refund_id": "r", "lines": [{"line": 1, "quantity": 1}], "restock": true, "reason": "r"});
        let path = format!("/v1/orders/{id}/refunds");
        hang_up(http, &path, &refund, 100).await;
        assert!([200, 201].contains(&http.post(&path, &refund).await.status));
        assert_eq!(http.actions(&id).await, ["place", "confirm", "refund"]);
        let other = http.place("c", &format!("other-{n}"), "A", 1).await.text("id");
        hang_up(http, &format!("/v1/orders/{other}/cancel"), &json!({}), 100).await;
        assert_eq!(http.cancel(&other).await.text("state"), "released");
        assert_eq!(http.actions(&other).await, ["place", "release"]);
    }
    assert_eq!(http.balances(&pool).await, (40, 0, 20));
    server.finish().await;
}

// 151
async fn a_load_that_is_torn_off_leaves_the_server_fast(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({})).await;
    let pool = http.pool("c", "A", 10_000, 4).await;
    for round in 0..3 {
        together((0..300).map(|n| {
            let (http, body) = (http.clone(), place_body("c", &format!("{round}-{n}"), "A", 1));
            async move { hang_up(&http, "/v1/orders", &body, 20 + n % 81).await }
        }))
        .await;
        let asked = Instant::now();
        let answer = http.place("c", &format!("after-{round}"), "A", 1).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    }
    // Only whole requests became orders: those that sent all of it.
    let held = wait_until("an end of the torn-off orders", async || {
        let (_, first, _) = http.balances(&pool).await;
        let (_, second, _) = http.balances(&pool).await;
        (first == second).then_some(second)
    })
    .await;
    assert!(held <= 3 + 3 * 3, "{held} held");
    server.finish().await;
}

#[tokio::test]
async fn a_server_that_is_stopped_as_soon_as_it_is_ready_drains() {
    for _ in 0..15 {
        Server::start().await.finish().await;
    }
}

/// Sums of what the ledger says of a pool.
async fn ledger_sums(http: &Http, pool: &str) -> [i64; 3] {
    let mut sums = [0; 3];
    let mut cursor = String::new();
    loop {
        let page = http.get(&format!("/v1/ledger?pool_id={pool}&limit=7{cursor}")).await;
        for entry in page.body["items"].as_array().expect("entries") {
            for (sum, name) in sums.iter_mut().zip(["delta_available", "delta_held", "delta_sold"]) {
                *sum += entry[name].as_i64().expect("units");
            }
        }
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return sums,
        }
    }
}

// 155
async fn every_place_that_shows_stock_shows_the_same(server: Site) {
    let http = &server.http;
    http.campaign("c", json!({"release_grace_ms": 0})).await;
    let pool = http.pool("c", "A", 100, 3).await;
    for n in 0..20 {
        let mut body = order("c", &n.to_string(), "ann", &[("A", 1), ("A", 2)]);
        body["hold_seconds"] = json!(if n % 5 == 4 { 1 } else { 900 });
        let id = http.accepted(&body).await;
        match n % 5 {
            0 => assert_eq!(http.cancel(&id).await.status, 200),
            1 => assert_eq!(http.reduce(&id, 2, 1).await.status, 200),
            2 => {
                http.pay(&id, &format!("e{n}")).await;
                assert_eq!(http.refund(&id, "r", 1, Some(n < 10)).await.status, 201);
            }
            3 => {}
            // An abandoned basket.
            _ => drop(http.wait_for_state(&id, "released").await),
        }
    }
    assert_eq!(http.adjust(&pool, "less", -3).await.status, 201);
    // 4 × 2 and 4 × 3 held, 4 × 3 sold of which 2 × 1 came back.
    let exact = (100 - 3 - 20 - 10, 20, 10);
    assert_eq!(http.balances(&pool).await, exact);
    let (available, held, sold) = exact;
    let listed = http.get("/v1/pools?campaign_id=c&sku=A").await.body["items"][0].clone();
    assert_eq!(listed, http.get(&format!("/v1/pools/{pool}")).await.body);
    let totals = http.get("/v1/campaigns/c").await.body["totals"].clone();
    let expected = json!({"pools": 1, "supply": 97, "available": available, "held": held, "sold": sold});
    assert_eq!(totals, expected);
    assert_eq!(http.get("/v1/campaigns").await.body["items"][0]["totals"], expected);
    assert_eq!(ledger_sums(http, &pool).await, [67, 20, 10]);
    let export = http.get("/v1/exports/stock?campaign_id=c").await.raw;
    assert_eq!(String::from_utf8_lossy(&export), "sku,location,quantity\nA,main,97\n");
    wait_until("the display", async || {
        let shown = http.get(&format!("/v1/pools/{pool}/availability")).await;
        (shown.body["available"] == available).then_some(())
    })
    .await;
    server.finish().await;
}
