//! Some of the pairs and triples of what may arrive at an order, over HTTP, each arrival doubled. All of them are tried
//! on every store in process; here the answers of the real binary are held against those of the model.

use std::time::{Duration, Instant};

use holdfast_core::campaign::Policy;
use holdfast_server::{policy_view, time_text};
use holdfast_store::conformance::arrivals::{Arrival, PRICE, policies, sequences};
use holdfast_store::conformance::rehearsal::Rehearsal;
use holdfast_store::{Clock, SystemClock};
use serde_json::{Value, json};

use super::site::Site;
use super::{order, together, with};
use crate::support::{Answer, Http, wait_until};

super::site::on_each_site! {
    a_sample_of_what_may_arrive_is_answered_as_the_model_answers
}

const SAMPLE: usize = 50;
/// How long an order holds whose end is waited for: long enough for what comes before.
const SHORT_HOLD: u32 = 6;

/// A policy of the rehearsal as JSON, for holds as short as these.
fn policy(number: usize) -> Value {
    let of_rehearsal = policies()[number].clone();
    let payment_extension_seconds = of_rehearsal.payment_extension_seconds.min(1);
    json!(policy_view(&Policy { payment_extension_seconds, ..of_rehearsal }))
}

/// One sequence, with what the model says of it so far.
struct Trial {
    http: Http,
    name: String,
    sequence: Vec<Arrival>,
    id: String,
    placed: Instant,
    created_at: String,
    /// When an operator lets it end.
    until: String,
    model: Rehearsal,
}

impl Trial {
    async fn begin(http: &Http, number: usize, sequence: Vec<Arrival>) -> Self {
        let (name, which) = (format!("t{number}"), number % policies().len());
        let expires = sequence.contains(&Arrival::Expiry);
        let hold = if sequence.iter().any(|arrival| arrival.waits()) { SHORT_HOLD } else { 900 };
        // Where it must expire there is no grace, where it must only be late there is much.
        let grace = if expires {
            json!({"release_grace_ms": 0, "notice_grace_seconds": 0})
        } else {
            json!({"release_grace_ms": 60_000})
        };
        http.campaign(&name, with(policy(which), grace)).await;
        http.pool(&name, "A", 10, 2).await;
        let body = order(&name, "o", "ann", &[("A", 2), ("A", 1)]);
        let due = json!({"amount_due": {"amount_minor": PRICE, "currency": "EUR"},
            "hold_seconds": hold});
        let placed = Instant::now();
        let answer = http.order(&with(body, due)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let model = Rehearsal::begin(policies()[which].clone()).await;
        let (id, created_at) = (answer.text("id"), answer.text("created_at"));
        let until = time_text(SystemClock.now().plus_seconds(hold + 4));
        Self { http: http.clone(), name, sequence, id, placed, created_at, until, model }
    }

    async fn run(self) {
        let before_any_end = self.sequence.iter().take_while(|arrival| !arrival.waits()).count();
        for (at, arrival) in self.sequence.iter().copied().enumerate() {
            if at == before_any_end {
                let hold = Duration::from_secs(u64::from(SHORT_HOLD));
                assert!(self.placed.elapsed() < hold, "the machine is too slow");
            }
            self.pass_time(arrival).await;
            for time in ["first", "doubled"] {
                self.arrive(arrival, time).await;
            }
        }
        let (seen, model) = (self.http.see(&self.id).await, self.model.order().await);
        let same = seen["state"] == model.state.as_str()
            && seen["version"] == model.version
            && seen["refund_due"].is_null() == model.refund_due.is_none();
        assert!(same, "{:?}: {seen} is not {model:?}", self.sequence);
        // One entry carries each change of the order.
        let entries = self.http.get(&format!("/v1/ledger?limit=500&order_id={}", self.id)).await;
        let events =
            entries.body["items"].as_array().unwrap().iter().filter(|entry| !entry["to_state"].is_null());
        assert_eq!(events.count(), model.version as usize, "{:?}", self.sequence);
    }

    /// Waits for the end of the hold, or for its release, on both.
    async fn pass_time(&self, arrival: Arrival) {
        if !arrival.waits() {
            return;
        }
        let is_held = async || {
            let seen = self.http.see(&self.id).await;
            (seen["state"] == "held").then(|| seen["hold_expires_at"].as_str().unwrap().to_owned())
        };
        if self.sequence.contains(&Arrival::Expiry) {
            self.model.hold_is_over().await;
            wait_until("the release", async || is_held().await.is_none().then_some(())).await;
        } else {
            self.model.end_passes().await;
            if let Some(end) = is_held().await {
                wait_until("the end", async || (time_text(SystemClock.now()) > end).then_some(())).await;
            }
        }
    }

    async fn arrive(&self, arrival: Arrival, time: &str) {
        let said = format!("{arrival:?} {time} in {:?} of {}", self.sequence, self.name);
        if arrival == Arrival::Expiry {
            return;
        }
        let expected = self.model.send(arrival).await;
        let answer = self.send(arrival).await;
        let order = self.model.order().await;
        assert!(answer.status < 500, "{said}: {answer:?}");
        if answer.status < 300 {
            let (word, seen) = match &answer.body["disposition"] {
                Value::String(word) => (word.as_str(), &answer.body["order"]),
                _ => ("", &answer.body),
            };
            assert_eq!(word, expected, "{said}: {answer:?}");
            if arrival.switch().is_some() {
                return;
            }
            assert_eq!(seen["state"], order.state.as_str(), "{said}: {answer:?}");
            assert_eq!(seen["version"], order.version, "{said}: {answer:?}");
        } else {
            assert_eq!((answer.status, answer.code()), (409, expected), "{said}: {answer:?}");
        }
    }

    async fn send(&self, arrival: Arrival) -> Answer {
        let resolve = async |action: &str| {
            let mut body = json!({"action": action, "reason": "test", "operator": "ann"});
            if arrival == Arrival::Extend {
                body["until"] = json!(self.until);
            }
            self.http.post(&format!("/v1/orders/{}/resolve", self.id), &body).await
        };
        let switch = async |switch: &str| {
            let body = json!({"operator": "ann", "reason": "test"});
            self.http.post(&format!("/v1/campaigns/{}/{switch}", self.name), &body).await
        };
        let refund = async |id: &str, lines: Value, restock: Option<bool>| {
            let body = json!({"refund_id": id, "lines": lines, "restock": restock, "reason": "test"});
            self.http.post(&format!("/v1/orders/{}/refunds", self.id), &body).await
        };
        match arrival {
            Arrival::Payment => self.tell("pay", "succeeded", json!(self.created_at)).await,
            Arrival::FailedPayment => self.tell("fail", "failed", Value::Null).await,
            Arrival::LatePayment => self.tell("late", "succeeded", Value::Null).await,
            Arrival::SecondPayment => self.tell("second", "succeeded", Value::Null).await,
            Arrival::Attempt => self.http.attempt(&self.id, "attempt").await,
            Arrival::Cancel => self.http.cancel(&self.id).await,
            Arrival::Reduce => self.http.reduce(&self.id, 1, 1).await,
            Arrival::PartialRefund => refund("part", json!([{"line": 1, "quantity": 1}]), None).await,
            Arrival::FullRefund => {
                refund("all", json!([{"line": 1, "quantity": 2}, {"line": 2, "quantity": 1}]), Some(true))
                    .await
            }
            Arrival::Confirm => resolve("confirm").await,
            Arrival::Release => resolve("release").await,
            Arrival::Extend => resolve("extend").await,
            Arrival::MarkRefunded => resolve("refunded").await,
            Arrival::Pause => switch("pause").await,
            Arrival::Freeze => switch("freeze").await,
            Arrival::Close => switch("close").await,
            Arrival::Expiry => unreachable!("the server does it"),
        }
    }

    async fn tell(&self, what: &str, outcome: &str, paid_at: Value) -> Answer {
        let id = format!("{}-{what}", self.name);
        let body = json!({"event_id": id, "payment_id": id, "order_id": self.id, "outcome": outcome, "paid_at": paid_at,
            "amount_minor": PRICE, "currency": "EUR"});
        self.http.tell(&body).await
    }
}

/// The seed of the choice: printed, so that a failure can be had again.
fn seed() -> u64 {
    let wanted = std::env::var("HOLDFAST_SAMPLE_SEED").ok();
    wanted.map_or_else(|| fastrand::u64(..), |text| text.parse().expect("HOLDFAST_SAMPLE_SEED is a number"))
}

async fn a_sample_of_what_may_arrive_is_answered_as_the_model_answers(site: Site) {
    let seed = seed();
    println!("HOLDFAST_SAMPLE_SEED={seed}");
    let mut all = sequences();
    fastrand::Rng::with_seed(seed).shuffle(&mut all);
    together(all.into_iter().take(SAMPLE).enumerate().map(|(number, sequence)| {
        let http = site.http.clone();
        async move { Trial::begin(&http, number, sequence).await.run().await }
    }))
    .await;
    site.finish().await;
}
