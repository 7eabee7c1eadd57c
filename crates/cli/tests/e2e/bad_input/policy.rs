//! Campaigns: their window and their policy.

use serde_json::{Value, json};

use super::{Shop, with};
use crate::support::{Server, assert_invalid};

#[tokio::test]
async fn a_policy_promises_nothing_that_is_not_built() {
    let shop = Shop::open().await;
    for (name, values) in [
        ("key_limits", &["[]", "1", "\"{}\""][..]),
        ("order_rate_per_account", &["0", "\"1\"", "1.5", "{}", "1000001"]),
        ("order_rate", &["0", "\"1\"", "-1"]),
        ("approval_threshold", &["-1", "1.0", "true", "\"5\""]),
    ] {
        for value in values {
            let pointer = format!("/policy/{name}");
            let answer = shop.send_with("campaign", &pointer, value).await;
            assert_invalid(&answer, "invalid_value", &pointer, &format!("{pointer} {value}"));
        }
    }
    for (route, pointer, values) in [
        ("pool", "/path", &["\"Direct\"", "\"Queued\"", "\"cached\"", "\"\"", "1"][..]),
        ("pool", "/routing", &["\"Random\"", "\"roundrobin\"", "\"\"", "true"]),
        ("place", "/limit_keys", &["[]", "\"d\"", "7"]),
    ] {
        for value in values {
            let answer = shop.send_with(route, pointer, value).await;
            assert_invalid(&answer, "invalid_value", pointer, &format!("{route} {pointer} {value}"));
        }
    }
    for (route, field, value, code, pointer) in [
        ("campaign", "/policy/key_limits", r#"{"device":0}"#, "invalid_value", "/device"),
        ("campaign", "/policy/key_limits", r#"{"device":{"units":1.0}}"#, "invalid_value", "/device/units"),
        ("campaign", "/policy/key_limits", r#"{"device":{"most":1}}"#, "unknown_field", "/device/most"),
        ("campaign", "/policy/key_limits", r#"{"":1}"#, "invalid_identifier", "/"),
        ("place", "/limit_keys", r#"{"device":7}"#, "invalid_identifier", "/device"),
        ("place", "/limit_keys", r#"{"device":" d"}"#, "invalid_identifier", "/device"),
        ("place", "/limit_keys", r#"{"a/b":null}"#, "invalid_identifier", "/a~1b"),
    ] {
        let answer = shop.send_with(route, field, value).await;
        assert_invalid(&answer, code, &format!("{field}{pointer}"), &format!("{field} {value}"));
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_policy_takes_only_its_own_words() {
    let shop = Shop::open().await;
    for (name, values) in [
        ("capture", &["\"later\"", "\"Hold\"", "\"\"", "true", "{}"][..]),
        ("deadline_basis", &["\"sent_at\"", "1"]),
        ("late_payment", &["\"retake\"", "[]"]),
        ("payment_failed", &["\"keep \"", "false"]),
        ("review_end", &["\"PERSON\"", "0"]),
        ("restock_on_refund", &["\"true\"", "0", "1"]),
        ("account_limit", &["\"5\"", "1.0", "true"]),
        ("account_open_holds", &["0", "-1", "\"5\""]),
        ("payment_extension_seconds", &["-1", "1000000000"]),
        ("notice_grace_seconds", &["-1", "1000000000"]),
        ("review_seconds", &["0", "1000000000"]),
        ("queue_limit", &["0", "-1", "1000001", "100000.0", "\"100000\""]),
        ("queue_wait_ms", &["0", "-1", "86400001", "3e4"]),
    ] {
        for value in values {
            let pointer = format!("/policy/{name}");
            let answer = shop.send_with("campaign", &pointer, value).await;
            assert_invalid(&answer, "invalid_value", &pointer, &format!("{pointer} {value}"));
        }
    }
    for value in ["[]", "1", "\"{}\"", "true"] {
        assert_invalid(
            &shop.send_with("campaign", "/policy", value).await,
            "invalid_value",
            "/policy",
            value,
        );
    }
    let over = shop.send_with("campaign", "/policy", r#"{"hold_seconds":100,"hold_seconds_max":99}"#).await;
    assert_invalid(&over, "invalid_value", "/policy/hold_seconds_max", "a hold over the most");
    let over = shop.send_with("campaign", "/policy", r#"{"hold_seconds":3601}"#).await;
    assert_invalid(&over, "invalid_value", "/policy/hold_seconds", "a hold over the default's most");
    for (pointer, values) in
        [("/name", &["\"\"", "1", "\"a\\nb\"", "\"a\\u0000b\""][..]), ("/kind", &["\"sale\""])]
    {
        for value in values {
            let code = if pointer == "/name" { "invalid_value" } else { "unknown_field" };
            assert_invalid(&shop.send_with("campaign", pointer, value).await, code, pointer, value);
        }
    }
    let long = format!("\"{}\"", "é".repeat(201));
    assert_invalid(
        &shop.send_with("campaign", "/name", &long).await,
        "invalid_value",
        "/name",
        "201 characters",
    );
    shop.finish_untouched().await;
}

#[tokio::test]
async fn people_s_texts_are_neither_empty_nor_endless_nor_control_codes() {
    let shop = Shop::open().await;
    let long = format!("\"{}\"", "é".repeat(501));
    for route in ["switch", "adjustment", "freeze", "refund", "cancel"] {
        for value in [&long, "\"\"", "1", "{}", "\"a\\u0000b\"", "\"a\\tb\"", "\"a\\u0085\""] {
            let answer = shop.send_with(route, "/reason", value).await;
            assert_invalid(&answer, "invalid_value", "/reason", &format!("{route} {value}"));
        }
    }
    for (route, pointer) in [("adjustment", "/kind"), ("notice", "/outcome")] {
        for value in ["\"\"", "\"Inbound\"", "\"pending\"", "1", "null", "[]"] {
            let answer = shop.send_with(route, pointer, value).await;
            assert_invalid(&answer, "invalid_value", pointer, &format!("{route} {pointer} {value}"));
        }
    }
    for (route, pointer) in [("place", "/amount_due/currency"), ("notice", "/currency")] {
        for value in ["\"eur\"", "\"EURO\"", "\"\"", "\"E R\"", "\"ÄÖÜ\"", "978"] {
            let answer = shop.send_with(route, pointer, value).await;
            assert_invalid(&answer, "invalid_value", pointer, &format!("{route} {pointer} {value}"));
        }
    }
    shop.finish_untouched().await;
}

/// Texts that are no instant.
const NO_TIMES: [&str; 19] = [
    "\"2026-03-10\"",
    "\"2026-03-10T12:00:00\"",
    "\"2026-03-10T12:00Z\"",
    "\"2026-03-10 12:00:00Z\"",
    "\"20260310T120000Z\"",
    "\"2026-02-30T12:00:00Z\"",
    "\"2026-13-01T12:00:00Z\"",
    "\"2026-03-10T24:00:00Z\"",
    "\"2026-03-10T12:00:00Z \"",
    "\"2026-03-10T12:00:00+25:00\"",
    "\"2026-03-10T12:00:00+0100\"",
    "\"now\"",
    "\"\"",
    "\"1773144000\"",
    "1773144000",
    "true",
    "[]",
    "\"2026-03-10T12:00:00Z\\u0000\"",
    "\"-2026-03-10T12:00:00Z\"",
];

#[tokio::test]
async fn times_are_definite_instants() {
    let shop = Shop::open().await;
    for (route, pointer) in [("campaign", "/starts_at"), ("campaign", "/ends_at"), ("notice", "/paid_at")] {
        for value in NO_TIMES {
            let answer = shop.send_with(route, pointer, value).await;
            assert_invalid(&answer, "invalid_time", pointer, &format!("{route} {pointer} {value}"));
        }
    }
    for (zone, starts_at, ends_at, pointer) in [
        (None, "2026-03-10T12:00:00Z", "2026-03-10T12:00:00Z", "/ends_at"),
        (None, "2026-03-10T12:00:00Z", "2026-03-10T13:00:00+01:00", "/ends_at"),
        (None, "2026-03-11T12:00:00Z", "2026-03-10T12:00:00Z", "/ends_at"),
        (Some("Europe/Berlin"), "2026-03-29T02:30:00", "2026-04-01T00:00:00Z", "/starts_at"),
        (Some("Europe/Berlin"), "2026-10-25T02:30:00", "2026-11-01T00:00:00Z", "/starts_at"),
        (Some("Europe/Berlin"), "2026-01-01T00:00:00", "2026-10-25T02:30:00", "/ends_at"),
        (Some("Europe/Berlin"), "2026-03-10", "2026-03-11T00:00:00Z", "/starts_at"),
        (Some("Mars/Base"), "2026-03-10T00:00:00", "2026-03-11T00:00:00", "/time_zone"),
        (Some(""), "2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z", "/time_zone"),
        (Some("../../etc/passwd"), "2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z", "/time_zone"),
        (Some("+01:00"), "2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z", "/time_zone"),
    ] {
        let body = json!({"name": "n", "time_zone": zone, "starts_at": starts_at, "ends_at": ends_at});
        let case = body.to_string();
        assert_invalid(&shop.send("campaign", case.clone()).await, "invalid_time", pointer, &case);
    }
    for value in ["1", "{}", "true"] {
        let body = with(json!({"name": "n"}), "/time_zone", value);
        assert_invalid(&shop.send("campaign", body).await, "invalid_time", "/time_zone", value);
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_window_is_kept_as_instants() {
    let server = Server::start().await;
    let http = &server.http;
    let berlin = json!("Europe/Berlin");
    for (zone, sent, shown) in [
        (&Value::Null, "2027-03-10T12:00:00Z", "2027-03-10T12:00:00.000Z"),
        (&Value::Null, "2027-03-10T00:00:00+14:00", "2027-03-09T10:00:00.000Z"),
        (&Value::Null, "2027-03-10T12:00:00.123456789-05:30", "2027-03-10T17:30:00.123Z"),
        (&berlin, "2027-03-28T01:59:59", "2027-03-28T00:59:59.000Z"),
        (&berlin, "2027-03-28T03:00:00", "2027-03-28T01:00:00.000Z"),
        (&berlin, "2027-10-31T02:30:00+01:00", "2027-10-31T01:30:00.000Z"),
        (&berlin, "2027-07-01T00:00:00", "2027-06-30T22:00:00.000Z"),
    ] {
        let body = json!({"name": "n", "time_zone": zone, "ends_at": sent});
        let put = http.put("/v1/campaigns/c", &body).await;
        assert!(put.status == 201 || put.status == 200, "{sent}: {put:?}");
        assert_eq!((put.text("ends_at").as_str(), &put.body["starts_at"]), (shown, &Value::Null), "{sent}");
        assert_eq!(http.get("/v1/campaigns/c").await.text("ends_at"), shown);
    }
    // A PUT without a field sets its default.
    assert_eq!(http.put("/v1/campaigns/c", &json!({"name": "n"})).await.body["ends_at"], Value::Null);
    server.finish().await;
}
