//! What the machine does: a clock that jumps, a disk that is slow and full.

use std::time::{Duration, Instant};

use super::{PATIENCE, Stage};
use crate::support::{seconds_between, wait_within};

/// How much later a flush is at least: a bit less than what the drill adds.
const LATE: Duration = Duration::from_millis(45);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_an_embedded_authority_jumps_and_comes_back() {
    let mut stage = Stage::open("sqlite", &["step-clock"], "batched").await;
    let time = async |stage: &Stage| {
        let answer = stage.place(0).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("hold_expires_at")
    };
    let before = time(&stage).await;
    stage.begin("step-clock").await;
    let ahead = seconds_between(&before, &time(&stage).await);
    assert!((600.0..660.0).contains(&ahead), "{ahead}");
    stage.end("step-clock").await;
    let after = seconds_between(&before, &time(&stage).await);
    assert!(after < 60.0, "{after}");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_an_embedded_authority_is_slow_then_full_then_well() {
    is_slow_then_full("sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_a_postgresql_is_slow_then_full_then_well() {
    is_slow_then_full("postgres").await;
}

async fn is_slow_then_full(kind: &str) {
    let mut stage = Stage::open(kind, &["slow-disk", "fill-disk"], "batched").await;
    stage.begin("slow-disk").await;
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(stage.place(0).await.unwrap().status, 201);
        assert!(begun.elapsed() >= LATE, "{:?}", begun.elapsed());
    }
    stage.end("slow-disk").await;
    wait_within(PATIENCE, "a quick flush", async || {
        let begun = Instant::now();
        stage.place(0).await?;
        (begun.elapsed() < LATE).then_some(())
    })
    .await;
    stage.begin("fill-disk").await;
    // What was allotted before may still be written over.
    let code = stage.is_away().await;
    assert!(["storage_full", "authority_unavailable", "outcome_unknown"].contains(&&*code), "{code}");
    stage.end("fill-disk").await;
    stage.every_node_sells().await;
    stage.finish().await;
}
