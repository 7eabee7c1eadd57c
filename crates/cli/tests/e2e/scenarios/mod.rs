//! Faults that users of other systems met, tried on this one. The numbers are those of the collection of field faults;
//! whatever is tried, the audit at the end of each test must find every unit.

mod archiving;
mod arrivals;
mod closing;
mod expiry;
mod explaining;
mod files;
mod idempotency;
mod keys;
mod limits;
mod oversell;
mod payments;
mod places;
mod pools;
mod process;
mod queued;
mod restock;
mod site;
mod verifying;
mod zones;

use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet};

use crate::support::{Answer, Http, LEARNT_WITHIN};

/// Runs all at once, and waits for all.
async fn together<T: 'static>(tasks: impl IntoIterator<Item = impl Future<Output = T> + 'static>) -> Vec<T> {
    let run = async {
        let mut under_way = JoinSet::new();
        for task in tasks {
            under_way.spawn_local(task);
        }
        under_way.join_all().await
    };
    LocalSet::new().run_until(run).await
}

/// How many of these answers have a status.
fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

/// An order of several lines.
fn order(campaign: &str, order_no: &str, account: &str, lines: &[(&str, u32)]) -> Value {
    let lines: Vec<_> =
        lines.iter().map(|(sku, quantity)| json!({"sku": sku, "quantity": quantity})).collect();
    json!({"campaign_id": campaign, "order_no": order_no, "account": account, "lines": lines})
}

/// A success that names its payment.
fn success(order_id: &str, event: &str, payment: &str) -> Value {
    json!({"event_id": event, "payment_id": payment, "order_id": order_id, "outcome": "succeeded"})
}

/// An object with further or other fields.
fn with(mut object: Value, fields: Value) -> Value {
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}

/// Shorthands for what is done to an order.
impl Http {
    async fn order(&self, body: &Value) -> Answer {
        self.post("/v1/orders", body).await
    }

    /// Places an order that must be accepted; its id. What came back or became free at one node may be unknown to
    /// another for a moment, which refuses without a trace.
    async fn accepted(&self, body: &Value) -> String {
        let begun = Instant::now();
        loop {
            let placed = self.order(body).await;
            let behind = self.has_several_nodes() && placed.body["recorded"] == false;
            if placed.status == 201 {
                return placed.text("id");
            }
            assert!(behind && begun.elapsed() < LEARNT_WITHIN, "{placed:?}");
        }
    }

    async fn see(&self, order_id: &str) -> Value {
        let seen = self.get(&format!("/v1/orders/{order_id}")).await;
        assert_eq!(seen.status, 200, "{seen:?}");
        seen.body
    }

    async fn cancel(&self, order_id: &str) -> Answer {
        self.post(&format!("/v1/orders/{order_id}/cancel"), &json!({})).await
    }

    /// Reduces one line.
    async fn reduce(&self, order_id: &str, line: u32, keep: i64) -> Answer {
        let body = json!({"lines": [{"line": line, "keep": keep}]});
        self.post(&format!("/v1/orders/{order_id}/cancel"), &body).await
    }

    /// Refunds units of the first line.
    async fn refund(&self, order_id: &str, refund: &str, quantity: u32, restock: Option<bool>) -> Answer {
        let body = json!({"refund_id": refund, "lines": [{"line": 1, "quantity": quantity}], "restock": restock, "reason": "r"});
        self.post(&format!("/v1/orders/{order_id}/refunds"), &body).await
    }

    async fn attempt(&self, order_id: &str, attempt: &str) -> Answer {
        let body = json!({"attempt_id": attempt, "provider": "bank"});
        self.post(&format!("/v1/orders/{order_id}/payment-attempts"), &body).await
    }

    /// Sends a notice of the bank.
    async fn tell(&self, notice: &Value) -> Answer {
        self.post("/v1/payments/bank/notifications", notice).await
    }

    /// Sends a notice that must be understood; what became of it.
    async fn told(&self, notice: &Value) -> String {
        let answer = self.tell(notice).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text("disposition")
    }

    async fn adjust(&self, pool: &str, id: &str, delta: i64) -> Answer {
        let body = json!({"adjustment_id": id, "delta": delta, "kind": "adjust", "reason": "count", "operator": "ann"});
        self.post(&format!("/v1/pools/{pool}/adjustments"), &body).await
    }

    async fn switch(&self, path: &str) {
        let switched = self.post(path, &json!({"operator": "ann", "reason": "test"})).await;
        assert_eq!(switched.status, 200, "{switched:?}");
    }

    /// What the ledger says happened to an order.
    async fn actions(&self, order_id: &str) -> Vec<String> {
        let entries = self.get(&format!("/v1/ledger?order_id={order_id}")).await;
        let items = entries.body["items"].as_array().expect("entries").clone();
        items.iter().map(|entry| entry["action"].as_str().expect("an action").to_owned()).collect()
    }

    /// Available, held and sold of each bucket of a pool.
    async fn buckets(&self, pool: &str) -> Vec<(u64, u64, u64)> {
        let pool = self.get(&format!("/v1/pools/{pool}")).await;
        let units = |bucket: &Value, name: &str| bucket[name].as_u64().expect("units");
        let buckets = pool.body["buckets"].as_array().expect("buckets").clone();
        buckets.iter().map(|b| (units(b, "available"), units(b, "held"), units(b, "sold"))).collect()
    }

    /// How many orders a list of orders shows, up to 500.
    async fn listed(&self, query: &str) -> usize {
        let list = self.get(&format!("/v1/orders?limit=500&{query}")).await;
        assert_eq!(list.status, 200, "{list:?}");
        list.body["items"].as_array().expect("items").len()
    }
}
