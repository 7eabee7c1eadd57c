//! The faults of concurrency, keys and buckets once more, on orders that queue.

use serde_json::{Value, json};

use super::{order, together};
use crate::support::{Http, Server, Start};

/// Opens a campaign whose stock queues: SKU, supply, buckets. The pools' ids.
async fn shop(http: &Http, stock: &[(&str, u64, u32)]) -> Vec<String> {
    http.campaign("drop", json!({})).await;
    let mut pools = Vec::new();
    for (sku, supply, buckets) in stock {
        let body = json!({
            "campaign_id": "drop", "sku": sku, "supply": supply, "buckets": buckets, "path": "queued",
        });
        let pool = http.post("/v1/pools", &body).await;
        assert_eq!(pool.status, 201, "{pool:?}");
        pools.push(pool.text("id"));
    }
    pools
}

/// What became of an order in the end: its state, or the code of a refusal at the entry.
async fn end_of(http: &Http, body: &Value) -> (String, Value) {
    let placed = http.order(body).await;
    if placed.status == 409 {
        return (placed.code().to_owned(), placed.body);
    }
    assert_eq!(placed.status, 202, "{placed:?}");
    let decided = http.get(&format!("/v1/orders/{}?wait=20s", placed.text("id"))).await.body;
    let state = decided["state"].as_str().expect("a state");
    let word = if state == "failed" { decided["reason"].as_str().expect("a reason") } else { state };
    (word.to_owned(), decided)
}

fn count(ends: &[(String, Value)], word: &str) -> usize {
    ends.iter().filter(|(end, _)| end == word).count()
}

/// 1, 11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_orders_that_fit_each_but_not_together_are_never_sold_together() {
    let server = Server::start().await;
    let pools = shop(&server.http, &[("A", 10, 1), ("B", 100, 8)]).await;
    let pair = together((0..2).map(|n| {
        let http = server.http.clone();
        async move { end_of(&http, &order("drop", &format!("A-{n}"), "ann", &[("A", 6)])).await }
    }))
    .await;
    assert_eq!((count(&pair, "held"), count(&pair, "sold_out")), (1, 1), "{pair:?}");
    let rush =
        together(
            (0..400).map(|n| {
                let http = server.http.clone();
                async move {
                    end_of(&http, &order("drop", &format!("B-{n}"), &format!("a{n}"), &[("B", 1)])).await
                }
            }),
        )
        .await;
    assert_eq!(
        (count(&rush, "held"), count(&rush, "sold_out")),
        (100, 300),
        "no false sold out, no oversell"
    );
    assert_eq!(server.http.balances(&pools[0]).await, (4, 6, 0));
    assert_eq!(server.http.balances(&pools[1]).await, (0, 100, 0));
    server.finish().await;
}

/// 3, 6, 9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_one_queued_order_count_together_and_all_or_nothing() {
    let server = Server::start().await;
    let pools = shop(&server.http, &[("A", 5, 1), ("B", 0, 1), ("C", 200, 4)]).await;
    let (end, _) = end_of(&server.http, &order("drop", "N-1", "ann", &[("A", 3), ("A", 3)])).await;
    assert_eq!(end, "sold_out");
    let (end, held) = end_of(&server.http, &order("drop", "N-2", "ann", &[("A", 2), ("A", 3)])).await;
    assert_eq!(end, "held");
    let cancelled = server.http.cancel(held["id"].as_str().expect("an id")).await;
    assert_eq!((cancelled.status, &cancelled.body["state"]), (200, &json!("released")), "{cancelled:?}");
    assert_eq!(server.http.balances(&pools[0]).await, (5, 0, 0), "given back once");
    let mixed = together((0..100).map(|n| {
        let http = server.http.clone();
        async move {
            let lines: &[(&str, u32)] =
                if n % 2 == 0 { &[("A", 1), ("B", 1)] } else { &[("A", 1), ("C", 2)] };
            end_of(&http, &order("drop", &format!("M-{n}"), &format!("a{n}"), lines)).await
        }
    }))
    .await;
    assert_eq!((count(&mixed, "held"), count(&mixed, "sold_out")), (5, 95));
    assert_eq!(server.http.balances(&pools[0]).await, (0, 5, 0), "what failed has left no hold");
    assert_eq!(server.http.balances(&pools[2]).await, (190, 10, 0));
    server.finish().await;
}

/// 73, 76: a key whose first try failed at landing says so for ever; one that a crash broke off has one outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_key_is_never_stuck() {
    let plain = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    let mut server = Server::start_with(plain.clone()).await;
    let pools = shop(&server.http, &[("A", 1, 1), ("B", 1_000, 2)]).await;
    let body = order("drop", "K-1", "ann", &[("A", 2), ("B", 1)]);
    // The hint at the entry knows of A: it records nothing, and the key may try again.
    let refused = server.http.order(&body).await;
    assert_eq!((refused.code(), &refused.body["recorded"]), ("sold_out", &json!(false)), "{refused:?}");
    server.http.adjust(&pools[0], "more", 1).await;
    assert_eq!(end_of(&server.http, &body).await.0, "held");
    let lost = order("drop", "K-2", "ann", &[("B", 2)]);
    for point in ["commit.before_begin", "commit.before_commit", "commit.after_commit"] {
        let mut armed = plain.clone();
        armed.environment.push(("HOLDFAST_FAILPOINTS".into(), format!("{point}=1")));
        server.restart(&armed).await;
        assert!(server.http.try_send("POST", "/v1/orders", Some(&lost)).await.is_none(), "{point}");
        server.restart(&plain).await;
    }
    let again = server.http.order(&lost).await;
    assert!([200, 202].contains(&again.status), "the third crash was after the commit: {again:?}");
    let decided = server.http.get(&format!("/v1/orders/{}?wait=20s", again.text("id"))).await;
    assert_eq!(decided.body["state"], "held");
    assert_eq!(server.http.order(&lost).await.text("id"), again.text("id"));
    assert_eq!(server.http.balances(&pools[1]).await, (997, 3, 0), "taken once");
    server.finish().await;
}

/// 127, 132: what is left in several buckets is sold to one order, and a shortage of one good stops no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_several_buckets_have_left_is_one_order_s_to_have() {
    let server = Server::start().await;
    let pools = shop(&server.http, &[("A", 16, 8), ("B", 3, 1)]).await;
    let (end, held) = end_of(&server.http, &order("drop", "S-1", "ann", &[("A", 13)])).await;
    assert_eq!(end, "held", "{held}");
    let parts = held["lines"][0]["allocations"].as_array().expect("allocations").len();
    assert!(parts >= 7, "{held}");
    let (end, _) = end_of(&server.http, &order("drop", "S-2", "ann", &[("A", 4)])).await;
    assert_eq!(end, "sold_out");
    assert_eq!(end_of(&server.http, &order("drop", "S-3", "ann", &[("B", 1)])).await.0, "held");
    assert_eq!(end_of(&server.http, &order("drop", "S-4", "ann", &[("A", 3)])).await.0, "held");
    assert_eq!(server.http.balances(&pools[0]).await, (0, 16, 0));
    server.finish().await;
}
