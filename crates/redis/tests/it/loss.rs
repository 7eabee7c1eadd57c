//! Servers that lose what they had. Never unlimited, never sold out for ever: the epoch is in doubt, and the next
//! one sells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::cache::EntryId;
use holdfast_engine::{Answer, Cache, CacheError};
use holdfast_testkit::{Redis, RedisOptions};
use tokio::task::JoinSet;

use crate::support::{BUCKET, Node, Rig, patient, until};

/// Orders placed without a pause until the server is gone; which of them were accepted, and the first number that
/// was not tried.
async fn place_until_it_fails(node: &Node, tasks: u64) -> (Vec<(u64, EntryId)>, u64) {
    let next = Arc::new(AtomicU64::new(1));
    let mut placing = JoinSet::new();
    for _ in 0..tasks {
        let (next, cache) = (Arc::clone(&next), Arc::clone(&node.cache));
        let order = node.order(0);
        let (epoch, identity) = (node.epoch, Arc::clone(&node.identity));
        let node = Node { cache, bucket: order.bucket, epoch, identity };
        placing.spawn(async move {
            let mut accepted = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                match node.accept(&node.order(number)).await {
                    Ok(Answer::Accepted { accepted: at, .. }) => accepted.push((number, at.entry)),
                    Err(CacheError::Unknown(_) | CacheError::Unavailable(_)) => return accepted,
                    answer => panic!("{answer:?}"),
                }
            }
        });
    }
    let accepted = placing.join_all().await.into_iter().flatten().collect();
    (accepted, next.load(Ordering::Relaxed))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_leaves_both_the_units_and_the_entry_or_neither() {
    for _ in 0..3 {
        let rig = Rig::open(1_000_000).await;
        let (accepted, tried) = {
            let placing = place_until_it_fails(&rig.node, 16);
            let killing = async {
                until("some orders", async || rig.node.position().await.accepted, |count| *count > 200).await;
                rig.server.kill().unwrap();
            };
            tokio::join!(placing, killing).0
        };
        rig.server.restart().await.unwrap();
        let cache = &rig.node.cache;
        let identity =
            until("a connection", async || cache.identity(BUCKET).await, Result::is_ok).await.unwrap();
        assert_ne!(identity, rig.node.identity, "a restarted server is another one");
        assert_eq!(rig.node.accept(&rig.node.order(0)).await, Ok(Answer::WentBack));
        // Flushed before each answer, so nothing that was answered is gone; and what was not answered is whole.
        rig.node.assert_law(1_000_000, 0).await;
        let position = rig.node.position().await;
        assert!(position.accepted >= u64::try_from(accepted.len()).unwrap());
        assert!(position.accepted < tried);
        let landings = rig.node.deliver_orders(1_000_000).await;
        assert_eq!(landings.len(), usize::try_from(position.backlog).unwrap());
        for (number, entry) in accepted {
            let order_no = rig.node.order(number).place.key.order_no.clone();
            let landing = landings.iter().find(|landing| landing.accepted.entry == entry);
            assert_eq!(landing.map(|landing| &landing.place.key.order_no), Some(&order_no));
            let found = cache.look_up(BUCKET, rig.node.epoch, &order_no).await.unwrap();
            assert_eq!(found.map(|(accepted, _)| accepted.entry), Some(entry));
        }
    }
}

#[tokio::test]
async fn an_emptied_server_is_not_ready_until_the_next_epoch() {
    let mut rig = Rig::open(5).await;
    rig.node.take(1).await;
    rig.server.command(&["FLUSHALL"]).await.unwrap();
    let node = &rig.node;
    for accept in [node.order(1), node.order(2)] {
        assert_eq!(node.accept(&accept).await, Ok(Answer::NotReady));
    }
    assert_eq!(node.cache.position(BUCKET).await, Ok(None));
    assert_eq!(node.deliver(9).await, []);
    assert_eq!(node.credit(10, 11, 1).await, holdfast_engine::Applied::Elsewhere);
    rig.node.rebuild(4).await;
    assert_eq!(rig.node.take(2).await.number, 1);
    rig.node.assert_law(4, 0).await;
}

#[tokio::test]
async fn a_server_that_restarts_without_its_data_is_another_and_not_ready() {
    let server = Redis::start_with(RedisOptions { is_durable: false }).await.unwrap();
    let mut node = Node::open(&server.url(), patient(), 5).await;
    node.take(1).await;
    server.kill().unwrap();
    server.restart().await.unwrap();
    let answer = until("a connection", async || node.accept(&node.order(2)).await, Result::is_ok).await;
    assert_eq!(answer, Ok(Answer::WentBack), "its identity is another");
    assert_eq!(node.cache.position(BUCKET).await, Ok(None));
    node.rebuild(4).await;
    node.take(2).await;
}

#[tokio::test]
async fn a_server_put_back_to_an_older_snapshot_takes_nothing() {
    let mut rig = Rig::open(100).await;
    for number in 0..10 {
        rig.node.take(number).await;
    }
    let snapshot = rig.server.snapshot().await.unwrap();
    for number in 10..60 {
        rig.node.take(number).await;
    }
    rig.server.restore(&snapshot).await.unwrap();
    let node = &rig.node;
    let answer = until("a connection", async || node.accept(&node.order(70)).await, Result::is_ok).await;
    assert_eq!(answer, Ok(Answer::WentBack), "its identity is another");
    // Even by a node that takes the identity for the old one, as one would behind a proxy that hides it.
    let mut deceived = node.beside(&rig.server.url(), patient());
    deceived.identity = deceived.cache.identity(BUCKET).await.unwrap();
    let seen = holdfast_engine::Accept { seen: 60, ..deceived.order(70) };
    assert_eq!(deceived.accept(&seen).await, Ok(Answer::WentBack));
    assert_eq!(node.position().await.accepted, 10);
    assert_eq!(node.deliver_orders(99).await.len(), 10, "what is left of the stream can land");
    rig.node.rebuild(40).await;
    rig.node.take(70).await;
}

#[tokio::test]
async fn a_part_of_the_keys_that_is_gone_is_noticed() {
    for part in ["cache", "orders", "stream"] {
        let mut rig = Rig::open(5).await;
        rig.node.take(1).await;
        let landings = rig.node.deliver_orders(1).await;
        rig.node.settle(&[landings[0].accepted.entry]).await;
        rig.server.command(&["DEL", &crate::support::key(part)]).await.unwrap();
        let expected = if part == "cache" { Answer::NotReady } else { Answer::WentBack };
        assert_eq!(rig.node.accept(&rig.node.order(2)).await, Ok(expected), "{part}");
        assert_eq!(rig.node.cache.position(BUCKET).await, Ok(None), "{part}");
        rig.node.rebuild(4).await;
        rig.node.take(2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_are_forgotten_under_load_reach_nobody() {
    let rig = Rig::open(1_000_000).await;
    let mut placing = JoinSet::new();
    for task in 0..8 {
        let node = rig.node.beside(&rig.server.url(), patient());
        placing.spawn(async move {
            for number in 0..200 {
                node.take(task * 1_000 + number).await;
            }
        });
    }
    let mut flushes = 0;
    while !placing.is_empty() {
        rig.server.command(&["SCRIPT", "FLUSH"]).await.unwrap();
        flushes += 1;
        while placing.try_join_next().transpose().unwrap().is_some() {}
    }
    assert!(flushes > 3, "{flushes}");
    let position = rig.node.position().await;
    assert_eq!(position.accepted, 1_600);
    rig.node.assert_law(1_000_000, 0).await;
}

#[tokio::test]
async fn a_replica_that_takes_over_takes_nothing_for_the_old_epoch() {
    // The first replica makes a master another one; so it comes before the epoch.
    let server = Redis::start().await.unwrap();
    let replica = server.replica().await.unwrap();
    let url = format!("{},127.0.0.1:{}", server.url(), replica.port());
    let mut node = Node::open(&url, patient(), 100).await;
    node.take(2).await;
    server.kill().unwrap();
    let waiting = until(
        "an answer",
        async || node.accept(&node.order(3)).await,
        |answer| matches!(answer, Err(CacheError::Unavailable(_))),
    );
    waiting.await.unwrap_err();
    replica.promote().await.unwrap();
    let answer = until("a connection", async || node.accept(&node.order(3)).await, Result::is_ok).await;
    assert_eq!(answer, Ok(Answer::WentBack));
    node.rebuild(98).await;
    node.take(3).await;
}

#[tokio::test]
async fn a_master_that_is_made_a_replica_and_a_master_again_is_another_one() {
    let mut rig = Rig::open(100).await;
    rig.node.take(1).await;
    let other = Redis::start().await.unwrap();
    let port = other.port().to_string();
    rig.server.command(&["REPLICAOF", "127.0.0.1", &port]).await.unwrap();
    assert!(matches!(rig.node.accept(&rig.node.order(2)).await, Err(CacheError::Unavailable(_))));
    rig.server.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    // Its connections live on, and so does the word of who it was: asked, it says otherwise.
    let identity = until("an identity", async || rig.node.cache.identity(BUCKET).await, Result::is_ok).await;
    assert_ne!(identity.unwrap(), rig.node.identity);
    assert_eq!(rig.node.accept(&rig.node.order(2)).await, Ok(Answer::WentBack));
    rig.node.rebuild(99).await;
    rig.node.take(2).await;
}
