//! Many writers: none missing, none out of order, ids stable.

use std::sync::Arc;

use serde_json::json;

use super::receiver::{Mood, Receiver};
use super::{allowing, assert_complete};
use crate::support::{History, Http, Load, Server};

/// Events that are waited for in the short form; 50,000 in the long one.
fn events() -> usize {
    std::env::var("HOLDFAST_SINK_EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

/// Buys, pays and cancels with so many clients until there are enough events; some batches are undone on the way, by
/// conflicts and by stock that is not there.
async fn all_of_a_rush_arrive(server: Server, nodes: &[Http]) {
    let http = server.http.clone();
    let history = Arc::new(History::default());
    history.open(&http).await;
    let receiver = Receiver::start(Mood::Takes).await;
    http.webhook("erp", &receiver.url, json!({"batch_max": 100})).await;
    let load = Load::start(&history, nodes, 32);
    let wanted = events();
    while receiver.taken().len() < wanted {
        receiver.has_more_than(receiver.requests()).await;
    }
    load.stop().await;
    http.sink_shows("erp", "no backlog", |sink| sink["backlog"]["entries"] == 0).await;
    let again = assert_complete(&http.ledger_events().await, &receiver.taken());
    println!("{} events, {again} came again; {}", receiver.taken().len(), history.summary());
    assert_eq!(http.sink("erp").await["parked"], 0);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_of_a_rush_arrives_from_the_embedded_store() {
    let server = Server::start_with(allowing()).await;
    let nodes = [server.http.clone()];
    all_of_a_rush_arrive(server, &nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_of_a_rush_arrives_from_two_nodes() {
    let database = holdfast_testkit::Database::shared().await.unwrap();
    let one = Server::start_at(&database.url(), &allowing()).await.unwrap();
    let two = Server::start_at(&database.url(), &allowing()).await.unwrap();
    let nodes = [one.http.clone(), two.http.clone()];
    all_of_a_rush_arrive(one, &nodes).await;
    two.finish().await;
}
