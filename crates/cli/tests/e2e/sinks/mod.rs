//! Order events reach other systems: each at least once, in the order of its bucket, whatever breaks between. Every
//! delivery is held against the ledger.

mod brokers;
mod faults;
mod feed;
mod many;
mod receiver;
mod saving;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{Answer, Http, Server, Start, wait_until};

/// A server that lets webhooks lead to this machine.
fn allowing() -> Start {
    let arguments = ["--auth", "off", "--sink-private-addresses", "allow"].map(String::from).to_vec();
    Start { arguments, ..Start::default() }
}

async fn shop() -> Server {
    let server = Server::start_with(allowing()).await;
    server.http.campaign("spring", json!({})).await;
    server
}

impl Http {
    /// Makes a webhook; its secret.
    async fn webhook(&self, name: &str, url: &str, settings: Value) -> String {
        let mut body = json!({"kind": "webhook", "url": url});
        for (field, value) in settings.as_object().unwrap() {
            body[field] = value.clone();
        }
        let made = self.put(&format!("/v1/sinks/{name}"), &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.text("secret")
    }

    async fn sink(&self, name: &str) -> Value {
        let sink = self.get(&format!("/v1/sinks/{name}")).await;
        assert_eq!(sink.status, 200, "{sink:?}");
        sink.body
    }

    async fn sink_verb(&self, name: &str, verb: &str, body: Value) -> Answer {
        let answer = self.post(&format!("/v1/sinks/{name}/{verb}"), &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    }

    /// Waits until a sink shows something.
    async fn sink_shows(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, async || Some(self.sink(name).await).filter(|sink| is_so(sink))).await
    }

    /// Places, and perhaps pays, orders with these numbers.
    async fn sell(&self, numbers: impl IntoIterator<Item = String>, pays: bool) {
        for number in numbers {
            let placed = self.place("spring", &number, "CUP", 1).await;
            assert_eq!(placed.status, 201, "{placed:?}");
            if pays {
                assert_eq!(self.pay(&placed.text("id"), &number).await.status, 200);
            }
        }
    }

    /// Every ledger entry that carries an order event, as `bucket -> sequences`: here every entry of an order does.
    async fn ledger_events(&self) -> BTreeMap<String, Vec<u64>> {
        let (mut found, mut cursor) = (BTreeMap::<String, Vec<u64>>::new(), String::new());
        loop {
            let page = self.get(&format!("/v1/ledger?limit=500{cursor}")).await;
            for entry in page.body["items"].as_array().unwrap() {
                if entry["to_state"].is_string() {
                    let bucket = format!("{}/{}", entry["pool_id"].as_str().unwrap(), entry["bucket"]);
                    found.entry(bucket).or_default().push(entry["seq"].as_u64().unwrap());
                }
            }
            match page.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return found,
            }
        }
    }
}

/// Numbers of orders.
fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

/// Holds what was delivered against the ledger: nothing is missing, the first of each comes in order, and what comes
/// again is the same to the last byte. How many came again.
fn assert_complete(ledger: &BTreeMap<String, Vec<u64>>, delivered: &[Value]) -> usize {
    let mut first = BTreeMap::<String, &Value>::new();
    let mut order = BTreeMap::<String, Vec<u64>>::new();
    let mut again = 0;
    for event in delivered {
        let id = event["id"].as_str().unwrap().to_owned();
        if let Some(known) = first.get(&id) {
            assert_eq!(*known, event, "the same event");
            again += 1;
            continue;
        }
        first.insert(id, event);
        let bucket = event["partitionkey"].as_str().unwrap().to_owned();
        order.entry(bucket).or_default().push(event["data"]["seq"].as_u64().unwrap());
    }
    for (bucket, seqs) in ledger {
        let came = order.get(bucket).cloned().unwrap_or_default();
        let missing: BTreeSet<_> = seqs.iter().filter(|seq| !came.contains(seq)).collect();
        assert!(missing.is_empty(), "{bucket}: {missing:?} are missing");
        assert_eq!(&came, seqs, "{bucket}: in order");
    }
    assert_eq!(order.len(), ledger.len(), "and nothing else");
    again
}
