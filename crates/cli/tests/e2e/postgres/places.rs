//! Locations and bundles on two nodes: a change holds on both from its answer on, and nothing is sold twice.

use serde_json::json;
use tokio::task::JoinSet;

use super::{authority, without_keys};
use crate::support::{Http, Server, place_body};

async fn rush(nodes: [&Http; 2], prefix: &str, sku: &str, orders: u32) -> Vec<u16> {
    let mut under_way = JoinSet::new();
    for n in 0..orders {
        let (http, body) = (nodes[n as usize % 2].clone(), place_body("c", &format!("{prefix}-{n}"), sku, 1));
        under_way.spawn(async move { http.post("/v1/orders", &body).await.status });
    }
    under_way.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundles_and_locations_change_at_once_on_every_node() {
    let (_authority, url) = authority().await;
    let first = Server::start_at(&url, &without_keys()).await.expect("it starts");
    let second = Server::start_at(&url, &without_keys()).await.expect("it starts");
    let (one, two) = (&first.http, &second.http);
    one.campaign("c", json!({})).await;
    let mut pools = Vec::new();
    for (sku, location, supply, buckets) in
        [("A", "east", 40, 2), ("A", "west", 40, 1), ("B", "east", 15, 1), ("B", "west", 25, 3)]
    {
        let body = json!({"campaign_id": "c", "sku": sku, "location": location, "supply": supply, "buckets": buckets});
        let opened = one.post("/v1/pools", &body).await;
        assert_eq!(opened.status, 201, "{opened:?}");
        pools.push(opened.text("id"));
    }
    let put = one.put("/v1/campaigns/c/locations", &json!({"order": ["west", "east"]})).await;
    assert_eq!(put.status, 200, "{put:?}");
    let components =
        |each: u32| json!({"components": [{"sku": "A", "quantity": each}, {"sku": "B", "quantity": 1}]});
    // Whoever made it, and however often it changes: the other node sells by the last at once.
    for (each, maker, seller) in [(3, one, two), (1, two, one), (2, one, two)] {
        assert!(maker.put("/v1/bundles/c/P", &components(each)).await.status < 300);
        let before = one.balances(&pools[1]).await.0;
        let placed = seller.place("c", &format!("each-{each}"), "P", 1).await;
        assert_eq!(placed.status, 201, "{placed:?}");
        assert_eq!(before - one.balances(&pools[1]).await.0, u64::from(each));
        assert_eq!(
            two.post(&format!("/v1/orders/{}/cancel", placed.text("id")), &json!({})).await.status,
            200
        );
    }
    // Twenty in the west by their cups, fifteen in the east by their pots.
    let answers = rush([one, two], "rush", "P", 50).await;
    let held = answers.iter().filter(|status| **status == 201).count();
    assert_eq!((held, answers.iter().filter(|status| **status == 409).count()), (35, 15));
    let balances = [(10, 30, 0), (0, 40, 0), (0, 15, 0), (5, 20, 0)];
    for (pool, expected) in pools.iter().zip(balances) {
        assert_eq!(two.balances(pool).await, expected);
    }
    // Split, the ten cups of the east and the five pots of the west make five more.
    assert_eq!(
        two.put("/v1/campaigns/c/locations", &json!({"order": ["west", "east"], "split": true})).await.status,
        200
    );
    let answers = rush([one, two], "split", "P", 10).await;
    assert_eq!(answers.iter().filter(|status| **status == 201).count(), 5, "{answers:?}");
    second.finish().await;
    first.finish().await;
}
