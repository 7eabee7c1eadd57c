//! What the table does not show in one row: records that are bounded, shortages that are kept, and
//! extensions that are bounded.

use std::sync::Arc;

use holdfast_core::campaign::{LatePayment, Policy};
use holdfast_core::case::CaseKind;
use holdfast_core::command::{Command, Inquiry, OrderAction, Outcome};
use holdfast_core::id::{HashedKey, LimitName};
use holdfast_core::limit::Limits;
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
    db.send(&on_order(1, OrderAction::Expire(Inquiry::Done)));
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

/// A place that carries this device besides its account.
fn by(number: u32, who: &str, device: u128, quantity: u32) -> Command {
    let mut sent = place(number, &[("A", quantity)]);
    sent.account = account(who);
    sent.limit_keys.insert(LimitName::new("device").unwrap(), HashedKey(device));
    Command::Place(Arc::new(sent))
}

fn device_limit(units: Option<u64>, open_holds: Option<u64>) -> Policy {
    let mut policy = Policy::default();
    policy.key_limits.insert(LimitName::new("device").unwrap(), Limits { units, open_holds });
    policy
}

#[test]
fn a_key_is_limited_over_accounts_and_names_itself() {
    let mut db = shop(device_limit(Some(2), None), 9);
    assert_eq!(answer(&db.send(&by(1, "ann", 7, 1))), "created");
    let Outcome::Refused { refusal, recorded, .. } = db.send(&by(2, "bob", 7, 2)) else {
        panic!("a refusal")
    };
    let device = LimitName::new("device").unwrap();
    assert_eq!(refusal, Refusal::KeyLimit(device, Shortage { line: 1, requested: 2, available: 1 }));
    assert!(!recorded && db.orders.len() == 1, "it leaves no trace");
    assert_eq!(answer(&db.send(&by(3, "bob", 8, 2))), "created");
    // An order without the key is not counted for it, and no row is kept for names without a limit.
    assert_eq!(answer(&db.send(&placed(4, &[("A", 4)]))), "created");
    assert_eq!(db.usage.len(), 2);
    db.send(&on_order(1, OrderAction::Cancel));
    assert_eq!(answer(&db.send(&by(2, "bob", 7, 2))), "created");
}

#[test]
fn open_holds_of_a_key_are_limited_and_end_with_the_sale() {
    let mut db = shop(device_limit(None, Some(1)), 9);
    db.send(&by(1, "ann", 7, 3));
    assert_eq!(answer(&db.send(&by(2, "bob", 7, 1))), "refused key_limit");
    db.send(&paid(1, "e1", "p1"));
    assert_eq!(answer(&db.send(&by(2, "bob", 7, 1))), "created");
}

#[test]
fn the_limit_of_a_key_found_at_landing_is_kept_for_the_key() {
    for (policy, expected) in [
        (device_limit(Some(1), None), Shortage { line: 2, requested: 1, available: 0 }),
        (device_limit(None, Some(1)), Shortage { line: 2, requested: 1, available: 0 }),
    ] {
        let mut db = shop(policy, 5);
        let mut waits = place(1, &[("A", 1)]);
        waits.intake = Some(bucket("A", 0));
        waits.limit_keys.insert(LimitName::new("address").unwrap(), HashedKey(1));
        waits.limit_keys.insert(LimitName::new("device").unwrap(), HashedKey(7));
        let waits = Command::Place(Arc::new(waits));
        db.send(&waits);
        db.send(&by(2, "bob", 7, 1));
        db.send(&on_order(1, OrderAction::Land));
        let Outcome::Refused { refusal, recorded: true, repeated: true, .. } = db.send(&waits) else {
            panic!("a recorded refusal")
        };
        let (Refusal::KeyLimit(name, shortage) | Refusal::KeyOpenHolds(name, shortage)) = refusal else {
            panic!("a key's limit: {refusal:?}")
        };
        assert_eq!((name.as_str(), shortage), ("device", expected));
    }
}

#[test]
fn a_late_payment_takes_no_more_than_the_key_may_have() {
    let mut db = shop(device_limit(Some(1), None), 5);
    db.send(&by(1, "ann", 7, 1));
    db.send(&on_order(1, OrderAction::Cancel));
    db.send(&by(2, "bob", 7, 1));
    assert_eq!(answer(&db.send(&paid(1, "e1", "p1"))), "changed refund_due");
}

#[test]
fn keys_are_part_of_the_content() {
    let mut db = shop(Policy::default(), 5);
    db.send(&by(1, "ann", 7, 1));
    let mut other = place(1, &[("A", 1)]);
    other.limit_keys.insert(LimitName::new("a/b~").unwrap(), HashedKey(7));
    let Outcome::Refused { refusal, .. } = db.send(&Command::Place(Arc::new(other))) else {
        panic!("a refusal")
    };
    let fields = ["/limit_keys/a~1b~0", "/limit_keys/device"].map(str::to_owned);
    assert_eq!(refusal, Refusal::OrderMismatch(fields.to_vec()));
    assert_eq!(answer(&db.send(&by(1, "ann", 7, 1))), "repeated");
}

#[test]
fn a_mismatch_on_an_order_with_stock_is_one_case() {
    let mut db = shop(Policy::default(), 5);
    db.send(&placed(1, &[("A", 1)]));
    for quantity in [2, 3] {
        assert_eq!(answer(&db.send(&placed(1, &[("A", quantity)]))), "refused order_mismatch");
    }
    let case = db.cases.values().next().unwrap().clone();
    assert_eq!((db.cases.len(), case.kind, case.order), (1, CaseKind::OrderMismatch, Some(order_id(1))));
    assert!(case.evidence.contains(r#""fields":["/lines/0/quantity"]"#), "{}", case.evidence);
    assert!(!case.halts(), "it stops nothing");
    assert_eq!(answer(&db.send(&paid(1, "e1", "p1"))), "changed applied");
    // An order that holds nothing is no case.
    db.send(&placed(2, &[("A", 1)]));
    db.send(&on_order(2, OrderAction::Cancel));
    db.send(&placed(2, &[("A", 2)]));
    assert_eq!(db.cases.len(), 1);
}

#[test]
fn money_for_what_is_paid_is_one_case() {
    let mut db = shop(Policy::default(), 5);
    db.send(&placed(1, &[("A", 1)]));
    for number in 1..=3 {
        db.send(&paid(1, &format!("e{number}"), &format!("p{number}")));
    }
    // A repeat of a payment is none.
    assert_eq!(answer(&db.send(&paid(1, "e4", "p1"))), "changed duplicate");
    let kinds: Vec<_> = db.cases.values().map(|case| (case.kind, case.order)).collect();
    assert_eq!(kinds, [(CaseKind::ChargedTwice, Some(order_id(1)))]);
    assert!(db.cases.values().all(|case| case.evidence.contains(r#""payment_id":"p2""#)));
}
