//! What the table does not show in one row: records that are bounded, shortages that are kept, and
//! extensions that are bounded.

use std::sync::Arc;

use holdfast_core::campaign::{LatePayment, Policy};
use holdfast_core::command::{Command, OrderAction, Outcome};
use holdfast_core::order::{Disposition, ORDER_RECORDS_MAX, Reason, Shortage, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;

use crate::support::build::*;
use crate::support::{Authority, START, answer};

fn shop(policy: Policy, supply: u64) -> Authority {
    let mut db = Authority::new(policy);
    db.open_pool("A", supply, 1);
    db
}

fn queued(number: u32, quantity: u32) -> Command {
    let mut sent = place(number, &[("A", quantity)]);
    sent.intake = Some(bucket("A", 0));
    Command::Place(Arc::new(sent))
}

#[test]
fn a_shortage_found_at_landing_is_kept_for_the_key() {
    let mut db = shop(Policy::default(), 1);
    db.send(&queued(1, 3));
    db.send(&on_order(1, OrderAction::Land));
    let Outcome::Refused { refusal, recorded: true, repeated: true, .. } = db.send(&queued(1, 3)) else {
        panic!("a recorded refusal")
    };
    assert_eq!(refusal, Refusal::SoldOut(Shortage { line: 1, requested: 3, available: 1 }));
}

#[test]
fn the_open_holds_limit_found_at_landing_is_kept_for_the_key() {
    let mut db = shop(Policy { account_open_holds: Some(1), ..Policy::default() }, 5);
    db.send(&queued(1, 1));
    db.send(&placed(2, &[("A", 1)]));
    db.send(&on_order(1, OrderAction::Land));
    let Outcome::Refused { refusal, .. } = db.send(&queued(1, 1)) else { panic!("a refusal") };
    assert_eq!(refusal, Refusal::AccountOpenHolds { limit: 1 });
}

#[test]
fn a_full_queue_refuses_without_trace_and_lets_in_again_when_one_has_left() {
    let mut db = shop(Policy { queue_limit: 2, ..Policy::default() }, 5);
    db.open_pool("B", 5, 1);
    assert_eq!(answer(&db.send(&queued(1, 1))), "created");
    assert_eq!(answer(&db.send(&queued(2, 1))), "created");
    let outcome = db.send(&queued(3, 1));
    assert_eq!(outcome, Outcome::refused(Refusal::QueueFull { limit: 2 }));
    assert_eq!(answer(&db.send(&queued(2, 1))), "repeated", "a key that is known is no new order");
    let mut elsewhere = place(4, &[("A", 1), ("B", 1)]);
    elsewhere.intake = Some(bucket("B", 0));
    assert_eq!(answer(&db.send(&Command::Place(Arc::new(elsewhere)))), "created", "each pool has a queue");
    db.send(&on_order(1, OrderAction::Land));
    assert_eq!(answer(&db.send(&queued(3, 1))), "created");
}

#[test]
fn a_batch_takes_in_no_more_than_the_queue_may_hold_and_locks_no_bucket() {
    let mut db = shop(Policy { queue_limit: 3, ..Policy::default() }, 5);
    let commands: Vec<_> = [1, 2, 1, 3, 4, 5].map(|number| queued(number, 1)).into();
    let outcomes = db.commit(&LockSet::default(), &commands);
    let answers: Vec<_> = outcomes.iter().map(answer).collect();
    let full = "refused queue_full";
    assert_eq!(answers, ["created", "created", "repeated", "created", full, full]);
    assert_eq!(db.ledger_len(), 1, "only the opening: intake writes no entry");
    let order = db.order(order_id(1));
    assert_eq!((order.home, order.version), (Some(bucket("A", 0)), 1));
    assert_eq!(order.due_at, Some(START.plus_millis(30_000)));
    let unknown = db.commit(
        &LockSet::default(),
        &[{
            let mut sent = place(6, &[("A", 1)]);
            sent.intake = Some(bucket("A", 1));
            Command::Place(Arc::new(sent))
        }],
    );
    assert_eq!(unknown, [Outcome::Elsewhere(vec![pool_id("A")])], "no such bucket");
    assert!(db.audit().is_clean());
}

#[test]
fn the_end_of_the_queue_time_is_fixed_when_an_order_is_taken_in() {
    let mut db = shop(Policy { queue_wait_ms: 1_000, ..Policy::default() }, 5);
    db.send(&queued(1, 1));
    db.campaign.policy.queue_wait_ms = 60_000;
    db.clock = START.plus_millis(1_000);
    db.send(&on_order(1, OrderAction::Expire));
    assert_eq!(db.order(order_id(1)).reason, Some(Reason::QueueTimeout));
}

#[test]
fn a_refusal_that_may_not_be_recorded_leaves_no_trace() {
    let mut db = shop(Policy::default(), 1);
    let mut sent = place(1, &[("A", 2)]);
    sent.record_refusals = false;
    let sent = Command::Place(Arc::new(sent));
    assert_eq!(answer(&db.send(&sent)), "refused sold_out");
    assert!(db.orders.is_empty());
    db.send(&adjust("j1", "A", 1, None));
    assert_eq!(answer(&db.send(&sent)), "created");
}

#[test]
fn a_begun_payment_extends_the_hold_once_and_within_the_maximum() {
    let policy = Policy { payment_extension_seconds: 2_000, ..Policy::default() };
    let mut db = shop(policy, 5);
    db.send(&placed(1, &[("A", 1)]));
    db.send(&on_order(1, attempt("a1")));
    assert_eq!(db.order(order_id(1)).hold_ends_at, Some(START.plus_seconds(2_900)));
    db.send(&on_order(1, attempt("a2")));
    assert_eq!(db.order(order_id(1)).hold_ends_at, Some(START.plus_seconds(2_900)), "once");
    db.campaign.policy.payment_extension_seconds = 3_000;
    db.send(&placed(2, &[("A", 1)]));
    db.send(&on_order(2, attempt("a1")));
    assert_eq!(db.order(order_id(2)).hold_ends_at, Some(START.plus_seconds(3_600)), "never past the maximum");
    assert_eq!(db.order(order_id(2)).due_at, Some(START.plus_seconds(3_602)));
}

#[test]
fn a_notice_that_would_change_a_full_order_is_refused_so_that_it_is_sent_again() {
    let mut db = shop(Policy::default(), 5);
    db.send(&placed(1, &[("A", 1)]));
    // Failed notices fill only half of the room: money that comes is always heard.
    for number in 0..ORDER_RECORDS_MAX / 2 {
        let notice = failure(&format!("e{number}"), &format!("p{number}"));
        assert_eq!(answer(&db.send(&on_order(1, OrderAction::Notice(notice)))), "changed applied");
    }
    let notice = failure("one more", "one more");
    assert_eq!(answer(&db.send(&on_order(1, OrderAction::Notice(notice.clone())))), "refused conflict");
    for number in 0..ORDER_RECORDS_MAX / 2 {
        let expected = if number == 0 { "changed applied" } else { "changed refund_due" };
        assert_eq!(answer(&db.send(&paid(1, &format!("s{number}"), &format!("s{number}")))), expected);
    }
    assert_eq!(answer(&db.send(&paid(1, "late", "late"))), "refused conflict");
    // One that changes nothing is answered and not kept.
    assert_eq!(answer(&db.send(&on_order(1, OrderAction::Notice(notice)))), "repeated ignored");
    assert_eq!(db.order(order_id(1)).payments.len(), ORDER_RECORDS_MAX);
}

#[test]
fn a_success_that_would_be_parked_on_a_full_order_is_refused_and_never_lost() {
    let mut db = shop(Policy::default(), 5);
    db.send(&queued(1, 1));
    for number in 0..ORDER_RECORDS_MAX {
        db.send(&paid(1, &format!("e{number}"), &format!("p{number}")));
    }
    assert_eq!(answer(&db.send(&paid(1, "late", "late"))), "refused conflict");
    assert!(!db.payments.iter().any(|row| row.payment_id == payment_id("late")));
}

#[test]
fn a_confirmation_refused_for_want_of_stock_pays_for_nothing() {
    let policy = Policy { late_payment: LatePayment::Review, ..Policy::default() };
    let mut db = shop(policy, 1);
    db.send(&placed(1, &[("A", 1)]));
    db.send(&on_order(1, OrderAction::Cancel));
    db.send(&paid(1, "e1", "p1"));
    db.send(&placed(2, &[("A", 1)]));
    assert_eq!(answer(&db.send(&on_order(1, OrderAction::Confirm))), "refused sold_out");
    let order = db.order(order_id(1));
    assert_eq!((order.state, order.payments[0].disposition), (State::Released, Disposition::RefundDue));
    assert!(order.refund_due.is_some());
}

#[test]
fn a_payment_that_succeeded_on_another_order_is_reviewed_and_never_pays_twice() {
    let mut db = shop(Policy::default(), 5);
    for number in 1..=3 {
        db.send(&placed(number, &[("A", 1)]));
    }
    assert_eq!(answer(&db.send(&paid(1, "e1", "p1"))), "changed applied");
    assert_eq!(answer(&db.send(&paid(2, "e2", "p1"))), "changed review");
    // The same event for another order is another content.
    assert_eq!(answer(&db.send(&paid(3, "e1", "p1"))), "refused key_mismatch");
    // A payment of the same name with another provider is another payment.
    let mut notice = success("e1", "p1");
    notice.provider = provider("stripe");
    assert_eq!(answer(&db.send(&on_order(3, OrderAction::Notice(notice)))), "changed applied");
}

#[test]
fn usage_follows_the_order_down_to_nothing() {
    let policy = Policy { account_limit: Some(3), account_open_holds: Some(2), ..Policy::default() };
    let mut db = shop(policy, 9);
    let usage = |db: &Authority| db.usage.values().map(|u| (u.units, u.open_holds)).collect::<Vec<_>>();
    db.send(&placed(1, &[("A", 3)]));
    assert_eq!(usage(&db), [(3, 1)]);
    db.send(&on_order(1, reduce(&[(1, 2)])));
    assert_eq!(usage(&db), [(2, 1)]);
    db.send(&paid(1, "e1", "p1"));
    assert_eq!(usage(&db), [(2, 0)]);
    db.send(&on_order(1, refund("r1", &[(1, 1)], None)));
    assert_eq!(usage(&db), [(1, 0)]);
    assert_eq!(answer(&db.send(&placed(2, &[("A", 3)]))), "refused account_limit recorded");
    assert_eq!(answer(&db.send(&placed(3, &[("A", 2)]))), "created");
    db.send(&on_order(3, OrderAction::Cancel));
    db.send(&on_order(1, refund("r2", &[(1, 1)], None)));
    assert_eq!(usage(&db), [(0, 0)]);
}
