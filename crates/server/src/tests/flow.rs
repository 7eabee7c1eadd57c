//! One order comes through every route.

use axum::Router;
use axum::body::Body;
use axum::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use holdfast_store::{Clock, SystemClock};
use holdfast_wire as wire;
use serde_json::{Value, json};

use super::{Answer, SECRET, ask, get, open_router, post, request, send};

async fn campaign(router: &Router, supply: u64) -> String {
    let put = json!({"name": "Spring", "policy": {"account_limit": 5}});
    assert_eq!(send(router, Method::PUT, "/v1/campaigns/c", &put).await.status, 201);
    let again = send(router, Method::PUT, "/v1/campaigns/c", &put).await;
    assert_eq!((again.status, &again.json["state"]), (200, &json!("draft")));
    let signed = json!({"reason": "go", "operator": "olga"});
    let opened = post(router, "/v1/campaigns/c/open", &signed).await;
    assert_eq!((opened.status, &opened.json["state"]), (200, &json!("open")));
    let pool = json!({"campaign_id": "c", "sku": "s", "supply": supply, "buckets": 2});
    let made = post(router, "/v1/pools", &pool).await;
    assert_eq!((made.status, &made.json["supply"]), (201, &json!(supply)));
    let again = post(router, "/v1/pools", &pool).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
    made.json["id"].as_str().expect("an id").to_owned()
}

fn order(order_no: &str, quantity: u64) -> Value {
    json!({"campaign_id": "c", "order_no": order_no, "account": order_no,
        "lines": [{"sku": "s", "quantity": quantity}]})
}

fn id_of(answer: &Answer) -> String {
    answer.json["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn an_order_is_placed_paid_and_refunded() {
    let router = open_router();
    let pool = campaign(&router, 10).await;
    let placed = post(&router, "/v1/orders", &order("o-1", 2)).await;
    assert_eq!((placed.status, &placed.json["state"]), (201, &json!("held")), "{}", placed.text);
    let id = id_of(&placed);
    assert_eq!(placed.header("location"), Some(format!("/v1/orders/{id}").as_str()));
    assert!(placed.json["hold_expires_at"].is_string());
    let again = post(&router, "/v1/orders", &order("o-1", 2)).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!(id_of(&again), id);
    let other = post(&router, "/v1/orders", &order("o-1", 3)).await;
    assert_eq!((other.status, other.code()), (422, "order_mismatch"));
    assert_eq!(other.json["errors"][0]["pointer"], "/lines/0/quantity");

    let attempt = json!({"attempt_id": "t", "provider": "plain"});
    let path = format!("/v1/orders/{id}/payment-attempts");
    assert_eq!(post(&router, &path, &attempt).await.status, 201);
    assert_eq!(post(&router, &path, &attempt).await.status, 200);
    let notice = json!({"event_id": "e", "payment_id": "p", "order_id": id, "outcome": "succeeded"});
    let paid = post(&router, "/v1/payments/plain/notifications", &notice).await;
    assert_eq!((paid.status, &paid.json["disposition"]), (200, &json!("applied")), "{}", paid.text);
    assert_eq!(paid.json["order"]["state"], "sold");
    let again = post(&router, "/v1/payments/plain/notifications", &notice).await;
    assert_eq!(again.json["disposition"], "duplicate");

    let refund = json!({"refund_id": "r", "reason": "broken", "restock": true,
        "lines": [{"line": 1, "quantity": 1}]});
    let path = format!("/v1/orders/{id}/refunds");
    assert_eq!(post(&router, &path, &refund).await.status, 201);
    assert_eq!(post(&router, &path, &refund).await.status, 200);
    let too_much = json!({"refund_id": "r2", "reason": "x", "lines": [{"line": 1, "quantity": 5}]});
    let refused = post(&router, &path, &too_much).await;
    assert_eq!((refused.status, refused.code()), (409, "refund_exceeds_sold"));
    assert_eq!(refused.json["errors"][0]["pointer"], "/lines/0");
    assert_eq!(refused.json["order"]["id"], id.as_str());

    let shown = get(&router, &format!("/v1/pools/{pool}")).await;
    assert_eq!((&shown.json["available"], &shown.json["sold"]), (&json!(9), &json!(1)));
    let shown = get(&router, &format!("/v1/pools/{pool}/availability")).await;
    assert_eq!((shown.status, &shown.json["in_stock"]), (200, &json!(true)));
    let found = get(&router, "/v1/orders?campaign_id=c&order_no=o-1&state=sold").await;
    assert_eq!(found.json["items"][0]["id"], id.as_str());
    assert_eq!(
        get(&router, &format!("/v1/orders/{id}?wait=5s")).await.json["version"],
        found.json["items"][0]["version"]
    );
    assert_eq!(get(&router, "/v1/campaigns/c").await.json["totals"]["supply"], 10);
}

#[tokio::test]
async fn refusals_name_the_line() {
    let router = open_router();
    campaign(&router, 3).await;
    let sold_out = post(&router, "/v1/orders", &order("o-1", 4)).await;
    assert_eq!((sold_out.status, sold_out.code()), (409, "sold_out"), "{}", sold_out.text);
    let error = &sold_out.json["errors"][0];
    assert_eq!((&error["pointer"], &error["requested"]), (&json!("/lines/0"), &json!(4)));
    assert_eq!(error["available"], 3);
    let mut unknown = order("o-3", 1);
    unknown["lines"][0]["sku"] = json!("none");
    let answer = post(&router, "/v1/orders", &unknown).await;
    assert_eq!((answer.status, answer.code()), (404, "unknown_sku"));
    unknown["campaign_id"] = json!("none");
    let answer = post(&router, "/v1/orders", &unknown).await;
    assert_eq!((answer.status, answer.code()), (404, "not_found"));
    assert_eq!(answer.json["errors"][0]["pointer"], "/campaign_id");
}

#[tokio::test]
async fn limits_name_the_line_too() {
    let router = open_router();
    campaign(&router, 10).await;
    let limited = post(&router, "/v1/orders", &order("o-1", 6)).await;
    assert_eq!((limited.status, limited.code()), (409, "account_limit"), "{}", limited.text);
    let error = &limited.json["errors"][0];
    assert_eq!((&error["pointer"], &error["requested"]), (&json!("/lines/0"), &json!(6)));
    assert_eq!((&error["available"], &limited.json["recorded"]), (&json!(5), &json!(true)));
    assert_eq!(
        (&limited.json["order"]["state"], &limited.json["retryable"]),
        (&json!("failed"), &json!(false))
    );
    let again = post(&router, "/v1/orders", &order("o-1", 6)).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (409, Some("true")));
    serde_json::from_str::<wire::Problem>(&again.text).expect("a problem");
}

#[tokio::test]
async fn views_are_read_by_the_wire_crate_and_metadata_is_kept() {
    let router = open_router();
    let pool = campaign(&router, 10).await;
    let metadata = r#"{ "gift" : 1.50, "to":"\u00e9" }"#;
    let body = format!(
        r#"{{"campaign_id":"c","order_no":"o","account":"a","lines":[{{"sku":"s","quantity":1}}],"metadata":{metadata}}}"#
    );
    let headers = [("content-type", "application/json; charset=utf-8")];
    let placed = ask(&router, request(Method::POST, "/v1/orders", &headers, body)).await;
    let order: wire::OrderView = serde_json::from_str(&placed.text).expect("an order");
    assert_eq!(order.metadata.map(|raw| raw.get().to_owned()).as_deref(), Some(metadata));
    let text = get(&router, &format!("/v1/pools/{pool}")).await.text;
    serde_json::from_str::<wire::PoolView>(&text).expect("a pool");
    let text = get(&router, "/v1/campaigns").await.text;
    serde_json::from_str::<wire::Page<wire::CampaignView>>(&text).expect("campaigns");
    let text = get(&router, "/v1/ledger").await.text;
    serde_json::from_str::<wire::Page<wire::LedgerEntryView>>(&text).expect("entries");
    let text = get(&router, &format!("/v1/pools/{pool}/availability")).await.text;
    serde_json::from_str::<wire::AvailabilityView>(&text).expect("an availability");
}

#[tokio::test]
async fn in_a_batch_each_order_has_its_own_answer() {
    let router = open_router();
    campaign(&router, 3).await;
    let mut wrong = order("o-2", 1);
    wrong["lines"][0]["quantity"] = json!(1.5);
    let orders = [order("o-1", 2), wrong, order("o-3", 4)];
    let answer = post(&router, "/v1/orders/batch", &json!({"orders": orders})).await;
    assert_eq!(answer.status, 207);
    let results = answer.json["results"].as_array().expect("results");
    let statuses: Vec<_> = results.iter().map(|result| result["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(201), Some(400), Some(409)], "{}", answer.text);
    assert_eq!(results[0]["order"]["state"], "held");
    assert_eq!(results[1]["problem"]["errors"][0]["pointer"], "/orders/1/lines/0/quantity");
    assert_eq!(results[2]["problem"]["errors"][0]["pointer"], "/orders/2/lines/0");
    assert_eq!(results[2]["problem"]["request_id"].as_str(), answer.header("x-request-id"));
}

#[tokio::test]
async fn stock_is_adjusted_and_frozen() {
    let router = open_router();
    let pool = campaign(&router, 3).await;
    let path = format!("/v1/pools/{pool}/adjustments");
    let adjust = |id: &str, delta: i64| json!({"adjustment_id": id, "delta": delta, "kind": "adjust", "reason": "count", "operator": "olga"});
    let made = post(&router, &path, &adjust("a", 4)).await;
    assert_eq!((made.status, &made.json["pool"]["available"]), (201, &json!(7)), "{}", made.text);
    assert_eq!((&made.json["state"], &made.json["adjustment_id"]), (&json!("applied"), &json!("a")));
    assert_eq!(post(&router, &path, &adjust("a", 4)).await.status, 200);
    assert_eq!(post(&router, &path, &adjust("a", 5)).await.code(), "key_mismatch");
    let refused = post(&router, &path, &adjust("b", -8)).await;
    assert_eq!((refused.status, refused.code()), (409, "stock_in_use"));
    assert_eq!(refused.json["errors"][0]["pointer"], "/delta");
    let signed = json!({"reason": "look", "operator": "olga"});
    let frozen = post(&router, &format!("/v1/pools/{pool}/freeze"), &signed).await;
    assert_eq!((frozen.status, &frozen.json["frozen"]), (200, &json!(true)));
    assert_eq!(post(&router, "/v1/orders", &order("o-1", 1)).await.code(), "frozen");
    let thawed = post(&router, &format!("/v1/pools/{pool}/unfreeze"), &signed).await;
    assert_eq!(thawed.json["frozen"], false);
}

#[tokio::test]
async fn an_order_is_cancelled_in_part_and_whole() {
    let router = open_router();
    campaign(&router, 5).await;
    let id = id_of(&post(&router, "/v1/orders", &order("o-1", 3)).await);
    let path = format!("/v1/orders/{id}/cancel");
    let part = post(&router, &path, &json!({"lines": [{"line": 1, "keep": 1}]})).await;
    assert_eq!((part.status, &part.json["lines"][0]["quantity"]), (200, &json!(1)), "{}", part.text);
    let whole = ask(&router, request(Method::POST, &path, &[], Body::empty())).await;
    assert_eq!((whole.status, &whole.json["state"]), (200, &json!("released")));
    let unknown = "/v1/orders/01937a5e-0000-7000-8000-0000000000ff/cancel";
    assert_eq!(ask(&router, request(Method::POST, unknown, &[], Body::empty())).await.code(), "not_found");
}

#[tokio::test]
async fn the_ledger_is_read_in_pages_and_as_csv() {
    let router = open_router();
    let pool = campaign(&router, 5).await;
    post(&router, "/v1/orders", &order("=o", 3)).await;
    let mut path = format!("/v1/ledger?pool_id={pool}&limit=1");
    let mut actions = Vec::new();
    loop {
        let page = get(&router, &path).await;
        assert_eq!(page.status, 200);
        let items = page.json["items"].as_array().expect("items");
        actions.extend(items.iter().map(|item| item["action"].to_string()));
        let Some(cursor) = page.json["next_cursor"].as_str() else { break };
        path = format!("/v1/ledger?pool_id={pool}&limit=1&cursor={cursor}");
    }
    actions.sort();
    assert_eq!(actions.first().map(String::as_str), Some("\"opening\""));
    assert!(actions.len() >= 3);
    let csv = request(Method::GET, "/v1/ledger", &[("accept", "text/csv")], Body::empty());
    let csv = ask(&router, csv).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(csv.text.starts_with("pool_id,bucket,seq,at,"));
    assert!(csv.text.contains(",'=o,place,"), "{}", csv.text);
}

#[tokio::test]
async fn a_provider_with_a_secret_must_sign() {
    let router = open_router();
    campaign(&router, 5).await;
    post(&router, "/v1/orders", &order("o-1", 1)).await;
    let body = json!({"event_id": "e", "payment_id": "p", "campaign_id": "c", "order_no": "o-1",
        "outcome": "succeeded"});
    let path = "/v1/payments/signing/notifications";
    let unsigned = post(&router, path, &body).await;
    assert_eq!((unsigned.status, unsigned.code()), (401, "unauthenticated"));
    let (text, at) = (body.to_string(), (SystemClock.now().0 / 1_000_000).to_string());
    let key = STANDARD.decode(SECRET.trim_start_matches("whsec_")).expect("base64");
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).expect("a key");
    mac.update(format!("m.{at}.{text}").as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let headers = [
        ("content-type", "application/json"),
        ("webhook-id", "m"),
        ("webhook-timestamp", at.as_str()),
        ("webhook-signature", signature.as_str()),
    ];
    let signed = ask(&router, request(Method::POST, path, &headers, text.clone())).await;
    assert_eq!((signed.status, &signed.json["disposition"]), (200, &json!("applied")), "{}", signed.text);
    let changed = text.replace("\"p\"", "\"q\"");
    assert_eq!(ask(&router, request(Method::POST, path, &headers, changed)).await.status, 401);
    let unknown = json!({"event_id": "e2", "payment_id": "p", "campaign_id": "c", "order_no": "none",
        "outcome": "succeeded"});
    assert_eq!(post(&router, "/v1/payments/plain/notifications", &unknown).await.code(), "not_found");
}
