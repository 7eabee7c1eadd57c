//! Nodes die and stand still.

use std::time::Duration;

use super::Stage;
use crate::support::wait_within;

/// How long a node that works takes at most, and one that stands still is waited for.
const MOMENT: Duration = Duration::from_secs(2);

/// Which nodes answer.
async fn answering(stage: &Stage) -> Vec<usize> {
    let mut found = Vec::new();
    for node in 0..stage.nodes.len() {
        if stage.place_within(node, MOMENT).await.is_some() {
            found.push(node);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_dies_in_its_turn_while_the_others_sell() {
    let mut stage = Stage::open("postgres", &["kill-node", "pause-node"], "batched").await;
    assert_eq!(stage.nodes.len(), 3);
    for dead in [0, 1] {
        stage.begin("kill-node").await;
        let others: Vec<usize> = (0..3).filter(|node| *node != dead).collect();
        assert_eq!(answering(&stage).await, others);
        stage.end("kill-node").await;
        stage.every_node_sells().await;
    }
    stage.begin("pause-node").await;
    assert_eq!(answering(&stage).await, [0, 1]);
    // Two at once are two nodes.
    stage.begin("kill-node").await;
    assert_eq!(answering(&stage).await, [1]);
    stage.end("kill-node").await;
    stage.end("pause-node").await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_node_dies_and_stands_still() {
    let mut stage = Stage::open("sqlite", &["kill-node", "pause-node"], "batched").await;
    for fault in ["kill-node", "pause-node"] {
        stage.begin(fault).await;
        assert!(answering(&stage).await.is_empty());
        stage.end(fault).await;
        stage.every_node_sells().await;
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stands_still_lands_nothing_until_it_goes_on() {
    let mut stage = Stage::open("postgres", &["pause-worker"], "queued").await;
    assert_eq!(stage.nodes.len(), 2, "the worker does not sell");
    let state =
        async |stage: &Stage, id: &str| stage.nodes[0].get(&format!("/v1/orders/{id}")).await.text("state");
    stage.begin("pause-worker").await;
    let queued = stage.place(0).await.unwrap();
    assert_eq!(queued.status, 202, "{queued:?}");
    let id = queued.text("id");
    let waited = stage.nodes[0].get(&format!("/v1/orders/{id}?wait=2s")).await;
    assert_eq!(waited.text("state"), "queued");
    stage.end("pause-worker").await;
    wait_within(super::PATIENCE, "the order to land", async || {
        (state(&stage, &id).await == "held").then_some(())
    })
    .await;
    stage.finish().await;
}
