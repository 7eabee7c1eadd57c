//! The authority dies, stands still, is replaced, is cut off, and commits in silence.

use super::Stage;
use crate::support::wait_within;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_dies_or_stands_still_is_away_until_it_is_back() {
    let mut stage = Stage::open("postgres", &["kill-authority", "pause-authority"], "batched").await;
    for fault in ["kill-authority", "pause-authority"] {
        stage.begin(fault).await;
        stage.is_away().await;
        stage.end(fault).await;
        stage.every_node_sells().await;
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_takes_over_again_and_again_and_nothing_acknowledged_is_lost() {
    let mut stage = Stage::open("postgres", &["fail-over-authority"], "batched").await;
    for _ in 0..2 {
        let held = stage.place(1).await.unwrap();
        assert_eq!(held.status, 201, "{held:?}");
        let servers = |stage: &Stage| {
            let folders = std::fs::read_dir(stage.folder()).unwrap().flatten();
            let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.filter(|name| name.starts_with("postgres")).collect::<Vec<_>>()
        };
        let before = servers(&stage);
        stage.begin("fail-over-authority").await;
        // The old primary is gone for good.
        assert!(before.iter().any(|name| !servers(&stage).contains(name)), "{before:?}");
        assert_eq!(servers(&stage).len(), 1);
        stage.end("fail-over-authority").await;
        stage.every_node_sells().await;
        let found = stage.nodes[2].get(&format!("/v1/orders/{}", held.text("id"))).await;
        assert_eq!((found.status, found.text("state")), (200, "held".to_owned()));
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_to_the_authority_is_cut_and_made_anew() {
    let mut stage = Stage::open("postgres", &["cut-authority"], "batched").await;
    let before = stage.connections();
    stage.begin("cut-authority").await;
    stage.loses(&before).await;
    stage.end("cut-authority").await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_commits_are_lost_as_long_as_it_lasts() {
    let mut stage = Stage::open("postgres", &["lose-commit-answers"], "batched").await;
    let unknown = async |stage: &Stage| stage.metric("holdfast_store_commits_unknown_total").await;
    assert_eq!(unknown(&stage).await, 0.0);
    stage.begin("lose-commit-answers").await;
    wait_within(super::PATIENCE, "answers to be lost", async || {
        // Whatever the buyer is told, it is no answer that the drill would have to forgive.
        let answer = stage.place(0).await.unwrap();
        assert!(matches!(answer.status, 201 | 503), "{answer:?}");
        (unknown(&stage).await >= 3.0).then_some(())
    })
    .await;
    stage.end("lose-commit-answers").await;
    stage.every_node_sells().await;
    let after = unknown(&stage).await;
    for _ in 0..50 {
        assert_eq!(stage.place(0).await.unwrap().status, 201);
    }
    assert_eq!(unknown(&stage).await, after);
    stage.finish().await;
}
