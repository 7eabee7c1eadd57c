//! What clients were told, judged against the order rows and the ledger of the authority.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Answer, Http, pause};

/// The campaign in which the clients of a [`History`] buy.
pub(crate) const CAMPAIGN: &str = "drop";
/// Units of the good that sells out.
pub(crate) const RARE_UNITS: u64 = 30;

/// The longest that any request may take, whatever has happened to the authority: the server's own deadline of
/// requests, and a moment for this machine.
const ANSWER_MAX: Duration = Duration::from_secs(22);

/// The longest that an order may be queued: the policy's 30 seconds, and a moment.
const QUEUE_MAX: Duration = Duration::from_secs(40);

/// Codes of answers by which a server says that it cannot do its work now.
const OUTAGE_CODES: [&str; 4] = ["overloaded", "authority_unavailable", "outcome_unknown", "shutting_down"];

/// All that clients have asked and were told, over any number of servers, crashes and outages.
#[derive(Debug, Default)]
pub(crate) struct History {
    told: Mutex<BTreeMap<u64, Told>>,
    numbers: AtomicU64,
    /// Orders whose outcome is unknown and that are asked for again.
    again: Mutex<Vec<u64>>,
    /// Answers by status and code.
    answers: Mutex<BTreeMap<String, u64>>,
    successes: AtomicU64,
    slowest: Mutex<Duration>,
}

/// What a client was told of one order.
#[derive(Debug, Default)]
struct Told {
    id: Option<String>,
    /// Version and state in the order of the answers.
    seen: Vec<(u64, String)>,
    /// Whether any answer, or the lack of one, allows that the order is there.
    may_exist: bool,
}

/// An order as the authority has it.
struct Row {
    id: String,
    state: String,
    version: u64,
}

impl History {
    /// Opens the campaign: goods in plenty over four buckets, in one, and by a queue; and one that sells out.
    pub(crate) async fn open(&self, http: &Http) {
        http.campaign(CAMPAIGN, json!({"account_limit": 1_000_000})).await;
        http.pool(CAMPAIGN, "CUP", 1_000_000, 4).await;
        http.pool(CAMPAIGN, "POT", 1_000_000, 1).await;
        http.pool(CAMPAIGN, "RARE", RARE_UNITS, 2).await;
        let queued = json!({
            "campaign_id": CAMPAIGN, "sku": "VASE", "supply": 1_000_000, "buckets": 2, "path": "queued",
        });
        assert_eq!(http.post("/v1/pools", &queued).await.status, 201);
    }

    /// The order that a client should see to next.
    pub(super) fn next(&self) -> u64 {
        let again = lock(&self.again).pop();
        again.unwrap_or_else(|| self.numbers.fetch_add(1, Ordering::SeqCst))
    }

    /// Leaves an order whose outcome is unknown to another client: one, for of the answers of two that ask at
    /// once nobody can say which is the later.
    pub(super) fn leave(&self, number: u64) {
        let mut again = lock(&self.again);
        assert!(!again.contains(&number), "order {number} is left twice");
        again.push(number);
    }

    /// How many orders were begun.
    pub(crate) fn begun(&self) -> u64 {
        self.numbers.load(Ordering::SeqCst)
    }

    /// How many requests were done as asked.
    pub(crate) fn successes(&self) -> u64 {
        self.successes.load(Ordering::SeqCst)
    }

    /// How many answers had one of the codes.
    pub(crate) fn answered(&self, codes: &[&str]) -> u64 {
        let answers = lock(&self.answers);
        codes.iter().filter_map(|code| answers.get(*code)).sum()
    }

    /// How many answers said that the server cannot do its work now.
    pub(crate) fn outages(&self) -> u64 {
        self.answered(&OUTAGE_CODES)
    }

    /// Notes an answer, or that none came, and judges what can be judged at once.
    pub(super) fn hear(&self, number: u64, answer: Option<&Answer>, took: Duration) {
        assert!(took < ANSWER_MAX, "order {number} was left waiting for {took:?}: {answer:?}");
        {
            let mut slowest = lock(&self.slowest);
            *slowest = took.max(*slowest);
        }
        let mut told = lock(&self.told);
        let told = told.entry(number).or_default();
        let Some(answer) = answer else {
            told.may_exist = true;
            return;
        };
        let code = if answer.status < 300 { "done" } else { answer.code() };
        *lock(&self.answers).entry(code.to_owned()).or_default() += 1;
        let order = match answer.status {
            200..=202 => {
                self.successes.fetch_add(1, Ordering::SeqCst);
                // A notice is answered with what became of it.
                if answer.body["order"].is_object() { &answer.body["order"] } else { &answer.body }
            }
            409 => &answer.body["order"],
            503 => {
                assert!(OUTAGE_CODES.contains(&code), "{answer:?}");
                assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
                &Value::Null
            }
            _ => panic!("order {number}: {answer:?}"),
        };
        // Nothing but a plain no says that there is no order.
        told.may_exist |= answer.body["recorded"] != json!(false);
        if order.is_object() {
            told.hear_order(number, order);
        }
    }

    /// Reads all rows of the authority through a server that is at rest, and holds against them all that was told.
    pub(crate) async fn check(&self, http: &Http) {
        queue_is_over(http).await;
        let rows = order_rows(http).await;
        let events = order_events(http).await;
        let told = lock(&self.told);
        for (number, told) in &*told {
            match rows.get(&order_no(*number)) {
                Some(row) => told.check(*number, row, events.get(&row.id)),
                None => assert!(told.seen.is_empty(), "order {number} was told as {told:?} and is lost"),
            }
        }
        let asked: BTreeSet<String> = told.keys().copied().map(order_no).collect();
        let strange: Vec<&String> = rows.keys().filter(|order_no| !asked.contains(*order_no)).collect();
        assert!(strange.is_empty(), "nobody asked for {strange:?}");
        let of_rows: BTreeSet<&String> = rows.values().map(|row| &row.id).collect();
        let strange: Vec<&String> = events.keys().filter(|id| !of_rows.contains(*id)).collect();
        assert!(strange.is_empty(), "entries of no order: {strange:?}");
    }

    /// What happened, for people who read the output of a test.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} orders, answers {:?}, slowest {:?}",
            self.begun(),
            lock(&self.answers),
            lock(&self.slowest)
        )
    }
}

impl Told {
    fn hear_order(&mut self, number: u64, order: &Value) {
        let text = |name: &str| order[name].as_str().unwrap().to_owned();
        let (id, version) = (text("id"), order["version"].as_u64().unwrap());
        let known = self.id.get_or_insert_with(|| id.clone());
        assert_eq!(*known, id, "order {number} is two");
        let last = self.seen.last().map_or(0, |(version, _)| *version);
        assert!(last <= version, "order {number} went back from version {last}: {order}");
        self.seen.push((version, text("state")));
    }

    fn check(&self, number: u64, row: &Row, events: Option<&Vec<String>>) {
        assert!(self.may_exist, "order {number} is there, though every answer said that it is not recorded");
        if let Some(id) = &self.id {
            assert_eq!(*id, row.id, "order {number} is another");
        }
        // An order that was refused as it came has no stock and no entries.
        let Some(events) = events else {
            assert_eq!(row.state, "failed", "order {number} has no entries");
            assert!(self.seen.iter().all(|(_, state)| state == "failed"), "order {number}: {self:?}");
            return;
        };
        assert_eq!(events.len() as u64, row.version, "order {number}: {events:?}");
        assert_eq!(events.last(), Some(&row.state), "order {number}: {events:?}");
        for (version, state) in &self.seen {
            let written = usize::try_from(*version - 1).ok().and_then(|at| events.get(at));
            assert_eq!(written, Some(state), "order {number}, told {state} at version {version}: {events:?}");
        }
    }
}

/// The key of an order.
pub(super) fn order_no(number: u64) -> String {
    format!("o{number}")
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // A client that has panicked has its say when it is joined.
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits until no order is queued: whoever is in the queue has its answer within the policy's time.
async fn queue_is_over(http: &Http) {
    let begun = Instant::now();
    loop {
        let queued = http.get(&format!("/v1/orders?campaign_id={CAMPAIGN}&state=queued&limit=1")).await;
        if queued.body["items"].as_array().is_some_and(Vec::is_empty) {
            return;
        }
        assert!(begun.elapsed() < QUEUE_MAX, "the queue does not end: {queued:?}");
        pause().await;
    }
}

/// Orders by number; two of one number are a doubled order.
async fn order_rows(http: &Http) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for order in pages(http, &format!("/v1/orders?campaign_id={CAMPAIGN}&limit=500")).await {
        let text = |name: &str| order[name].as_str().unwrap().to_owned();
        let row = Row { id: text("id"), state: text("state"), version: order["version"].as_u64().unwrap() };
        assert!(rows.insert(text("order_no"), row).is_none(), "doubled: {order}");
    }
    rows
}

/// The states that each order has come to, one a version, as the ledger has them.
async fn order_events(http: &Http) -> BTreeMap<String, Vec<String>> {
    let mut events: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in pages(http, "/v1/ledger?limit=500").await {
        if let (Some(order), Some(state)) = (entry["order_id"].as_str(), entry["to_state"].as_str()) {
            let states = events.entry(order.to_owned()).or_default();
            // The intake of a queued order is a row without an entry.
            if states.is_empty() && entry["from_state"] == "queued" {
                states.push("queued".to_owned());
            }
            assert_eq!(entry["from_state"].as_str(), states.last().map(String::as_str), "{entry}");
            states.push(state.to_owned());
        }
    }
    events
}

pub(crate) async fn pages(http: &Http, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = http.get(&format!("{path}{cursor}")).await;
        assert_eq!(page.status, 200, "{page:?}");
        items.extend(page.body["items"].as_array().unwrap().iter().cloned());
        let Some(next) = page.body["next_cursor"].as_str() else { return items };
        cursor = format!("&cursor={next}");
    }
}

/// Measures a request.
pub(super) async fn timed<T>(request: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    (request.await, begun.elapsed())
}
