//! Payments and confirmations at the very ends of holds, while two nodes scan for what is over and one or the other is
//! killed: each order is sold or released, never both, and nobody was told otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_server::time_text;
use holdfast_store::{Clock, SystemClock};
use holdfast_testkit::Database;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{last, start_nodes, without_keys};
use crate::support::{Answer, Http, Server, pages, place_body, seconds_between, wait_until};

const HOLDS: u32 = 2_000;
const BATCH: u32 = 100;
/// Between two batches, so that the ends are spread and each race is run in its own time.
const PACE: Duration = Duration::from_millis(300);
const HOLD_SECONDS: u32 = 4;
const GRACE_MS: u64 = 400;
/// How far from the end a messenger sets out.
const AROUND_MS: u64 = 50;
/// A messenger that gets no answer asks again, of the other node.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
const KILLS: usize = 6;

/// Half of them have no grace; in half of each late money takes again.
const CAMPAIGNS: [(&str, u64, &str); 4] = [
    ("strict", 0, "refund"),
    ("strict-again", 0, "retake_else_refund"),
    ("graced", GRACE_MS, "refund"),
    ("graced-again", GRACE_MS, "retake_else_refund"),
];

/// Where to knock: changes when a node starts again.
type Doors = Arc<Mutex<Vec<Http>>>;

/// What an order's messengers were told.
#[derive(Debug, Default)]
struct Told {
    notice: Option<String>,
    confirm: Option<Confirm>,
}

/// What an operator was told who confirmed.
#[derive(Debug)]
struct Confirm {
    status: u16,
    code: String,
    /// An earlier answer was lost with its node, or said that it cannot tell: it may have been done then.
    is_again: bool,
}

impl Confirm {
    /// Whether it may be this confirmation that sold the order.
    fn may_have_sold(&self) -> bool {
        self.status == 200 || (self.is_again && self.code == "already_sold")
    }
}

struct Racer {
    doors: Doors,
    number: u32,
    id: String,
    end: String,
}

impl Racer {
    fn campaign(&self) -> (&'static str, u64, &'static str) {
        CAMPAIGNS[self.number as usize % CAMPAIGNS.len()]
    }

    /// Sends a payment, an operator, or both, around the end or the end of the grace.
    async fn run(self) -> (String, Told) {
        let (_, grace, _) = self.campaign();
        let grace = if (self.number / 4).is_multiple_of(2) { 0 } else { grace };
        let moment = seconds_between(&time_text(SystemClock.now()), &self.end);
        let offset = Duration::from_millis(grace + fastrand::u64(0..=2 * AROUND_MS));
        let until = Duration::from_secs_f64(moment) + offset;
        last(until.saturating_sub(Duration::from_millis(AROUND_MS))).await;
        let kind = self.number / 8 % 3;
        let told = match kind {
            0 => Told { notice: Some(self.pay().await), confirm: None },
            1 => Told { notice: None, confirm: Some(self.confirm().await) },
            _ => {
                let (notice, confirm) = tokio::join!(self.pay(), self.confirm());
                Told { notice: Some(notice), confirm: Some(confirm) }
            }
        };
        (self.id, told)
    }

    async fn pay(&self) -> String {
        let id = format!("pay-{}", self.number);
        let body = json!({"event_id": id, "payment_id": id, "order_id": self.id, "outcome": "succeeded"});
        let (answer, _) = self.ask(self.number as usize, "/v1/payments/bank/notifications", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text("disposition")
    }

    async fn confirm(&self) -> Confirm {
        let body = json!({"action": "confirm", "reason": "race", "operator": "ann"});
        let path = format!("/v1/orders/{}/resolve", self.id);
        let (answer, is_again) = self.ask(self.number as usize + 1, &path, &body).await;
        assert!([200, 409].contains(&answer.status), "{answer:?}");
        Confirm { status: answer.status, code: answer.code().to_owned(), is_again }
    }

    /// Asks until there is an answer, and whether it was asked for more than once.
    async fn ask(&self, first: usize, path: &str, body: &Value) -> (Answer, bool) {
        let begun = Instant::now();
        for turn in first.. {
            let door = self.doors.lock().unwrap()[turn % 2].clone();
            let answer = door.try_send("POST", path, Some(body)).await;
            match answer {
                Some(answer) if answer.status != 503 => return (answer, turn > first),
                answer => {
                    assert!(begun.elapsed() < ANSWERED_WITHIN, "order {}: {answer:?}", self.number);
                    last(Duration::from_millis(10)).await;
                }
            }
        }
        unreachable!("turns do not end")
    }
}

/// Places the holds; their racers.
async fn place(doors: &Doors) -> JoinSet<(String, Told)> {
    let http = doors.lock().unwrap()[0].clone();
    let mut racers = JoinSet::new();
    let begun = Instant::now();
    for batch in 0..HOLDS / BATCH {
        last((PACE * batch).saturating_sub(begun.elapsed())).await;
        let numbers = batch * BATCH..(batch + 1) * BATCH;
        let orders: Vec<_> = numbers
            .clone()
            .map(|number| {
                let (campaign, ..) = CAMPAIGNS[number as usize % CAMPAIGNS.len()];
                place_body(campaign, &number.to_string(), "A", 1)
            })
            .collect();
        let placed = http.post("/v1/orders/batch", &json!({"orders": orders})).await;
        let results = placed.body["results"].as_array().expect("results").clone();
        for (number, result) in numbers.zip(results) {
            assert_eq!(result["status"], 201, "{result}");
            let text = |name: &str| result["order"][name].as_str().unwrap().to_owned();
            let (doors, id, end) = (Arc::clone(doors), text("id"), text("hold_expires_at"));
            racers.spawn(Racer { doors, number, id, end }.run());
        }
    }
    racers
}

/// Kills one node after the other while the races are run.
async fn kill_in_turn(nodes: &mut [Server], doors: &Doors) {
    for kill in 0..KILLS {
        let node = kill % 2;
        nodes[node].restart(&without_keys()).await;
        doors.lock().unwrap()[node] = nodes[node].http.clone();
        last(Duration::from_millis(700)).await;
    }
}

/// What became of an order: how often its ledger says that it was confirmed, released, taken again, and how many
/// changes it carries.
#[derive(Debug, Default, Clone)]
struct Written {
    confirmed: u32,
    released: u32,
    retaken: u32,
    events: u64,
}

async fn written(http: &Http) -> BTreeMap<String, Written> {
    let mut all: BTreeMap<String, Written> = BTreeMap::new();
    for entry in pages(http, "/v1/ledger?limit=500").await {
        let Some(order) = entry["order_id"].as_str() else { continue };
        // A retake from another bucket has a second entry there; one of them carries the change of the order.
        if entry["to_state"].is_null() {
            continue;
        }
        let order = all.entry(order.to_owned()).or_default();
        order.events += 1;
        match entry["action"].as_str().unwrap() {
            "confirm" => order.confirmed += 1,
            "release" => order.released += 1,
            "retake" => order.retaken += 1,
            _ => {}
        }
    }
    all
}

fn judge(order: &Value, written: &Written, told: &Told) {
    let sold = order["state"] == "sold";
    let said = format!("{order} {written:?} {told:?}");
    assert!(sold || order["state"] == "released", "{said}");
    assert_eq!(written.confirmed + written.retaken, u32::from(sold), "{said}");
    assert_eq!(written.released, u32::from(!sold || written.retaken == 1), "{said}");
    assert_eq!(order["version"], written.events, "one event a change: {said}");
    match told.notice.as_deref() {
        Some("applied" | "retaken") => assert!(sold, "{said}"),
        // By policy the money goes back; an operator may have sold the order all the same.
        Some("refund_due") => {
            assert!(!order["refund_due"].is_null(), "{said}");
            assert!(!sold || told.confirm.as_ref().is_some_and(Confirm::may_have_sold), "{said}");
        }
        // The first answer was lost with its node.
        Some("duplicate") => assert_eq!(order["payments"].as_array().unwrap().len(), 1, "{said}"),
        Some(other) => panic!("{other}: {said}"),
        None => {}
    }
    match told.confirm.as_ref().map(|confirm| (confirm.status, confirm.code.as_str())) {
        Some((200, _)) | Some((409, "already_sold")) => assert!(sold, "{said}"),
        Some((409, "already_released")) => assert_eq!(written.released, 1, "{said}"),
        Some(other) => panic!("{other:?}: {said}"),
        None => {}
    }
    if told.notice.is_none() {
        assert!(order["refund_due"].is_null(), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_order_is_sold_or_released_whatever_comes_at_its_very_end() {
    let authority = Database::shared().await.unwrap();
    let mut nodes = start_nodes(&authority.url(), 2).await;
    let mut pools = Vec::new();
    for (campaign, grace, late_payment) in CAMPAIGNS {
        let policy =
            json!({"hold_seconds": HOLD_SECONDS, "release_grace_ms": grace, "late_payment": late_payment});
        nodes[0].http.campaign(campaign, policy).await;
        pools.push(nodes[0].http.pool(campaign, "A", u64::from(HOLDS), 2).await);
    }
    let doors: Doors = Arc::new(Mutex::new(nodes.iter().map(|node| node.http.clone()).collect()));
    let racers = place(&doors).await;
    let (told, ()) = tokio::join!(racers.join_all(), kill_in_turn(&mut nodes, &doors));
    let http = &nodes[0].http;
    wait_until("the end of every hold", async || {
        let held = http.get("/v1/orders?state=held&limit=1").await;
        held.body["items"].as_array().is_some_and(Vec::is_empty).then_some(())
    })
    .await;
    let told: BTreeMap<String, Told> = told.into_iter().collect();
    let written = written(http).await;
    let (mut sold, mut seen) = (0, 0);
    for order in pages(http, "/v1/orders?limit=500").await {
        let id = order["id"].as_str().unwrap();
        judge(&order, &written[id], &told[id]);
        sold += u64::from(order["state"] == "sold");
        seen += 1;
    }
    assert_eq!(seen, HOLDS);
    // A race that only one side ever wins is none.
    assert!((1..u64::from(HOLDS)).contains(&sold), "{sold} sold");
    let mut units = 0;
    for pool in &pools {
        let (_, held, of_pool) = http.balances(pool).await;
        assert_eq!(held, 0);
        units += of_pool;
    }
    assert_eq!(units, sold);
    for node in nodes {
        node.finish().await;
    }
}
