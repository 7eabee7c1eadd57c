//! Networks and servers that fail while orders come.

use std::sync::Arc;
use std::time::Duration;

use holdfast_engine::{Answer, Cache, CacheError};
use holdfast_redis::Options;
use holdfast_testkit::{FaultProxy, Redis, Way};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{BUCKET, Node, Rig, number_of, patient, until};

/// Deadlines as they are in service, and a connection that is given up soon.
fn brisk() -> Options {
    Options { connect: Duration::from_millis(300), ..Options::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_again_and_again_gives_nobody_an_answer_of_another() {
    let server = Redis::start().await.unwrap();
    let proxy = FaultProxy::start(server.port()).await.unwrap();
    let node = Arc::new(Node::open(&proxy.through(&server.url()), patient(), 1_000_000).await);
    let mut placing = JoinSet::new();
    for task in 0..16_u64 {
        let node = Arc::clone(&node);
        placing.spawn(async move {
            let (mut accepted, mut lost) = (Vec::new(), 0_u64);
            for number in task * 1_000..task * 1_000 + 300 {
                // Each order has its own units, so that an answer tells whose it is.
                let units = u32::try_from(number % 7 + 1).unwrap();
                let order = node.order_of(number, units, "a");
                loop {
                    match node.accept(&order).await {
                        Ok(Answer::Accepted { accepted: at, .. } | Answer::Known { accepted: at, .. }) => {
                            assert_eq!(at.units, u64::from(units), "order {number}");
                            accepted.push((number, at));
                            break;
                        }
                        Err(CacheError::Unknown(_) | CacheError::Unavailable(_)) => lost += 1,
                        answer => panic!("{answer:?}"),
                    }
                }
            }
            (accepted, lost)
        });
    }
    let mut cuts = tokio::time::interval(Duration::from_millis(50));
    let mut results = Vec::new();
    while !placing.is_empty() {
        tokio::select! {
            _ = cuts.tick() => proxy.cut().await,
            Some(result) = placing.join_next() => results.push(result.unwrap()),
        }
    }
    let lost: u64 = results.iter().map(|(_, lost)| lost).sum();
    assert!(lost > 0, "nothing was cut");
    let landings = until(
        "the rest",
        async || node.cache.deliver(BUCKET, "l", 9_999, Duration::ZERO).await,
        Result::is_ok,
    );
    let landings: Vec<_> = landings.await.unwrap().into_iter().map(crate::support::order).collect();
    assert_eq!(landings.len(), 16 * 300, "each order once");
    for (number, at) in results.into_iter().flat_map(|(accepted, _)| accepted) {
        let landing = landings.iter().find(|landing| landing.accepted == at).unwrap();
        assert_eq!(landing.place.key.order_no.as_str(), number_of(number));
    }
    node.assert_law(1_000_000, 0).await;
}

#[tokio::test]
async fn a_server_that_stands_still_is_given_up_in_time_and_found_again() {
    let server = Redis::start().await.unwrap();
    let node = Node::open(&server.url(), brisk(), 100).await;
    node.take(1).await;
    server.pause().unwrap();
    let begun = Instant::now();
    let sent = node.accept(&node.order(2)).await;
    assert!(matches!(sent, Err(CacheError::Unknown(_))), "{sent:?}");
    // The connection is in doubt: what comes later is not sent, and says so.
    let later = node.accept(&node.order(3)).await;
    assert!(matches!(later, Err(CacheError::Unavailable(_))), "{later:?}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    server.resume().unwrap();
    let answer = until("an answer", async || node.accept(&node.order(2)).await, Result::is_ok).await;
    // It stood still with the order in hand, or before: never twice.
    assert!(matches!(answer, Ok(Answer::Known { .. } | Answer::Accepted { .. })), "{answer:?}");
    assert_eq!(node.position().await.accepted, 2);
    node.assert_law(100, 0).await;
}

#[tokio::test]
async fn an_answer_that_is_lost_is_unknown_and_nothing_is_sent_again() {
    let server = Redis::start().await.unwrap();
    let proxy = FaultProxy::start(server.port()).await.unwrap();
    let node = Node::open(&proxy.through(&server.url()), brisk(), 100).await;
    // The server has the script from now on.
    node.take(9).await;
    proxy.hold(Way::ToClient);
    let answer = node.accept(&node.order(1)).await;
    assert!(matches!(answer, Err(CacheError::Unknown(_))), "{answer:?}");
    proxy.pass(Way::ToClient);
    let again = until("an answer", async || node.accept(&node.order(1)).await, Result::is_ok).await;
    assert!(matches!(again, Ok(Answer::Known { .. })), "{again:?}");
    assert_eq!(node.position().await.accepted, 2);
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable_and_back_without_a_restart_of_ours() {
    let rig = Rig::open(100).await;
    rig.node.take(1).await;
    rig.server.kill().unwrap();
    for _ in 0..20 {
        let answer = rig.node.accept(&rig.node.order(2)).await;
        assert!(matches!(answer, Err(CacheError::Unavailable(_) | CacheError::Unknown(_))), "{answer:?}");
    }
    rig.server.restart().await.unwrap();
    let cache = &rig.node.cache;
    until("an identity", async || cache.identity(BUCKET).await, Result::is_ok).await.unwrap();
    assert_eq!(rig.node.position().await.accepted, 1);
}

#[tokio::test]
async fn secrets_are_in_no_error() {
    let server = Redis::start().await.unwrap();
    let url = format!("redis://shop:s3cret@127.0.0.1:{}", server.port());
    let cache = crate::support::cache_at(&url, patient());
    let error = cache.identity(BUCKET).await.unwrap_err();
    assert!(matches!(error, CacheError::Unavailable(_)));
    assert!(!format!("{error} {error:?} {cache:?}").contains("s3cret"), "{error}");
    server.command(&["CONFIG", "SET", "requirepass", "s3cret"]).await.unwrap();
    let cache = crate::support::cache_at(&format!("redis://127.0.0.1:{}", server.port()), patient());
    assert!(matches!(cache.identity(BUCKET).await, Err(CacheError::Unavailable(_))));
    let url = format!("redis://:s3cret@127.0.0.1:{}", server.port());
    let cache = crate::support::cache_at(&url, patient());
    assert!(cache.identity(BUCKET).await.is_ok());
    assert!(!format!("{cache:?}").contains("s3cret"));
}
