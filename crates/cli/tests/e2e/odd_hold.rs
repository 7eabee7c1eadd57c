//! One hold of a hundred cannot be released: its row cannot be read. The others are, and it becomes a case.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Http, Server, Start, wait_until};

/// Orders of one bucket that end in the same second.
const HOLDS: u64 = 100;

/// Places them; the id of one.
pub(crate) async fn holds(http: &Http) -> (String, String) {
    http.campaign("spring", json!({"hold_seconds": 5, "release_grace_ms": 0})).await;
    let pool = http.pool("spring", "CUP", HOLDS, 1).await;
    let http = Arc::new(http.clone());
    let mut orders: JoinSet<String> = (0..HOLDS)
        .map(|n| {
            let http = Arc::clone(&http);
            async move {
                let placed = http.place("spring", &format!("A-{n}"), "CUP", 1).await;
                assert_eq!(placed.status, 201, "{placed:?}");
                placed.text("id")
            }
        })
        .collect();
    let odd = orders.join_next().await.unwrap().unwrap();
    while let Some(placed) = orders.join_next().await {
        placed.unwrap();
    }
    (pool, odd)
}

/// The others are released; the odd one has one case.
pub(crate) async fn the_others_are_released(http: &Http, pool: &str, odd: &str) {
    wait_until("the others are released", async || {
        let pool = http.get(&format!("/v1/pools/{pool}")).await;
        (pool.body["available"] == HOLDS - 1).then_some(())
    })
    .await;
    let case = wait_until("a case", async || {
        let cases = http.get("/v1/cases?kind=hold_overdue").await;
        cases.body["items"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!((&case["order_id"], &case["pool_id"]), (&json!(odd), &json!(pool)), "{case:#}");
    assert_eq!(http.balances(pool).await, (HOLDS - 1, 1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hold_that_cannot_be_released_stops_no_other_and_becomes_a_case() {
    let mut server = Server::start().await;
    let (pool, odd) = holds(&server.http).await;
    let database = rusqlite::Connection::open(server.database()).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let id = odd.replace('-', "");
    let of = |what: &str| format!("{what} WHERE hex(id) = upper('{id}')");
    let lines: String = database.query_row(&of("SELECT lines FROM orders"), [], |row| row.get(0)).unwrap();
    assert_eq!(database.execute(&of("UPDATE orders SET lines = 'no JSON'"), []).unwrap(), 1);
    the_others_are_released(&server.http, &pool, &odd).await;
    // Mended, it ends as every other does; a server that was started again has set nothing aside.
    database.execute(&of("UPDATE orders SET lines = ?1"), [&lines]).unwrap();
    drop(database);
    let open = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    server.restart(&open).await;
    server.http.wait_for_state(&odd, "released").await;
    server.finish().await;
}
