//! Clients that buy, pay and cancel while the world breaks around them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::history::{CAMPAIGN, History, order_no, timed};
use super::{Answer, Http, pause};

/// Clients at work; what they are told goes to a [`History`].
pub(crate) struct Load {
    clients: JoinSet<()>,
    stop: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Client {
    nodes: Vec<Http>,
    history: Arc<History>,
    stop: Arc<AtomicBool>,
}

impl Load {
    /// Starts clients of these nodes.
    pub(crate) fn start(history: &Arc<History>, nodes: &[Http], clients: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = Client { nodes: nodes.to_vec(), history: Arc::clone(history), stop: Arc::clone(&stop) };
        let clients = (0..clients).map(|_| client.clone().shop()).collect();
        Self { clients, stop }
    }

    /// One client of one node, until it has bought something.
    pub(crate) async fn buy(history: &Arc<History>, node: &Http) {
        let client = Client { nodes: vec![node.clone()], history: Arc::clone(history), stop: Arc::default() };
        while !client.see_to(client.history.next()).await {}
    }

    /// Lets every client hear the answer that it waits for, and no more. A client that was told what must not be
    /// told fails here.
    pub(crate) async fn stop(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
    }
}

impl Client {
    async fn shop(self) {
        while !self.is_over() {
            self.see_to(self.history.next()).await;
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// One order's life: placed, every second paid, every third of the others cancelled, some asked for again.
    ///
    /// Whether it was placed.
    async fn see_to(&self, number: u64) -> bool {
        let cup = json!({"sku": "CUP", "quantity": 1});
        let lines = match number % 20 {
            0 | 5 | 10 => json!([cup, {"sku": "POT", "quantity": 2}]),
            7 => json!([{"sku": "RARE", "quantity": 1}]),
            8 | 9 | 16 | 17 => json!([{"sku": "VASE", "quantity": 1}]),
            _ => json!([cup]),
        };
        let place = json!({
            "campaign_id": CAMPAIGN, "order_no": order_no(number), "account": format!("a{}", number % 50),
            "lines": lines,
        });
        let Some(placed) = self.ask(number, "POST", "/v1/orders", Some(&place)).await else { return false };
        let Some(id) = placed.body["id"].as_str() else { return false };
        if placed.status == 202 && !self.is_decided(number, id).await {
            return true;
        }
        // Whoever is not answered stops with the order: it may be another client's by now.
        if number.is_multiple_of(2) {
            let notice = json!({
                "event_id": order_no(number), "payment_id": order_no(number), "order_id": id,
                "outcome": "succeeded",
            });
            if self.ask(number, "POST", "/v1/payments/bank/notifications", Some(&notice)).await.is_none() {
                return true;
            }
        } else if number.is_multiple_of(3) {
            let cancel = format!("/v1/orders/{id}/cancel");
            if self.ask(number, "POST", &cancel, Some(&json!({}))).await.is_none() {
                return true;
            }
        }
        if number.is_multiple_of(4) {
            self.ask(number, "POST", "/v1/orders", Some(&place)).await;
        }
        true
    }

    /// Waits for the end of the queue; whether the order has got its units.
    async fn is_decided(&self, number: u64, id: &str) -> bool {
        let path = format!("/v1/orders/{id}?wait=2s");
        while let Some(order) = self.ask(number, "GET", &path, None).await {
            if order.body["state"] != "queued" {
                return order.body["state"] == "held";
            }
            if self.is_over() {
                break;
            }
        }
        false
    }

    /// Asks until there is an answer about the order; none if the client gave up, and when the load is over.
    async fn ask(&self, number: u64, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        // Some do not ask again: what they were told in the outage must be true without that.
        let gives_up = number % 7 == 3;
        for attempt in 0.. {
            let node = &self.nodes[usize::try_from(number + attempt).unwrap() % self.nodes.len()];
            let (answer, took) = timed(node.try_send(method, path, body)).await;
            self.history.hear(number, answer.as_ref(), took);
            if let Some(answer) = answer.filter(|answer| answer.status != 503) {
                return Some(answer);
            }
            if gives_up {
                break;
            }
            if self.is_over() {
                self.history.leave(number);
                break;
            }
            pause().await;
        }
        None
    }
}
