//! A server of one's own, and a client that shows raw answers.

mod extent;
mod history;
mod http;
mod load;
mod problem;
mod raw;
mod server;

pub(crate) use extent::{extent, last, outage, rounds};
pub(crate) use history::{History, pages};
pub(crate) use http::{Answer, Http, LEARNT_WITHIN};
pub(crate) use load::Load;
pub(crate) use problem::{assert_invalid, assert_problem, assert_whole_problem};
pub(crate) use raw::{Raw, answer_of};
pub(crate) use server::{Server, Start, binary, run};

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a test waits for what must come.
const DEADLINE: Duration = Duration::from_secs(20);

/// Waits until something is so. It looks again and again at what is, and never assumes when it will be.
pub(crate) async fn wait_until<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    wait_within(DEADLINE, what, look).await
}

/// The same of what takes longer: work that gives way to whoever buys meanwhile.
pub(crate) async fn wait_within<T>(
    most: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < most, "{what} did not come in {most:?}");
        pause().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "between two looks at what is; nothing depends on its length")]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// Seconds from one time of an answer to another, which is less than a day later.
pub(crate) fn seconds_between(from: &str, to: &str) -> f64 {
    let second_of_day = |time: &str| {
        let time = time.split_once('T').and_then(|(_, t)| t.strip_suffix('Z')).expect("a time in UTC");
        time.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().expect("a number"))
    };
    (second_of_day(to) - second_of_day(from)).rem_euclid(86_400.0)
}

/// Shorthands for a campaign with one pool.
impl Http {
    /// Makes and opens a campaign with a policy.
    pub(crate) async fn campaign(&self, id: &str, policy: Value) {
        let put = self.put(&format!("/v1/campaigns/{id}"), &json!({"name": id, "policy": policy})).await;
        assert_eq!(put.status, 201, "{put:?}");
        let body = json!({"operator": "test", "reason": "go"});
        let open = self.post(&format!("/v1/campaigns/{id}/open"), &body).await;
        assert_eq!(open.status, 200, "{open:?}");
    }

    /// Opens a pool; its id.
    pub(crate) async fn pool(&self, campaign: &str, sku: &str, supply: u64, buckets: u32) -> String {
        let body = json!({"campaign_id": campaign, "sku": sku, "supply": supply, "buckets": buckets});
        let pool = self.post("/v1/pools", &body).await;
        assert_eq!(pool.status, 201, "{pool:?}");
        pool.text("id")
    }

    /// Places an order of one line.
    pub(crate) async fn place(&self, campaign: &str, order_no: &str, sku: &str, quantity: u32) -> Answer {
        self.post("/v1/orders", &place_body(campaign, order_no, sku, quantity)).await
    }

    /// Tells that an order is paid.
    pub(crate) async fn pay(&self, order_id: &str, event: &str) -> Answer {
        let body = json!({
            "event_id": event, "payment_id": format!("pay-{event}"), "order_id": order_id, "outcome": "succeeded",
        });
        self.post("/v1/payments/bank/notifications", &body).await
    }

    /// Available, held and sold of a pool, exact.
    pub(crate) async fn balances(&self, pool: &str) -> (u64, u64, u64) {
        let pool = self.get(&format!("/v1/pools/{pool}")).await;
        assert_eq!(pool.status, 200, "{pool:?}");
        let units = |name: &str| pool.body[name].as_u64().unwrap();
        assert_eq!(units("supply"), units("available") + units("held") + units("sold"));
        (units("available"), units("held"), units("sold"))
    }

    /// Waits until an order is in a state.
    pub(crate) async fn wait_for_state(&self, order_id: &str, state: &str) -> Value {
        wait_until(&format!("{order_id} {state}"), async || {
            let order = self.get(&format!("/v1/orders/{order_id}")).await;
            (order.body["state"] == state).then_some(order.body)
        })
        .await
    }
}

pub(crate) fn place_body(campaign: &str, order_no: &str, sku: &str, quantity: u32) -> Value {
    json!({
        "campaign_id": campaign, "order_no": order_no, "account": format!("account-{order_no}"),
        "lines": [{"sku": sku, "quantity": quantity}],
    })
}
