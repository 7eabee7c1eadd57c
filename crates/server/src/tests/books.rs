//! Settlement and export.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Answer, ask, get, next_piece, open_router, post, request, sale};

#[tokio::test]
async fn a_settlement_says_where_every_unit_is() {
    let router = open_router();
    let pool = sale(&router, 10).await;
    let adjust =
        json!({"adjustment_id": "in", "delta": 5, "kind": "inbound", "reason": "r", "operator": "o"});
    assert_eq!(post(&router, &format!("/v1/pools/{pool}/adjustments"), &adjust).await.status, 201);
    let order =
        json!({"campaign_id": "c", "order_no": "o", "account": "a", "lines": [{"sku": "s", "quantity": 4}]});
    let id = post(&router, "/v1/orders", &order).await.json["id"].as_str().expect("an id").to_owned();
    let notice = json!({"event_id": "e", "payment_id": "p", "order_id": id, "outcome": "succeeded"});
    post(&router, "/v1/payments/plain/notifications", &notice).await;
    for (refund, restock) in [("r1", true), ("r2", false)] {
        let refund = json!({"refund_id": refund, "reason": "x", "restock": restock,
            "lines": [{"line": 1, "quantity": 1}]});
        assert_eq!(post(&router, &format!("/v1/orders/{id}/refunds"), &refund).await.status, 201);
    }
    let read = get(&router, "/v1/campaigns/c/settlement").await;
    let expected = json!({"opening": 10, "inbound": 5, "adjusted": 0, "moved": 0, "repaired": 0, "supply": 15,
        "available": 12, "held": 0, "sold": 3, "refunded_restocked": 1, "refunded_kept": 1});
    for (name, value) in expected.as_object().expect("figures") {
        assert_eq!((&read.json[name], &read.json["pools"][0][name]), (value, value), "{name}");
    }
    let entries = get(&router, "/v1/ledger?limit=500").await.json["items"].as_array().map_or(0, Vec::len);
    let positions = read.json["pools"][0]["buckets"].as_array().expect("positions").clone();
    let sum: u64 = positions.iter().filter_map(|position| position["ledger_seq"].as_u64()).sum();
    assert_eq!((&read.json["ledger_entries"], sum), (&json!(entries), entries as u64));
    serde_json::from_str::<holdfast_wire::SettlementView>(&read.text).expect("a settlement");
    assert_eq!(get(&router, "/v1/campaigns/none/settlement").await.code(), "not_found");
    assert_eq!(get(&router, "/v1/campaigns/c/settlement?limit=5").await.code(), "unknown_field");
}

async fn exported(router: &axum::Router, query: &str) -> Answer {
    let path = format!("/v1/exports/stock{query}");
    ask(router, request(Method::GET, &path, &[("accept", "text/csv")], Body::empty())).await
}

#[tokio::test]
async fn an_export_has_every_pool_and_no_formula() {
    let router = open_router();
    sale(&router, 10).await;
    for (sku, location, supply) in [("=1+1", "main", 1), ("0017", "@x", 2), ("a,\"b\"", "-5", 3)] {
        let pool =
            json!({"campaign_id": "c", "sku": sku, "location": location, "supply": supply, "buckets": 2});
        assert_eq!(post(&router, "/v1/pools", &pool).await.status, 201);
    }
    let answer = exported(&router, "?campaign_id=c").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/csv; charset=utf-8")));
    let lines: Vec<&str> = answer.text.lines().collect();
    let expected =
        ["sku,location,quantity", "s,main,10", "'=1+1,main,1", "0017,'@x,2", "\"a,\"\"b\"\"\",'-5,3"];
    assert_eq!(lines, expected);
    for (query, status, code, pointer) in [
        ("", 400, "invalid_value", json!("/query/campaign_id")),
        ("?campaign_id=%20c", 400, "invalid_identifier", json!("/query/campaign_id")),
        ("?campaign_id=c&limit=5", 400, "unknown_field", json!("/query/limit")),
        ("?campaign_id=none", 404, "not_found", Value::Null),
    ] {
        let answer = exported(&router, query).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{query}");
        assert_eq!(answer.json["errors"][0]["pointer"], pointer, "{query}");
    }
    let html =
        request(Method::GET, "/v1/exports/stock?campaign_id=c", &[("accept", "text/html")], Body::empty());
    assert_eq!(ask(&router, html).await.code(), "not_acceptable");
}

async fn open(router: &axum::Router, number: u32) {
    let pool = json!({"campaign_id": "c", "sku": format!("n{number}"), "supply": 1});
    assert_eq!(post(router, "/v1/pools", &pool).await.status, 201);
}

#[tokio::test]
async fn pages_of_an_export_are_read_when_the_reader_is_ready() {
    let router = open_router();
    sale(&router, 10).await;
    let mut opening = tokio::task::JoinSet::new();
    for number in 0..1_600 {
        let router = router.clone();
        opening.spawn(async move { open(&router, number).await });
    }
    opening.join_all().await;
    let asked = request(Method::GET, "/v1/exports/stock?campaign_id=c", &[], Body::empty());
    let mut body = router.clone().oneshot(asked).await.expect("an answer").into_body();
    let mut text = next_piece(&mut body).await.expect("a page");
    assert_eq!(text.lines().count(), 501);
    // At most two more pages were read ahead; the last was not.
    open(&router, 1_600).await;
    while let Some(page) = next_piece(&mut body).await {
        text.push_str(&page);
    }
    assert_eq!((text.lines().count(), text.ends_with("n1600,main,1\n")), (1_603, true));
}
