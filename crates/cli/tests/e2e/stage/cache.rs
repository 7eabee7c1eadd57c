//! The cache is cut off, stands still, forgets, goes back, is replaced, and delivers twice.

use super::{PATIENCE, Stage};
use crate::support::wait_within;

async fn drains(stage: &Stage) -> f64 {
    stage.metric("holdfast_cache_drains_total").await
}

/// Lets something happen that the nodes must notice: a cache that is not what it was takes no orders until it is.
async fn is_noticed(stage: &mut Stage, fault: &str) {
    let before = drains(stage).await;
    stage.begin(fault).await;
    wait_within(PATIENCE, "the fault to be noticed", async || {
        let _ = stage.place(0).await;
        (drains(stage).await > before).then_some(())
    })
    .await;
    stage.end(fault).await;
    stage.cache_accepts().await;
    stage.every_node_sells().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_that_forgets_goes_back_or_is_replaced_is_noticed() {
    let faults = ["wipe-cache", "restore-cache", "fail-over-cache"];
    let mut stage = Stage::open("sqlite-redis", &faults, "cached").await;
    stage.cache_accepts().await;
    for fault in faults {
        is_noticed(&mut stage, fault).await;
    }
    // There is a replica for the next time, too.
    is_noticed(&mut stage, "fail-over-cache").await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_that_is_cut_off_or_stands_still_holds_nobody_up() {
    let mut stage = Stage::open("postgres-redis", &["cut-cache", "pause-cache"], "cached").await;
    stage.cache_accepts().await;
    let before = stage.connections();
    stage.begin("cut-cache").await;
    // The others lead to the authority.
    wait_within(PATIENCE, "connections to be gone", async || {
        (!before.is_subset(&stage.connections())).then_some(())
    })
    .await;
    stage.end("cut-cache").await;
    stage.cache_accepts().await;
    stage.begin("pause-cache").await;
    // Only the authority can still say that an order is held.
    wait_within(PATIENCE, "the authority to sell", async || {
        (stage.place(0).await?.status == 201).then_some(())
    })
    .await;
    stage.end("pause-cache").await;
    stage.cache_accepts().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_delivered_is_delivered_again_as_long_as_it_lasts() {
    let mut stage = Stage::open("sqlite-redis", &["repeat-deliveries"], "cached").await;
    stage.cache_accepts().await;
    let repeated = async |stage: &Stage| stage.metric("holdfast_cache_redeliveries_total").await;
    assert_eq!(repeated(&stage).await, 0.0);
    stage.begin("repeat-deliveries").await;
    wait_within(PATIENCE, "a delivery to be repeated", async || {
        assert_eq!(stage.place(0).await?.status, 202);
        (repeated(&stage).await > 0.0).then_some(())
    })
    .await;
    stage.end("repeat-deliveries").await;
    stage.finish().await;
}
