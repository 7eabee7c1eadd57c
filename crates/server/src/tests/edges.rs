//! What holds for every request.

use std::future::{Future, poll_fn};
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Method;
use axum::routing::get as get_route;
use serde_json::json;

use super::{ask, config, engine, get, open_router, post, request, router_with};
use crate::app::App;
use crate::router::with_edges;
use crate::{Auth, Limits};

/// A request and what it is answered: method, path, headers, body, status, code.
type Case<'c> = (Method, &'c str, Vec<(&'c str, &'c str)>, String, u16, &'c str);

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn every_problem_has_the_one_form() {
    let router = open_router();
    let long = format!("\"{}\"", "x".repeat(300 * 1_024));
    let cases: Vec<Case<'_>> = vec![
        (Method::GET, "/nowhere", vec![], String::new(), 404, "not_found"),
        (Method::GET, "/v1/orders/17", vec![], String::new(), 404, "not_found"),
        (Method::GET, "/v1/campaigns/none", vec![], String::new(), 404, "not_found"),
        (Method::DELETE, "/v1/orders", vec![], String::new(), 405, "method_not_allowed"),
        (Method::GET, "/v1/orders", vec![("accept", "text/html")], String::new(), 406, "not_acceptable"),
        (Method::GET, "/v1/ledger", vec![("accept", "text/html")], String::new(), 406, "not_acceptable"),
        (Method::POST, "/v1/orders", vec![JSON], long.clone(), 413, "too_large"),
        (
            Method::POST,
            "/v1/orders",
            vec![("content-type", "text/plain")],
            "{}".into(),
            415,
            "unsupported_media_type",
        ),
        (Method::POST, "/v1/orders", vec![], "{}".into(), 415, "unsupported_media_type"),
        (
            Method::POST,
            "/v1/orders",
            vec![JSON, ("content-encoding", "gzip")],
            "{}".into(),
            415,
            "unsupported_media_type",
        ),
        (Method::POST, "/v1/orders", vec![JSON], "{".into(), 400, "malformed_json"),
        (Method::POST, "/v1/orders", vec![JSON], String::new(), 400, "malformed_json"),
        (Method::POST, "/v1/orders", vec![JSON], r#"{"a":1,"a":1}"#.into(), 400, "duplicate_field"),
        (Method::GET, "/v1/orders?x=1", vec![], String::new(), 400, "unknown_field"),
        (Method::GET, "/v1/pools?cursor=AAAA", vec![], String::new(), 400, "invalid_value"),
        (Method::PUT, "/v1/campaigns/%20a", vec![JSON], "{}".into(), 400, "invalid_identifier"),
        (Method::PUT, "/v1/campaigns/%ff", vec![JSON], "{}".into(), 400, "invalid_identifier"),
    ];
    for (method, path, headers, body, status, code) in cases {
        let answer = ask(&router, request(method.clone(), path, &headers, body)).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{method} {path} {headers:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{method} {path}");
        assert_eq!(answer.json["status"], status);
        assert_eq!(answer.json["type"], format!("/problems/{code}"));
        assert_eq!(answer.json["request_id"].as_str(), answer.header("x-request-id"));
        assert_eq!(answer.json["recorded"], false);
        assert_eq!(answer.json["retryable"], false);
        for text in ["title", "detail"] {
            assert!(
                answer.json[text].as_str().is_some_and(|text| !text.is_empty()),
                "{text} of {method} {path}"
            );
        }
    }
    let answer = ask(&router, request(Method::DELETE, "/v1/orders", &[], Body::empty())).await;
    let mut allowed: Vec<_> = answer.header("allow").unwrap_or_default().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

#[tokio::test]
async fn request_ids_come_back_if_they_can_stand_in_a_log() {
    let router = open_router();
    let id_of = async |sent: &str| {
        let asked = request(Method::GET, "/livez", &[("x-request-id", sent)], Body::empty());
        ask(&router, asked).await.header("x-request-id").unwrap_or_default().to_owned()
    };
    assert_eq!(id_of("abc-1/~").await, "abc-1/~");
    let long = "x".repeat(129);
    for bad in ["a b", "", long.as_str()] {
        let made = id_of(bad).await;
        assert!(made.len() == 36 && made != bad, "{bad}: {made}");
    }
}

#[tokio::test]
async fn writes_beyond_the_limit_are_turned_away_before_they_are_read() {
    let limits = Limits { writes_in_flight_max: 0, ..Limits::default() };
    let router = router_with(Auth::Off, limits);
    let answer = post(&router, "/v1/orders", &json!({})).await;
    assert_eq!((answer.status, answer.code()), (503, "overloaded"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!((&answer.json["recorded"], &answer.json["retryable"]), (&json!(false), &json!(true)));
    assert_eq!(answer.json["retry_after_ms"], 1_000);
    assert_eq!(get(&router, "/v1/orders").await.status, 200);
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let app = App::new(engine(), &config(Auth::Off, Limits::default()));
    let panics = |app: State<App>| async move { assert!(app.limits().body_bytes_max == 0, "a bug") };
    let router = with_edges(Router::new().route("/", get_route(panics)), app);
    let answer = get(&router, "/").await;
    assert_eq!((answer.status, answer.code()), (500, "internal"));
    assert_eq!(answer.json["recorded"], serde_json::Value::Null);
    assert_eq!(answer.json["request_id"].as_str(), answer.header("x-request-id"));
}

#[tokio::test]
async fn a_write_whose_client_goes_away_is_done_all_the_same() {
    let router = open_router();
    let campaign = json!({"name": "n"});
    let headers = [JSON];
    let put = request(Method::PUT, "/v1/campaigns/c", &headers, campaign.to_string());
    let mut first = Box::pin(ask(&router, put));
    // Polled once: the write has begun, and has come as far as it goes without waiting. Then the client is gone.
    poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await;
    drop(first);
    let again = request(Method::PUT, "/v1/campaigns/c", &headers, campaign.to_string());
    assert_eq!(ask(&router, again).await.status, 200, "it was there already");
}
