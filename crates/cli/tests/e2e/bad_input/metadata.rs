//! The client's own object: kept exactly as sent, or refused.

use serde_json::json;

use super::{Shop, in_batch, with};
use crate::support::{Answer, Server, assert_invalid, assert_problem, place_body};

/// Texts that a parser and a serialiser would change.
fn kept() -> Vec<String> {
    let fill = "x".repeat(8 * 1_024 - r#"{"a":""}"#.len());
    let texts = [
        "{}",
        "{ }",
        r#"{"z":1,"a":2,"m":3}"#,
        r#"{ "a" : 1.0 , "b":1e2,"c":1E+5,"d":-0,"e":-0.0,"f":0.10,"g":1.50 }"#,
        r#"{"n":123456789012345678901234567890,"m":-18446744073709551616,"f":0.1234567890123456789}"#,
        r#"{"u":"\u00e9\u4f60\ud83d\ude00\/\"\\\b\f\n\r\t","é":"😀"}"#,
        r#"{"a":"\\u0000","b":"\\ud800"}"#,
        "{\n\t\"a\" : [ 1 , 2 ,\r\n { } ] , \"b\" : null }",
        r#"{"metadata":{"metadata":{}},"orders":[{"metadata":[]}],"":"","a/b":1,"campaign_id":7}"#,
        r#"{"html":"<script>alert(1)</script>","sql":"'; drop table orders; --"}"#,
        "{\"a\":\"\u{200f}\u{feff}\u{7f}\u{85}\u{fffd}\u{10ffff}\"}",
    ];
    let full = format!(r#"{{"a":"{fill}"}}"#);
    assert_eq!(full.len(), 8_192);
    texts.iter().map(|text| (*text).to_owned()).chain([full]).collect()
}

#[track_caller]
fn assert_shows(answer: &Answer, text: &str, status: u16) {
    let body = std::str::from_utf8(&answer.raw).unwrap();
    assert_eq!(answer.status, status, "{text}: {body}");
    assert!(body.contains(&format!("\"metadata\":{text}")), "{text}: {body}");
}

#[tokio::test]
async fn metadata_is_shown_exactly_as_it_was_sent() {
    let mut server = Server::start().await;
    server.http.campaign("spring", json!({})).await;
    server.http.pool("spring", "CUP", 100, 1).await;
    let sent = [("content-type", "application/json")];
    let mut ids = Vec::new();
    for (n, text) in kept().iter().enumerate() {
        let http = &server.http;
        let body = with(place_body("spring", &format!("A-{n}"), "CUP", 1), "/metadata", text);
        let place = async |body: String| http.send_raw("POST", "/v1/orders", &sent, body.into()).await;
        let placed = place(body.clone()).await;
        assert_shows(&placed, text, 201);
        assert_shows(&place(body.clone()).await, text, 200);
        // It is not part of what the key is bound to; the first stays.
        let other = with(place_body("spring", &format!("A-{n}"), "CUP", 1), "/metadata", r#"{"other":1}"#);
        assert_shows(&place(other).await, text, 200);
        let id = placed.text("id");
        assert_shows(&http.get(&format!("/v1/orders?campaign_id=spring&order_no=A-{n}")).await, text, 200);
        let cancelled = http.post(&format!("/v1/orders/{id}/cancel"), &json!({})).await;
        assert_shows(&cancelled, text, 200);
        // Also in the order that a problem carries.
        assert_shows(&place(body).await, text, 409);
        ids.push((id, text.clone()));
    }
    let orders: Vec<String> = (0_usize..)
        .zip(kept())
        .map(|(n, text)| with(place_body("spring", &format!("B-{n}"), "CUP", 1), "/metadata", &text))
        .collect();
    let batch = format!(r#"{{"orders":[{}]}}"#, orders.join(","));
    let batch = server.http.send_raw("POST", "/v1/orders/batch", &sent, batch.into()).await;
    for text in kept() {
        assert_shows(&batch, &text, 207);
    }
    server
        .restart(&crate::support::Start {
            arguments: vec!["--auth".into(), "off".into()],
            ..Default::default()
        })
        .await;
    for (id, text) in ids {
        assert_shows(&server.http.get(&format!("/v1/orders/{id}")).await, &text, 200);
    }
    server.finish().await;
}

#[tokio::test]
async fn metadata_that_cannot_be_kept_is_refused_where_it_is_wrong() {
    let shop = Shop::open().await;
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(8 * 1_024 - 7));
    let wide = format!("{{{}}}", (0..2_000).map(|n| format!("\"{n}\":0")).collect::<Vec<_>>().join(","));
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    let spaces = format!("{{{}}}", " ".repeat(8 * 1_024));
    for (text, pointer, code) in [
        ("[]", "", "invalid_value"),
        ("\"{}\"", "", "invalid_value"),
        ("17", "", "invalid_value"),
        ("true", "", "invalid_value"),
        (&long, "", "invalid_value"),
        (&wide, "", "invalid_value"),
        (&spaces, "", "invalid_value"),
        (r#"{"a":"\u0000"}"#, "/a", "invalid_value"),
        (r#"{"a":{"b":["x","y\u0000z"]}}"#, "/a/b/1", "invalid_value"),
        (r#"{"a":"\ud800"}"#, "/a", "invalid_value"),
        (r#"{"a":[1,"\udc00\ud800"]}"#, "/a/1", "invalid_value"),
        // No reader could take it up again.
        (r#"{"a":[1e400]}"#, "/a/0", "invalid_value"),
        (r#"{"a":1,"a":2}"#, "/a", "duplicate_field"),
        (r#"{"a":1,"\u0061":2}"#, "/a", "duplicate_field"),
        (r#"{"a":{"b~":{"c/d":1,"c/d":1}}}"#, "/a/b~0/c~1d", "duplicate_field"),
    ] {
        let case: String = text.chars().take(80).collect();
        let pointer = format!("/metadata{pointer}");
        assert_invalid(&shop.send_with("place", "/metadata", text).await, code, &pointer, &case);
        let answer = shop.send_with("batch", &in_batch("/metadata"), text).await;
        let problem = &answer.body["results"][0]["problem"];
        assert_eq!(problem["code"], code, "{case}: {answer:?}");
        assert_eq!(problem["errors"][0]["pointer"], json!(in_batch(&pointer)), "{case}");
    }
    let answer = shop.send_with("place", "/metadata", &deep).await;
    assert_problem(&answer, 400, "invalid_value", "200 levels");
    assert!(answer.faults()[0].1.starts_with("/metadata/a/a/"), "{answer:?}");
    for bad in [r#"{"a":}"#, r#"{"a":01}"#, r#"{"a":"\x"}"#, "{\"a\":\"\n\"}", r#"{"a":1,}"#, "{a:1}", "nul"]
    {
        let answer = shop.send_with("place", "/metadata", bad).await;
        assert_problem(&answer, 400, "malformed_json", bad);
    }
    // Metadata of anything else than an order is an unknown field like any other.
    for route in ["pool", "campaign", "attempt", "refund", "notice", "adjustment"] {
        let answer = shop.send_with(route, "/metadata", "{}").await;
        assert_invalid(&answer, "unknown_field", "/metadata", route);
    }
    shop.finish_untouched().await;
}
