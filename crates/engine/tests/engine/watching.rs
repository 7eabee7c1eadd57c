//! Waiting for an order to change.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::Policy;
use holdfast_core::command::{Command, OrderAction, Place, PlaceLine};
use holdfast_core::id::*;
use holdfast_core::order::State;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_engine::{Config, Error};
use holdfast_store::{Batch, Store};

use crate::support::{Sale, campaign, order, request, success};

const LONG: Duration = Duration::from_secs(60);

fn attempt(n: u32) -> OrderAction {
    OrderAction::Attempt(AttemptId::new(&format!("a{n}")).unwrap(), Provider::new("bank").unwrap())
}

#[tokio::test]
async fn who_watches_is_told_of_each_change_until_the_node_stops() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 3, 1).await;
    let id = order(&sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap()).0.id;
    let other = order(&sale.place(request("o2", "ann", &[("A", 1)])).await.unwrap()).0.id;
    let watcher = sale.engine.watch(id).unwrap();
    sale.change(other, OrderAction::Cancel).await;
    sale.change(id, attempt(1)).await;
    sale.change(id, success("e1")).await;
    let seen = [watcher.changed().await.unwrap(), watcher.changed().await.unwrap()];
    let seen = seen.map(|order| (order.id, order.version, order.state));
    assert_eq!(seen, [(id, 2, State::Held), (id, 3, State::Sold)]);
    let (ended, drained) = tokio::join!(watcher.changed(), sale.engine.drain(LONG));
    assert_eq!((ended, drained), (None, Ok(())));
    assert!(matches!(sale.engine.watch(id), Err(Error::ShuttingDown)));
}

#[tokio::test]
async fn a_slow_reader_gets_the_latest_and_costs_no_more() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 3, 1).await;
    let id = order(&sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap()).0.id;
    let watcher = sale.engine.watch(id).unwrap();
    for n in 0..50 {
        sale.change(id, attempt(n)).await;
    }
    let mut versions = Vec::new();
    while versions.last() != Some(&51) {
        versions.push(watcher.changed().await.unwrap().version);
    }
    assert!(versions.len() <= 8, "{versions:?}");
}

#[tokio::test]
async fn watchers_are_bounded_and_make_room_when_they_leave() {
    let sale = Sale::open(Policy::default(), Config { watchers_max: 2, ..Config::default() }).await;
    let (first, second) = (sale.engine.watch(OrderId(7)).unwrap(), sale.engine.watch(OrderId(7)).unwrap());
    assert!(matches!(sale.engine.watch(OrderId(8)), Err(Error::Overloaded)));
    drop(first);
    let third = sale.engine.watch(OrderId(8)).unwrap();
    assert_eq!(sale.engine.watchers(), 2);
    drop((second, third));
    assert_eq!(sale.engine.watchers(), 0);
}

/// An order that is queued, and that nobody lands.
async fn queued(sale: &Sale, pool: PoolId) -> OrderId {
    let place = Place {
        id: OrderId(77),
        key: OrderKey { campaign: campaign(), order_no: OrderNo::new("q1").unwrap() },
        account: Account::new("ann").unwrap(),
        lines: vec![PlaceLine {
            sku: Sku::new("A").unwrap(),
            location: Some(Location::new("main").unwrap()),
            pool,
            made_of: None,
            quantity: 1,
        }],
        hold_seconds: None,
        amount_due: None,
        limit_keys: holdfast_core::limit::LimitKeys::new(),
        metadata: None,
        route: 0,
        record_refusals: true,
        assortment: None,
        intake: Some(BucketKey { pool, number: 0 }),
    };
    let commands = Arc::new(vec![Command::Place(Arc::new(place))]);
    let outcomes = sale.store.commit(Batch { locks: LockSet::pool(pool), commands }).await.unwrap().outcomes;
    assert_eq!(order(&outcomes[0]).0.state, State::Queued);
    OrderId(77)
}

#[tokio::test]
async fn a_wait_ends_when_the_queued_order_is_decided() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 3, 1).await;
    let id = queued(&sale, pool).await;
    let land = async {
        while sale.engine.watchers() == 0 {
            tokio::task::yield_now().await;
        }
        sale.change(id, OrderAction::Land).await
    };
    let (found, _) = tokio::join!(sale.engine.order_when_decided(id, None, LONG), land);
    assert_eq!(found.unwrap().into_order().unwrap().state, State::Held);
    assert_eq!(
        sale.engine.order_when_decided(id, None, LONG).await.unwrap().into_order().unwrap().state,
        State::Held
    );
    assert_eq!(sale.engine.order_when_decided(OrderId(1), None, LONG).await.unwrap().into_order(), None);
    assert_eq!(sale.engine.watchers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_over_in_time_or_when_the_node_stops() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 3, 1).await;
    let id = queued(&sale, pool).await;
    let started = tokio::time::Instant::now();
    let found = sale
        .engine
        .order_when_decided(id, None, Duration::from_secs(30))
        .await
        .unwrap()
        .into_order()
        .unwrap();
    assert_eq!((found.state, started.elapsed().as_secs()), (State::Queued, 30));
    let (found, _) = tokio::join!(sale.engine.order_when_decided(id, None, LONG), sale.engine.drain(LONG));
    assert_eq!(
        (found.unwrap().into_order().unwrap().state, started.elapsed().as_secs()),
        (State::Queued, 30)
    );
}
