//! Routing, paths, limits of a pool, stock that moves, and changes that another node made.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{
    Adjust, AdjustmentKind, ChangePool, How, OrderAction, Outcome, Sweep, Transfer, TransferEnd,
};
use holdfast_core::id::{AdjustmentId, Operator, PoolId, SweepId, TransferId};
use holdfast_core::order::State;
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::{Path, PoolSwitch, Routing};
use holdfast_engine::{Config, Error};
use holdfast_store::model::Fault;
use holdfast_store::{Store, SwitchPool};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::{Sale, order, refusal, request, settle, signed, success};

fn change(pool: PoolId) -> ChangePool {
    ChangePool {
        pool,
        path: None,
        routing: None,
        weights: None,
        buckets: None,
        max_concurrency: None,
        cache_fallback: None,
        signed: signed(),
    }
}

async fn changed(sale: &Sale, change: ChangePool) {
    let outcome = sale.engine.change_pool(change).await.unwrap();
    assert!(matches!(outcome, Outcome::Pool { how: How::Changed, .. }), "{outcome:?}");
}

/// Held units by bucket.
async fn held(sale: &Sale, pool: PoolId) -> Vec<u64> {
    let row = sale.store.pool(pool).await.unwrap().unwrap();
    row.buckets.iter().map(|bucket| bucket.held).collect()
}

async fn place_in_turn(sale: &Sale, orders: std::ops::Range<u32>, account: impl Fn(u32) -> String) {
    for n in orders {
        let sent = request(&format!("o{n}"), &account(n), &[("A", 1)]);
        order(&sale.place(sent).await.unwrap());
    }
}

fn place_all(sale: &Arc<Sale>, orders: std::ops::Range<u32>) -> JoinSet<Result<Outcome, Error>> {
    let mut tasks = JoinSet::new();
    for n in orders {
        let sale = Arc::clone(sale);
        tasks.spawn(async move { sale.place(request(&format!("o{n}"), "ann", &[("A", 1)])).await });
    }
    tasks
}

#[tokio::test]
async fn orders_go_to_buckets_by_weight_and_a_change_takes_effect_at_once() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 400, 4).await;
    let in_turn = ChangePool { routing: Some(Routing::RoundRobin), ..change(pool) };
    changed(&sale, ChangePool { weights: Some(vec![3, 0, 1, 0]), ..in_turn }).await;
    place_in_turn(&sale, 0..40, |_| "ann".into()).await;
    assert_eq!(held(&sale, pool).await, [30, 0, 10, 0]);
    changed(&sale, ChangePool { weights: Some(vec![0, 1, 0, 0]), ..change(pool) }).await;
    place_in_turn(&sale, 40..50, |_| "ann".into()).await;
    assert_eq!(held(&sale, pool).await, [30, 10, 10, 0]);
    sale.assert_clean().await;
}

#[tokio::test]
async fn each_routing_keeps_its_word() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 8_000, 8).await;
    let mut spread = Vec::new();
    for (turn, routing) in (0_u32..).zip(Routing::ALL) {
        if *routing != Routing::OrderHash {
            changed(&sale, ChangePool { routing: Some(*routing), ..change(pool) }).await;
        }
        let before = held(&sale, pool).await;
        // Half of the orders by one account.
        place_in_turn(&sale, turn * 64..turn * 64 + 64, |n| format!("a{}", if n % 2 == 0 { 0 } else { n }))
            .await;
        let after = held(&sale, pool).await;
        let mut by_bucket: Vec<_> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        by_bucket.sort_unstable();
        spread.push((*routing, by_bucket));
    }
    for (routing, by_bucket) in spread {
        let most = by_bucket[7];
        match routing {
            Routing::OrderHash | Routing::Random => assert!(by_bucket[0] > 0 && most < 20, "{by_bucket:?}"),
            Routing::RoundRobin => assert_eq!(by_bucket, [8; 8]),
            Routing::AccountHash => assert!((32..48).contains(&most), "{by_bucket:?}"),
            Routing::NodeAffinity => assert_eq!(most, 64, "one node, one bucket"),
        }
    }
    sale.assert_clean().await;
}

#[tokio::test]
async fn the_last_unit_sells_wherever_it_is() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    let pool = sale.pool("A", 30, 10).await;
    changed(&sale, ChangePool { weights: Some([vec![1], vec![0; 9]].concat()), ..change(pool) }).await;
    let (mut sold, mut refused) = (0, 0);
    let mut tasks = place_all(&sale, 0..60);
    while let Some(outcome) = tasks.join_next().await {
        match outcome.unwrap().unwrap() {
            Outcome::Order { .. } => sold += 1,
            Outcome::Refused { refusal: Refusal::SoldOut(shortage), .. } => {
                assert_eq!(shortage.available, 0, "no false sold-out");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((sold, refused), (30, 30));
    sale.assert_clean().await;
}

#[tokio::test]
async fn the_direct_path_is_one_transaction_an_order_and_several_at_a_time() {
    let config = Config { direct_flights_max: 4, ..Config::default() };
    let sale = Arc::new(Sale::open(Policy::default(), config).await);
    let pool = sale.pool("A", 100, 1).await;
    changed(&sale, ChangePool { path: Some(Path::Direct), ..change(pool) }).await;
    let signal = Arc::new(Notify::new());
    let before = sale.store.commits();
    for flight in 0..4 {
        sale.fail_after(flight, Fault::Wait(signal.clone()));
    }
    let mut tasks = place_all(&sale, 0..20);
    settle().await;
    assert_eq!(sale.store.commits(), before + 4, "as many as may are under way");
    signal.notify_one();
    for _ in 0..17 {
        order(&tasks.join_next().await.unwrap().unwrap().unwrap());
    }
    assert_eq!(sale.store.commits(), before + 20, "one transaction an order; the slow ones hold nobody up");
    signal.notify_waiters();
    while let Some(outcome) = tasks.join_next().await {
        order(&outcome.unwrap().unwrap());
    }
    sale.engine.drain(Duration::from_secs(5)).await.unwrap();
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_path_changes_while_it_sells() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    let pool = sale.pool("A", 90, 3).await;
    let mut tasks = place_all(&sale, 0..30);
    settle().await;
    changed(&sale, ChangePool { path: Some(Path::Direct), buckets: Some(5), ..change(pool) }).await;
    let mut more = place_all(&sale, 30..60);
    settle().await;
    changed(&sale, ChangePool { path: Some(Path::Batched), ..change(pool) }).await;
    let mut last = place_all(&sale, 60..100);
    let mut held = 0;
    for set in [&mut tasks, &mut more, &mut last] {
        while let Some(outcome) = set.join_next().await {
            held += u32::from(matches!(outcome.unwrap().unwrap(), Outcome::Order { .. }));
        }
    }
    assert_eq!((held, sale.balances(pool).await), (90, (0, 90, 0)));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_pool_places_as_many_at_a_time_as_it_may() {
    let sale = Arc::new(Sale::open(Policy::default(), Config::default()).await);
    let pool = sale.pool("A", 10, 1).await;
    place_in_turn(&sale, 100..101, |_| "ann".into()).await;
    changed(&sale, ChangePool { max_concurrency: Some(Some(2)), ..change(pool) }).await;
    let signal = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(signal.clone()));
    let mut tasks = place_all(&sale, 0..2);
    settle().await;
    let third = sale.place(request("o2", "ann", &[("A", 1)])).await;
    assert_eq!(third.unwrap_err(), Error::Overloaded);
    // A key that is known is answered all the same.
    assert_eq!(order(&sale.place(request("o100", "ann", &[("A", 1)])).await.unwrap()).1, How::Repeated);
    signal.notify_one();
    while let Some(outcome) = tasks.join_next().await {
        order(&outcome.unwrap().unwrap());
    }
    let (third, _) = order(&sale.place(request("o2", "ann", &[("A", 1)])).await.unwrap());
    // 0 lets nobody in; what is held goes on.
    changed(&sale, ChangePool { max_concurrency: Some(Some(0)), ..change(pool) }).await;
    let none = sale.place(request("o3", "ann", &[("A", 1)])).await;
    assert_eq!(none.unwrap_err(), Error::Overloaded);
    assert_eq!(order(&sale.change(third.id, success("e1")).await).0.state, State::Sold);
    let (held, _) = order(&sale.place(request("o100", "ann", &[("A", 1)])).await.unwrap());
    assert_eq!(order(&sale.change(held.id, OrderAction::Cancel).await).0.state, State::Released);
    changed(&sale, ChangePool { max_concurrency: Some(None), ..change(pool) }).await;
    order(&sale.place(request("o3", "ann", &[("A", 1)])).await.unwrap());
    sale.assert_clean().await;
}

#[tokio::test]
async fn stock_moves_and_is_sold_where_it_went() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let (a, b) = (sale.pool("A", 6, 3).await, sale.pool("B", 0, 1).await);
    let end = |pool, bucket| TransferEnd { pool, bucket };
    let transfer = |id: &str, from, to, quantity| Transfer {
        transfer_id: TransferId::new(id).unwrap(),
        from,
        to,
        quantity,
        signed: signed(),
    };
    assert!(matches!(
        refusal(&sale.place(request("o1", "ann", &[("B", 2)])).await.unwrap()),
        Refusal::SoldOut(_)
    ));
    let moved = transfer("t1", end(a, None), end(b, None), 2);
    for repeated in [false, true] {
        let outcome = sale.engine.transfer(moved.clone()).await.unwrap();
        assert_eq!(outcome, Outcome::Transferred { repeated });
    }
    order(&sale.place(request("o2", "ann", &[("B", 2)])).await.unwrap());
    let sweep = |pool| Sweep { id: SweepId(0), pool, bucket: None, signed: signed() };
    let outcome = sale.engine.sweep(sweep(a)).await.unwrap();
    assert!(matches!(outcome, Outcome::Pool { how: How::Changed, .. }), "{outcome:?}");
    let (fits, _) = order(&sale.place(request("o3", "ann", &[("A", 4)])).await.unwrap());
    assert_eq!(fits.lines[0].allocations.len(), 1, "one bucket has it all");
    let within = transfer("t2", end(a, Some(0)), end(a, Some(2)), 1);
    assert!(matches!(refusal(&sale.engine.transfer(within).await.unwrap()), Refusal::StockInUse(_)));
    let unknown = transfer("t3", end(PoolId(9_999), None), end(a, None), 1);
    assert_eq!(refusal(&sale.engine.transfer(unknown).await.unwrap()), Refusal::UnknownPool);
    sale.assert_clean().await;
}

#[tokio::test]
async fn what_another_node_changed_is_known_once_it_was_asked_for() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 20, 2).await;
    let here = sale.another_node();
    order(&here.place(request("o1", "ann", &[("A", 1)])).await.unwrap());
    // Whatever is known here, the authority decides.
    sale.switch(Switch::Pause).await;
    let before = sale.store.commits();
    let paused = here.place(request("o2", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!((refusal(&paused), sale.store.commits()), (Refusal::CampaignPaused, before + 1));
    // Told, it refuses at the entry.
    here.engine.refresh_catalog().await.unwrap();
    let paused = here.place(request("o2", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!((refusal(&paused), sale.store.commits()), (Refusal::CampaignPaused, before + 1));
    sale.switch(Switch::Resume).await;
    changed(&sale, ChangePool { max_concurrency: Some(Some(0)), buckets: Some(3), ..change(pool) }).await;
    here.engine.refresh_catalog().await.unwrap();
    assert_eq!(here.place(request("o2", "ann", &[("A", 1)])).await.unwrap_err(), Error::Overloaded);
    let operator = Operator::new("olga").unwrap();
    let retire =
        SwitchPool { id: pool, switch: PoolSwitch::Retire, operator, reason: String::new(), via: None };
    sale.engine.switch_pool(retire).await.unwrap().unwrap();
    here.engine.refresh_catalog().await.unwrap();
    let before = sale.store.commits();
    let gone = here.place(request("o2", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!((refusal(&gone), sale.store.commits()), (Refusal::UnknownSku { line: 1 }, before));
    let (known, how) = order(&here.place(request("o1", "ann", &[("A", 1)])).await.unwrap());
    assert_eq!((known.state, how), (State::Held, How::Repeated));
    sale.assert_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_asks_by_itself_within_its_interval() {
    let config = Config { catalog_interval: Duration::from_millis(250), ..Config::default() };
    let sale = Sale::open(Policy::default(), config).await;
    sale.pool("A", 20, 2).await;
    let here = sale.another_node();
    here.engine.start_workers();
    order(&here.place(request("o1", "ann", &[("A", 1)])).await.unwrap());
    sale.switch(Switch::Freeze).await;
    tokio::time::advance(Duration::from_millis(251)).await;
    settle().await;
    let before = sale.store.commits();
    let frozen = here.place(request("o2", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!((refusal(&frozen), sale.store.commits()), (Refusal::Frozen, before));
    here.engine.drain(Duration::from_secs(1)).await.unwrap();
}

#[tokio::test]
async fn stock_that_came_in_on_another_node_is_sold_here() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 1, 1).await;
    let here = sale.another_node();
    order(&here.place(request("o1", "ann", &[("A", 1)])).await.unwrap());
    let empty = here.place(request("o2", "ann", &[("A", 1)])).await.unwrap();
    assert!(matches!(refusal(&empty), Refusal::SoldOut(_)));
    // The pool grows there, and what comes in goes to the new bucket.
    changed(&sale, ChangePool { buckets: Some(2), ..change(pool) }).await;
    let inbound = Adjust {
        adjustment_id: AdjustmentId::new("in").unwrap(),
        pool,
        delta: 3,
        kind: AdjustmentKind::Inbound,
        bucket: Some(1),
        signed: signed(),
    };
    sale.engine.adjust(inbound).await.unwrap();
    // Known here once the shelf is read anew, whether the catalog was or not.
    sale.clock.advance_millis(1_000);
    here.engine.availability(pool).await.unwrap().unwrap();
    order(&here.place(request("o3", "ann", &[("A", 2)])).await.unwrap());
    here.engine.refresh_catalog().await.unwrap();
    order(&here.place(request("o4", "ann", &[("A", 1)])).await.unwrap());
    sale.assert_clean().await;
}
