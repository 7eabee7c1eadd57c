//! The network between node and authority fails.

use std::time::Duration;

use holdfast_testkit::{FaultProxy, Way};
use serde_json::json;

use super::{Shop, authority, last, outage, rounds, without_keys};
use crate::support::{Server, place_body};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_lost_after_the_commit_is_found_in_the_rows() {
    let (postgres, url) = authority().await;
    let proxy = FaultProxy::postgres(postgres.port()).await.unwrap();
    let shop = Shop::open(&proxy.through(&url), 1).await;
    let mut lost = 0;
    for _ in 0..rounds() * 5 {
        proxy.lose_commit_answers(2);
        lost += 2;
        assert_eq!(proxy.commit_answers_lost().await, lost);
        shop.recovers().await;
    }
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_whose_commit_was_not_heard_of_has_one_outcome() {
    let (postgres, url) = authority().await;
    let proxy = FaultProxy::postgres(postgres.port()).await.unwrap();
    let node = Server::start_at(&proxy.through(&url), &without_keys()).await.unwrap();
    node.http.campaign("drop", json!({})).await;
    let pool = node.http.pool("drop", "CUP", 1, 1).await;
    proxy.lose_commit_answers(1);
    let body = place_body("drop", "A-1", "CUP", 1);
    let first = node.http.post("/v1/orders", &body).await;
    assert_eq!(proxy.commit_answers_lost().await, 1);
    // The fact, or that it is not known; never that it was not done.
    let is_unknown =
        first.status == 503 && first.code() == "outcome_unknown" && first.body["recorded"].is_null();
    assert!(first.status == 201 || is_unknown, "{first:?}");
    let again = node.http.post("/v1/orders", &body).await;
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(node.http.balances(&pool).await, (0, 1, 0));
    node.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_network_holds_nobody_beyond_the_deadline() {
    let (postgres, url) = authority().await;
    let proxy = FaultProxy::postgres(postgres.port()).await.unwrap();
    let shop = Shop::open(&proxy.through(&url), 1).await;
    for way in [Way::ToServer, Way::ToClient] {
        proxy.hold(way);
        last(outage() / 2).await;
        proxy.pass(way);
        shop.recovers().await;
    }
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_anywhere_in_the_stream_lose_and_double_nothing() {
    let (postgres, url) = authority().await;
    let proxy = FaultProxy::postgres(postgres.port()).await.unwrap();
    let shop = Shop::open(&proxy.through(&url), 1).await;
    proxy.delay(Way::ToClient, Duration::from_millis(2));
    for round in 0..rounds() * 5 {
        let way = if round % 2 == 0 { Way::ToServer } else { Way::ToClient };
        proxy.cut_after(way, 1 + round * 7_919 % 20_000);
        shop.recovers().await;
    }
    proxy.refuse().await;
    proxy.cut().await;
    shop.is_away().await;
    proxy.accept().await.unwrap();
    shop.recovers().await;
    shop.close().await;
}
