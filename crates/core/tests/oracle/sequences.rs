//! Every pair and triple of what may arrive at one order, each arrival doubled, then all of it once more.

use holdfast_core::campaign::{Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd};

use crate::Pair;
use crate::steps::{NoticeStep, Paid, PlaceStep, Step};
use crate::support::build::PRICE;

/// What may arrive, by its name, with the time that passes first.
type Arrival = (&'static str, Vec<Step>);

fn notice(event: u32, succeeded: bool, paid: Paid) -> Step {
    let notice = NoticeStep {
        provider: 0,
        event,
        payment: event,
        attempt: None,
        succeeded,
        amount: Some(PRICE),
        paid_at: None,
    };
    Step::Notice(1, notice, paid)
}

fn arrivals() -> Vec<Arrival> {
    vec![
        ("payment", vec![notice(0, true, Paid::Unsaid)]),
        ("payment failed", vec![notice(1, false, Paid::Unsaid)]),
        ("payment late", vec![Step::WaitFor(1, false, 0), notice(2, true, Paid::Now)]),
        ("payment made in time", vec![Step::WaitFor(1, false, 1), notice(3, true, Paid::JustBeforeEnd)]),
        ("second payment", vec![notice(4, true, Paid::Unsaid)]),
        ("attempt", vec![Step::Attempt(1, 0, 0)]),
        ("cancel", vec![Step::Cancel(1)]),
        ("reduce", vec![Step::Reduce(1, vec![(1, 1)])]),
        ("expire", vec![Step::WaitFor(1, true, 0), Step::Expire(1)]),
        ("review over", vec![Step::Wait(1_000_000_000), Step::Expire(1)]),
        ("partial refund", vec![Step::Refund(1, 0, vec![(1, 1)], None)]),
        ("full refund", vec![Step::Refund(1, 1, vec![(1, 2), (2, 1)], Some(true))]),
        ("confirm", vec![Step::Confirm(1)]),
        ("release", vec![Step::Release(1)]),
        ("extend", vec![Step::Extend(1, 60)]),
        ("mark refunded", vec![Step::MarkRefunded(1, Vec::new())]),
        ("pause", vec![Step::Pause(true)]),
        ("freeze", vec![Step::Freeze(true)]),
        ("close", vec![Step::Close]),
    ]
}

fn place(queued: bool) -> Step {
    Step::Place(PlaceStep {
        order: 1,
        account: 0,
        device: None,
        lines: vec![(0, 2), (0, 1)],
        hold: None,
        priced: true,
        route: 0,
        record: true,
        queued,
    })
}

/// Runs one sequence; the model is compared and every invariant checked after each step.
fn run(policy: &Policy, queued: bool, sequence: &[&Arrival]) {
    let mut pair = Pair::new(policy.clone(), [(4, 2), (0, 1), (0, 1), (0, 1)]);
    pair.take(place(queued));
    for (_, steps) in sequence {
        steps.iter().for_each(|step| pair.take(step.clone()));
        pair.take(Step::Again);
    }
    pair.take(Step::PlaceAgain(1));
    for (_, steps) in sequence {
        steps.iter().for_each(|step| pair.take(step.clone()));
    }
}

fn run_all(policy: &Policy, queued: bool) {
    let mut all = arrivals();
    if queued {
        all.push(("land", vec![Step::Land(1)]));
    }
    for first in &all {
        for second in all.iter().filter(|second| second.0 != first.0) {
            run(policy, queued, &[first, second]);
            for third in all.iter().filter(|third| third.0 != first.0 && third.0 != second.0) {
                run(policy, queued, &[first, second, third]);
            }
        }
    }
}

#[test]
fn whatever_arrives_late_money_takes_again() {
    run_all(&Policy { payment_extension_seconds: 300, ..Policy::default() }, false);
}

#[test]
fn whatever_arrives_late_money_goes_back() {
    run_all(
        &Policy {
            late_payment: LatePayment::Refund,
            payment_failed: PaymentFailed::Release,
            restock_on_refund: true,
            account_limit: Some(3),
            ..Policy::default()
        },
        false,
    );
}

#[test]
fn whatever_arrives_late_money_waits_for_a_person() {
    run_all(
        &Policy {
            late_payment: LatePayment::Review,
            review_end: ReviewEnd::Person,
            deadline_basis: DeadlineBasis::ProviderPaidAt,
            ..Policy::default()
        },
        false,
    );
}

#[test]
fn whatever_arrives_at_an_immediate_sale() {
    run_all(&Policy { capture: Capture::Immediate, ..Policy::default() }, false);
}

#[test]
fn whatever_arrives_at_a_queued_order() {
    run_all(&Policy::default(), true);
}
