//! Bodies that are no JSON, or not JSON of the right shape, over every route.

use serde_json::{Value, json};

use super::{ROUTES, Shop, with};
use crate::support::{Answer, Server, assert_invalid, assert_problem, assert_whole_problem, place_body};

/// Bodies that no route takes, with the code of each.
fn bad() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(200), close.repeat(200)).into_bytes();
    let many_keys = (0..20_000).map(|n| format!("\"k{n}\":0,")).collect::<String>();
    vec![
        ("white space", b" \r\n\t ".to_vec(), "malformed_json"),
        ("a word", b"hello".to_vec(), "malformed_json"),
        ("half an object", b"{".to_vec(), "malformed_json"),
        ("no quotes", b"{a:1}".to_vec(), "malformed_json"),
        ("quotes of the wrong kind", b"{'a':1}".to_vec(), "malformed_json"),
        ("a comment", b"{/* */}".to_vec(), "malformed_json"),
        ("a comma too many", b"{\"a\":1,}".to_vec(), "malformed_json"),
        ("two objects", b"{}{}".to_vec(), "malformed_json"),
        ("an object and more", b"{} x".to_vec(), "malformed_json"),
        ("NUL after it", b"{}\0".to_vec(), "malformed_json"),
        ("a byte order mark", b"\xef\xbb\xbf{}".to_vec(), "malformed_json"),
        ("UTF-16", b"\xff\xfe{\0}\0".to_vec(), "malformed_json"),
        ("a key that is not UTF-8", b"{\"\xff\":1}".to_vec(), "malformed_json"),
        ("a text that is not UTF-8", b"{\"a\":\"\xc3\x28\"}".to_vec(), "malformed_json"),
        ("metadata that is not UTF-8", b"{\"metadata\":{\"a\":\"\xff\"}}".to_vec(), "malformed_json"),
        ("half of metadata", b"{\"metadata\":{\"a\":".to_vec(), "malformed_json"),
        ("a lone surrogate", br#"["\ud800"]"#.to_vec(), "invalid_value"),
        ("a key with a lone surrogate", br#"{"\udfff":1}"#.to_vec(), "malformed_json"),
        ("a raw line break in a text", b"{\"a\":\"\n\"}".to_vec(), "malformed_json"),
        ("null", b"null".to_vec(), "invalid_value"),
        ("an array", b"[]".to_vec(), "invalid_value"),
        ("a text", b"\"{}\"".to_vec(), "invalid_value"),
        ("a number", b"17".to_vec(), "invalid_value"),
        ("true", b"true".to_vec(), "invalid_value"),
        ("arrays 200 deep", deep("[", "]"), "invalid_value"),
        ("objects 200 deep", deep("{\"a\":", "}"), "invalid_value"),
        ("lines 200 deep", [&b"{\"lines\":"[..], &deep("[", "]"), b"}"].concat(), "invalid_value"),
        ("200,000 open brackets", vec![b'['; 200_000], "invalid_value"),
        ("one key twice", br#"{"a":1,"a":1}"#.to_vec(), "duplicate_field"),
        ("one key twice, once escaped", br#"{"name":1,"n\u0061me":1}"#.to_vec(), "duplicate_field"),
        ("the empty key twice", br#"{"":1,"":2}"#.to_vec(), "duplicate_field"),
        ("one key twice, deep inside", br#"{"a":[{"b":{"c":1,"c":2}}]}"#.to_vec(), "duplicate_field"),
        ("a key that repeats one of 20,000", format!("{{{many_keys}\"k7\":1}}").into(), "duplicate_field"),
        ("300 kB of nothing", vec![b' '; 300 * 1_024], "too_large"),
        ("300 kB of one text", format!("{{\"a\":\"{}\"}}", "x".repeat(300 * 1_024)).into(), "too_large"),
    ]
}

fn assert_refused(answer: &Answer, code: &str, case: &str) {
    assert_problem(answer, if code == "too_large" { 413 } else { 400 }, code, case);
}

#[tokio::test]
async fn no_route_takes_a_bad_body() {
    let shop = Shop::open().await;
    for (what, body, code) in bad() {
        for route in ROUTES {
            assert_refused(&shop.send(route, body.clone()).await, code, &format!("{route}: {what}"));
        }
    }
    for route in ROUTES {
        let good = shop.good(route).2.to_string();
        for length in [1, good.len() / 2, good.len() - 1] {
            let answer = shop.send(route, &good[..length]).await;
            assert_refused(&answer, "malformed_json", &format!("{route}: {length} bytes"));
        }
        for tail in ["}", ",", "null", "{}"] {
            let answer = shop.send(route, format!("{good}{tail}")).await;
            assert_refused(&answer, "malformed_json", &format!("{route} and {tail}"));
        }
        if route != "cancel" {
            assert_refused(&shop.send(route, "").await, "malformed_json", &format!("{route}: nothing"));
        }
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn a_body_of_many_unknown_fields_gets_a_short_answer() {
    let shop = Shop::open().await;
    let fields = (0..20_000).map(|n| format!("\"k{n}\":0")).collect::<Vec<_>>().join(",");
    for route in ROUTES {
        let answer = shop.send(route, format!("{{{fields}}}")).await;
        assert_eq!(answer.status, 400, "{route}");
        assert_whole_problem(&answer, route);
        assert!(answer.faults().len() <= 100, "{route}: {}", answer.faults().len());
    }
    let lines = vec!["{\"sku\":\"CUP\",\"quantity\":0}"; 1_000].join(",");
    let answer = shop.send_with("place", "/lines", &format!("[{lines}]")).await;
    assert_problem(&answer, 400, "invalid_quantity", "1,000 wrong lines");
    assert_eq!(answer.faults().len(), 100);
    shop.finish_untouched().await;
}

/// Where an object stands in the body of a route.
const OBJECTS: [(&str, &str); 17] = [
    ("campaign", ""),
    ("campaign", "/policy"),
    ("switch", ""),
    ("pool", ""),
    ("adjustment", ""),
    ("freeze", ""),
    ("place", ""),
    ("place", "/lines/0"),
    ("place", "/lines/1"),
    ("place", "/amount_due"),
    ("batch", ""),
    ("attempt", ""),
    ("cancel", ""),
    ("cancel", "/lines/0"),
    ("refund", ""),
    ("refund", "/lines/0"),
    ("notice", ""),
];

#[tokio::test]
async fn unknown_and_repeated_fields_are_refused_at_every_level() {
    let shop = Shop::open().await;
    for (route, object) in OBJECTS {
        for (name, step) in [
            ("nonsense", "nonsense"),
            ("SKU", "SKU"),
            ("", ""),
            ("a/b~c", "a~1b~0c"),
            ("__proto__", "__proto__"),
        ] {
            for value in ["1", "null", "{}", "\"x\""] {
                let mut body = shop.good(route).2;
                body.pointer_mut(object).unwrap()[name] = json!("put here");
                let text = body.to_string().replace("\"put here\"", value);
                let pointer = format!("{object}/{step}");
                let case = format!("{route} {pointer} {value}");
                assert_invalid(&shop.send(route, text).await, "unknown_field", &pointer, &case);
            }
        }
        let body = shop.good(route).2;
        let members = body.pointer(object).unwrap().as_object().unwrap();
        let Some((name, value)) = members.iter().next_back() else { continue };
        // The object once more, with its last field twice.
        let twice = json!(members).to_string().replacen('{', &format!("{{\"{name}\":{value},"), 1);
        let text = if object.is_empty() { twice } else { with(body.clone(), object, &twice) };
        let pointer = format!("{object}/{name}");
        assert_invalid(
            &shop.send(route, text).await,
            "duplicate_field",
            &pointer,
            &format!("{route} {pointer} twice"),
        );
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn in_a_batch_unknown_fields_spoil_one_order_and_repeated_ones_the_body() {
    let shop = Shop::open().await;
    let answer = shop.send_with("batch", "/orders/0/lines/0/nonsense", "1").await;
    let problem = &answer.body["results"][0]["problem"];
    assert_eq!((answer.status, &problem["code"]), (207, &json!("unknown_field")));
    assert_eq!(problem["errors"][0]["pointer"], "/orders/0/lines/0/nonsense");
    let twice = r#"{"sku":"CUP","sku":"CUP","quantity":1}"#;
    let answer = shop.send_with("batch", "/orders/0/lines/1", twice).await;
    assert_invalid(&answer, "duplicate_field", "/orders/0/lines/1/sku", "twice");
    for bad in ["{}", "null", "[]", "\"x\"", "7"] {
        let pointer = if bad == "null" || bad == "{}" { continue } else { "/orders" };
        assert_invalid(&shop.send_with("batch", pointer, bad).await, "invalid_value", pointer, bad);
    }
    for bad in ["null", "[]", "\"x\"", "7"] {
        let answer = shop.send_with("batch", "/orders/0", bad).await;
        assert_eq!(
            answer.body["results"][0]["problem"]["errors"][0]["pointer"], "/orders/0",
            "{bad}: {answer:?}"
        );
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn lists_are_neither_empty_nor_too_long() {
    let shop = Shop::open().await;
    let list = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
    for (route, pointer, item, most) in [
        ("place", "/lines", r#"{"sku":"CUP","quantity":1}"#, 1_000),
        ("cancel", "/lines", r#"{"line":1,"keep":1}"#, 1_000),
        ("refund", "/lines", r#"{"line":1,"quantity":1}"#, 1_000),
        ("batch", "/orders", "{}", 500),
    ] {
        for count in [0, most + 1] {
            let answer = shop.send_with(route, pointer, &list(item, count)).await;
            assert_invalid(&answer, "invalid_value", pointer, &format!("{route}: {count}"));
        }
        let is_optional = route == "cancel";
        for bad in ["null", "{}", "\"x\"", "1", "true"] {
            if is_optional && bad == "null" {
                continue;
            }
            let answer = shop.send_with(route, pointer, bad).await;
            assert_invalid(&answer, "invalid_value", pointer, &format!("{route}: {bad}"));
        }
    }
    for bad in ["[null]", "[[]]", "[1]", "[\"CUP\"]", "[true]"] {
        for route in ["place", "cancel", "refund"] {
            let answer = shop.send_with(route, "/lines", bad).await;
            assert_invalid(&answer, "invalid_value", "/lines/0", &format!("{route}: {bad}"));
        }
    }
    shop.finish_untouched().await;
}

#[tokio::test]
async fn as_much_as_is_allowed_is_taken() {
    let server = Server::start().await;
    let http = &server.http;
    http.campaign("spring", json!({})).await;
    let pool = http.pool("spring", "CUP", 2_000, 4).await;
    let mut long = place_body("spring", "A-1", "CUP", 1);
    long["lines"] = json!(vec![json!({"sku": "CUP", "quantity": 1}); 1_000]);
    let placed = http.post("/v1/orders", &long).await;
    assert_eq!((placed.status, placed.body["lines"].as_array().unwrap().len()), (201, 1_000));
    assert_eq!(http.post("/v1/orders", &long).await.status, 200);
    let orders: Vec<Value> = (0..500).map(|n| place_body("spring", &format!("B-{n}"), "CUP", 1)).collect();
    let batch = http.post("/v1/orders/batch", &json!({"orders": orders})).await;
    assert_eq!(batch.status, 207);
    assert!(
        batch.body["results"].as_array().unwrap().iter().all(|result| result["status"] == 201),
        "{batch:?}"
    );
    assert_eq!(http.balances(&pool).await, (500, 1_500, 0));
    // A body that fills the limit to the last byte.
    let text = place_body("spring", "C-1", "CUP", 1).to_string();
    let full = format!("{text}{}", " ".repeat(256 * 1_024 - text.len()));
    let json = [("content-type", "application/json")];
    assert_eq!(http.send_raw("POST", "/v1/orders", &json, full.clone().into()).await.status, 201);
    let more = http.send_raw("POST", "/v1/orders", &json, format!("{full} ").into()).await;
    assert_problem(&more, 413, "too_large", "one byte more");
    server.finish().await;
}
