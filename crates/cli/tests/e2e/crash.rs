//! `kill -9` under load, at random moments and at every named point of a commit. After each: what a client
//! was told is there, each key has one outcome, and the audit is clean.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Http, Server, Start};

/// How often the server is killed in all.
const CRASHES: u64 = 100;
const CLIENTS: u64 = 8;
const POINTS: [&str; 3] = ["commit.before_begin", "commit.before_commit", "commit.after_commit"];

/// What clients were told, by order number: the id, and the states in the order of their answers.
#[derive(Default)]
struct Told(Mutex<BTreeMap<String, (String, Vec<String>)>>);

impl Told {
    fn hear(&self, order_no: &str, id: String, state: String) {
        let mut told = self.0.lock().unwrap();
        let (known, states) = told.entry(order_no.to_owned()).or_insert_with(|| (id.clone(), Vec::new()));
        assert_eq!(*known, id, "{order_no} has two orders");
        states.push(state);
    }
}

/// One client: places, pays every second order, cancels every third; asks again with the same key while
/// the answer is unknown, and gives up when the server is gone.
async fn shop(http: Http, told: Arc<Told>, numbers: Arc<AtomicU64>, gone: Arc<AtomicBool>) {
    while !gone.load(Ordering::SeqCst) {
        let number = numbers.fetch_add(1, Ordering::SeqCst);
        let order_no = format!("o{number}");
        let lines = json!([{"sku": "CUP", "quantity": 1}, {"sku": "POT", "quantity": 1}]);
        let lines = if number.is_multiple_of(5) { lines } else { json!([{"sku": "CUP", "quantity": 1}]) };
        let body = json!({"campaign_id": "drop", "order_no": order_no, "account": "ann", "lines": lines});
        let Some(placed) = http.try_send("POST", "/v1/orders", Some(&body)).await else { return };
        if placed.status != 201 {
            continue;
        }
        let id = placed.text("id");
        told.hear(&order_no, id.clone(), placed.text("state"));
        if number.is_multiple_of(2) {
            let notice =
                json!({"event_id": order_no, "payment_id": order_no, "order_id": id, "outcome": "succeeded"});
            let paid = http.try_send("POST", "/v1/payments/bank/notifications", Some(&notice)).await;
            let Some(paid) = paid else { return };
            if paid.status == 200 {
                told.hear(&order_no, id, paid.body["order"]["state"].as_str().unwrap().to_owned());
            }
        } else if number.is_multiple_of(3) {
            let path = format!("/v1/orders/{id}/cancel");
            let Some(cancelled) = http.try_send("POST", &path, Some(&json!({}))).await else { return };
            if cancelled.status == 200 {
                told.hear(&order_no, id, cancelled.text("state"));
            }
        }
    }
}

/// Everything that was told is true, and is answered again under the same key.
async fn check(http: &Http, told: &Told) {
    let told = std::mem::take(&mut *told.0.lock().unwrap());
    for (order_no, (id, states)) in told {
        let found = http.get(&format!("/v1/orders?campaign_id=drop&order_no={order_no}")).await;
        let orders = found.body["items"].as_array().unwrap();
        assert_eq!(orders.len(), 1, "{order_no} was acknowledged and is lost");
        assert_eq!(orders[0]["id"], id.as_str());
        let state = orders[0]["state"].as_str().unwrap();
        // What came after the last answer may have happened too; what was told must not be undone.
        let allowed: &[&str] = match states.last().map(String::as_str) {
            Some("held") => &["held", "sold", "released"],
            Some("sold") => &["sold"],
            Some("released") => &["released"],
            other => panic!("{other:?}"),
        };
        assert!(allowed.contains(&state), "{order_no} was told {states:?} and is {state}");
    }
}

/// How the server dies this time: at a named point after some hits, or at a moment of the test's choice.
fn death(round: u64) -> (Start, Option<u64>) {
    let mut start = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    let point = usize::try_from(round % 4).unwrap();
    let Some(name) = POINTS.get(point) else { return (start, Some(1 + round * 7 % 60)) };
    let hits = 1 + round * 11 % 40;
    start.environment.push(("HOLDFAST_FAILPOINTS".into(), format!("{name}={hits}")));
    (start, None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_told_is_lost_in_100_crashes() {
    let plain = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
    let mut server = Server::start_with(plain.clone()).await;
    server.http.campaign("drop", json!({"account_limit": 1_000_000})).await;
    server.http.pool("drop", "CUP", 1_000_000, 4).await;
    server.http.pool("drop", "POT", 1_000_000, 1).await;
    let (told, numbers) = (Arc::new(Told::default()), Arc::new(AtomicU64::new(0)));
    for round in 0..CRASHES {
        let (start, kill_after) = death(round);
        server.restart(&start).await;
        check(&server.http, &told).await;
        let gone = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(shop(server.http.clone(), told.clone(), numbers.clone(), gone.clone()));
        }
        match kill_after {
            // Killed while orders are in flight: after so many more were begun.
            Some(orders) => {
                let until = numbers.load(Ordering::SeqCst) + orders;
                while numbers.load(Ordering::SeqCst) < until {
                    tokio::task::yield_now().await;
                }
                server.kill().await;
            }
            None => assert!(!server.wait().await.success(), "it dies at its point"),
        }
        gone.store(true, Ordering::SeqCst);
        clients.join_all().await;
        if round % 10 == 9 {
            server.verify().await;
        }
    }
    server.restart(&plain).await;
    check(&server.http, &told).await;
    let placed =
        server.verify().await["orders"].as_object().unwrap().values().filter_map(|n| n.as_u64()).sum::<u64>();
    assert!(placed > CRASHES, "only {placed} orders in {CRASHES} rounds");
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_whose_answer_was_lost_has_one_outcome() {
    for point in POINTS {
        let plain = Start { arguments: vec!["--auth".into(), "off".into()], ..Start::default() };
        let mut server = Server::start_with(plain.clone()).await;
        server.http.campaign("drop", json!({})).await;
        let pool = server.http.pool("drop", "CUP", 1, 1).await;
        let mut armed = plain.clone();
        armed.environment.push(("HOLDFAST_FAILPOINTS".into(), format!("{point}=1")));
        server.restart(&armed).await;
        let body = crate::support::place_body("drop", "A-1", "CUP", 1);
        assert!(server.http.try_send("POST", "/v1/orders", Some(&body)).await.is_none(), "{point}");
        server.restart(&plain).await;
        let again = server.http.post("/v1/orders", &body).await;
        let was_committed = point == "commit.after_commit";
        assert_eq!(again.status, if was_committed { 200 } else { 201 }, "{point}");
        assert_eq!(server.http.balances(&pool).await, (0, 1, 0));
        server.finish().await;
    }
}
