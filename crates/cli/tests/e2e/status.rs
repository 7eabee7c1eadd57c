//! A payment provider is asked what became of an attempt before its hold is let go.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Http, Server, Start};

/// The key that the provider wants.
const KEY: &str = "hush-hush";

/// The attempt about which the provider says nothing at all.
const SILENT: &str = "silent";

/// A provider that answers by the name of the attempt.
pub(crate) struct Bank {
    address: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Bank {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/status?shop=7", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&heard)));
            }
        });
        Self { address, asked }
    }

    /// How a server is started that asks it, and a provider that is not there.
    pub(crate) fn start(&self) -> Start {
        let status = format!("bank={}", self.address);
        let key = format!("bank={KEY}");
        let options = ["--auth", "off", "--payment-status", &status, "--payment-status-key", &key];
        let gone = ["--payment-status", "gone=http://127.0.0.1:9/"];
        let arguments = [&options[..], &gone[..]].concat().into_iter().map(String::from).collect();
        Start { arguments, ..Start::default() }
    }

    fn questions(&self, attempt: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|question| question["attempt_id"] == attempt).cloned().collect()
    }
}

/// Reads one request and answers it.
async fn answer(mut stream: TcpStream, heard: Arc<Mutex<Vec<Value>>>) {
    let mut text = String::new();
    let mut piece = [0; 4_096];
    let body = loop {
        let read = stream.read(&mut piece).await.unwrap();
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(question) = serde_json::from_str::<Value>(body) {
            let head = head.to_ascii_lowercase();
            assert!(head.starts_with("post /status?shop=7 "), "{head}");
            assert!(head.contains(&format!("authorization: bearer {KEY}")), "{head}");
            break question;
        }
    };
    let (status, answer) = match body["attempt_id"].as_str().unwrap() {
        "paid" => ("200 OK", json!({"status": "paid", "payment_id": "p-1"})),
        "failed" => ("200 OK", json!({"status": "failed"})),
        "moved" => ("302 Found", json!({"status": "paid", "payment_id": "p-2"})),
        _ => ("200 OK", json!({"status": "unknown"})),
    };
    let is_silent = body["attempt_id"] == SILENT;
    heard.lock().unwrap().push(body);
    if is_silent {
        return std::future::pending().await;
    }
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
}

/// Paid is sold, failed is released, unknown waits for the end of the review; who does not answer is unknown.
pub(crate) async fn a_hold_is_let_go_after_its_provider_was_asked(http: &Http, bank: &Bank) {
    let policy = json!({"hold_seconds": 1, "release_grace_ms": 0, "review_seconds": 2});
    http.campaign("spring", policy).await;
    http.campaign("patient", json!({"hold_seconds": 1, "release_grace_ms": 0, "review_seconds": 600})).await;
    let pool = http.pool("spring", "CUP", 10, 1).await;
    let slow = http.pool("patient", "CUP", 10, 1).await;
    let begin = async |campaign: &str, attempt: &str, provider: &str| {
        let id = http.place(campaign, &format!("A-{attempt}"), "CUP", 1).await.text("id");
        let body = json!({"attempt_id": attempt, "provider": provider});
        let begun = http.post(&format!("/v1/orders/{id}/payment-attempts"), &body).await;
        assert_eq!(begun.status, 201, "{begun:?}");
        id
    };
    let paid = begin("spring", "paid", "bank").await;
    let failed = begin("spring", "failed", "bank").await;
    let unknown = begin("spring", "unknown", "bank").await;
    let moved = begin("patient", "moved", "bank").await;
    let gone = begin("patient", "gone", "gone").await;
    let other = begin("patient", "other", "cash").await;
    let order = http.wait_for_state(&paid, "sold").await;
    assert_eq!(order["payments"][0]["payment_id"], "p-1", "{order:#}");
    http.wait_for_state(&failed, "released").await;
    for id in [&moved, &gone, &other] {
        http.wait_for_state(id, "in_review").await;
    }
    http.wait_for_state(&unknown, "released").await;
    assert!(bank.questions("unknown").len() >= 2, "asked before the review and before its end");
    let question = &bank.questions("paid")[0];
    assert_eq!(
        (&question["order_id"], &question["campaign_id"], &question["order_no"], &question["provider"]),
        (&json!(paid), &json!("spring"), &json!("A-paid"), &json!("bank"))
    );
    assert_eq!((http.balances(&pool).await, http.balances(&slow).await), ((9, 0, 1), (7, 3, 0)));
    // Told once more by the provider itself, it is the same payment.
    let body = json!({"event_id": "e-1", "payment_id": "p-1", "order_id": paid, "outcome": "succeeded"});
    let told = http.post("/v1/payments/bank/notifications", &body).await;
    assert_eq!(told.text("disposition"), "duplicate", "{told:?}");
}

/// A provider that accepts questions and never answers: who has nothing to do with it is released meanwhile, and who
/// has goes to review, most of them without a question.
pub(crate) async fn a_silent_provider_holds_up_nobody_else(http: &Http, bank: &Bank) {
    const ORDERS: usize = 40;
    http.campaign("rush", json!({"hold_seconds": 2, "release_grace_ms": 0, "review_seconds": 600})).await;
    let pool = http.pool("rush", "CUP", 100, 2).await;
    let (mut silent, mut plain) = (Vec::new(), Vec::new());
    for n in 0..ORDERS {
        let id = http.place("rush", &format!("S-{n}"), "CUP", 1).await.text("id");
        let body = json!({"attempt_id": SILENT, "provider": "bank"});
        let begun = http.post(&format!("/v1/orders/{id}/payment-attempts"), &body).await;
        assert_eq!(begun.status, 201, "{begun:?}");
        silent.push(id);
        plain.push(http.place("rush", &format!("P-{n}"), "CUP", 1).await.text("id"));
    }
    for id in &plain {
        http.wait_for_state(id, "released").await;
    }
    for id in &silent {
        http.wait_for_state(id, "in_review").await;
    }
    let asked = bank.questions(SILENT).len();
    assert!(0 < asked && asked < ORDERS, "after some failures it is left alone: {asked}");
    assert_eq!(http.balances(&pool).await, (60, 40, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_never_answers_holds_up_nobody_else() {
    let bank = Bank::open().await;
    let server = Server::start_with(bank.start()).await;
    a_silent_provider_holds_up_nobody_else(&server.http, &bank).await;
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_with_an_open_payment_is_let_go_after_its_provider_was_asked() {
    let bank = Bank::open().await;
    let server = Server::start_with(bank.start()).await;
    a_hold_is_let_go_after_its_provider_was_asked(&server.http, &bank).await;
    server.finish().await;
}
