//! Nodes die and stand still while others work.

use std::sync::Arc;
use std::time::Duration;

use super::{CLIENTS, authority, extent, last, sells, start_nodes, without_keys};
use crate::crash;
use crate::support::{History, Load, Server};

/// Longer than anything that a node may hold while it does nothing: a lease of a queue, a transaction.
const STANDSTILL: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_at_any_point_of_a_commit_loses_and_doubles_nothing() {
    let (_postgres, url) = authority().await;
    let node = Server::start_at(&url, &without_keys()).await.unwrap();
    crash::again_and_again(node, extent("HOLDFAST_FAULT_CRASHES", 10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stood_still_does_no_harm_when_it_goes_on() {
    let (_postgres, url) = authority().await;
    let nodes = start_nodes(&url, 2).await;
    let history = Arc::new(History::default());
    history.open(&nodes[0].http).await;
    let (still, other) = (&nodes[0], &nodes[1]);
    // Its clients wait with it; the other's get on.
    let waiting = Load::start(&history, std::slice::from_ref(&still.http), CLIENTS / 2);
    sells(&history).await;
    still.pause();
    let working = Load::start(&history, std::slice::from_ref(&other.http), CLIENTS / 2);
    // The server ends a transaction that stands still after 5 seconds: the node's locks are not for ever.
    last(STANDSTILL).await;
    Load::buy(&history, &other.http).await;
    sells(&history).await;
    still.resume();
    Load::buy(&history, &still.http).await;
    waiting.stop().await;
    working.stop().await;
    println!("{}", history.summary());
    for node in nodes {
        history.check(&node.http).await;
        node.finish().await;
    }
}
