//! Batches, bisection, retries, limits, draining.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::Policy;
use holdfast_core::command::{How, OrderAction, Outcome};
use holdfast_core::id::{OrderKey, OrderNo};
use holdfast_core::order::State;
use holdfast_engine::{Config, Error};
use holdfast_store::Store;
use holdfast_store::model::Fault;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::{Sale, campaign, order, request, settle};

fn place_all(sale: &Arc<Sale>, orders: std::ops::Range<u32>) -> JoinSet<Result<Outcome, Error>> {
    let mut tasks = JoinSet::new();
    for n in orders {
        let sale = Arc::clone(sale);
        tasks.spawn(async move { sale.place(request(&format!("o{n}"), "ann", &[("A", 1)])).await });
    }
    tasks
}

#[tokio::test]
async fn the_next_batch_gathers_while_one_commits() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    sale.pool("A", 100, 1).await;
    let signal = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(signal.clone()));
    let before = sale.store.commits();
    let mut tasks = place_all(&sale, 0..1);
    settle().await;
    let mut more = place_all(&sale, 1..51);
    settle().await;
    assert_eq!(sale.store.commits(), before + 1, "one batch commits, all others wait");
    signal.notify_one();
    while let Some(outcome) = more.join_next().await {
        order(&outcome.unwrap().unwrap());
    }
    order(&tasks.join_next().await.unwrap().unwrap().unwrap());
    assert_eq!(sale.store.commits(), before + 2);
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_batch_of_one_is_slower_and_never_wrong() {
    let config = Config { batch_size_max: 1, wide_batch_size_max: 1, ..Config::default() };
    let sale = Arc::new(Sale::open(Policy::default(), config).await);
    let pool = sale.pool("A", 30, 3).await;
    let mut tasks = place_all(&sale, 0..40);
    let mut held = 0;
    while let Some(outcome) = tasks.join_next().await {
        held += u32::from(matches!(outcome.unwrap().unwrap(), Outcome::Order { .. }));
    }
    assert_eq!(held, 30);
    assert_eq!(sale.balances(pool).await, (0, 30, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn one_bad_command_never_sinks_its_batch() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    sale.pool("A", 100, 1).await;
    let signal = Arc::new(Notify::new());
    let culprit = OrderKey { campaign: campaign(), order_no: OrderNo::new("o13").unwrap() };
    sale.fail_after(0, Fault::Wait(signal.clone()));
    sale.fail_after(1, Fault::Unstorable(culprit));
    let mut tasks = place_all(&sale, 0..1);
    settle().await;
    let mut more = place_all(&sale, 1..41);
    settle().await;
    signal.notify_one();
    let (mut held, mut failed) = (0, 0);
    while let Some(outcome) = more.join_next().await {
        match outcome.unwrap() {
            Ok(outcome) => held += u32::from(order(&outcome).1 == How::Created),
            Err(Error::Store(holdfast_store::Error::Data(_))) => failed += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!((held, failed), (39, 1));
    order(&tasks.join_next().await.unwrap().unwrap().unwrap());
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_conflict_is_tried_again_a_bounded_number_of_times() {
    let config = Config { retries_max: 2, ..Config::default() };
    let sale = Sale::open(Policy::default(), config).await;
    sale.pool("A", 10, 1).await;
    let conflict = || Fault::Before(holdfast_store::Error::Conflict("on request".into()));
    sale.fail_after(0, conflict());
    sale.fail_after(1, conflict());
    order(&sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap());
    for n in 0..3 {
        sale.fail_after(n, conflict());
    }
    let error = sale.place(request("o2", "ann", &[("A", 1)])).await.unwrap_err();
    assert!(matches!(error, Error::Store(holdfast_store::Error::Conflict(_))));
    order(&sale.place(request("o2", "ann", &[("A", 1)])).await.unwrap());
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_full_lane_turns_placing_away_at_once_and_keeps_room_for_releases() {
    let config = Config { lane_depth_max: 5, ..Config::default() };
    let sale = Arc::new(Sale::open(Policy::default(), config).await);
    sale.pool("A", 100, 1).await;
    let (held, _) = order(&sale.place(request("first", "ann", &[("A", 1)])).await.unwrap());
    let signal = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(signal.clone()));
    let mut tasks = place_all(&sale, 0..1);
    settle().await;
    let mut more = place_all(&sale, 1..11);
    settle().await;
    let cancel = {
        let sale = Arc::clone(&sale);
        tokio::spawn(async move { sale.change(held.id, OrderAction::Cancel).await })
    };
    settle().await;
    signal.notify_one();
    let (mut held, mut turned_away) = (0, 0);
    while let Some(outcome) = more.join_next().await {
        match outcome.unwrap() {
            Ok(outcome) => held += u32::from(order(&outcome).1 == How::Created),
            Err(Error::Overloaded) => turned_away += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!((held, turned_away), (5, 5));
    assert_eq!(order(&cancel.await.unwrap()).0.state, State::Released);
    order(&tasks.join_next().await.unwrap().unwrap().unwrap());
    sale.assert_clean().await;
}

#[tokio::test]
async fn repeats_join_the_key_in_flight() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    sale.pool("A", 1, 1).await;
    let signal = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(signal.clone()));
    let before = sale.store.commits();
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let sale = Arc::clone(&sale);
        tasks.spawn(async move { sale.place(request("same", "ann", &[("A", 1)])).await });
    }
    settle().await;
    signal.notify_one();
    let mut created = 0;
    while let Some(outcome) = tasks.join_next().await {
        created += u32::from(order(&outcome.unwrap().unwrap()).1 == How::Created);
    }
    assert_eq!((created, sale.store.commits()), (1, before + 1));
}

#[tokio::test]
async fn a_caller_that_goes_away_stops_nothing() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    let pool = sale.pool("A", 10, 1).await;
    let signal = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(signal.clone()));
    let mut tasks = place_all(&sale, 0..3);
    settle().await;
    tasks.abort_all();
    while tasks.join_next().await.is_some() {}
    signal.notify_one();
    sale.engine.drain(Duration::from_secs(5)).await.unwrap();
    assert_eq!(sale.balances(pool).await, (7, 3, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn draining_finishes_what_was_accepted_and_takes_nothing_new() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    let pool = sale.pool("A", 10, 1).await;
    let signal = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(signal.clone()));
    let mut tasks = place_all(&sale, 0..4);
    settle().await;
    let drain = {
        let sale = Arc::clone(&sale);
        tokio::spawn(async move { sale.engine.drain(Duration::from_secs(5)).await })
    };
    settle().await;
    assert!(sale.engine.readiness().is_err());
    assert_eq!(sale.place(request("late", "ann", &[("A", 1)])).await, Err(Error::ShuttingDown));
    signal.notify_one();
    drain.await.unwrap().unwrap();
    while let Some(outcome) = tasks.join_next().await {
        order(&outcome.unwrap().unwrap());
    }
    assert_eq!(sale.balances(pool).await, (6, 4, 0));
    assert_eq!(sale.store.health(), Ok(()));
}
