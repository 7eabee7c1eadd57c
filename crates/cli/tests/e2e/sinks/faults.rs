//! Receivers that fail, hang and go; deliverers that die.

use std::time::Duration;

use holdfast_testkit::Database;
use serde_json::json;

use super::receiver::{Mood, Receiver};
use super::{allowing, assert_complete, numbered, shop};
use crate::support::{Server, wait_until};

#[tokio::test]
async fn an_order_that_is_never_taken_is_parked_and_the_rest_goes_on() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 100, 1).await;
    let receiver = Receiver::start(Mood::Hates("BAD")).await;
    let settings = json!({"retry_seconds": [1], "attempts_max": 2, "batch_max": 20});
    http.webhook("erp", &receiver.url, settings).await;
    let numbers = numbered("A", 5).into_iter().chain(numbered("BAD", 1)).chain(numbered("B", 10));
    http.sell(numbers, true).await;
    receiver.has(30).await;
    let sink = http.sink_shows("erp", "two parked", |sink| sink["parked"] == 2).await;
    assert_eq!(sink["state"], "active", "{sink}");
    let letters = http.get("/v1/sinks/erp/dead-letters?state=parked").await;
    let items = letters.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{letters:?}");
    assert!(items.iter().all(|letter| letter["attempts"].as_u64() >= Some(2)), "{items:?}");
    assert!(items[0]["why"].as_str().unwrap().starts_with("500"), "{items:?}");
    // Mended and asked for, they come after all.
    receiver.is_now(Mood::Takes);
    http.sink_verb("erp", "replay", json!({"from": "dead_letters", "reason": "mended"})).await;
    receiver.has(32).await;
    let sink =
        http.sink_shows("erp", "none parked", |sink| sink["parked"] == 0 && sink["waiting"] == 0).await;
    assert_eq!(sink["backlog"]["entries"], 0);
    let letters = http.get("/v1/sinks/erp/dead-letters?state=delivered").await;
    assert_eq!(letters.body["items"].as_array().unwrap().len(), 2);
    // A replay from a time tells everything again, with the same ids.
    let before = receiver.taken();
    http.sink_verb("erp", "replay", json!({"from": "beginning"})).await;
    let total = before.len() + 32;
    wait_until("all again", async || (receiver.taken().len() >= total).then_some(())).await;
    let again = receiver.taken().split_off(before.len());
    assert_eq!(assert_complete(&http.ledger_events().await, &again), 0);
    server.finish().await;
}

/// How long the receiver is down in the short form; two minutes in the long one.
fn outage() -> Duration {
    let seconds = std::env::var("HOLDFAST_SINK_OUTAGE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}

#[tokio::test]
async fn a_receiver_that_was_down_gets_everything_and_nothing_is_parked() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 200, 4).await;
    let receiver = Receiver::start(Mood::Says(503)).await;
    http.webhook("erp", &receiver.url, json!({"retry_seconds": [1]})).await;
    http.sell(numbered("A", 20), true).await;
    let sink = http.sink_shows("erp", "a failing sink", |sink| sink["state"] == "failing").await;
    assert!(sink["failing_since"].is_string() && sink["next_attempt_at"].is_string(), "{sink}");
    assert!(sink["backlog"]["entries"].as_u64() >= Some(40), "{sink}");
    assert!(sink["backlog"]["oldest_at"].is_string());
    let begun = std::time::Instant::now();
    let mut seen = receiver.requests();
    while begun.elapsed() < outage() {
        receiver.has_more_than(seen).await;
        seen = receiver.requests();
    }
    assert!(seen < 20 + 4 * usize::try_from(outage().as_secs()).unwrap(), "it is left in peace: {seen}");
    assert_eq!(http.sink("erp").await["parked"], 0);
    receiver.is_now(Mood::Takes);
    let events = receiver.has(40).await;
    assert_complete(&http.ledger_events().await, &events);
    let sink = http.sink_shows("erp", "an active sink", |sink| sink["state"] == "active").await;
    assert_eq!((&sink["parked"], &sink["attempts"]), (&json!(0), &json!(0)));
    server.finish().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_back_nobody_and_is_disabled_at_last() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 100, 2).await;
    let (hangs, takes) = (Receiver::start(Mood::Hangs).await, Receiver::start(Mood::Takes).await);
    let settings = json!({"timeout_ms": 200, "retry_seconds": [1], "disable_after_seconds": 2});
    http.webhook("hangs", &hangs.url, settings).await;
    http.webhook("takes", &takes.url, json!({})).await;
    http.sell(numbered("A", 20), true).await;
    let events = takes.has(40).await;
    assert_complete(&http.ledger_events().await, &events);
    let sink = http.sink_shows("hangs", "a disabled sink", |sink| sink["state"] == "disabled").await;
    let why = sink["why"].as_str().unwrap();
    assert!(why.starts_with("the receiver has taken nothing since"), "{why}");
    assert_eq!(sink["parked"], 0);
    let before = hangs.requests();
    http.sell(numbered("B", 1), false).await;
    takes.has(41).await;
    assert_eq!(hangs.requests(), before, "nothing is sent any more");
    hangs.is_now(Mood::Takes);
    http.sink_verb("hangs", "resume", json!({"reason": "mended", "operator": "ann"})).await;
    let events = hangs.has(41).await;
    assert_complete(&http.ledger_events().await, &events);
    server.finish().await;
}

#[tokio::test]
async fn a_receiver_that_says_gone_is_asked_no_more_and_a_pause_holds() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 100, 1).await;
    let receiver = Receiver::start(Mood::Says(410)).await;
    http.webhook("erp", &receiver.url, json!({})).await;
    http.sell(numbered("A", 3), false).await;
    let sink = http.sink_shows("erp", "a disabled sink", |sink| sink["state"] == "disabled").await;
    assert!(sink["why"].as_str().unwrap().contains("wants no more: 410"), "{sink}");
    assert_eq!(receiver.requests(), 1);
    let other = Receiver::start(Mood::Takes).await;
    http.webhook("other", &other.url, json!({})).await;
    other.has(3).await;
    http.sink_verb("other", "pause", json!({"reason": "moving"})).await;
    http.sink_shows("other", "a paused sink", |sink| sink["state"] == "paused" && sink["why"] == "moving")
        .await;
    http.sell(numbered("B", 1), false).await;
    http.sink_verb("other", "resume", json!({})).await;
    let events = other.has(4).await;
    assert_complete(&http.ledger_events().await, &events);
    server.finish().await;
}

/// A receiver that redirects is not followed, also not to this machine's own services.
#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let server = shop().await;
    let http = &server.http;
    http.pool("spring", "CUP", 10, 1).await;
    let inner = Receiver::start(Mood::Takes).await;
    let receiver = Receiver::start(Mood::Redirects(inner.url.clone())).await;
    http.webhook("erp", &receiver.url, json!({})).await;
    http.sell(numbered("A", 1), false).await;
    let sink = http.sink_shows("erp", "a failing sink", |sink| sink["state"] == "failing").await;
    assert!(sink["last_error"].as_str().unwrap().contains("redirects are not followed"), "{sink}");
    assert_eq!(inner.requests(), 0);
    server.finish().await;
}

/// The deliverer dies after it has sent and before it was answered, and after it was answered and perhaps before it has
/// written that down: nothing is lost, and what comes again is the same.
#[tokio::test]
async fn a_deliverer_that_is_killed_loses_nothing() {
    let mut server = shop().await;
    server.http.pool("spring", "CUP", 1_000, 2).await;
    let receiver = Receiver::start(Mood::Takes).await;
    server.http.webhook("erp", &receiver.url, json!({"batch_max": 5, "retry_seconds": [1]})).await;
    for round in 0..6_u32 {
        let hangs = round % 2 == 0;
        if hangs {
            receiver.is_now(Mood::Hangs);
        }
        let before = receiver.requests();
        server.http.sell(numbered(&format!("R{round}"), 20), true).await;
        receiver.has_more_than(before).await;
        server.kill().await;
        receiver.is_now(Mood::Takes);
        server.restart(&allowing()).await;
    }
    let http = &server.http;
    let events = receiver.has(240).await;
    let again = assert_complete(&http.ledger_events().await, &events);
    println!("{again} events came again");
    http.sink_shows("erp", "no backlog", |sink| sink["backlog"]["entries"] == 0 && sink["parked"] == 0).await;
    server.finish().await;
}

/// How long a slow receiver takes in the short form; five seconds in the long one.
fn slowness() -> Duration {
    let millis = std::env::var("HOLDFAST_SINK_SLOW_MILLIS").ok().and_then(|text| text.parse().ok());
    Duration::from_millis(millis.unwrap_or(50))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_deliver_once_to_a_slow_receiver() {
    let database = Database::shared().await.unwrap();
    let one = Server::start_at(&database.url(), &allowing()).await.unwrap();
    let two = Server::start_at(&database.url(), &allowing()).await.unwrap();
    one.http.campaign("spring", json!({})).await;
    one.http.pool("spring", "CUP", 1_000, 2).await;
    let receiver = Receiver::start(Mood::Slow(slowness())).await;
    one.http.webhook("erp", &receiver.url, json!({"batch_max": 10})).await;
    one.http.sell(numbered("A", 50), true).await;
    two.http.pool("spring", "CUP2", 1, 1).await;
    for number in numbered("B", 50) {
        let mut placed = two.http.place("spring", &number, "CUP", 1).await;
        while placed.status != 201 {
            placed = two.http.place("spring", &number, "CUP", 1).await;
        }
        assert_eq!(two.http.pay(&placed.text("id"), &number).await.status, 200);
    }
    let events = receiver.has(200).await;
    assert_eq!(assert_complete(&one.http.ledger_events().await, &events), 0, "nobody sent twice");
    // The node that delivers goes in order: the other one goes on at once.
    one.finish().await;
    let number = "C-1";
    assert_eq!(two.http.place("spring", number, "CUP", 1).await.status, 201);
    receiver.has(201).await;
    two.finish().await;
}

/// A node that stood still for longer than its lease finds another in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stood_still_gives_way() {
    let database = Database::shared().await.unwrap();
    let one = Server::start_at(&database.url(), &allowing()).await.unwrap();
    one.http.campaign("spring", json!({})).await;
    one.http.pool("spring", "CUP", 1_000, 1).await;
    let receiver = Receiver::start(Mood::Takes).await;
    one.http.webhook("erp", &receiver.url, json!({})).await;
    one.http.sell(numbered("A", 5), false).await;
    receiver.has(5).await;
    let two = Server::start_at(&database.url(), &allowing()).await.unwrap();
    one.pause();
    two.http.sell(numbered("B", 5), false).await;
    receiver.has(10).await;
    one.resume();
    two.http.sell(numbered("C", 5), false).await;
    let events = receiver.has(15).await;
    let again = assert_complete(&two.http.ledger_events().await, &events);
    assert!(again <= 5, "duplicates are rare: {again}");
    one.finish().await;
    two.finish().await;
}
