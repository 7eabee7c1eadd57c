//! Identifiers that must be refused, at every place where one stands.

use serde_json::json;

use super::{Shop, in_batch, with, without};
use crate::support::{Answer, Raw, assert_invalid, assert_problem};

/// Every field of a body that holds an identifier a client makes: route, pointer, whether it must be there.
const FIELDS: [(&str, &str, bool); 21] = [
    ("switch", "/operator", true),
    ("pool", "/campaign_id", true),
    ("pool", "/sku", true),
    ("pool", "/location", false),
    ("adjustment", "/adjustment_id", true),
    ("adjustment", "/operator", true),
    ("freeze", "/operator", true),
    ("place", "/campaign_id", true),
    ("place", "/order_no", true),
    ("place", "/account", true),
    ("place", "/lines/0/sku", true),
    ("place", "/lines/1/sku", true),
    ("place", "/lines/1/location", false),
    ("attempt", "/attempt_id", true),
    ("attempt", "/provider", true),
    ("refund", "/refund_id", true),
    ("notice", "/event_id", true),
    ("notice", "/payment_id", true),
    ("notice", "/attempt_id", false),
    ("notice", "/campaign_id", true),
    ("notice", "/order_no", true),
];

/// JSON texts that are no identifier.
fn bad() -> Vec<String> {
    let long = format!("\"{}\"", "é".repeat(129));
    let texts = [
        r#""""#,
        r#"" ""#,
        r#"" a""#,
        r#""a ""#,
        "\"\u{a0}a\"",
        "\"a\u{a0}\"",
        r#""\u00a0a""#,
        "\"\u{3000}a\"",
        "\"a\u{3000}\"",
        r#""a\u2028""#,
        r#""a\u2003""#,
        r#""\u0000""#,
        r#""a\u0000b""#,
        r#""a\u0001""#,
        r#""a\tb""#,
        r#""a\n""#,
        r#""\ra""#,
        r#""\u007f""#,
        r#""a\u0085b""#,
        "17",
        "-1",
        "1.5",
        "true",
        "false",
        "[]",
        r#"["a"]"#,
        "{}",
        r#"{"a":"b"}"#,
    ];
    texts.iter().map(|text| (*text).to_owned()).chain([long]).collect()
}

#[tokio::test]
async fn no_field_takes_what_is_no_identifier() {
    let shop = Shop::open().await;
    let bad = bad();
    for (route, pointer, is_required) in FIELDS {
        for text in &bad {
            let answer = shop.send_with(route, pointer, text).await;
            assert_invalid(&answer, "invalid_identifier", pointer, &format!("{route} {pointer} {text}"));
        }
        let case = format!("{route} {pointer}");
        if is_required {
            let null = shop.send_with(route, pointer, "null").await;
            assert_invalid(&null, "invalid_identifier", pointer, &case);
            let missing = shop.send(route, without(shop.good(route).2, pointer)).await;
            assert_invalid(&missing, "invalid_identifier", pointer, &case);
        }
        for surrogate in [r#""\ud800""#, r#""a\udc00b""#, r#""\ud800\ud800""#, r#""\ud83d""#] {
            let answer = shop.send_with(route, pointer, surrogate).await;
            assert_invalid(&answer, "invalid_identifier", pointer, &format!("{case} {surrogate}"));
        }
        let huge = shop.send_with(route, pointer, &format!("\"{}\"", "x".repeat(300 * 1_024))).await;
        assert_problem(&huge, 413, "too_large", &case);
    }
    shop.finish_untouched().await;
}

/// The one problem of a batch's first order, as an answer of its own.
fn alone(answer: &Answer) -> Answer {
    assert_eq!(answer.status, 207, "{answer:?}");
    let result = &answer.body["results"][0];
    let status = u16::try_from(result["status"].as_u64().unwrap()).unwrap();
    let mut headers = answer.headers.clone();
    headers.insert("content-type", "application/problem+json".parse().unwrap());
    Answer { status, headers, body: result["problem"].clone(), raw: Vec::new() }
}

#[tokio::test]
async fn an_order_of_a_batch_is_judged_as_strictly_as_a_single_one() {
    let shop = Shop::open().await;
    for (route, pointer, is_required) in FIELDS {
        if route != "place" {
            continue;
        }
        let pointer = &in_batch(pointer);
        for text in bad() {
            let answer = alone(&shop.send_with("batch", pointer, &text).await);
            assert_invalid(&answer, "invalid_identifier", pointer, &format!("{pointer} {text}"));
        }
        if is_required {
            let missing = alone(&shop.send("batch", without(shop.good("batch").2, pointer)).await);
            assert_invalid(&missing, "invalid_identifier", pointer, "missing");
        }
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_path_that_is_no_identifier_names_nothing_and_makes_nothing() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let signed = json!({"operator": "ann", "reason": "test"});
    let notice = shop.good("notice").2;
    for bad in [
        "%20a",
        "a%20",
        "%20",
        "%00",
        "a%00b",
        "%0A",
        "a%7F",
        "%C2%A0a",
        "a%E3%80%80",
        "%C2%85",
        "%ff",
        "%ED%A0%80",
        &"%C3%A9".repeat(129),
    ] {
        let put = Raw::ask(http, "PUT", &format!("/v1/campaigns/{bad}"), Some(&json!({"name": "n"}))).await;
        assert_invalid(&put, "invalid_identifier", "/path/id", bad);
        for (method, path, body) in [
            ("GET", format!("/v1/campaigns/{bad}"), None),
            ("POST", format!("/v1/campaigns/{bad}/open"), Some(&signed)),
            ("POST", format!("/v1/payments/{bad}/notifications"), Some(&notice)),
        ] {
            assert_problem(&Raw::ask(http, method, &path, body).await, 404, "not_found", &path);
        }
    }
    let none = Raw::ask(http, "PUT", "/v1/campaigns/", Some(&json!({"name": "n"}))).await;
    assert_problem(&none, 404, "not_found", "no campaign at all");
    shop.finish_untouched().await;
}

#[tokio::test]
async fn only_a_uuid_names_an_order_or_a_pool() {
    let shop = Shop::open().await;
    let http = &shop.server.http;
    let unknown = "01937a5e-0000-7000-8000-0000000000ff";
    let bare = unknown.replace('-', "");
    let paths = [
        ("GET", "/v1/orders/ID", "place"),
        ("POST", "/v1/orders/ID/cancel", "cancel"),
        ("POST", "/v1/orders/ID/payment-attempts", "attempt"),
        ("POST", "/v1/orders/ID/refunds", "refund"),
        ("GET", "/v1/pools/ID", "pool"),
        ("GET", "/v1/pools/ID/availability", "pool"),
        ("POST", "/v1/pools/ID/adjustments", "adjustment"),
        ("POST", "/v1/pools/ID/freeze", "freeze"),
        ("POST", "/v1/pools/ID/unfreeze", "freeze"),
    ];
    let braced = format!("%7B{unknown}%7D");
    let other_ids = [unknown, "17", "..", "%00", "%ff", "0", bare.as_str(), &braced, "urn:uuid:x"];
    for (method, path, route) in paths {
        let body = (method == "POST").then(|| shop.good(route).2);
        for id in other_ids {
            let path = path.replace("ID", id);
            assert_problem(&Raw::ask(http, method, &path, body.as_ref()).await, 404, "not_found", &path);
        }
    }
    for text in ["\"17\"", "17", "\"\"", "[]", "true", "\" \"", "\"\\u0000\"", &format!("\"{bare}\"")] {
        let body = json!({"event_id": "e", "payment_id": "p", "outcome": "succeeded"});
        let answer = shop.send("notice", with(body, "/order_id", text)).await;
        assert_invalid(&answer, "invalid_identifier", "/order_id", text);
    }
    let body = json!({"event_id": "e", "payment_id": "p", "outcome": "succeeded", "order_id": unknown});
    assert_problem(&shop.send("notice", body.to_string()).await, 404, "not_found", "an order not known yet");
    let none = without(body.clone(), "/order_id");
    assert_invalid(&shop.send("notice", none).await, "invalid_value", "/order_id", "no order at all");
    let both = with(body.clone(), "/order_no", "\"A-1\"");
    let both = shop.send("notice", both).await;
    assert_problem(&both, 400, "invalid_identifier", "half a key beside an id");
    let pointers: Vec<String> = both.faults().into_iter().map(|(_, pointer)| pointer).collect();
    assert_eq!(pointers, ["/campaign_id", "/order_id"]);
    let mut both = body;
    both["order_no"] = json!("A-1");
    both["campaign_id"] = json!("other");
    assert_invalid(&shop.send("notice", both.to_string()).await, "invalid_value", "/order_id", "two names");
    shop.finish_untouched().await;
}
