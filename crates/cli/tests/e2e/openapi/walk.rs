//! A sale from its beginning to its end, each answer held against the document.

use serde_json::{Value, json};

use super::schema::Document;
use crate::support::{Answer, Server};

/// Walks over a server by the ids of operations.
struct Walk<'w> {
    server: &'w Server,
    document: &'w Document,
}

impl Walk<'_> {
    /// Runs an operation, wants this status, and holds the answer against the document.
    async fn step(&self, id: &str, path: &[(&str, &str)], query: &str, body: Value, status: u16) -> Answer {
        let operation = self.document.operation(id);
        let mut address = operation.path.clone();
        for (name, value) in path {
            address = address.replace(&format!("{{{name}}}"), value);
        }
        address.push_str(query);
        let body = (!body.is_null()).then_some(body);
        if let Some(body) = &body {
            let schema = &operation.content["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(self.document.check(schema, body), Ok(()), "{id}");
        }
        let answer = self.server.http.try_send(&operation.method, &address, body.as_ref()).await.unwrap();
        assert_eq!(answer.status, status, "{id} {address}: {}", answer.body);
        self.document.assert_listed(&operation, &answer, &address);
        answer
    }

    /// Reads every list; each has something in it by now.
    async fn read_lists(&self) {
        for (id, query) in [
            ("list_orders", "?campaign_id=walk&limit=1"),
            ("list_pools", "?sku=s"),
            ("list_campaigns", ""),
            ("list_entries", "?limit=500"),
        ] {
            let page = self.step(id, &[], query, Value::Null, 200).await;
            assert_eq!(super::fields(&page.body), ["items", "next_cursor"]);
            assert!(!page.body["items"].as_array().unwrap().is_empty(), "{id}");
        }
    }
}

fn order(order_no: &str, quantity: u32) -> Value {
    json!({
        "campaign_id": "walk", "order_no": order_no, "account": "a", "metadata": {"note": 1.50},
        "amount_due": {"amount_minor": 990, "currency": "EUR"},
        "lines": [{"sku": "s", "quantity": quantity}],
    })
}

impl Walk<'_> {
    /// What changes pools and moves stock.
    async fn change_pools(&self, id: &str) {
        let signed = json!({"reason": "walk", "operator": "test"});
        let pool = [("id", id)];
        let change = json!({"path": "direct", "routing": "round_robin", "buckets": 3, "weights": [1, 0, 2],
            "max_concurrency": 100, "cache_fallback": "authority"});
        self.step("change_pool", &pool, "", change, 200).await;
        self.step("sweep_pool", &pool, "", signed.clone(), 200).await;
        let spare = json!({"campaign_id": "walk", "sku": "spare", "supply": 1, "routing": "random"});
        let spare = self.step("open_pool", &[], "", spare, 201).await.text("id");
        let transfer = json!({"transfer_id": "t", "from": {"pool_id": spare}, "to": {"pool_id": id},
            "quantity": 1, "reason": "walk", "operator": "test"});
        self.step("transfer_stock", &[], "", transfer.clone(), 201).await;
        self.step("transfer_stock", &[], "", transfer, 200).await;
        self.step("retire_pool", &[("id", spare.as_str())], "", signed, 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_sale_is_as_the_document_says() {
    let server = Server::start().await;
    let document = Document::of(&server.http).await;
    let walk = Walk { server: &server, document: &document };
    let signed = || json!({"reason": "walk", "operator": "test"});
    let campaign = [("id", "walk")];
    let put = json!({"name": "Walk", "policy": {"account_limit": 60, "queue_limit": 100_000}});
    walk.step("put_campaign", &campaign, "", put.clone(), 201).await;
    walk.step("put_campaign", &campaign, "", put, 200).await;
    let stock = json!({"campaign_id": "walk", "sku": "s", "supply": 50, "buckets": 2});
    let pool = walk.step("open_pool", &[], "", stock.clone(), 201).await.text("id");
    walk.step("open_pool", &[], "", stock, 200).await;
    let pool = [("id", pool.as_str())];
    walk.step("place_order", &[], "", order("early", 1), 409).await;
    walk.step("open_campaign", &campaign, "", signed(), 200).await;
    let paid = walk.step("place_order", &[], "", order("paid", 3), 201).await.text("id");
    walk.step("place_order", &[], "", order("paid", 3), 200).await;
    walk.step("place_order", &[], "", order("paid", 4), 422).await;
    walk.step("place_order", &[], "", order("greedy", 58), 409).await;
    let paid = [("id", paid.as_str())];
    let attempt = json!({"attempt_id": "t", "provider": "bank"});
    walk.step("begin_payment", &paid, "", attempt.clone(), 201).await;
    walk.step("begin_payment", &paid, "", attempt, 200).await;
    let notice = json!({
        "event_id": "e", "payment_id": "p", "campaign_id": "walk", "order_no": "paid", "outcome": "succeeded",
        "paid_at": "2026-01-01T00:00:00Z", "amount_minor": 990, "currency": "EUR",
    });
    let provider = [("provider", "bank")];
    walk.step(
        "notify",
        &provider,
        "",
        json!({"order_id": paid[0].1, "event_id": "f", "payment_id": "q",
        "outcome": "succeeded", "amount_minor": 990, "currency": "EUR"}),
        200,
    )
    .await;
    walk.step("notify", &provider, "", notice, 200).await;
    let refund =
        json!({"refund_id": "r", "reason": "walk", "restock": true, "lines": [{"line": 1, "quantity": 1}]});
    walk.step("refund_order", &paid, "", refund.clone(), 201).await;
    walk.step("refund_order", &paid, "", refund, 200).await;
    let left = walk.step("place_order", &[], "", order("left", 5), 201).await.text("id");
    let left = [("id", left.as_str())];
    walk.step("cancel_order", &left, "", json!({"lines": [{"line": 1, "keep": 2}]}), 200).await;
    walk.step("cancel_order", &left, "", Value::Null, 200).await;
    let shown = walk.step("get_order", &left, "?wait=1s", Value::Null, 200).await;
    assert_eq!(shown.body["state"], "released");
    let adjust =
        json!({"adjustment_id": "a", "delta": 5, "kind": "inbound", "reason": "walk", "operator": "test"});
    walk.step("adjust_pool", &pool, "", adjust.clone(), 201).await;
    walk.step("adjust_pool", &pool, "", adjust, 200).await;
    walk.step("freeze_pool", &pool, "", signed(), 200).await;
    walk.step("place_order", &[], "", order("frozen", 1), 409).await;
    walk.step("unfreeze_pool", &pool, "", signed(), 200).await;
    walk.change_pools(pool[0].1).await;
    let batch =
        walk.step("place_batch", &[], "", json!({"orders": [order("b", 1), order("paid", 9)]}), 207).await;
    let results: Vec<_> =
        batch.body["results"].as_array().unwrap().iter().map(|r| r["status"].clone()).collect();
    assert_eq!(results, [201, 422]);
    walk.read_lists().await;
    walk.step("get_pool", &pool, "", Value::Null, 200).await;
    walk.step("get_availability", &pool, "", Value::Null, 200).await;
    walk.step("pause_campaign", &campaign, "", signed(), 200).await;
    walk.step("resume_campaign", &campaign, "", signed(), 200).await;
    walk.step("close_campaign", &campaign, "", signed(), 200).await;
    walk.step("get_campaign", &campaign, "", Value::Null, 200).await;
    server.finish().await;
}
