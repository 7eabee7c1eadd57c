//! Entries on their way to who lands them.

use std::time::Duration;

use holdfast_core::cache::Epoch;
use holdfast_engine::{Answer, Cache, CacheError, Delivery};

use crate::support::{BUCKET, Rig, key, order, patient};

#[tokio::test]
async fn entries_come_in_their_order_once_and_again_to_who_takes_them_over() {
    let rig = Rig::open(10).await;
    let node = &rig.node;
    let mut taken = Vec::new();
    for number in 0..5 {
        taken.push(node.take(number).await.entry);
    }
    let entries = |landings: Vec<std::sync::Arc<holdfast_core::cache::Landing>>| {
        landings.iter().map(|landing| landing.accepted.entry).collect::<Vec<_>>()
    };
    assert_eq!(entries(node.deliver_orders(2).await), taken[..2]);
    assert_eq!(entries(node.deliver_orders(9).await), taken[2..]);
    assert!(node.deliver(9).await.is_empty());

    node.settle(&taken[1..2]).await;
    let claim = async |idle| node.cache.claim(BUCKET, "heir", 3, idle).await.unwrap();
    assert!(claim(Duration::from_secs(3_600)).await.is_empty(), "somebody is at work on them");
    let claimed = claim(Duration::ZERO).await.into_iter().map(order).collect();
    assert_eq!(entries(claimed), [taken[0], taken[2], taken[3]]);
    node.settle(&taken).await;
    assert!(claim(Duration::ZERO).await.is_empty());
    assert_eq!((node.position().await.backlog, node.position().await.settled), (0, 5));
}

#[tokio::test]
async fn who_waits_is_given_what_comes_and_holds_up_nobody() {
    let rig = Rig::open(10).await;
    let node = &rig.node;
    let cache = std::sync::Arc::clone(&node.cache);
    let waiting =
        tokio::spawn(async move { cache.deliver(BUCKET, "lander", 9, Duration::from_secs(20)).await });
    // Calls are answered while a read waits.
    let blocked = async || rig.server.command(&["INFO", "clients"]).await.unwrap();
    crate::support::until("the read to wait", blocked, |info| info.contains("blocked_clients:1")).await;
    let accepted = node.take(1).await;
    let delivered = waiting.await.unwrap().unwrap();
    assert_eq!(order(delivered[0].clone()).accepted, accepted);
    let nothing = node.cache.deliver(BUCKET, "lander", 9, Duration::from_millis(20)).await;
    assert_eq!(nothing, Ok(Vec::new()));
}

#[tokio::test]
async fn a_reader_whose_caller_went_away_gives_nobody_its_answer() {
    let rig = Rig::open(20).await;
    let node = &rig.node;
    for round in 0..20 {
        let read = node.cache.deliver(BUCKET, "lander", 1, Duration::from_secs(20));
        assert!(tokio::time::timeout(Duration::from_millis(5), read).await.is_err());
        let accepted = node.take(round).await;
        // To the read that was given up, perhaps; then whoever takes over has it.
        let mut landings = node.deliver_orders(1).await;
        if landings.is_empty() {
            let claimed = node.cache.claim(BUCKET, "lander", 9, Duration::ZERO).await.unwrap();
            landings = claimed.into_iter().map(order).collect();
        }
        assert_eq!(landings.pop().unwrap().accepted, accepted);
        node.settle(&[accepted.entry]).await;
    }
}

#[tokio::test]
async fn a_group_that_is_gone_is_made_again_and_nothing_that_landed_comes_back() {
    let rig = Rig::open(10).await;
    let node = &rig.node;
    for number in 0..4 {
        node.take(number).await;
    }
    let first = node.deliver_orders(2).await;
    node.settle(&[first[0].accepted.entry]).await;
    let destroy = async || {
        rig.server.command(&["XGROUP", "DESTROY", &key("stream"), "landing"]).await.unwrap();
    };
    destroy().await;
    assert_eq!(node.position().await.delivered, 0);
    let again: Vec<_> = node.deliver_orders(9).await.iter().map(|landing| landing.accepted.number).collect();
    assert_eq!(again, [2, 3, 4]);
    destroy().await;
    assert_eq!(node.cache.claim(BUCKET, "lander", 9, Duration::ZERO).await, Ok(Vec::new()));
    assert_eq!(node.deliver(9).await.len(), 3);
    // Also while a read waits for more.
    destroy().await;
    let waits = node.cache.deliver(BUCKET, "lander", 9, Duration::from_secs(5)).await.unwrap();
    assert_eq!(waits.len(), 3);
    node.assert_law(10, 0).await;
}

#[tokio::test]
async fn a_stream_that_is_gone_is_no_endless_error() {
    let rig = Rig::open(10).await;
    let node = &rig.node;
    let accepted = node.take(1).await;
    rig.server.command(&["DEL", &key("stream")]).await.unwrap();
    assert_eq!(node.deliver(9).await, []);
    let waits = node.cache.deliver(BUCKET, "lander", 9, Duration::from_millis(20)).await;
    assert_eq!(waits, Ok(Vec::new()));
    assert_eq!(node.cache.claim(BUCKET, "lander", 9, Duration::ZERO).await, Ok(Vec::new()));
    node.settle(&[accepted.entry]).await;
    assert_eq!(node.cache.position(BUCKET).await, Ok(None));
    assert_eq!(node.accept(&node.order(2)).await, Ok(Answer::WentBack));
    assert_eq!(rig.server.command(&["EXISTS", &key("stream")]).await.unwrap(), "0", "nobody makes it anew");

    // Also if nothing waited in it.
    let rig = Rig::open(10).await;
    rig.server.command(&["DEL", &key("stream")]).await.unwrap();
    assert_eq!(rig.node.accept(&rig.node.order(1)).await, Ok(Answer::WentBack));
    assert_eq!(rig.node.cache.position(BUCKET).await, Ok(None));
}

#[tokio::test]
async fn an_entry_that_was_trimmed_while_it_waited_is_noticed_and_not_tried_for_ever() {
    let rig = Rig::open(10).await;
    let node = &rig.node;
    for number in 0..3 {
        node.take(number).await;
    }
    node.deliver(2).await;
    rig.server.command(&["XTRIM", &key("stream"), "MAXLEN", "1"]).await.unwrap();
    assert!(!node.position().await.is_whole());
    assert_eq!(node.accept(&node.order(9)).await, Ok(Answer::WentBack));
    // What is left lands; what is gone troubles nobody.
    assert_eq!(node.cache.claim(BUCKET, "heir", 9, Duration::ZERO).await, Ok(Vec::new()));
    let left = node.deliver_orders(9).await;
    assert_eq!(left.iter().map(|landing| landing.accepted.number).collect::<Vec<_>>(), [3]);
    node.settle(&[left[0].accepted.entry]).await;
    let position = node.position().await;
    assert_eq!((position.backlog, position.delivered, position.is_whole()), (0, 0, false));
}

#[tokio::test]
async fn what_is_no_order_is_set_aside_with_what_can_be_read_of_it() {
    let rig = Rig::open(10).await;
    let node = &rig.node;
    let add = async |fields: &[&str]| {
        let stream = key("stream");
        let words: Vec<&str> = ["XADD", &stream, "*"].iter().chain(fields).copied().collect();
        rig.server.command(&words).await.unwrap().parse().unwrap()
    };
    let ours = add(&["epoch", "1", "number", "1", "units", "3", "order", "{\"v\":1}"]).await;
    let foreign = add(&["hello", "world"]).await;
    let deliveries = node.deliver(9).await;
    let aside: Vec<_> = deliveries
        .iter()
        .map(|delivery| match delivery {
            Delivery::Poison(aside) => (aside.accepted.entry, aside.accepted.epoch, aside.accepted.units),
            Delivery::Order(landing) => panic!("{landing:?}"),
        })
        .collect();
    assert_eq!(aside, [(ours, Epoch(1), 3), (foreign, Epoch(1), 0)]);
    // Somebody else writes to the stream: the counts no longer mean anything.
    assert_eq!(node.accept(&node.order(1)).await, Ok(Answer::WentBack));
    node.settle(&[ours, foreign]).await;
    assert_eq!(node.position().await.backlog, 0);
}

#[tokio::test]
async fn two_hundred_orders_leave_nothing_behind_in_the_stream() {
    let rig = Rig::open(1_000).await;
    let node = &rig.node;
    for round in 0..10 {
        for number in 0..20 {
            node.take(round * 20 + number).await;
        }
        let landings = node.deliver_orders(100).await;
        node.settle(&landings.iter().map(|landing| landing.accepted.entry).collect::<Vec<_>>()).await;
    }
    assert_eq!(rig.server.command(&["XLEN", &key("stream")]).await.unwrap(), "0");
    node.assert_law(1_000, 0).await;
}

#[tokio::test]
async fn a_key_of_another_kind_is_unfit_and_nothing_is_written() {
    let rig = Rig::open(10).await;
    rig.server.command(&["DEL", &key("stream")]).await.unwrap();
    rig.server.command(&["SET", &key("stream"), "x"]).await.unwrap();
    let node = rig.node.beside(&rig.server.url(), patient());
    assert!(matches!(node.accept(&node.order(1)).await, Err(CacheError::Unfit(_))));
    assert_eq!(rig.server.command(&["HGET", &key("cache"), "available"]).await.unwrap(), "10");
    assert_eq!(rig.server.command(&["EXISTS", &key("orders")]).await.unwrap(), "0");
}
