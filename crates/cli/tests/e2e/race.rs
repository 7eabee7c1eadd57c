//! Many buyers at once: exactly sold, never more, never fewer.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Answer, Server};

/// Lets every task place its order at the same time; the answers by order number.
async fn rush(server: &Server, keys: Vec<String>, quantity: u32) -> Vec<(String, Answer)> {
    let mut tasks = JoinSet::new();
    let gate = std::sync::Arc::new(tokio::sync::Barrier::new(keys.len()));
    for key in keys {
        let (http, gate) = (server.http.clone(), gate.clone());
        tasks.spawn(async move {
            gate.wait().await;
            let answer = http.place("drop", &key, "CUP", quantity).await;
            (key, answer)
        });
    }
    tasks.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_unit_and_200_clients() {
    let server = Server::start().await;
    server.http.campaign("drop", json!({})).await;
    let pool = server.http.pool("drop", "CUP", 1, 1).await;
    let answers = rush(&server, (0..200).map(|n| format!("o{n}")).collect(), 1).await;
    let held: Vec<_> = answers.iter().filter(|(_, answer)| answer.status == 201).collect();
    assert_eq!(held.len(), 1);
    assert!(answers.iter().all(|(_, a)| a.status == 201 || (a.status, a.code()) == (409, "sold_out")));
    assert_eq!(server.http.balances(&pool).await, (0, 1, 0));
    // The holder who lost the answer gets it again, though the shelf is empty.
    let again = server.http.place("drop", &held[0].0, "CUP", 1).await;
    assert_eq!((again.status, &again.body["id"]), (200, &held[0].1.body["id"]));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_units_over_8_buckets_2000_clients_and_repeated_keys() {
    let server = Server::start().await;
    server.http.campaign("drop", json!({})).await;
    let pool = server.http.pool("drop", "CUP", 100, 8).await;
    // 30 of 100 clients use a key that another one uses too.
    let keys = (0..2_000_u32).map(|n| if n % 10 < 3 { format!("o{}", n / 100) } else { format!("x{n}") });
    let answers = rush(&server, keys.collect(), 1).await;
    let mut by_key: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
    for (key, answer) in answers {
        assert!(matches!(answer.status, 200 | 201 | 409), "{answer:?}");
        by_key.entry(key).or_default().push(answer);
    }
    let mut holders = Vec::new();
    for (key, answers) in by_key {
        let ids: Vec<_> = answers.iter().filter(|a| a.status < 300).map(|a| a.text("id")).collect();
        assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{key} has two orders: {ids:?}");
        assert!(answers.iter().filter(|a| a.status == 201).count() <= 1, "{key} was made twice");
        if let Some(id) = ids.first() {
            holders.push((key, id.clone()));
        }
    }
    assert_eq!(holders.len(), 100);
    assert_eq!(server.http.balances(&pool).await, (0, 100, 0));
    for (key, id) in holders {
        let again = server.http.place("drop", &key, "CUP", 1).await;
        assert_eq!((again.status, again.text("id")), (200, id));
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_over_many_pools_and_hot_ones_meet_without_deadlock() {
    let server = Server::start().await;
    server.http.campaign("drop", json!({})).await;
    let mut pools = Vec::new();
    for sku in ["CUP", "A", "B", "C"] {
        pools.push(server.http.pool("drop", sku, 120, 2).await);
    }
    let mut tasks = JoinSet::new();
    for n in 0..200_u32 {
        let http = server.http.clone();
        tasks.spawn(async move {
            let mut skus = ["CUP", "A", "B", "C"];
            skus.rotate_left(usize::try_from(n).unwrap() % 4);
            let lines: Vec<_> = skus.iter().take(2).map(|sku| json!({"sku": sku, "quantity": 1})).collect();
            let body =
                json!({"campaign_id": "drop", "order_no": format!("o{n}"), "account": "ann", "lines": lines});
            http.post("/v1/orders", &body).await
        });
    }
    let answers = tasks.join_all().await;
    assert!(answers.iter().all(|a| a.status == 201), "{:?}", answers.iter().find(|a| a.status != 201));
    for pool in &pools {
        assert_eq!(server.http.balances(pool).await, (20, 100, 0));
    }
    server.finish().await;
}
