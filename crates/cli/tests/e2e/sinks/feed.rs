//! The pull feed.

use serde_json::{Value, json};

use super::{assert_complete, numbered, shop};
use crate::support::{Http, assert_invalid, assert_problem};

async fn pull(http: &Http, query: &str) -> (Vec<Value>, String, bool) {
    let page = http.get(&format!("/v1/events?{query}")).await;
    assert_eq!(page.status, 200, "{page:?}");
    let items = page.body["items"].as_array().unwrap().clone();
    (items, page.text("position"), page.body["more"].as_bool().unwrap())
}

async fn ack(http: &Http, consumer: &str, position: &str) -> bool {
    let body = json!({"consumer": consumer, "position": position});
    let answer = http.post("/v1/events/ack", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["applied"].as_bool().unwrap()
}

#[tokio::test]
async fn a_consumer_gets_everything_once_it_says_what_it_has() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 100, 3).await;
    http.sell(numbered("A", 20), true).await;
    let (first, position, more) = pull(http, "consumer=erp&limit=7").await;
    assert!((1..=7).contains(&first.len()) && more);
    assert_eq!(pull(http, "consumer=erp&limit=7").await.0, first, "the same until it is acknowledged");
    assert!(ack(http, "erp", &position).await);
    let mut all = first;
    loop {
        let (events, position, _) = pull(http, "consumer=erp&limit=7").await;
        if events.is_empty() {
            break;
        }
        assert!(events.len() <= 7);
        all.extend(events);
        assert!(ack(http, "erp", &position).await && ack(http, "erp", &position).await, "harmless");
    }
    assert_eq!(assert_complete(&http.ledger_events().await, &all), 0);
    // An older position moves nothing back.
    assert!(ack(http, "erp", &position).await);
    assert_eq!(pull(http, "consumer=erp").await.0, Vec::<Value>::new());
    let sink = http.sink("erp").await;
    assert_eq!((&sink["kind"], &sink["backlog"]["entries"]), (&json!("pull"), &json!(0)));
    // After a replay an old position counts for nothing.
    http.sink_verb("erp", "replay", json!({"from": "beginning"})).await;
    assert!(!ack(http, "erp", &position).await);
    assert_eq!(pull(http, "consumer=erp&limit=500").await.0.len(), 40);
    http.sink_verb("erp", "pause", json!({})).await;
    assert_problem(&http.get("/v1/events?consumer=erp").await, 409, "conflict", "conflict");
    server.finish().await;
}

#[tokio::test]
async fn a_consumer_may_begin_now_and_a_pool_needs_none() {
    let server = shop().await;
    let http = &server.http;
    let pool = http.pool("spring", "CUP", 100, 2).await;
    http.sell(numbered("A", 5), false).await;
    assert_eq!(pull(http, "consumer=late&from=now").await.0.len(), 0);
    http.sell(numbered("B", 2), false).await;
    let (late, _, _) = pull(http, "consumer=late&from=now").await;
    let names: Vec<_> = late.iter().map(|event| event["data"]["order_no"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with('B')));
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let (events, position, _) = pull(http, &format!("pool_id={pool}&limit=2{after}")).await;
        if events.is_empty() {
            break;
        }
        all.extend(events);
        after = format!("&after={position}");
    }
    assert_eq!(assert_complete(&http.ledger_events().await, &all), 0);
    assert_eq!(pull(http, &format!("pool_id={pool}&after=0")).await.0.len(), 7);
    let unknown = "00000000-0000-0000-0000-000000000000";
    assert_problem(&http.get(&format!("/v1/events?pool_id={unknown}")).await, 404, "not_found", "not_found");
    for (query, pointer) in [
        ("", "/query/consumer"),
        ("consumer=A", "/query/consumer"),
        ("consumer=a&after=AQ", "/query/after"),
        ("consumer=a&limit=501", "/query/limit"),
        ("pool_id=00000000-0000-0000-0000-000000000000&after=nonsense", "/query/after"),
    ] {
        assert_invalid(&http.get(&format!("/v1/events?{query}")).await, "invalid_value", pointer, pointer);
    }
    let ack = |position: &str| json!({"consumer": "late", "position": position});
    assert_invalid(
        &http.post("/v1/events/ack", &ack("nonsense")).await,
        "invalid_value",
        "/position",
        "/position",
    );
    // A place beyond the ledger would lose what comes there.
    let (_, beyond, _) = pull(http, &format!("pool_id={pool}&after=9999")).await;
    assert_invalid(
        &http.post("/v1/events/ack", &ack(&beyond)).await,
        "invalid_value",
        "/position",
        "/position",
    );
    let nobody = json!({"consumer": "nobody", "position": "AQA"});
    assert_problem(&http.post("/v1/events/ack", &nobody).await, 404, "not_found", "not_found");
    server.finish().await;
}
