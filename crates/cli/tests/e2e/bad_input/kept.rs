//! Identifiers that look odd and are good: kept exactly, found exactly, never merged.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Answer, Http, Raw, Server, place_body};

/// Each differs from every other, though some are the same after trimming, folding, normalising, decoding
/// or reading as a number.
fn odd() -> Vec<String> {
    let texts = [
        "A/B",
        "A%2FB",
        "A%252FB",
        "a/b",
        "A+B",
        "A B",
        "A%20B",
        "a?b#c",
        "a&b=c",
        "..",
        ".",
        "%",
        "%00",
        "O'Neil",
        "0017",
        "17",
        "1E5",
        "00",
        "+1",
        "-5",
        "=1+1",
        "é",
        "e\u{301}",
        "É",
        "abc",
        "ABC",
        "ａｂｃ",
        "a\u{200f}b",
        "a\u{200b}b",
        "a\u{feff}b",
        "\u{200f}x",
        "库存",
        "😀",
        "null",
        "true",
        "{}",
        "\"",
        "\\",
        "\\u0000",
        "'; --",
        "<script>alert(1)</script>",
        "javascript:alert(1)",
        "a~1b~0c",
        "\u{fffd}",
        "\u{10ffff}",
        "\u{e000}",
    ];
    texts.iter().map(|text| (*text).to_owned()).chain(["é".repeat(128), "😀".repeat(128)]).collect()
}

/// Every byte escaped.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        write!(out, "%{byte:02X}").unwrap();
        out
    })
}

async fn done(http: &Http, method: &str, path: &str, body: Option<&Value>, status: u16) -> Answer {
    let answer = Raw::ask(http, method, path, body).await;
    assert_eq!(answer.status, status, "{method} {path} {body:?}: {answer:?}");
    answer
}

/// The only item of a list.
async fn only(http: &Http, path: &str) -> Value {
    let list = done(http, "GET", path, None, 200).await;
    let items = list.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{path}: {list:?}");
    items[0].clone()
}

/// Uses one text as every kind of identifier, in a sale from its beginning to its refund.
async fn sell_under(http: &Http, text: &str) {
    let path = format!("/v1/campaigns/{}", encoded(text));
    let campaign = done(http, "PUT", &path, Some(&json!({"name": "n"})), 201).await;
    assert_eq!(campaign.text("id"), text);
    let signed = json!({"operator": text, "reason": "go"});
    done(http, "POST", &format!("{path}/open"), Some(&signed), 200).await;
    let body = json!({"campaign_id": text, "sku": text, "location": text, "supply": 2});
    let pool = done(http, "POST", "/v1/pools", Some(&body), 201).await.text("id");
    let body = json!({
        "adjustment_id": text, "delta": 1, "kind": "inbound", "reason": "count", "operator": text,
    });
    done(http, "POST", &format!("/v1/pools/{pool}/adjustments"), Some(&body), 201).await;
    let mut body = place_body(text, text, text, 1);
    body["account"] = json!(text);
    body["lines"][0]["location"] = json!(text);
    let id = done(http, "POST", "/v1/orders", Some(&body), 201).await.text("id");
    assert_eq!(done(http, "POST", "/v1/orders", Some(&body), 200).await.text("id"), id);
    let attempt = json!({"attempt_id": text, "provider": text});
    done(http, "POST", &format!("/v1/orders/{id}/payment-attempts"), Some(&attempt), 201).await;
    let notice = json!({
        "event_id": text, "payment_id": text, "campaign_id": text, "order_no": text, "attempt_id": text,
        "outcome": "succeeded",
    });
    let path = format!("/v1/payments/{}/notifications", encoded(text));
    let paid = done(http, "POST", &path, Some(&notice), 200).await;
    assert_eq!(paid.text("disposition"), "applied", "{text}");
    let refund =
        json!({"refund_id": text, "lines": [{"line": 1, "quantity": 1}], "restock": true, "reason": text});
    let refunded = done(http, "POST", &format!("/v1/orders/{id}/refunds"), Some(&refund), 201).await;
    assert_eq!(refunded.text("state"), "refunded");
    assert_eq!(http.balances(&pool).await, (3, 0, 0), "{text}");
}

/// Finds everything again by its exact name.
async fn find(http: &Http, text: &str) {
    let name = encoded(text);
    let campaign = done(http, "GET", &format!("/v1/campaigns/{name}"), None, 200).await;
    assert_eq!(campaign.text("id"), text);
    for query in [format!("sku={name}"), format!("location={name}"), format!("campaign_id={name}")] {
        let pool = only(http, &format!("/v1/pools?{query}")).await;
        assert_eq!((&pool["sku"], &pool["location"]), (&json!(text), &json!(text)), "{query}");
    }
    for query in [
        format!("campaign_id={name}&order_no={name}"),
        format!("account={name}"),
        format!("campaign_id={name}"),
    ] {
        let order = only(http, &format!("/v1/orders?{query}")).await;
        for field in ["order_no", "campaign_id", "account"] {
            assert_eq!(order[field], json!(text), "{query}");
        }
        assert_eq!((&order["lines"][0]["sku"], &order["lines"][0]["location"]), (&json!(text), &json!(text)));
        let payment = &order["payments"][0];
        for field in ["provider", "event_id", "payment_id", "attempt_id"] {
            assert_eq!(payment[field], json!(text), "{query}");
        }
    }
}

#[tokio::test]
async fn odd_identifiers_are_kept_exactly_and_never_merged() {
    let server = Server::start().await;
    let odd = odd();
    assert_eq!(odd.iter().collect::<BTreeSet<_>>().len(), odd.len());
    for text in &odd {
        sell_under(&server.http, text).await;
    }
    for text in &odd {
        find(&server.http, text).await;
    }
    let campaigns = server.http.get("/v1/campaigns?limit=500").await;
    assert_eq!(campaigns.body["items"].as_array().unwrap().len(), odd.len());
    server.finish().await;
}

#[tokio::test]
async fn skus_that_look_alike_have_stock_of_their_own() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let skus =
        ["A/B", "A%2FB", "A B", "A+B", "A%20B", "a?b#c", "O'Neil", "..", "é", "abc", "ABC", "17", "0017"];
    for (index, sku) in (1_u32..).zip(skus) {
        let pool = http.pool("spring", sku, 20, 1).await;
        assert_eq!(only(http, &format!("/v1/pools?sku={}", encoded(sku))).await["id"], json!(pool));
        let order = http.place("spring", &format!("A-{index}"), sku, index).await;
        assert_eq!((order.status, &order.body["lines"][0]["sku"]), (201, &json!(sku)));
    }
    for (index, sku) in (1_u64..).zip(skus) {
        let pool = only(http, &format!("/v1/pools?campaign_id=spring&sku={}", encoded(sku))).await;
        assert_eq!((&pool["sku"], &pool["held"]), (&json!(sku), &json!(index)));
    }
    // One space more is another name, and a bad one; another case is another name that nobody sells.
    assert_eq!(http.place("spring", "B-1", "abc ", 1).await.code(), "invalid_identifier");
    assert_eq!(http.place("spring", "B-1", "Abc", 1).await.code(), "unknown_sku");
    let lines =
        json!([{"sku": "abc", "quantity": 3}, {"sku": "ABC", "quantity": 4}, {"sku": "abc", "quantity": 5}]);
    let body = json!({"campaign_id": "spring", "order_no": "B-1", "account": "ann", "lines": lines});
    assert_eq!(http.post("/v1/orders", &body).await.status, 201);
    let held = async |sku: &str| only(http, &format!("/v1/pools?sku={sku}")).await["held"].clone();
    assert_eq!((held("abc").await, held("ABC").await), (json!(18), json!(15)));
    server.finish().await;
}
