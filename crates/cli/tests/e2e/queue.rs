//! The queued path over HTTP: 202 at once, one true answer later, whatever happens to the server meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Answer, Http, Server, Start, place_body, wait_until};

/// Who buys at the same time.
const CLIENTS: usize = 64;

fn plain() -> Start {
    Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() }
}

impl Http {
    /// Opens a pool whose orders queue; its id.
    async fn queued_pool(&self, campaign: &str, sku: &str, supply: u64, buckets: u32) -> String {
        let body = json!({
            "campaign_id": campaign, "sku": sku, "supply": supply, "buckets": buckets, "path": "queued",
        });
        let pool = self.post("/v1/pools", &body).await;
        assert_eq!((pool.status, &pool.body["path"]), (201, &json!("queued")), "{pool:?}");
        pool.text("id")
    }

    async fn throw(&self, campaign: &str, switch: &str) {
        let body = json!({"operator": "test", "reason": "test"});
        let switched = self.post(&format!("/v1/campaigns/{campaign}/{switch}"), &body).await;
        assert_eq!(switched.status, 200, "{switched:?}");
    }

    /// Waits for the end of the queue.
    async fn decided(&self, order_id: &str) -> Value {
        let found = self.get(&format!("/v1/orders/{order_id}?wait=20s")).await;
        assert_eq!(found.status, 200, "{found:?}");
        assert_ne!(found.body["state"], "queued", "{found:?}");
        assert_eq!(found.body.get("queue"), None, "who is answered has no place in a queue");
        found.body
    }
}

async fn queue_up(http: &Http, campaign: &str, orders: std::ops::Range<u32>) -> Vec<String> {
    let mut ids = Vec::new();
    for number in orders {
        let placed = http.place(campaign, &format!("Q-{number}"), "CUP", 1).await;
        assert_eq!(placed.status, 202, "{placed:?}");
        ids.push(placed.text("id"));
    }
    ids
}

/// One buyer's answer, waited for: the state, and the reason or the code.
async fn buy(http: &Http, number: usize) -> (String, String) {
    let placed = http.place("drop", &format!("N-{number}"), "CUP", 1).await;
    match placed.status {
        202 => {
            assert_eq!(
                placed.headers["location"].to_str().unwrap(),
                format!("/v1/orders/{}", placed.text("id"))
            );
            let position = placed.body["queue"]["position"].as_u64();
            assert!(position.is_some_and(|position| position >= 1), "{placed:?}");
            assert!(placed.body["queue"]["estimated_wait_ms"].as_u64().unwrap() <= 30_000, "{placed:?}");
            assert!(placed.body["lines"][0]["allocations"].as_array().unwrap().is_empty(), "{placed:?}");
            let order = http.decided(&placed.text("id")).await;
            (order["state"].as_str().unwrap().into(), order["reason"].as_str().unwrap_or_default().into())
        }
        // The hint at the entry knew that there is nothing left.
        409 => ("refused".into(), placed.code().into()),
        status => panic!("{status}: {placed:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_queue_for_a_hundred_units_and_each_hears_the_truth() {
    let server = Server::start().await;
    server.http.campaign("drop", json!({})).await;
    let pool = server.http.queued_pool("drop", "CUP", 100, 4).await;
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (http, next) = (server.http.clone(), Arc::clone(&next));
        clients.spawn(async move {
            let mut heard = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= 5_000 {
                    return heard;
                }
                heard.push(buy(&http, number).await);
            }
        });
    }
    let mut ends: BTreeMap<(String, String), u32> = BTreeMap::new();
    while let Some(heard) = clients.join_next().await {
        for end in heard.unwrap() {
            *ends.entry(end).or_default() += 1;
        }
    }
    let count = |state: &str, why: &str| ends.get(&(state.into(), why.into())).copied().unwrap_or(0);
    assert_eq!(count("held", ""), 100, "{ends:?}");
    assert_eq!(count("failed", "sold_out") + count("refused", "sold_out"), 4_900, "{ends:?}");
    assert!(count("failed", "sold_out") > 0, "some were taken in and heard it later: {ends:?}");
    assert_eq!(server.http.balances(&pool).await, (0, 100, 0));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nobody_who_waits() {
    let mut server = Server::start_with(plain()).await;
    server.http.campaign("drop", json!({"queue_wait_ms": 600_000})).await;
    let pool = server.http.queued_pool("drop", "CUP", 60, 1).await;
    let mut ids: Vec<String> = Vec::new();
    for round in 0..6_u32 {
        if round % 2 == 0 {
            // Nobody lands them before the crash; the next server knows that nobody else has its file.
            take_lease(&server, &pool);
        }
        for number in 0..10 + round {
            let placed = server.http.place("drop", &format!("K-{round}-{number}"), "CUP", 1).await;
            match placed.status {
                202 => ids.push(placed.text("id")),
                _ => assert_eq!((placed.status, placed.code()), (409, "sold_out"), "{placed:?}"),
            }
        }
        // Otherwise it dies in the middle of landing, each time a little elsewhere.
        server.restart(&plain()).await;
        let again = server.http.place("drop", &format!("K-{round}-0"), "CUP", 1).await;
        assert!([200, 202, 409].contains(&again.status), "{again:?}");
    }
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for id in &ids {
        let order = server.http.decided(id).await;
        *states.entry(order["state"].as_str().unwrap().into()).or_default() += 1;
    }
    let failed = states.remove("failed").unwrap_or_default();
    assert_eq!((states, failed), (BTreeMap::from([("held".to_owned(), 60)]), ids.len() - 60));
    assert_eq!(server.http.balances(&pool).await, (0, 60, 0));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_leaves_the_queue_to_the_next() {
    let mut server = Server::start_with(plain()).await;
    server.http.campaign("drop", json!({})).await;
    let pool = server.http.queued_pool("drop", "CUP", 5, 1).await;
    take_lease(&server, &pool);
    let ids = queue_up(&server.http, "drop", 0..8).await;
    server.ask_to_stop();
    assert!(server.wait().await.success());
    server.restart(&plain()).await;
    let mut held = 0;
    for id in &ids {
        held += u32::from(server.http.decided(id).await["state"] == "held");
    }
    assert_eq!(held, 5);
    assert_eq!(server.http.balances(&pool).await, (0, 5, 0));
    server.finish().await;
}

/// Nobody lands this queue: another node, so it seems, has its lease. Undone by `let_go`.
fn take_lease(server: &Server, pool: &str) {
    let database = beside(server);
    let sql = "INSERT INTO lease (name, holder, ends_at) VALUES (?1, zeroblob(16), ?2) \
               ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at";
    let taken = database.execute(sql, (format!("queue {pool}/0"), i64::MAX)).unwrap();
    assert_eq!(taken, 1);
}

/// The server's database, beside the server.
fn beside(server: &Server) -> rusqlite::Connection {
    let database = rusqlite::Connection::open(server.database()).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database
}

fn let_go(server: &Server) {
    let database = beside(server);
    assert_eq!(database.execute("UPDATE lease SET ends_at = 0 WHERE name LIKE 'queue %'", ()).unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_shows_places_fills_up_cancels_and_parks_payments() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("drop", json!({"queue_limit": 4, "queue_wait_ms": 600_000})).await;
    let pool = http.queued_pool("drop", "CUP", 5, 1).await;
    take_lease(&server, &pool);
    let ids = queue_up(http, "drop", 0..4).await;
    for (place, id) in (1..).zip(&ids) {
        let order = http.get(&format!("/v1/orders/{id}")).await;
        assert_eq!(order.body["queue"]["position"], place, "{order:?}");
        let wait = order.body["queue"]["estimated_wait_ms"].as_u64().unwrap();
        assert!((1..=600_000).contains(&wait), "{order:?}");
    }
    let full = http.place("drop", "Q-4", "CUP", 1).await;
    assert_eq!((full.status, full.code()), (429, "queue_full"), "{full:?}");
    assert!(full.headers.contains_key("retry-after"), "{full:?}");
    assert_eq!((&full.body["recorded"], &full.body["retryable"]), (&json!(false), &json!(true)));
    let again = http.place("drop", "Q-1", "CUP", 1).await;
    assert_eq!(
        (again.status, again.text("id")),
        (202, ids[1].clone()),
        "a repeat is no new order: {again:?}"
    );
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let other = http.place("drop", "Q-1", "CUP", 2).await;
    assert_eq!((other.status, other.code()), (422, "order_mismatch"), "{other:?}");

    let cancelled = http.post(&format!("/v1/orders/{}/cancel", ids[0]), &json!({})).await;
    assert_eq!((cancelled.status, &cancelled.body["reason"]), (200, &json!("cancelled")), "{cancelled:?}");
    let repeated = http.post(&format!("/v1/orders/{}/cancel", ids[0]), &json!({})).await;
    assert_eq!((repeated.status, &repeated.body["state"]), (200, &json!("failed")), "{repeated:?}");
    let paid = http.pay(&ids[1], "early").await;
    assert_eq!((paid.status, &paid.body["disposition"]), (200, &json!("parked")), "{paid:?}");
    let attempt = json!({"attempt_id": "a", "provider": "bank"});
    let begun = http.post(&format!("/v1/orders/{}/payment-attempts", ids[2]), &attempt).await;
    assert_eq!((begun.status, begun.code()), (409, "not_held"), "{begun:?}");
    let refund = json!({"refund_id": "r", "lines": [{"line": 1, "quantity": 1}], "reason": "r"});
    let refunded = http.post(&format!("/v1/orders/{}/refunds", ids[2]), &refund).await;
    assert_eq!((refunded.status, refunded.code()), (409, "not_sold"), "{refunded:?}");
    assert_eq!(http.place("drop", "Q-4", "CUP", 1).await.status, 202, "who has left makes room");

    http.throw("drop", "pause").await;
    let late = http.place("drop", "Q-5", "CUP", 1).await;
    assert_eq!((late.status, late.code()), (409, "campaign_paused"), "{late:?}");
    let_go(&server);
    for (id, expected) in [(&ids[1], "sold"), (&ids[2], "held"), (&ids[3], "held"), (&ids[0], "failed")] {
        assert_eq!(http.decided(id).await["state"], expected, "pause lets in what was taken in");
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freeze_holds_the_queue_up_and_time_runs_on() {
    let mut server = Server::start_with(plain()).await;
    server.http.campaign("drop", json!({"queue_wait_ms": 2_500})).await;
    let pool = server.http.queued_pool("drop", "CUP", 5, 1).await;
    take_lease(&server, &pool);
    let ids = queue_up(&server.http, "drop", 0..2).await;
    server.http.throw("drop", "freeze").await;
    let_go(&server);
    // While it is frozen nobody lands, also across a crash; at the end of the queue time they hear it.
    server.restart(&plain()).await;
    server.http.pay(&ids[1], "early").await;
    for id in &ids {
        let order = server.http.decided(id).await;
        assert_eq!((&order["state"], &order["reason"]), (&json!("failed"), &json!("queue_timeout")));
    }
    let owed = server.http.get(&format!("/v1/orders/{}", ids[1])).await;
    assert_eq!(owed.body["refund_due"]["payments"].as_array().map(Vec::len), Some(1), "{owed:?}");
    server.http.throw("drop", "unfreeze").await;
    let again = server.http.place("drop", "Q-0", "CUP", 1).await;
    assert_eq!((again.status, again.code(), &again.body["recorded"]), (409, "queue_timeout", &json!(true)));
    let next = server.http.place("drop", "Q-9", "CUP", 1).await;
    assert_eq!(server.http.decided(&next.text("id")).await["state"], "held");
    assert_eq!(server.http.balances(&pool).await, (4, 1, 0));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_immediate_sale_ends_sold_and_whoever_prefers_it_is_queued_on_any_path() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("flash", json!({"capture": "immediate"})).await;
    let pool = http.queued_pool("flash", "CUP", 2, 1).await;
    let first = http.place("flash", "F-1", "CUP", 1).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(http.decided(&first.text("id")).await["state"], "sold");
    let again = http.place("flash", "F-1", "CUP", 1).await;
    assert_eq!((again.status, &again.body["state"]), (200, &json!("sold")), "{again:?}");

    http.pool("flash", "POT", 5, 1).await;
    let body = serde_json::to_vec(&place_body("flash", "P-1", "POT", 1)).unwrap();
    for (prefer, status) in [("wait=5, Respond-Async;x=1", 202), ("handling=lenient", 200)] {
        let headers = [("content-type", "application/json"), ("prefer", prefer)];
        let placed = http.send_raw("POST", "/v1/orders", &headers, body.clone()).await;
        if status == 202 {
            assert_eq!(placed.headers["preference-applied"], "respond-async", "{placed:?}");
            assert_eq!(http.decided(&placed.text("id")).await["state"], "sold");
        }
        assert_eq!(placed.status, status, "{placed:?}");
    }
    assert_eq!(http.balances(&pool).await, (1, 0, 1));
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_events_of_a_queued_order_end_with_its_answer() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("flash", json!({"capture": "immediate"})).await;
    http.queued_pool("flash", "CUP", 1, 1).await;
    for (number, expected) in [("E-1", "sold"), ("E-2", "failed")] {
        let placed = http.place("flash", number, "CUP", 1).await;
        if placed.status == 409 {
            assert_eq!((placed.code(), expected), ("sold_out", "failed"));
            continue;
        }
        let events = http.get(&format!("/v1/orders/{}/events", placed.text("id"))).await;
        let text = String::from_utf8(events.raw).unwrap();
        let last = text.rsplit("data: ").next().unwrap().lines().next().unwrap().to_owned();
        let last: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(last["state"], expected, "{text}");
    }
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_answers_202_for_each_that_is_queued() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("drop", json!({})).await;
    http.queued_pool("drop", "CUP", 2, 1).await;
    let orders: Vec<_> = (0..3).map(|n| place_body("drop", &format!("B-{n}"), "CUP", 1)).collect();
    let answer: Answer = http.post("/v1/orders/batch", &json!({"orders": orders})).await;
    assert_eq!(answer.status, 207, "{answer:?}");
    let mut states = Vec::new();
    for result in answer.body["results"].as_array().unwrap() {
        assert_eq!(result["status"], 202, "{result}");
        let id = result["order"]["id"].as_str().unwrap();
        states.push(http.decided(id).await["state"].as_str().unwrap().to_owned());
    }
    states.sort();
    assert_eq!(states, ["failed", "held", "held"]);
    let listed = wait_until("an empty queue", async || {
        let listed = http.get("/v1/orders?campaign_id=drop&state=queued").await;
        listed.body["items"].as_array().unwrap().is_empty().then_some(listed)
    })
    .await;
    assert_eq!(listed.status, 200);
    server.finish().await;
}

/// An order placed on one node and waited for on another: the state, and why.
async fn buy_here_hear_there(here: &Http, there: &Http, number: usize) -> (String, String) {
    let placed = here.place("drop", &format!("T-{number}"), "CUP", 1).await;
    if placed.status == 409 {
        return ("refused".into(), placed.code().into());
    }
    assert_eq!(placed.status, 202, "{placed:?}");
    let order = there.decided(&placed.text("id")).await;
    (order["state"].as_str().unwrap().into(), order["reason"].as_str().unwrap_or_default().into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_of_one_postgresql_share_their_queues_and_survive_each_other() {
    let database = holdfast_testkit::Database::shared().await.unwrap();
    let one = Server::start_at(&database.url(), &plain()).await.unwrap();
    let mut two = Server::start_at(&database.url(), &plain()).await.unwrap();
    one.http.campaign("drop", json!({"queue_wait_ms": 120_000})).await;
    let pool = one.http.queued_pool("drop", "CUP", 100, 4).await;
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        let nodes = [one.http.clone(), two.http.clone()];
        let next = Arc::clone(&next);
        clients.spawn(async move {
            let mut heard = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= 600 {
                    return heard;
                }
                let (here, there) = (&nodes[number % 2], &nodes[(number + 1) % 2]);
                heard.push(buy_here_hear_there(here, there, number).await);
            }
        });
    }
    let mut ends: BTreeMap<(String, String), u32> = BTreeMap::new();
    while let Some(heard) = clients.join_next().await {
        for end in heard.unwrap() {
            *ends.entry(end).or_default() += 1;
        }
    }
    let count = |state: &str, why: &str| ends.get(&(state.into(), why.into())).copied().unwrap_or(0);
    assert_eq!(count("held", ""), 100, "{ends:?}");
    assert_eq!(count("failed", "sold_out") + count("refused", "sold_out"), 500, "{ends:?}");
    assert_eq!(one.http.balances(&pool).await, (0, 100, 0));

    // One dies with orders in its queues and its leases in its hands; the other goes on.
    let more = one.http.queued_pool("drop", "POT", 30, 2).await;
    let mut ids = Vec::new();
    for number in 0..30 {
        let placed = two.http.place("drop", &format!("D-{number}"), "POT", 1).await;
        assert_eq!(placed.status, 202, "{placed:?}");
        ids.push(placed.text("id"));
    }
    two.kill().await;
    for id in &ids {
        assert_eq!(one.http.decided(id).await["state"], "held");
    }
    assert_eq!(one.http.balances(&more).await, (0, 30, 0));
    one.finish().await;
}
