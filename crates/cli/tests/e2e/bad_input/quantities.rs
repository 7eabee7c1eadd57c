//! Numbers that must be exact integers in their bounds.

use serde_json::json;

use super::{Shop, in_batch, without};
use crate::support::{Server, assert_invalid, assert_problem, place_body};

/// Texts that are no integer, or not one of 64 bits.
const NO_INTEGERS: [&str; 20] = [
    "-0",
    "1.0",
    "1e0",
    "1E0",
    "1.5",
    "0.5",
    "0e0",
    "1e400",
    "18446744073709551616",
    "-9223372036854775809",
    "999999999999999999999999999999",
    "\"2\"",
    "\"\"",
    "true",
    "false",
    "[]",
    "[1]",
    "{}",
    "\"١\"",
    "\"NaN\"",
];
/// Texts that are no JSON at all.
const NO_JSON: [&str; 7] = ["01", "+1", "1.", ".5", "0x10", "NaN", "1e"];

/// Each number of a request: route, pointer, code, integers outside its bounds, whether it must be there.
type Number = (&'static str, &'static str, &'static str, &'static [&'static str], bool);

const NUMBERS: [Number; 17] = [
    (
        "place",
        "/lines/0/quantity",
        "invalid_quantity",
        &["0", "-1", "1000001", "4294967297", "18446744073709551615"],
        true,
    ),
    ("place", "/lines/1/quantity", "invalid_quantity", &["0", "-5", "-9223372036854775808"], true),
    ("place", "/hold_seconds", "invalid_value", &["0", "-1", "1000000000", "4294967297"], false),
    ("place", "/amount_due/amount_minor", "invalid_value", &["-1", "9223372036854775808"], true),
    ("pool", "/supply", "invalid_quantity", &["-1", "1000000000001", "18446744073709551615"], true),
    ("pool", "/buckets", "invalid_value", &["0", "-1", "257", "4294967297"], false),
    ("adjustment", "/delta", "invalid_quantity", &["0", "-1", "1000000000001", "-1000000000001"], true),
    ("adjustment", "/bucket", "invalid_value", &["-1", "256", "1"], false),
    ("cancel", "/lines/0/line", "invalid_value", &["0", "-1", "1001"], true),
    ("cancel", "/lines/0/keep", "invalid_quantity", &["-1", "1000001"], true),
    ("refund", "/lines/0/line", "invalid_value", &["0", "-1", "1001"], true),
    ("refund", "/lines/0/quantity", "invalid_quantity", &["0", "-1", "1000001"], true),
    ("notice", "/amount_minor", "invalid_value", &["-10", "9223372036854775808"], false),
    ("campaign", "/policy/hold_seconds", "invalid_value", &["0", "-1", "1000000000"], false),
    ("campaign", "/policy/hold_seconds_max", "invalid_value", &["0", "-1", "1000000000"], false),
    ("campaign", "/policy/account_limit", "invalid_value", &["0", "-1"], false),
    ("campaign", "/policy/release_grace_ms", "invalid_value", &["-1", "1000000000"], false),
];

#[tokio::test]
async fn numbers_are_exact_integers_in_their_bounds() {
    let shop = Shop::open().await;
    for (route, pointer, code, outside, is_required) in NUMBERS {
        for text in NO_INTEGERS.iter().chain(outside) {
            let answer = shop.send_with(route, pointer, text).await;
            assert_invalid(&answer, code, pointer, &format!("{route} {pointer} {text}"));
        }
        for text in NO_JSON {
            let answer = shop.send_with(route, pointer, text).await;
            assert_problem(&answer, 400, "malformed_json", &format!("{route} {pointer} {text}"));
        }
        if is_required {
            let case = format!("{route} {pointer}");
            assert_invalid(&shop.send_with(route, pointer, "null").await, code, pointer, &case);
            let missing = shop.send(route, without(shop.good(route).2, pointer)).await;
            assert_invalid(&missing, code, pointer, &case);
        }
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_wrong_order_of_a_batch_places_nothing() {
    let shop = Shop::open().await;
    for text in NO_INTEGERS.iter().chain(&["0", "-1", "1000001"]) {
        let pointer = in_batch("/lines/1/quantity");
        let answer = shop.send_with("batch", &pointer, text).await;
        let result = &answer.body["results"][0];
        assert_eq!((answer.status, &result["status"]), (207, &json!(400)), "{text}: {answer:?}");
        assert_eq!(result["problem"]["code"], "invalid_quantity", "{text}");
        assert_eq!(result["problem"]["errors"][0]["pointer"], json!(pointer), "{text}");
        assert_eq!(result["problem"]["recorded"], false);
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_negative_line_does_not_pay_for_another() {
    let shop = Shop::open().await;
    let mut body = place_body("spring", "B-1", "CUP", 6);
    for (first, second) in [(6, -5), (-5, 6), (1, 0), (20, -15)] {
        body["lines"] = json!([{"sku": "CUP", "quantity": first}, {"sku": "CUP", "quantity": second}]);
        let answer = shop.send("place", body.to_string()).await;
        let pointer = if first < 1 { "/lines/0/quantity" } else { "/lines/1/quantity" };
        assert_invalid(&answer, "invalid_quantity", pointer, &format!("{first} and {second}"));
    }
    let answer = shop.send_with("adjustment", "/delta", "-1").await;
    assert_invalid(&answer, "invalid_quantity", "/delta", "inbound stock that is negative");
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_hold_is_no_longer_than_the_campaign_allows() {
    let shop = Shop::open().await;
    for text in ["3601", "86400", "31536000"] {
        assert_invalid(
            &shop.send_with("place", "/hold_seconds", text).await,
            "invalid_value",
            "/hold_seconds",
            text,
        );
        let pointer = in_batch("/hold_seconds");
        let answer = shop.send_with("batch", &pointer, text).await;
        let problem = &answer.body["results"][0]["problem"];
        assert_eq!(
            (&problem["code"], &problem["errors"][0]["pointer"]),
            (&json!("invalid_value"), &json!(pointer))
        );
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn the_bounds_themselves_are_good() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let open = async |sku: &str, supply: u64, buckets: u32| {
        let body = json!({"campaign_id": "spring", "sku": sku, "supply": supply, "buckets": buckets});
        http.post("/v1/pools", &body).await
    };
    let cup = open("CUP", 1_000_000_000_000, 1).await;
    assert_eq!(cup.status, 201, "{cup:?}");
    let none = open("NONE", 0, 256).await;
    assert_eq!((none.status, none.body["buckets"].as_array().unwrap().len()), (201, 256));
    assert_eq!(http.place("spring", "A-1", "CUP", 1_000_000).await.status, 201);
    assert_eq!(http.place("spring", "A-2", "NONE", 1).await.code(), "sold_out");
    for (order_no, hold_seconds) in [("A-3", json!(1)), ("A-4", json!(3_600)), ("A-5", json!(null))] {
        let mut body = place_body("spring", order_no, "CUP", 1);
        body["hold_seconds"] = hold_seconds;
        let placed = http.post("/v1/orders", &body).await;
        assert_eq!(placed.status, 201, "{placed:?}");
    }
    // Null is the same as absent, also when the key is asked again.
    assert_eq!(http.place("spring", "A-5", "CUP", 1).await.status, 200);
    let adjust = async |id: &str, delta: i64| {
        let path = format!("/v1/pools/{}/adjustments", none.text("id"));
        let body =
            json!({"adjustment_id": id, "delta": delta, "kind": "adjust", "reason": "r", "operator": "o"});
        http.post(&path, &body).await
    };
    assert_eq!(adjust("up", 1_000_000_000_000).await.status, 201);
    assert_eq!(adjust("down", -1_000_000_000_000).await.status, 201);
    assert_eq!(adjust("below", -1).await.code(), "stock_in_use");
    // The bound is that of one request; stock may grow beyond it.
    let path = format!("/v1/pools/{}/adjustments", cup.text("id"));
    let body = json!({"adjustment_id": "much", "delta": 1_000_000_000_000_u64, "kind": "inbound", "reason": "r", "operator": "o"});
    let much = http.post(&path, &body).await;
    assert_eq!((much.status, &much.body["pool"]["supply"]), (201, &json!(2_000_000_000_000_u64)), "{much:?}");
    server.finish().await;
}
