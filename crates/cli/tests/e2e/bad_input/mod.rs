//! What must not come in: each kind of bad input, at each place where it can stand. It is refused with a
//! status of 4xx, a code and a pointer, and nothing of it is stored.

mod bodies;
mod identifiers;
mod kept;
mod metadata;
mod policy;
mod quantities;
mod queries;

use serde_json::{Value, json};

use crate::support::{Answer, Server};

/// Every request that writes, by name.
const ROUTES: [&str; 11] = [
    "campaign",
    "switch",
    "pool",
    "adjustment",
    "freeze",
    "place",
    "batch",
    "attempt",
    "cancel",
    "refund",
    "notice",
];

/// A server with something on sale, and a copy of all that is stored.
struct Shop {
    server: Server,
    pool: String,
    sold: String,
    stored: Vec<Vec<u8>>,
}

impl Shop {
    /// Campaign `spring` has 10 cups and no order; campaign `other` has an order that is sold.
    async fn open() -> Self {
        let server = Server::start().await;
        let http = &server.http;
        for campaign in ["spring", "other"] {
            http.campaign(campaign, json!({})).await;
        }
        let pool = http.pool("spring", "CUP", 10, 1).await;
        http.pool("other", "CUP", 5, 1).await;
        let sold = http.place("other", "A-1", "CUP", 3).await.text("id");
        assert_eq!(http.pay(&sold, "e1").await.status, 200);
        let mut shop = Self { server, pool, sold, stored: Vec::new() };
        shop.stored = shop.all().await;
        shop
    }

    /// All that the server shows of what it stores.
    async fn all(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for list in ["campaigns", "pools", "orders", "ledger"] {
            let shown = self.server.http.get(&format!("/v1/{list}?limit=500")).await;
            assert_eq!(shown.status, 200, "{list}");
            all.push(shown.raw);
        }
        all
    }

    /// Nothing has changed, and the database is sound.
    async fn finish_untouched(self) {
        assert!(self.all().await == self.stored, "something was stored");
        let orders = self.server.http.get("/v1/orders?campaign_id=spring").await;
        assert_eq!(orders.body["items"], json!([]));
        assert_eq!(self.server.http.balances(&self.pool).await, (10, 0, 0));
        self.server.finish().await;
    }

    /// A request that is good as it stands: method, path, body.
    fn good(&self, route: &str) -> (&'static str, String, Value) {
        let Self { pool, sold, .. } = self;
        let signed = json!({"operator": "ann", "reason": "test"});
        let order = json!({
            "campaign_id": "spring", "order_no": "B-1", "account": "ann",
            "lines": [{"sku": "CUP", "quantity": 1}, {"sku": "CUP", "quantity": 2}],
            "amount_due": {"amount_minor": 100, "currency": "EUR"},
        });
        match route {
            "campaign" => ("PUT", "/v1/campaigns/new".into(), json!({"name": "New", "policy": {}})),
            "switch" => ("POST", "/v1/campaigns/spring/close".into(), signed),
            "pool" => {
                ("POST", "/v1/pools".into(), json!({"campaign_id": "spring", "sku": "MUG", "supply": 5}))
            }
            "adjustment" => (
                "POST",
                format!("/v1/pools/{pool}/adjustments"),
                json!({"adjustment_id": "a1", "delta": 5, "kind": "inbound", "operator": "ann", "reason": "test"}),
            ),
            "freeze" => ("POST", format!("/v1/pools/{pool}/freeze"), signed),
            "place" => ("POST", "/v1/orders".into(), order),
            "batch" => ("POST", "/v1/orders/batch".into(), json!({"orders": [order]})),
            "attempt" => (
                "POST",
                format!("/v1/orders/{sold}/payment-attempts"),
                json!({"attempt_id": "t1", "provider": "bank"}),
            ),
            "cancel" => (
                "POST",
                format!("/v1/orders/{sold}/cancel"),
                json!({"reason": "test", "lines": [{"line": 1, "keep": 1}]}),
            ),
            "refund" => (
                "POST",
                format!("/v1/orders/{sold}/refunds"),
                json!({"refund_id": "r1", "lines": [{"line": 1, "quantity": 1}], "reason": "test"}),
            ),
            "notice" => (
                "POST",
                "/v1/payments/bank/notifications".into(),
                json!({"event_id": "e2", "payment_id": "p2", "campaign_id": "other", "order_no": "A-1",
                    "outcome": "succeeded"}),
            ),
            other => panic!("no route {other}"),
        }
    }

    /// Sends a body of one's own over a route.
    async fn send(&self, route: &str, body: impl Into<Vec<u8>>) -> Answer {
        let (method, path, _) = self.good(route);
        let json = [("content-type", "application/json")];
        self.server.http.send_raw(method, &path, &json, body.into()).await
    }

    /// Sends a good request with JSON text of one's own at a pointer.
    async fn send_with(&self, route: &str, pointer: &str, text: &str) -> Answer {
        self.send(route, with(self.good(route).2, pointer, text)).await
    }
}

const PLACEHOLDER: &str = "put here";

/// The body with JSON text at a pointer, as it is: also text that no serialiser writes.
fn with(mut body: Value, pointer: &str, text: &str) -> String {
    put(&mut body, pointer, Some(json!(PLACEHOLDER)));
    body.to_string().replace(&format!("\"{PLACEHOLDER}\""), text)
}

/// The body without the field at a pointer.
fn without(mut body: Value, pointer: &str) -> String {
    put(&mut body, pointer, None);
    body.to_string()
}

fn put(body: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} has no parent"));
    match (parent, value) {
        (Value::Object(members), Some(value)) => drop(members.insert(key.to_owned(), value)),
        (Value::Object(members), None) => drop(members.remove(key)),
        (Value::Array(items), Some(value)) => items[key.parse::<usize>().unwrap()] = value,
        other => panic!("nothing to put at {pointer}: {other:?}"),
    }
}

/// A pointer of an order, in a batch.
fn in_batch(pointer: &str) -> String {
    format!("/orders/0{pointer}")
}
