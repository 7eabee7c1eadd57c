//! The queued path: taken in at once, landed in order, each answered once, whatever breaks off between.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::{Capture, Policy, Switch};
use holdfast_core::command::{How, OrderAction, Outcome};
use holdfast_core::id::{OrderId, PoolId};
use holdfast_core::order::{Order, Reason, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::Path;
use holdfast_engine::{Config, Engine, Error, LandingPass, UuidV7};
use holdfast_store::model::Fault;
use holdfast_store::{Lease, Store};

use crate::support::{Sale, order, refusal, request, success};

const LONG: Duration = Duration::from_secs(3_600);

/// Takes orders of one unit in.
async fn take_in(sale: &Sale, orders: std::ops::Range<u32>) -> Vec<OrderId> {
    let mut ids = Vec::new();
    for n in orders {
        let (taken, how) = order(&sale.place(request(&format!("o{n}"), "ann", &[("A", 1)])).await.unwrap());
        assert_eq!((taken.state, how), (State::Queued, How::Created));
        sale.clock.advance_millis(1);
        ids.push(taken.id);
    }
    ids
}

async fn stored(sale: &Sale, id: OrderId) -> Arc<Order> {
    sale.store.order(id).await.unwrap().unwrap()
}

async fn states(sale: &Sale, ids: &[OrderId]) -> Vec<(State, Option<Reason>)> {
    let mut found = Vec::new();
    for id in ids {
        let order = stored(sale, *id).await;
        found.push((order.state, order.reason));
    }
    found
}

fn landed(count: usize) -> LandingPass {
    LandingPass { landed: count, ..LandingPass::default() }
}

#[tokio::test]
async fn who_came_first_is_served_first_and_everybody_is_answered() {
    let config = Config { landing_batch_max: 7, ..Config::default() };
    let sale = Sale::open(Policy::default(), config).await;
    let pool = sale.queued_pool("A", 20, 1).await;
    let ids = take_in(&sale, 0..50).await;
    assert_eq!(sale.balances(pool).await, (20, 0, 0), "nothing is held by waiting");
    let first = stored(&sale, ids[0]).await;
    let again = sale.place(request("o0", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&again), (first, How::Repeated), "a repeat finds the order that waits");
    assert_eq!(sale.engine.land_queued().await, landed(50));
    let expected = |n| if n < 20 { (State::Held, None) } else { (State::Failed, Some(Reason::SoldOut)) };
    assert_eq!(states(&sale, &ids).await, (0..50).map(expected).collect::<Vec<_>>());
    let held = sale.place(request("o0", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&held).0.state, State::Held);
    let failed = sale.place(request("o49", "ann", &[("A", 1)])).await.unwrap();
    assert!(matches!(failed, Outcome::Refused { recorded: true, repeated: true, .. }), "{failed:?}");
    assert!(matches!(refusal(&failed), Refusal::SoldOut(_)));
    assert_eq!(sale.engine.land_queued().await, landed(0));
    assert_eq!(sale.balances(pool).await, (0, 20, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn an_order_that_misses_lands_in_other_buckets_and_the_last_units_are_sold() {
    let sale =
        Sale::open(Policy { capture: Capture::Immediate, ..Policy::default() }, Config::default()).await;
    let pool = sale.queued_pool("A", 10, 4).await;
    let mut ids = take_in(&sale, 0..7).await;
    let large = order(&sale.place(request("large", "ann", &[("A", 3)])).await.unwrap()).0.id;
    ids.push(large);
    sale.clock.advance_millis(1);
    ids.extend(take_in(&sale, 8..12).await);
    assert_eq!(sale.engine.land_queued().await, landed(12));
    assert_eq!(sale.balances(pool).await, (0, 0, 10), "no false sold out, no unit left over");
    let sold = states(&sale, &ids).await.iter().filter(|(state, _)| *state == State::Sold).count();
    assert!((8..=10).contains(&sold), "{sold}");
    sale.assert_clean().await;
}

#[tokio::test]
async fn an_order_over_several_pools_waits_in_the_queue_of_the_one_that_queues() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let plain = sale.pool("A", 3, 2).await;
    let queueing = sale.queued_pool("B", 3, 2).await;
    let lines = [("A", 2), ("B", 2)];
    let first = order(&sale.place(request("o1", "ann", &lines)).await.unwrap()).0;
    assert_eq!((first.state, first.home.map(|home| home.pool)), (State::Queued, Some(queueing)));
    let second = order(&sale.place(request("o2", "ann", &lines)).await.unwrap()).0;
    assert_eq!(sale.engine.land_queued().await, landed(2));
    let expected = [(State::Held, None), (State::Failed, Some(Reason::SoldOut))];
    let mut found = states(&sale, &[first.id, second.id]).await;
    found.sort_by_key(|(state, _)| *state == State::Failed);
    assert_eq!(found, expected);
    assert_eq!((sale.balances(plain).await, sale.balances(queueing).await), ((1, 2, 0), (1, 2, 0)));
    sale.assert_clean().await;
}

#[tokio::test]
async fn who_wishes_it_is_queued_on_any_path() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 3, 1).await;
    let wished = sale.engine.place_queued(request("o1", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&wished).0.state, State::Queued);
    assert_eq!(order(&sale.place(request("o2", "ann", &[("A", 1)])).await.unwrap()).0.state, State::Held);
    let again = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&again).0.state, State::Queued, "a repeat is the same order");
    assert_eq!(sale.engine.land_queued().await, landed(1));
}

#[tokio::test]
async fn pause_and_close_let_in_what_was_taken_in_and_freeze_waits() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.queued_pool("A", 10, 1).await;
    let ids = take_in(&sale, 0..4).await;
    sale.switch(Switch::Freeze).await;
    assert_eq!(sale.engine.land_queued().await, LandingPass { waiting: 4, ..LandingPass::default() });
    let commits = sale.store.commits();
    assert_eq!(sale.engine.land_queued().await, landed(0), "who is frozen is left in peace");
    assert_eq!(sale.store.commits(), commits);
    sale.switch(Switch::Unfreeze).await;
    sale.switch(Switch::Pause).await;
    assert_eq!(
        refusal(&sale.place(request("late", "ann", &[("A", 1)])).await.unwrap()),
        Refusal::CampaignPaused
    );
    assert_eq!(sale.engine.land_queued().await, landed(4));
    sale.switch(Switch::Resume).await;
    let more = take_in(&sale, 4..6).await;
    sale.switch(Switch::Close).await;
    assert_eq!(sale.engine.land_queued().await, landed(2));
    assert!(states(&sale, &[ids, more].concat()).await.iter().all(|(state, _)| *state == State::Held));
    assert_eq!(sale.balances(pool).await, (4, 6, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn one_frozen_pool_does_not_hold_up_the_queue_of_another() {
    let sale = Sale::open(Policy::default(), Config { landing_batch_max: 2, ..Config::default() }).await;
    let frozen = sale.pool("A", 10, 1).await;
    let queueing = sale.queued_pool("B", 10, 1).await;
    for n in 0..4 {
        order(&sale.place(request(&format!("mixed{n}"), "ann", &[("B", 1), ("A", 1)])).await.unwrap());
        sale.clock.advance_millis(1);
    }
    let alone = order(&sale.place(request("alone", "ann", &[("B", 1)])).await.unwrap()).0.id;
    sale.freeze(frozen, true).await;
    let pass = sale.engine.land_queued().await;
    assert_eq!((pass.landed, pass.waiting, pass.failed), (1, 4, 0));
    assert_eq!(stored(&sale, alone).await.state, State::Held);
    sale.freeze(frozen, false).await;
    assert_eq!(sale.engine.land_queued().await, landed(4));
    assert_eq!(sale.balances(queueing).await, (5, 5, 0));
}

#[tokio::test]
async fn a_queue_is_bounded_in_length_and_in_time() {
    let policy = Policy { queue_limit: 3, queue_wait_ms: 5_000, ..Policy::default() };
    let sale = Sale::open(policy, Config::default()).await;
    let pool = sale.queued_pool("A", 10, 2).await;
    let ids = take_in(&sale, 0..3).await;
    let full = sale.place(request("o3", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(full, Outcome::refused(Refusal::QueueFull { limit: 3 }), "no trace is left");
    sale.change(ids[0], OrderAction::Cancel).await;
    sale.switch(Switch::Freeze).await;
    sale.clock.advance_millis(4_996);
    assert_eq!(sale.engine.expire_due(sale.store.now()).await.changed, 0, "the cancelled one is forgotten");
    sale.clock.advance_millis(10);
    let pass = sale.engine.expire_due(sale.store.now()).await;
    assert_eq!((pass.changed, pass.unchanged, pass.failed), (2, 0, 0));
    let timeout = (State::Failed, Some(Reason::QueueTimeout));
    assert_eq!(states(&sale, &ids).await, [(State::Failed, Some(Reason::Cancelled)), timeout, timeout]);
    sale.switch(Switch::Unfreeze).await;
    let again = sale.place(request("o2", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(refusal(&again), Refusal::QueueTimeout);
    assert_eq!(sale.engine.land_queued().await, landed(0));
    assert_eq!(sale.balances(pool).await, (10, 0, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn what_waited_while_no_node_ran_has_run_out_of_time_or_lands() {
    let sale = Sale::open(Policy { queue_wait_ms: 60_000, ..Policy::default() }, Config::default()).await;
    let pool = sale.queued_pool("A", 10, 1).await;
    let old = take_in(&sale, 0..2).await;
    sale.clock.advance_millis(59_000);
    let young = take_in(&sale, 2..4).await;
    sale.clock.advance_millis(5_000);
    // Another process: it knows of nobody who waits.
    let restarted = Engine::new(sale.store.clone(), Arc::new(UuidV7), Config::default());
    assert_eq!(restarted.scan_overdue(sale.store.now()).await.changed, 2);
    assert_eq!(restarted.land_queued().await, landed(2));
    let timeout = (State::Failed, Some(Reason::QueueTimeout));
    assert_eq!(states(&sale, &old).await, [timeout, timeout]);
    assert_eq!(states(&sale, &young).await, [(State::Held, None), (State::Held, None)]);
    assert_eq!(sale.balances(pool).await, (8, 2, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_payment_that_came_too_early_is_applied_when_the_order_lands() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.queued_pool("A", 1, 1).await;
    let ids = take_in(&sale, 0..2).await;
    sale.change(ids[0], success("e0")).await;
    sale.change(ids[1], success("e1")).await;
    assert_eq!(states(&sale, &ids).await, [(State::Queued, None), (State::Queued, None)]);
    assert_eq!(sale.engine.land_queued().await, landed(2));
    assert_eq!(states(&sale, &ids).await, [(State::Sold, None), (State::Failed, Some(Reason::SoldOut))]);
    assert!(stored(&sale, ids[1]).await.refund_due.is_some());
    assert_eq!(sale.balances(pool).await, (0, 0, 1));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_lost_answer_to_a_landing_loses_and_doubles_nothing() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.queued_pool("A", 10, 1).await;
    let ids = take_in(&sale, 0..4).await;
    sale.fail_after(0, Fault::AnswerLost);
    let pass = sale.engine.land_queued().await;
    assert_eq!((pass.landed, pass.failed), (0, 4), "unknown is not landed");
    assert_eq!(sale.balances(pool).await, (6, 4, 0), "and yet it was done");
    assert_eq!(sale.engine.land_queued().await, landed(0));
    let commits = sale.store.commits();
    assert!(states(&sale, &ids).await.iter().all(|(state, _)| *state == State::Held));
    assert_eq!(sale.store.commits(), commits);
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_batch_that_fails_is_tried_again_and_is_no_hot_loop() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.queued_pool("A", 10, 1).await;
    take_in(&sale, 0..3).await;
    sale.fail_after(0, Fault::Before(holdfast_store::Error::Unavailable("on request".into())));
    assert_eq!(sale.engine.land_queued().await, LandingPass { failed: 3, ..LandingPass::default() });
    let commits = sale.store.commits();
    assert_eq!(sale.engine.land_queued().await, landed(0), "they are set aside");
    assert_eq!(sale.store.commits(), commits);
    sale.clock.advance_millis(1_001);
    assert_eq!(sale.engine.land_queued().await, landed(3));
}

#[tokio::test]
async fn another_node_takes_over_when_the_lease_ends() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.queued_pool("A", 10, 1).await;
    take_in(&sale, 0..2).await;
    let name = format!("queue {pool}/0");
    let theirs = Lease { name, holder: 999, lasts: Duration::from_secs(3) };
    assert!(sale.store.take_lease(theirs).await.unwrap());
    assert_eq!(sale.engine.land_queued().await, landed(0), "another node consumes this queue");
    sale.clock.advance_millis(3_001);
    assert_eq!(sale.engine.land_queued().await, landed(2));
    sale.engine.drain(LONG).await.unwrap();
    let next = Engine::new(sale.store.clone(), Arc::new(UuidV7), Config::default());
    order(&next.place(request("o9", "ann", &[("A", 1)])).await.unwrap());
    assert_eq!(next.land_queued().await, landed(1), "a node that stops gives its leases up");
}

#[tokio::test]
async fn two_nodes_that_both_believe_in_their_lease_do_no_harm() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.queued_pool("A", 60, 2).await;
    let ids = take_in(&sale, 0..100).await;
    let other = Engine::new(sale.store.clone(), Arc::new(UuidV7), Config::default());
    // Each takes the lease of one that it thinks is gone.
    let (first, second) = tokio::join!(sale.engine.land_queued(), async {
        sale.clock.advance_millis(3_001);
        other.land_queued().await
    });
    assert!(first.landed + second.landed >= 100);
    let found = states(&sale, &ids).await;
    assert_eq!(found.iter().filter(|(state, _)| *state == State::Held).count(), 60);
    assert!(found.iter().all(|(state, _)| *state != State::Queued));
    assert_eq!(sale.balances(pool).await, (0, 60, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn places_and_estimates_follow_the_queue() {
    let config = Config { landing_batch_max: 10, queue_age_max: LONG, ..Config::default() };
    let sale = Sale::open(Policy::default(), config).await;
    sale.queued_pool("A", 100, 1).await;
    let ids = take_in(&sale, 0..30).await;
    let tenth = stored(&sale, ids[9]).await;
    let standing = sale.engine.standing(&tenth).await.unwrap();
    assert_eq!(standing.position, 10);
    // Nothing has landed yet: it is answered by the end of its time at the latest.
    assert_eq!(standing.estimated_wait.as_millis(), 30_000 - 21);
    for id in &ids[..5] {
        sale.change(*id, OrderAction::Land).await;
    }
    assert_eq!(sale.engine.standing(&tenth).await.unwrap().position, 5);
    sale.change(ids[20], OrderAction::Cancel).await;
    assert_eq!(sale.engine.standing(&*stored(&sale, ids[29]).await).await.unwrap().position, 24);
    let held = stored(&sale, ids[0]).await;
    assert_eq!(sale.engine.standing(&held).await, None);
    // A node that took none of them in reads the line.
    let other = Engine::new(sale.store.clone(), Arc::new(UuidV7), Config::default());
    assert_eq!(other.standing(&tenth).await.unwrap().position, 5);
}

#[tokio::test]
async fn the_worker_lands_at_once_what_its_node_took_in_and_drains_durably() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.queued_pool("A", 8, 1).await;
    sale.engine.start_workers();
    let ids = take_in(&sale, 0..8).await;
    for id in &ids {
        let decided = sale.engine.order_when_decided(*id, None, LONG).await.unwrap().into_order().unwrap();
        assert_eq!(decided.state, State::Held);
    }
    assert_eq!(sale.balances(pool).await, (0, 8, 0));
    sale.switch(Switch::Freeze).await;
    sale.switch(Switch::Unfreeze).await;
    sale.engine.drain(LONG).await.unwrap();
    assert_eq!(sale.place(request("late", "ann", &[("A", 1)])).await, Err(Error::ShuttingDown));
    sale.assert_clean().await;
}

#[tokio::test]
async fn what_waits_when_a_node_stops_is_landed_by_the_next() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool: PoolId = sale.queued_pool("A", 5, 1).await;
    let ids = take_in(&sale, 0..3).await;
    sale.engine.drain(LONG).await.unwrap();
    assert_eq!(sale.engine.land_queued().await, landed(0), "a node that drains begins nothing");
    let next = Engine::new(sale.store.clone(), Arc::new(UuidV7), Config::default());
    next.start_workers();
    for id in &ids {
        let decided = next.order_when_decided(*id, None, LONG).await.unwrap().into_order().unwrap();
        assert_eq!(decided.state, State::Held);
    }
    assert_eq!(sale.balances(pool).await, (2, 3, 0));
    assert_eq!(stored(&sale, ids[0]).await.lines[0].pool, pool);
    let path = sale.store.pool(pool).await.unwrap().unwrap().pool.path;
    assert_eq!(path, Path::Queued);
}
