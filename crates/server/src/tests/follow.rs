//! Orders followed by events, and waits.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Method;
use holdfast_core::command::{Command, Place, PlaceLine};
use holdfast_core::id::{Account, Location, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_engine::Engine;
use holdfast_store::Batch;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use super::{ask, config, engine, get, next_piece, post, request, sale};
use crate::{Auth, Limits, router, serve};

/// A router over an engine that the test can reach.
fn served(limits: Limits) -> (Engine, Router) {
    let engine = engine();
    (engine.clone(), router(engine, &config(Auth::Off, limits)))
}

async fn held(router: &Router, order_no: &str) -> String {
    // Metadata is kept as sent, line breaks too, which must not break an event.
    let order = format!(
        "{{\"campaign_id\":\"c\",\"order_no\":\"{order_no}\",\"account\":\"ann\",\"metadata\":{{\r\n\n\"a\":1}},\
         \"lines\":[{{\"sku\":\"s\",\"quantity\":1}}]}}"
    );
    let sent = request(Method::POST, "/v1/orders", &[("content-type", "application/json")], order);
    let placed = ask(router, sent).await;
    assert_eq!(placed.status, 201, "{}", placed.text);
    placed.json["id"].as_str().expect("an id").to_owned()
}

async fn pay(router: &Router, id: &str) {
    let notice = json!({"event_id": id, "payment_id": id, "order_id": id, "outcome": "succeeded"});
    let paid = post(router, "/v1/payments/plain/notifications", &notice).await;
    assert_eq!(paid.json["disposition"], "applied", "{}", paid.text);
}

/// Opens the events of an order; the status and the body.
async fn follow(router: &Router, id: &str, seen: Option<&str>) -> (u16, Body) {
    let headers: Vec<_> = seen.map(|seen| ("last-event-id", seen)).into_iter().collect();
    let asked = request(Method::GET, &format!("/v1/orders/{id}/events"), &headers, Body::empty());
    let response = router.clone().oneshot(asked).await.expect("an answer");
    (response.status().as_u16(), response.into_body())
}

/// The next event: its id and the order.
async fn event(body: &mut Body) -> Option<(String, Value)> {
    loop {
        let text = next_piece(body).await?;
        let Some(event) = text.strip_prefix("event: order\n") else { continue };
        let mut lines = event.lines();
        let id = lines.next().and_then(|line| line.strip_prefix("id: ")).expect("an id");
        let data = lines.next().and_then(|line| line.strip_prefix("data: ")).expect("data");
        assert!(event.ends_with("\n\n") && lines.next() == Some(""), "{event}");
        return Some((id.to_owned(), serde_json::from_str(data).expect("an order")));
    }
}

#[tokio::test]
async fn an_order_is_followed_change_by_change_to_its_end() {
    let (_, router) = served(Limits::default());
    let pool = sale(&router, 10).await;
    let id = held(&router, "o").await;
    let (status, mut body) = follow(&router, &id, None).await;
    assert_eq!(status, 200);
    assert_eq!(next_piece(&mut body).await.as_deref(), Some("retry: 1000\n\n"));
    let attempt = json!({"attempt_id": "t", "provider": "plain"});
    assert_eq!(post(&router, &format!("/v1/orders/{id}/payment-attempts"), &attempt).await.status, 201);
    pay(&router, &id).await;
    let mut seen = Vec::new();
    while let Some((position, order)) = event(&mut body).await {
        seen.push((position, order["version"].as_u64(), order["state"].as_str().map(str::to_owned)));
    }
    let entries = get(&router, &format!("/v1/ledger?order_id={id}")).await;
    let positions = entries.json["items"].as_array().expect("entries").iter();
    let positions: Vec<_> = positions.map(|e| format!("{pool}/{}/{}", e["bucket"], e["seq"])).collect();
    let expected = [(1, "held"), (2, "held"), (3, "sold")];
    let expected: Vec<_> = positions.into_iter().zip(expected).collect();
    let expected: Vec<_> =
        expected.into_iter().map(|(at, (version, state))| (at, Some(version), Some(state.into()))).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn who_comes_back_misses_nothing_and_hears_nothing_twice() {
    let (_, router) = served(Limits::default());
    sale(&router, 10).await;
    let id = held(&router, "o").await;
    let (first, _) = event(&mut follow(&router, &id, None).await.1).await.expect("an event");
    let (_, mut back) = follow(&router, &id, Some(&first)).await;
    pay(&router, &id).await;
    let (last, order) = event(&mut back).await.expect("an event");
    assert_eq!((&order["state"], event(&mut back).await), (&json!("sold"), None));
    // The change fell between two connections.
    let (again, order) = event(&mut follow(&router, &id, Some(&first)).await.1).await.expect("an event");
    assert_eq!((&again, &order["state"]), (&last, &json!("sold")));
    let (status, mut nothing) = follow(&router, &id, Some(&last)).await;
    assert_eq!((status, next_piece(&mut nothing).await), (204, None), "do not come back");
    // A position that means nothing here is no reason to send nothing.
    let (other, _) = event(&mut follow(&router, &id, Some("elsewhere")).await.1).await.expect("an event");
    assert_eq!(other, last);
    let refund = json!({"refund_id": "r", "reason": "x", "lines": [{"line": 1, "quantity": 1}]});
    assert_eq!(post(&router, &format!("/v1/orders/{id}/refunds"), &refund).await.status, 201);
    let (_, order) = event(&mut follow(&router, &id, Some(&last)).await.1).await.expect("an event");
    assert_eq!(order["state"], "refunded");
}

#[tokio::test]
async fn events_are_asked_for_by_their_form_and_of_an_order_that_is_there() {
    let (_, router) = served(Limits::default());
    sale(&router, 10).await;
    let id = held(&router, "o").await;
    let none = "/v1/orders/01937a5e-0000-7000-8000-0000000000ff/events";
    assert_eq!(get(&router, none).await.code(), "not_found");
    assert_eq!(get(&router, &format!("/v1/orders/{id}/events?wait=1s")).await.code(), "unknown_field");
    let json_only = [("accept", "application/json")];
    let path = format!("/v1/orders/{id}/events");
    let answer = ask(&router, request(Method::GET, &path, &json_only, Body::empty())).await;
    assert_eq!((answer.status, answer.code()), (406, "not_acceptable"));
    // An order that was refused at once moved no stock: it has an event and no position.
    let order = json!({"campaign_id": "c", "order_no": "much", "account": "bob",
        "lines": [{"sku": "s", "quantity": 11}]});
    let refused = post(&router, "/v1/orders", &order).await;
    if let Some(id) = refused.json["order"]["id"].as_str() {
        let (_, mut body) = follow(&router, id, None).await;
        next_piece(&mut body).await.expect("the retry");
        let told = next_piece(&mut body).await.expect("an event");
        assert!(told.starts_with("event: order\ndata: ") && told.contains("\"failed\""), "{told}");
        assert_eq!(next_piece(&mut body).await, None);
    }
}

#[tokio::test]
async fn readers_are_bounded_and_leave_room_when_they_go() {
    let (engine, router) = served(Limits { events_max: 1, ..Limits::default() });
    sale(&router, 10).await;
    let id = held(&router, "o").await;
    let (status, body) = follow(&router, &id, None).await;
    assert_eq!((status, engine.watchers()), (200, 1));
    let second = get(&router, &format!("/v1/orders/{id}/events")).await;
    assert_eq!((second.status, second.code()), (503, "overloaded"));
    assert!(second.header("retry-after").is_some());
    drop(body);
    while engine.watchers() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(follow(&router, &id, None).await.0, 200);
}

#[tokio::test]
async fn a_reader_hears_that_it_is_alive_and_goes_in_the_end() {
    let limits = Limits {
        events_keep_alive: Duration::from_millis(20),
        events_lifetime: Duration::from_millis(200),
        ..Limits::default()
    };
    let (engine, router) = served(limits);
    sale(&router, 10).await;
    let id = held(&router, "o").await;
    let (_, mut body) = follow(&router, &id, None).await;
    let mut pieces = Vec::new();
    while let Some(piece) = next_piece(&mut body).await {
        pieces.push(piece);
    }
    assert!(pieces.len() > 2 && pieces[2..].iter().all(|piece| piece == ": still there\n\n"), "{pieces:?}");
    assert_eq!(engine.watchers(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_outlast_the_deadline_of_requests_and_do_not_hold_up_the_end() {
    let limits = Limits {
        request_timeout: Duration::from_millis(50),
        events_keep_alive: Duration::from_millis(100),
        ..Limits::default()
    };
    let (engine, router) = served(limits.clone());
    sale(&router, 10).await;
    let id = held(&router, "o").await;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving =
        tokio::spawn(
            async move { serve(listener, router, &limits, &std::sync::Arc::default(), stopped).await },
        );
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let asked = format!("GET /v1/orders/{id}/events HTTP/1.1\r\nhost: h\r\n\r\n");
    stream.write_all(asked.as_bytes()).await.expect("sent");
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("still there") {
        assert_ne!(stream.read_buf(&mut said).await.expect("read"), 0, "{}", String::from_utf8_lossy(&said));
    }
    stop.send(()).expect("a server that runs");
    engine.drain(Duration::from_secs(5)).await.expect("drained");
    let ended = tokio::time::timeout(Duration::from_secs(10), serving).await;
    ended.expect("in time").expect("a server").expect("served");
    stream.read_to_end(&mut said).await.expect("the end");
    assert!(said.ends_with(b"0\r\n\r\n"), "whole, not cut off: {}", String::from_utf8_lossy(&said));
}

/// An order that is queued, and that nobody lands.
async fn queued(engine: &Engine, pool: &str) -> String {
    let pool = PoolId(uuid::Uuid::parse_str(pool).expect("an id").as_u128());
    let campaign = holdfast_core::id::CampaignId::new("c").expect("an id");
    let place = Place {
        id: OrderId(0x0193_7a5e_0000_7000_8000_0000_0000_0001),
        key: OrderKey { campaign, order_no: OrderNo::new("q").expect("an id") },
        account: Account::new("ann").expect("an id"),
        lines: vec![PlaceLine {
            sku: Sku::new("s").expect("an id"),
            location: Some(Location::new("main").expect("an id")),
            pool,
            made_of: None,
            quantity: 1,
        }],
        hold_seconds: None,
        amount_due: None,
        limit_keys: holdfast_core::limit::LimitKeys::new(),
        metadata: None,
        route: 0,
        record_refusals: true,
        assortment: None,
        intake: Some(BucketKey { pool, number: 0 }),
    };
    let id = place.id.to_string();
    let commands = Arc::new(vec![Command::Place(Arc::new(place))]);
    engine.store().commit(Batch { locks: LockSet::pool(pool), commands }).await.expect("a commit");
    id
}

#[tokio::test]
async fn a_wait_may_be_longer_than_the_deadline_of_requests() {
    let (engine, router) =
        served(Limits { request_timeout: Duration::from_millis(100), ..Limits::default() });
    let pool = sale(&router, 10).await;
    let id = queued(&engine, &pool).await;
    let waited = get(&router, &format!("/v1/orders/{id}?wait=1s")).await;
    assert_eq!((waited.status, &waited.json["state"]), (200, &json!("queued")), "{}", waited.text);
    assert_eq!(get(&router, &format!("/v1/orders/{id}?wait=31s")).await.code(), "invalid_value");
    let path = format!("/v1/orders/{id}?wait=30s");
    let cancel = async {
        while engine.watchers() == 0 {
            tokio::task::yield_now().await;
        }
        post(&router, &format!("/v1/orders/{id}/cancel"), &json!({})).await
    };
    let (waited, cancelled) = tokio::join!(get(&router, &path), cancel);
    assert_eq!((waited.status, &waited.json["state"]), (200, &json!("failed")), "{}", cancelled.text);
}
