//! Several nodes on one authority: any of them answers, and what one of them is told holds on all.

use std::collections::BTreeMap;

use holdfast_testkit::Database;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Answer, Server, Start, wait_until};

async fn node(database: &str, roles: &str) -> Server {
    let arguments = ["--auth", "off", "--roles", roles].map(str::to_owned).to_vec();
    let start = Start { arguments, ..Start::default() };
    Server::start_at(database, &start).await.expect("a node starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_is_told_every_node_knows() {
    let authority = Database::shared().await.unwrap();
    let url = authority.url();
    let (a, b) = (node(&url, "api,worker").await, node(&url, "api").await);
    a.http.campaign("drop", json!({})).await;
    let pool = a.http.pool("drop", "CUP", 2, 2).await;

    let held = b.http.place("drop", "o1", "CUP", 1).await;
    assert_eq!(held.status, 201, "{held:?}");
    let id = held.text("id");
    for node in [&a, &b] {
        let again = node.http.place("drop", "o1", "CUP", 1).await;
        assert_eq!((again.status, again.text("id")), (200, id.clone()));
        let found = node.http.get("/v1/orders?campaign_id=drop&order_no=o1").await;
        assert_eq!(found.body["items"][0]["id"], held.body["id"], "{found:?}");
        assert_eq!(node.http.balances(&pool).await, (1, 1, 0));
    }
    // A switch that was answered holds on every node, at once.
    let words = json!({"operator": "test", "reason": "look"});
    for (switch, status) in [("pause", 409), ("resume", 201)] {
        assert_eq!(a.http.post(&format!("/v1/campaigns/drop/{switch}"), &words).await.status, 200);
        let placed = b.http.place("drop", "o2", "CUP", 1).await;
        assert_eq!(placed.status, status, "{switch}: {placed:?}");
    }
    // Both have seen the shelf empty; what comes back through one of them, the other sells within a second.
    for node in [&a, &b] {
        assert_eq!(node.http.place("drop", "o3", "CUP", 1).await.code(), "sold_out");
    }
    assert_eq!(a.http.post(&format!("/v1/orders/{id}/cancel"), &json!({})).await.status, 200);
    let bought = std::time::Instant::now();
    wait_until("the other node sells what came back", async || {
        (b.http.place("drop", "o4", "CUP", 1).await.status == 201).then_some(())
    })
    .await;
    assert!(bought.elapsed().as_millis() < 1_000, "{:?}", bought.elapsed());
    b.finish().await;
    a.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_comes_to_three_nodes_at_once_is_one_order() {
    let authority = Database::shared().await.unwrap();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(&authority.url(), "api,worker").await);
    }
    nodes[0].http.campaign("drop", json!({})).await;
    let pool = nodes[0].http.pool("drop", "CUP", 100, 4).await;
    let mut tasks = JoinSet::new();
    for number in 0..600 {
        let http = nodes[number % 3].http.clone();
        let key = format!("o{}", number / 3);
        tasks.spawn(async move { (key.clone(), http.place("drop", &key, "CUP", 1).await) });
    }
    let mut by_key: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
    for (key, answer) in tasks.join_all().await {
        assert!(matches!(answer.status, 200 | 201 | 409), "{answer:?}");
        by_key.entry(key).or_default().push(answer);
    }
    let mut holders = 0;
    for (key, answers) in by_key {
        let ids: Vec<_> = answers.iter().filter(|a| a.status < 300).map(|a| a.text("id")).collect();
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{key} has two orders: {ids:?}");
        assert!(answers.iter().filter(|a| a.status == 201).count() <= 1, "{key} was made twice");
        holders += u64::from(!ids.is_empty());
    }
    assert_eq!(holders, 100);
    assert_eq!(nodes[1].http.balances(&pool).await, (0, 100, 0));
    for node in nodes {
        node.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_sells_leaves_the_ends_of_holds_to_one_that_works() {
    let authority = Database::shared().await.unwrap();
    let url = authority.url();
    let seller = node(&url, "api").await;
    seller.http.campaign("drop", json!({"hold_seconds": 1, "release_grace_ms": 0})).await;
    let pool = seller.http.pool("drop", "CUP", 1, 1).await;
    let id = seller.http.place("drop", "o1", "CUP", 1).await.text("id");

    let worker = node(&url, "worker").await;
    seller.http.wait_for_state(&id, "released").await;
    assert_eq!(seller.http.balances(&pool).await, (1, 0, 0));
    // It answers for its health and for nothing else.
    assert_eq!(worker.http.get("/readyz").await.status, 200);
    assert_eq!(worker.http.get("/v1/campaigns").await.status, 404);
    let placed = worker.http.place("drop", "o2", "CUP", 1).await;
    assert_eq!((placed.status, placed.code()), (404, "not_found"));
    worker.finish().await;
    seller.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_has_one_server_and_it_needs_both_roles() {
    let directory = tempfile::tempdir().unwrap();
    for roles in ["api", "worker"] {
        let arguments = ["--auth", "off", "--roles", roles].map(str::to_owned).to_vec();
        let start = Start { arguments, ..Start::default() };
        let refused = Server::start_on(&directory.path().join("one.db"), &start).await;
        assert_eq!(refused.err().and_then(|status| status.code()), Some(2), "{roles}");
    }
}
