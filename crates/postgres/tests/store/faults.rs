//! Faults of the server and of the way to it. What was answered stands; what could not be answered is told as
//! unknown, never guessed; and everything heals by itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_core::campaign::Policy;
use holdfast_core::command::{How, Outcome};
use holdfast_core::id::OrderId;
use holdfast_postgres::PostgresStore;
use holdfast_store::{Error, Store};
use holdfast_testkit::{FaultProxy, Postgres, Way};

use crate::support::{assert_clean, bucket, commit, is_held, node, place, put, shop};

async fn server() -> (Postgres, String) {
    let server = Postgres::start().await.expect("a private PostgreSQL");
    let url = server.create_database("shop").await.unwrap();
    (server, url)
}

/// The COMMIT is made, its answer is not heard: it is looked up, and answered as what it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_answered_all_the_same() {
    let (server, url) = server().await;
    let proxy = FaultProxy::postgres(server.port()).await.unwrap();
    let store = node(&proxy.through(&url)).await;
    shop(&*store, Policy { account_limit: Some(100), ..Policy::default() }, 1_000, 2).await;
    for number in 1..=20_u128 {
        proxy.lose_commit_answers(1);
        let locks = bucket(u32::try_from(number % 2).unwrap());
        let outcomes = commit(&*store, locks, vec![place(number, number, "ann")]).await.unwrap();
        let Outcome::Order { how: How::Created, order, .. } = &outcomes[0] else { panic!("{outcomes:?}") };
        assert_eq!(store.order(OrderId(number)).await.unwrap().as_ref(), Some(order));
    }
    assert!(proxy.commit_answers_lost().await >= 20);
    assert_clean(&*store).await;
}

/// A campaign's answer that is lost is unknown, and asking again tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_write_whose_answer_was_lost_is_unknown() {
    let (server, url) = server().await;
    let proxy = FaultProxy::postgres(server.port()).await.unwrap();
    let store = node(&proxy.through(&url)).await;
    shop(&*store, Policy::default(), 10, 1).await;
    proxy.lose_commit_answers(1);
    let switch = holdfast_store::SwitchCampaign {
        unsold_to: None,
        id: crate::support::campaign(),
        switch: holdfast_core::campaign::Switch::Pause,
        operator: holdfast_core::id::Operator::new("ann").unwrap(),
        reason: "test".into(),
        via: None,
    };
    let lost = store.switch_campaign(switch.clone()).await;
    assert!(matches!(lost, Err(Error::OutcomeUnknown(_))), "{lost:?}");
    assert!(store.switch_campaign(switch).await.unwrap().unwrap().switches.paused);
}

/// Cut before anything was committed: the batch begins anew on another connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_cut_while_idle_is_not_noticed_by_anybody() {
    let (server, url) = server().await;
    let store = node(&url).await;
    shop(&*store, Policy::default(), 1_000, 1).await;
    for number in 1..=10_u128 {
        server.cut_connections().await.unwrap();
        let outcomes = commit(&*store, bucket(0), vec![place(number, number, "ann")]).await.unwrap();
        assert!(is_held(&outcomes[0]));
        server.cut_connections().await.unwrap();
        assert!(store.order(OrderId(number)).await.unwrap().is_some());
    }
    assert_clean(&*store).await;
}

/// Sells until it is told to stop; the orders that were said to be held, and those whose outcome is unknown.
async fn sell(
    store: Arc<PostgresStore>,
    first: u128,
    stop: Arc<AtomicBool>,
) -> (BTreeSet<u128>, BTreeSet<u128>) {
    let (mut held, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    let mut number = first;
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let locks = bucket(u32::try_from(number % 2).unwrap());
        match commit(&*store, locks, vec![place(number, number, "ann")]).await {
            Ok(outcomes) if is_held(&outcomes[0]) => drop(held.insert(number)),
            Ok(outcomes) => panic!("{outcomes:?}"),
            Err(Error::OutcomeUnknown(_)) => drop(unknown.insert(number)),
            Err(Error::Unavailable(_) | Error::Conflict(_) | Error::Timeout) => {
                tokio::task::yield_now().await
            }
            Err(error) => panic!("{error}"),
        }
    }
    (held, unknown)
}

async fn no_answer_was_wrong(
    store: &PostgresStore,
    sold: Vec<(BTreeSet<u128>, BTreeSet<u128>)>,
    floor: usize,
) {
    let (mut held, mut told) = (0, 0);
    for (said_held, unknown) in sold {
        told += said_held.len();
        for number in &said_held {
            assert!(store.order(OrderId(*number)).await.unwrap().is_some(), "order {number} was lost");
        }
        for number in &unknown {
            held += usize::from(store.order(OrderId(*number)).await.unwrap().is_some());
        }
    }
    assert!(told >= floor, "only {told} orders");
    let row = store.pool(holdfast_core::id::PoolId(1)).await.unwrap().unwrap();
    let in_stock: u64 = row.buckets.iter().map(|bucket| bucket.held).sum();
    assert!(in_stock >= u64::try_from(told + held).unwrap());
    assert_clean(store).await;
}

/// Killed and started again under load, five times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_again_and_again_loses_no_answer() {
    let (server, url) = server().await;
    let store = node(&url).await;
    shop(&*store, Policy::default(), 1_000_000, 2).await;
    let stop = Arc::new(AtomicBool::new(false));
    let sellers: Vec<_> = (0..4_u128)
        .map(|seller| tokio::spawn(sell(Arc::clone(&store), 1 + seller * 1_000_000, Arc::clone(&stop))))
        .collect();
    for round in 1..=5_u128 {
        sold_more(&store, round * 100).await;
        server.kill().unwrap();
        server.restart().await.unwrap();
    }
    sold_more(&store, 600).await;
    stop.store(true, Ordering::SeqCst);
    let mut sold = Vec::new();
    for seller in sellers {
        sold.push(seller.await.unwrap());
    }
    no_answer_was_wrong(&store, sold, 500).await;
}

/// Waits until so many units are held.
async fn sold_more(store: &PostgresStore, units: u128) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not heal");
        if let Ok(Some(row)) = store.pool(holdfast_core::id::PoolId(1)).await
            && row.buckets.iter().map(|bucket| u128::from(bucket.held)).sum::<u128>() >= units
        {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Read-only for a while, as its host makes it before the disk is full: nothing is written, also not by connections
/// that were there before, nothing is made up, and it heals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_only_reads_is_unavailable_until_it_writes_again() {
    let (server, url) = server().await;
    let store = node(&url).await;
    shop(&*store, Policy::default(), 10, 1).await;
    server.set_read_only(true).await.unwrap();
    let error = commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert!(store.outage().is_some());
    server.set_read_only(false).await.unwrap();
    assert!(is_held(&commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await.unwrap()[0]));
    assert!(store.outage().is_none());
    assert_clean(&*store).await;
}

/// Nothing comes back and nothing is refused: whoever reads is told in time, and what was written is unknown only
/// as long as nobody can know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_server_keeps_nobody_waiting_for_ever() {
    let (server, url) = server().await;
    let proxy = FaultProxy::postgres(server.port()).await.unwrap();
    let store = node(&proxy.through(&url)).await;
    shop(&*store, Policy::default(), 10, 1).await;
    proxy.hold(Way::ToClient);
    let begun = Instant::now();
    let silent = store.order(OrderId(1)).await;
    assert!(matches!(silent, Err(Error::Timeout | Error::Unavailable(_))), "{silent:?}");
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move { commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await }
    });
    proxy.pass(Way::ToClient);
    proxy.cut().await;
    let written = writing.await.unwrap();
    assert!(matches!(&written, Ok(outcomes) if is_held(&outcomes[0])), "{written:?}");
    assert_clean(&*store).await;
}

/// The wait for a standby is cancelled: the commit is on one disk. It is unknown until the standbys are asked no
/// more, and then it is what it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_no_standby_has_is_not_answered() {
    let (server, url) = server().await;
    let store = node(&url).await;
    shop(&*store, Policy::default(), 10, 1).await;
    server.set("synchronous_standby_names", "nobody").await.unwrap();
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move { commit(&*store, bucket(0), vec![place(1, 1, "ann")]).await }
    });
    let waiting = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while server.sql("postgres", waiting).await.unwrap() == "0" {
        tokio::task::yield_now().await;
    }
    let written = writing.await.unwrap();
    assert!(matches!(written, Err(Error::OutcomeUnknown(_))), "{written:?}");
    // Nor is it told to whoever looks: a node asks only where it has itself committed something since.
    let looked = store.order(OrderId(1)).await;
    assert!(looked.is_err(), "{looked:?}");
    server.set("synchronous_standby_names", "").await.unwrap();
    put(&*store, Policy::default()).await;
    assert!(store.order(OrderId(1)).await.unwrap().is_some());
    let outcomes = commit(&*store, bucket(0), vec![place(2, 1, "ann")]).await.unwrap();
    assert!(matches!(&outcomes[0], Outcome::Order { how: How::Repeated, .. }), "{outcomes:?}");
    assert_clean(&*store).await;
}
