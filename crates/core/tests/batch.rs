//! Batches, locks and buckets: a batch is its commands one at a time, and what is locked bounds what
//! may be answered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

#[allow(dead_code, reason = "the walk of the oracle has more steps than a batch takes")]
#[path = "oracle/steps.rs"]
mod steps;
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::campaign::{LatePayment, Policy};
use holdfast_core::command::{ChangePool, Command, OpenPool, OrderAction, Outcome};
use holdfast_core::ledger::Action;
use holdfast_core::order::{Order, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BALANCE_MAX, BucketKey, Path, Routing};
use holdfast_core::time::Timestamp;
use proptest::prelude::*;

use support::build::*;
use support::{Authority, START, answer};

/// One pool `A` with this supply, split over buckets.
fn shop(supply: u64, buckets: u32) -> Authority {
    let mut db = Authority::new(Policy::default());
    db.open_pool("A", supply, buckets);
    db
}

fn routed(number: u32, lines: &[(&str, u32)], route: u64) -> Command {
    let mut sent = place(number, lines);
    sent.route = route;
    Command::Place(Arc::new(sent))
}

fn order_of(outcome: &Outcome) -> &Order {
    let Outcome::Order { order, .. } = outcome else { panic!("an order: {outcome:?}") };
    order
}

fn allocations(db: &Authority, number: u32) -> Vec<(u32, u64)> {
    db.order(order_id(number)).allocations().map(|a| (a.bucket.number, a.quantity)).collect()
}

fn balances(db: &Authority) -> Vec<(u64, u64, u64)> {
    db.buckets.values().map(|b| (b.available, b.held, b.sold)).collect()
}

fn one(db: &mut Authority, locks: &LockSet, command: Command) -> Outcome {
    db.commit(locks, &[command]).pop().unwrap()
}

/// Batches of commands with the time that passes before each.
fn batches(walk: &[steps::Step]) -> Vec<(i64, Vec<Command>)> {
    let mut batches = vec![(0, Vec::new())];
    for step in walk {
        if let steps::Step::Wait(time) = step {
            batches.push((*time, Vec::new()));
        } else if let steps::Step::WaitFor(_, grace, by) = step {
            batches.push((if *grace { 902_000_000 + by } else { 900_000_000 + by }, Vec::new()));
        } else {
            let until = START.0 + 1_200_000_000;
            batches.last_mut().unwrap().1.extend(steps::command(step, until));
        }
    }
    batches
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_equals_its_commands_one_at_a_time(
        policy in steps::a_policy(),
        supplies in [(0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32)],
        walk in steps::a_walk(60),
    ) {
        let mut folded = Authority::new(policy);
        for (name, (supply, buckets)) in steps::POOLS.iter().zip(supplies) {
            folded.open_pool(name, supply, buckets);
        }
        let mut single = folded.clone();
        let locks = folded.all_pools();
        for (time, batch) in batches(&walk) {
            folded.clock = Timestamp(folded.clock.0 + time);
            single.clock = folded.clock;
            let at_once = folded.commit(&locks, &batch);
            let one_by_one: Vec<_> =
                batch.iter().map(|command| one(&mut single, &locks, command.clone())).collect();
            prop_assert_eq!(at_once, one_by_one);
            prop_assert_eq!(&folded, &single);
            let report = folded.audit();
            prop_assert!(report.is_clean(), "{:#?}", report.breaches);
        }
    }

    #[test]
    fn too_few_locks_delay_a_command_and_never_break_an_invariant(
        policy in steps::a_policy(),
        supplies in [(0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32), (0..16_u64, 1..4_u32)],
        walk in steps::a_walk(60),
        locks in prop::collection::vec((0..4_usize, 0..3_u32, 0..4_usize), 60),
    ) {
        let mut db = Authority::new(policy);
        for (name, (supply, buckets)) in steps::POOLS.iter().zip(supplies) {
            db.open_pool(name, supply, buckets);
        }
        let commands = batches(&walk).into_iter().flat_map(|(time, batch)| {
            batch.into_iter().enumerate().map(move |(at, c)| (if at == 0 { time } else { 0 }, c))
        });
        for ((time, command), (first, number, second)) in commands.zip(locks) {
            db.clock = Timestamp(db.clock.0 + time);
            // Two buckets of one or two pools.
            let buckets = [bucket(steps::POOLS[first], number), bucket(steps::POOLS[second], 0)];
            let narrow = LockSet { buckets: buckets.into(), pools: BTreeSet::new() };
            let before = db.clone();
            let outcome = one(&mut db, &narrow, command.clone());
            if matches!(outcome, Outcome::Miss(_) | Outcome::Elsewhere(_)) {
                prop_assert_eq!(&db, &before);
                let again = db.send(&command);
                let served = !matches!(again, Outcome::Miss(_) | Outcome::Elsewhere(_));
                prop_assert!(served, "{:?}", again);
            }
            let report = db.audit();
            prop_assert!(report.is_clean(), "{:#?}", report.breaches);
        }
    }
}

#[test]
fn a_repeated_key_inside_a_batch_gets_the_first_order() {
    let mut db = shop(5, 1);
    let locks = db.all_pools();
    let mut again = place(1, &[("A", 2)]);
    again.id = order_id(77);
    let mut other = again.clone();
    other.account = account("bob");
    let batch = [placed(1, &[("A", 2)]), Command::Place(Arc::new(again)), Command::Place(Arc::new(other))];
    let outcomes = db.commit(&locks, &batch);
    assert_eq!(
        outcomes.iter().map(answer).collect::<Vec<_>>(),
        ["created", "repeated", "refused order_mismatch"]
    );
    assert_eq!(order_of(&outcomes[1]).id, order_id(1));
    assert_eq!(balances(&db), [(3, 2, 0)]);
    assert_eq!(db.orders.len(), 1);
}

#[test]
fn a_recorded_refusal_is_repeated_inside_its_batch() {
    let mut db = shop(1, 1);
    let locks = db.all_pools();
    let outcomes = db.commit(&locks, &[placed(1, &[("A", 2)]), placed(1, &[("A", 2)])]);
    assert_eq!(
        outcomes.iter().map(answer).collect::<Vec<_>>(),
        ["refused sold_out recorded", "refused sold_out recorded repeated"]
    );
}

#[test]
fn several_commands_on_one_order_write_consecutive_entries_and_one_row() {
    let mut db = shop(5, 1);
    let locks = db.all_pools();
    let batch = [
        placed(1, &[("A", 2)]),
        on_order(1, attempt("a1")),
        paid(1, "e1", "p1"),
        on_order(1, refund("r1", &[(1, 1)], Some(true))),
    ];
    db.commit(&locks, &batch);
    let entries = db.entries_of(order_id(1));
    assert_eq!(entries.iter().map(|e| e.seq).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!(entries.iter().map(|e| e.order_version.unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(
        entries.iter().map(|e| e.action).collect::<Vec<_>>(),
        [Action::Place, Action::OrderEvent, Action::Confirm, Action::Refund]
    );
    assert_eq!(db.order(order_id(1)).version, 4);
    assert!(db.audit().is_clean());
}

#[test]
fn a_batch_sells_exactly_what_there_is_and_a_refusal_does_not_sink_it() {
    let mut db = shop(5, 2);
    let locks = db.all_pools();
    let batch: Vec<_> = (1..=10).map(|number| routed(number, &[("A", 1)], u64::from(number))).collect();
    let outcomes = db.commit(&locks, &batch);
    let created = outcomes.iter().filter(|o| answer(o) == "created").count();
    assert_eq!(created, 5);
    assert!(outcomes[5..].iter().all(|o| answer(o) == "refused sold_out recorded"));
    assert_eq!(db.totals(pool_id("A")), (0, 5, 0));
    assert!(db.audit().is_clean());
}

#[test]
fn a_single_bucket_that_has_too_little_is_a_miss_and_leaves_no_trace() {
    let mut db = shop(5, 2);
    let before = db.clone();
    let outcome = one(&mut db, &LockSet::bucket(bucket("A", 1)), placed(1, &[("A", 3)]));
    assert_eq!(outcome, Outcome::Miss(vec![pool_id("A")]));
    assert_eq!(db, before);
}

#[test]
fn the_last_unit_is_sold_through_the_complete_pool() {
    let mut db = shop(1, 4);
    for number in 1..4 {
        let lock = LockSet::bucket(bucket("A", number));
        assert_eq!(answer(&one(&mut db, &lock, routed(1, &[("A", 1)], u64::from(number)))), "miss");
    }
    let wide = LockSet::pool(pool_id("A"));
    assert_eq!(answer(&one(&mut db, &wide, routed(1, &[("A", 1)], 3))), "created");
    assert_eq!(allocations(&db, 1), [(0, 1)]);
    assert_eq!(answer(&one(&mut db, &wide, routed(2, &[("A", 1)], 3))), "refused sold_out recorded");
}

#[test]
fn a_line_is_split_over_buckets_only_in_a_complete_pool() {
    let mut db = shop(6, 3);
    let two = BTreeSet::from([bucket("A", 0), bucket("A", 1)]);
    let narrow = LockSet { buckets: two, pools: BTreeSet::new() };
    assert_eq!(answer(&one(&mut db, &narrow, placed(1, &[("A", 3)]))), "miss");
    assert_eq!(answer(&one(&mut db, &LockSet::pool(pool_id("A")), placed(1, &[("A", 3)]))), "created");
    assert_eq!(allocations(&db, 1), [(0, 2), (1, 1)]);
    assert!(db.audit().is_clean());
}

#[test]
fn one_bucket_that_has_enough_is_preferred_to_a_split() {
    let mut db = shop(6, 2);
    db.send(&routed(1, &[("A", 2)], 0));
    db.send(&routed(2, &[("A", 3)], 0));
    assert_eq!(allocations(&db, 2), [(1, 3)]);
}

#[test]
fn released_stock_returns_to_the_same_buckets() {
    let mut db = shop(7, 3);
    let before = balances(&db);
    db.send(&placed(1, &[("A", 6)]));
    assert_eq!(balances(&db), [(0, 3, 0), (0, 2, 0), (1, 1, 0)]);
    db.send(&on_order(1, OrderAction::Cancel));
    assert_eq!(balances(&db), before);
    assert!(db.order(order_id(1)).allocations().next().is_none());
}

#[test]
fn lines_of_one_sku_count_together() {
    let mut db = shop(5, 2);
    let outcome = db.send(&placed(1, &[("A", 3), ("A", 3)]));
    let Outcome::Refused { refusal: Refusal::SoldOut(shortage), .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((shortage.line, shortage.requested, shortage.available), (2, 6, 5));
    assert_eq!(answer(&db.send(&placed(2, &[("A", 2), ("A", 3)]))), "created");
    assert_eq!(db.totals(pool_id("A")), (0, 5, 0));
}

#[test]
fn an_order_over_several_pools_is_all_or_nothing() {
    let mut db = shop(5, 2);
    db.open_pool("B", 1, 1);
    assert_eq!(answer(&db.send(&placed(1, &[("A", 2), ("B", 2)]))), "refused sold_out recorded");
    assert_eq!(db.totals(pool_id("A")), (5, 0, 0));
    assert_eq!(answer(&db.send(&placed(2, &[("A", 2), ("B", 1)]))), "created");
    assert_eq!((db.totals(pool_id("A")), db.totals(pool_id("B"))), ((3, 2, 0), (0, 1, 0)));
}

#[test]
fn the_home_bucket_is_the_lowest_of_the_first_allocation_and_fixed() {
    let mut db = shop(2, 2);
    db.open_pool("B", 5, 1);
    db.send(&routed(1, &[("B", 1), ("A", 2)], 0));
    assert_eq!(db.order(order_id(1)).home, Some(bucket("A", 0)), "the pool of the second line is lower");
    db.send(&on_order(1, OrderAction::Cancel));
    db.send(&routed(2, &[("A", 1)], 0));
    db.send(&routed(3, &[("A", 1)], 0));
    assert_eq!(db.order(order_id(3)).home, Some(bucket("A", 1)));
}

#[test]
fn a_retake_from_other_buckets_is_told_at_home() {
    let mut db = shop(2, 2);
    db.send(&routed(1, &[("A", 1)], 0));
    db.send(&on_order(1, OrderAction::Cancel));
    db.send(&routed(2, &[("A", 1)], 0));
    assert_eq!(answer(&db.send(&paid(1, "e1", "p1"))), "changed retaken");
    assert_eq!(allocations(&db, 1), [(1, 1)]);
    let entries = db.entries_of(order_id(1));
    let event = entries.iter().rfind(|e| e.order_version.is_some()).unwrap();
    assert_eq!((event.bucket, event.action), (bucket("A", 0), Action::Retake));
    assert_eq!(event.delta.supply_change(), 0);
}

#[test]
fn reduce_and_restock_take_the_highest_bucket_first() {
    let mut db = shop(6, 3);
    db.send(&placed(1, &[("A", 6)]));
    db.send(&on_order(1, reduce(&[(1, 5)])));
    assert_eq!(allocations(&db, 1), [(0, 2), (1, 2), (2, 1)]);
    db.send(&paid(1, "e1", "p1"));
    db.send(&on_order(1, refund("r1", &[(1, 2)], Some(true))));
    assert_eq!(balances(&db), [(0, 0, 2), (1, 0, 1), (2, 0, 0)]);
}

#[test]
fn a_change_outside_the_locks_is_sent_elsewhere_and_leaves_no_trace() {
    let mut db = shop(4, 2);
    db.send(&routed(1, &[("A", 1)], 1));
    let wrong = LockSet::bucket(bucket("A", 0));
    let sold = db.clone();
    // A failed notice that releases nothing, a payment, a cancel, an attempt.
    let commands = [
        on_order(1, OrderAction::Notice(failure("e1", "p1"))),
        paid(1, "e2", "p2"),
        on_order(1, OrderAction::Cancel),
        on_order(1, attempt("a1")),
    ];
    for command in commands {
        assert_eq!(one(&mut db, &wrong, command), Outcome::Elsewhere(vec![pool_id("A")]));
        assert_eq!(db, sold);
    }
    // Evidence alone changes the order's row too.
    db.send(&paid(1, "e3", "p3"));
    let ignored = on_order(1, OrderAction::Notice(failure("e4", "p4")));
    assert_eq!(one(&mut db, &wrong, ignored), Outcome::Elsewhere(vec![pool_id("A")]));
}

#[test]
fn a_retake_that_one_bucket_cannot_serve_needs_the_whole_pool() {
    let mut db = shop(2, 2);
    db.send(&routed(1, &[("A", 1)], 0));
    db.send(&on_order(1, OrderAction::Cancel));
    db.send(&routed(2, &[("A", 1)], 0));
    let home = LockSet::bucket(bucket("A", 0));
    assert_eq!(one(&mut db, &home, paid(1, "e1", "p1")), Outcome::Elsewhere(vec![pool_id("A")]));
    assert_eq!(db.order(order_id(1)).state, State::Released);
    assert_eq!(answer(&db.send(&paid(1, "e1", "p1"))), "changed retaken");
}

#[test]
fn a_late_payment_needs_no_stock_where_policy_refunds() {
    let mut db = shop(1, 1);
    db.campaign.policy.late_payment = LatePayment::Refund;
    db.send(&placed(1, &[("A", 1)]));
    db.send(&on_order(1, OrderAction::Cancel));
    assert_eq!(answer(&db.send(&paid(1, "e1", "p1"))), "changed refund_due");
    assert_eq!(db.totals(pool_id("A")), (1, 0, 0));
}

#[test]
fn the_time_of_a_decision_never_runs_behind_a_locked_bucket() {
    let mut db = shop(5, 1);
    db.clock = db.clock.plus_seconds(100);
    db.send(&placed(1, &[("A", 1)]));
    let late = db.clock;
    db.clock = START;
    db.send(&placed(2, &[("A", 1)]));
    assert_eq!(db.order(order_id(2)).created_at, late);
    assert_eq!(db.buckets[&bucket("A", 0)].last_at, late);
}

#[test]
fn a_rise_goes_to_the_emptiest_bucket_and_a_fall_takes_from_the_fullest_first() {
    let mut db = shop(7, 3);
    assert_eq!(answer(&db.send(&adjust("j1", "A", 5, None))), "adjusted");
    assert_eq!(balances(&db).iter().map(|b| b.0).collect::<Vec<_>>(), [3, 7, 2]);
    assert_eq!(answer(&db.send(&adjust("j2", "A", -9, None))), "adjusted");
    assert_eq!(balances(&db).iter().map(|b| b.0).collect::<Vec<_>>(), [1, 0, 2]);
    assert_eq!(answer(&db.send(&adjust("j2", "A", -9, None))), "adjusted before");
    assert_eq!(answer(&db.send(&adjust("j2", "A", -1, None))), "refused key_mismatch");
    assert_eq!(answer(&db.send(&adjust("j3", "A", -4, None))), "refused stock_in_use");
    assert_eq!(answer(&db.send(&adjust("j4", "A", -1, Some(1)))), "refused stock_in_use");
    assert_eq!(answer(&db.send(&adjust("j5", "A", -1, Some(3)))), "refused invalid_value");
    assert_eq!(answer(&db.send(&adjust("j6", "A", 1, Some(1)))), "adjusted");
    assert_eq!(balances(&db).iter().map(|b| b.0).collect::<Vec<_>>(), [1, 1, 2]);
}

#[test]
fn a_pool_is_opened_once() {
    let mut db = shop(5, 2);
    let open = |id: &str, supply| {
        Command::OpenPool(OpenPool {
            id: pool_id(id),
            campaign: campaign_id(),
            sku: sku("A"),
            location: location(),
            supply,
            buckets: 2,
            path: Path::Batched,
            routing: Routing::OrderHash,
            signed: signed(),
        })
    };
    assert_eq!(answer(&db.send(&open("X", 5))), "pool as it was");
    // Also after it has grown.
    let grow = Command::ChangePool(ChangePool { buckets: Some(3), ..no_change("A") });
    assert_eq!(answer(&db.send(&grow)), "pool changed");
    assert_eq!(answer(&db.send(&open("X", 5))), "pool as it was");
    assert_eq!(answer(&db.send(&open("X", 6))), "refused conflict");
    assert_eq!(db.pools.len(), 1);
}

#[test]
fn an_opening_that_no_balance_can_hold_leaves_no_trace() {
    let mut db = Authority::new(Policy::default());
    let open = OpenPool {
        id: pool_id("A"),
        campaign: campaign_id(),
        sku: sku("A"),
        location: location(),
        supply: BALANCE_MAX + 1,
        buckets: 1,
        path: Path::Batched,
        routing: Routing::OrderHash,
        signed: signed(),
    };
    let before = db.clone();
    assert_eq!(answer(&db.send(&Command::OpenPool(open))), "refused conflict");
    assert_eq!(db, before);
}

#[test]
fn refusals_are_judged_in_the_order_of_their_precedence() {
    let mut db = shop(5, 1);
    db.campaign.switches.paused = true;
    let mut sent = place(1, &[("A", 1), ("Z", 1)]);
    sent.hold_seconds = Some(1_000_000);
    let mut place =
        |sent: &holdfast_core::command::Place| answer(&db.send(&Command::Place(Arc::new(sent.clone()))));
    assert_eq!(place(&sent), "refused unknown_sku");
    sent.lines.pop();
    assert_eq!(place(&sent), "refused invalid_value");
    sent.hold_seconds = None;
    assert_eq!(place(&sent), "refused campaign_paused");
}

#[test]
fn a_bucket_key_orders_by_pool_then_number() {
    assert!(BucketKey { pool: pool_id("A"), number: 9 } < BucketKey { pool: pool_id("B"), number: 0 });
}
