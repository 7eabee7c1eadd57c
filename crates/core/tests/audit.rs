//! Histories made by hand: the audit accepts the good ones and names the invariant that a bad one breaks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod support;

use std::sync::Arc;

use holdfast_core::audit::{Auditor, BREACHES_MAX, Report};
use holdfast_core::campaign::{LatePayment, Policy};
use holdfast_core::command::{Command, OrderAction};
use holdfast_core::id::{HashedKey, LimitName};
use holdfast_core::invariant::Invariant;
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::limit::{Limited, Limits};
use holdfast_core::order::{Disposition, Order, State, Usage};
use holdfast_core::snapshot::UsageKey;
use holdfast_core::stock::{Bucket, BucketKey, Delta};
use holdfast_core::time::Timestamp;

use support::Authority;
use support::build::*;

use Invariant::{
    AllocationsAreBalance, Conservation, FinalIsFinal, LedgerIsBalance, LimitsHold, NoOversell, OneOutcome,
    PaymentsAccounted, TransfersPair, UsageIsOrders,
};

/// Order 1 is held over two buckets, 2 is sold, 3 is refunded in part, 4 was released and taken again,
/// 5 was released, 6 failed, 7 is queued, 8 in review, 9 refunded with nothing left.
fn good() -> Authority {
    let policy =
        Policy { account_limit: Some(40), late_payment: LatePayment::RetakeElseRefund, ..Policy::default() };
    let mut db = Authority::new(policy);
    db.open_pool("A", 30, 2);
    db.open_pool("B", 5, 1);
    db.send(&adjust("j1", "B", 5, None));
    db.send(&adjust("j2", "B", -2, None));
    for (number, quantity) in [(2, 2), (3, 3), (4, 1), (5, 1), (8, 1), (9, 1)] {
        db.send(&placed(number, &[("A", quantity)]));
    }
    db.send(&placed(1, &[("A", 12), ("B", 1)]));
    db.send(&placed(6, &[("B", 8)]));
    let mut queued = place(7, &[("B", 1)]);
    queued.intake = Some(bucket("B", 0));
    db.send(&Command::Place(Arc::new(queued)));
    for number in [2, 3, 9] {
        db.send(&paid(number, &format!("e{number}"), &format!("p{number}")));
    }
    db.send(&on_order(3, refund("r1", &[(1, 2)], Some(true))));
    db.send(&on_order(9, refund("r1", &[(1, 1)], None)));
    db.send(&on_order(4, OrderAction::Cancel));
    db.send(&paid(4, "e4", "p4"));
    db.send(&on_order(5, OrderAction::Cancel));
    db.send(&paid(8, "e8", "p4"));
    db
}

fn edit(db: &mut Authority, number: u32, change: impl FnOnce(&mut Order)) {
    let mut order = db.order(order_id(number)).clone();
    change(&mut order);
    db.orders.insert(order.id, Arc::new(order));
}

fn ledger(db: &mut Authority, key: BucketKey) -> &mut Vec<Entry> {
    db.entries.get_mut(&key).unwrap()
}

/// The entry that led an order to a state, in whatever bucket.
fn event(db: &mut Authority, number: u32, to: State) -> &mut Entry {
    db.entries
        .values_mut()
        .flatten()
        .find(|e| e.order_id == Some(order_id(number)) && e.to_state == Some(to))
        .unwrap()
}

fn balance(db: &mut Authority, key: BucketKey) -> &mut Bucket {
    db.buckets.get_mut(&key).unwrap()
}

fn a0() -> BucketKey {
    bucket("A", 0)
}

/// Appends an entry to a bucket and moves its balance with it.
fn append(db: &mut Authority, key: BucketKey, action: Action, business_no: &str, delta: Delta) {
    let mut entry = db.entries[&key].last().unwrap().clone();
    (entry.order_id, entry.order_version, entry.from_state, entry.to_state) = (None, None, None, None);
    (entry.action, entry.delta, entry.business_no) = (action, delta, business_no.into());
    entry.source = "test".into();
    entry.seq += 1;
    *balance(db, key) = db.buckets[&key].after(delta, entry.at).unwrap();
    ledger(db, key).push(entry);
}

fn usage_row(db: &mut Authority) -> &mut Usage {
    let key = UsageKey { campaign: campaign_id(), limited: Limited::Account(account("ann")) };
    db.usage.get_mut(&key).unwrap()
}

fn report(change: impl FnOnce(&mut Authority)) -> Report {
    let mut db = good();
    change(&mut db);
    db.audit()
}

/// The audit finds this invariant broken. A single wrong row may well break others too.
fn broken(invariant: Invariant, change: impl FnOnce(&mut Authority)) {
    let report = report(change);
    assert!(report.counts.contains_key(&invariant), "{invariant:?} is not among {:#?}", report.breaches);
    assert!(report.breaches.iter().any(|breach| breach.invariant == invariant));
    assert!(!report.is_clean());
}

/// The audit finds this invariant broken and no other.
fn only_broken(invariant: Invariant, change: impl FnOnce(&mut Authority)) {
    let report = report(change);
    assert_eq!(report.counts.keys().collect::<Vec<_>>(), [&invariant], "{:#?}", report.breaches);
}

#[test]
fn a_good_history_is_clean_and_its_figures_add_up() {
    let report = report(|_| {});
    assert!(report.is_clean(), "{:#?}", report.breaches);
    let [a, b] = &report.pools[..] else { panic!("two pools") };
    assert_eq!((a.supply, a.available, a.held, a.sold), (30, 12, 13, 5));
    assert_eq!((b.supply, b.available, b.held, b.sold), (8, 7, 1, 0));
    assert_eq!(report.orders.values().sum::<u64>(), 9);
    assert_eq!(report.orders["sold"], 3);
    assert_eq!(report.payments, 5);
    assert_eq!(report.entries, a.entries + b.entries);
}

#[test]
fn an_empty_authority_is_clean() {
    assert!(Authority::new(Policy::default()).audit().is_clean());
}

#[test]
fn a_paired_transfer_is_clean_and_an_unpaired_one_is_not() {
    let pair = |db: &mut Authority, back: i64| {
        append(db, a0(), Action::TransferOut, "t1", Delta::supply(-1));
        append(db, bucket("B", 0), Action::TransferIn, "t1", Delta::supply(back));
        let at = ledger(db, a0()).last().unwrap().at;
        ledger(db, bucket("B", 0)).last_mut().unwrap().at = at;
    };
    assert!(report(|db| pair(db, 1)).is_clean());
    only_broken(TransfersPair, |db| pair(db, 2));
    // Two transactions are no transfer, and what balances in the sum alone is none either.
    only_broken(TransfersPair, |db| {
        pair(db, 1);
        ledger(db, a0()).last_mut().unwrap().at.0 += 1;
    });
    only_broken(TransfersPair, |db| {
        pair(db, 1);
        append(db, a0(), Action::TransferOut, "t1", Delta::supply(-2));
        append(db, a0(), Action::TransferIn, "t1", Delta::supply(1));
        append(db, a0(), Action::TransferIn, "t1", Delta::supply(1));
    });
    only_broken(TransfersPair, |db| {
        append(db, a0(), Action::TransferOut, "t1", Delta::supply(1));
        append(db, a0(), Action::TransferIn, "t1", Delta::supply(-1));
    });
    only_broken(TransfersPair, |db| append(db, a0(), Action::TransferOut, "t1", Delta::supply(-1)));
}

#[test]
fn a_changed_balance_is_found() {
    broken(LedgerIsBalance, |db| balance(db, a0()).available += 1);
    broken(Conservation, |db| balance(db, a0()).available += 1);
    broken(LedgerIsBalance, |db| balance(db, a0()).held -= 1);
    broken(AllocationsAreBalance, |db| balance(db, a0()).sold += 1);
    // Units that only changed their place keep the supply.
    broken(LedgerIsBalance, |db| {
        balance(db, a0()).available -= 1;
        balance(db, a0()).held += 1;
    });
    only_broken(LedgerIsBalance, |db| balance(db, a0()).ledger_seq += 1);
}

#[test]
fn a_missing_doubled_or_misplaced_entry_is_found() {
    broken(LedgerIsBalance, |db| {
        ledger(db, a0()).remove(2);
    });
    broken(LedgerIsBalance, |db| {
        ledger(db, a0()).pop();
    });
    broken(LedgerIsBalance, |db| {
        let entry = db.entries[&a0()][2].clone();
        ledger(db, a0()).insert(3, entry);
    });
    only_broken(LedgerIsBalance, |db| {
        // A gap at the end: the balance is right, the number is not.
        ledger(db, a0()).last_mut().unwrap().seq += 1;
        balance(db, a0()).ledger_seq += 1;
    });
    broken(LedgerIsBalance, |db| ledger(db, a0())[3].bucket = bucket("A", 1));
    broken(LedgerIsBalance, |db| {
        db.buckets.remove(&bucket("B", 0));
        let orphan = db.entries[&bucket("B", 0)][0].clone();
        ledger(db, a0()).insert(0, orphan);
    });
}

#[test]
fn a_wrong_delta_is_found() {
    broken(LedgerIsBalance, |db| event(db, 2, State::Held).delta = Delta::hold(3));
    broken(AllocationsAreBalance, |db| event(db, 2, State::Held).delta = Delta::hold(3));
    broken(NoOversell, |db| event(db, 2, State::Held).delta = Delta::hold(100));
}

#[test]
fn a_move_that_changes_the_supply_is_found() {
    broken(Conservation, |db| event(db, 2, State::Held).delta.held += 1);
    broken(Conservation, |db| {
        append(db, a0(), Action::OrderEvent, "?", Delta { available: -1, held: 0, sold: 0 });
    });
}

#[test]
fn an_opening_that_is_not_the_first_entry_is_found() {
    only_broken(Conservation, |db| ledger(db, a0())[0].action = Action::Inbound);
    only_broken(Conservation, |db| append(db, a0(), Action::Opening, "A", Delta::default()));
}

#[test]
fn a_bucket_without_a_pool_is_found() {
    only_broken(Conservation, |db| {
        db.pools.remove(&pool_id("B"));
    });
}

#[test]
fn an_allocation_that_differs_from_the_entries_is_found() {
    only_broken(AllocationsAreBalance, |db| edit(db, 2, |o| o.lines[0].allocations[0].quantity += 1));
    only_broken(AllocationsAreBalance, |db| edit(db, 3, |o| o.lines[0].allocations[0].restocked = 0));
    only_broken(AllocationsAreBalance, |db| {
        edit(db, 2, |o| o.lines[0].allocations[0].bucket = bucket("A", 1));
    });
    only_broken(AllocationsAreBalance, |db| edit(db, 1, |o| o.lines[0].allocations.clear()));
    broken(AllocationsAreBalance, |db| edit(db, 2, |o| o.lines[0].quantity = 1));
    broken(AllocationsAreBalance, |db| edit(db, 9, |o| o.lines[0].refunded = 2));
}

#[test]
fn a_released_order_that_still_holds_stock_is_found() {
    only_broken(AllocationsAreBalance, |db| {
        let kept = db.order(order_id(2)).lines[0].allocations.clone();
        edit(db, 5, |o| o.lines[0].allocations = kept);
    });
}

#[test]
fn stock_without_an_order_is_found() {
    broken(AllocationsAreBalance, |db| {
        db.orders.remove(&order_id(2));
    });
    broken(AllocationsAreBalance, |db| append(db, a0(), Action::Place, "ghost", Delta::hold(1)));
}

#[test]
fn an_illegal_transition_is_found() {
    broken(FinalIsFinal, |db| event(db, 5, State::Released).from_state = Some(State::Sold));
    // Sold after a release, without the retake that would make it legal.
    only_broken(FinalIsFinal, |db| event(db, 4, State::Sold).action = Action::Confirm);
    only_broken(FinalIsFinal, |db| event(db, 2, State::Sold).to_state = Some(State::Refunded));
    only_broken(FinalIsFinal, |db| event(db, 2, State::Held).from_state = Some(State::Released));
}

#[test]
fn an_event_that_is_missing_doubled_or_not_at_home_is_found() {
    only_broken(FinalIsFinal, |db| {
        let entry = event(db, 2, State::Sold);
        (entry.order_version, entry.from_state, entry.to_state) = (None, None, None);
    });
    only_broken(FinalIsFinal, |db| event(db, 2, State::Sold).order_version = Some(3));
    only_broken(FinalIsFinal, |db| event(db, 2, State::Sold).order_version = Some(1));
    only_broken(FinalIsFinal, |db| edit(db, 2, |o| o.home = Some(bucket("A", 1))));
    only_broken(FinalIsFinal, |db| edit(db, 2, |o| o.home = None));
}

#[test]
fn an_order_whose_row_ran_ahead_of_its_events_is_found() {
    only_broken(FinalIsFinal, |db| edit(db, 2, |o| o.version += 1));
    only_broken(FinalIsFinal, |db| edit(db, 1, |o| o.state = State::InReview));
    broken(FinalIsFinal, |db| edit(db, 2, |o| o.state = State::Held));
    only_broken(FinalIsFinal, |db| edit(db, 7, |o| o.version = 2));
    only_broken(FinalIsFinal, |db| edit(db, 5, |o| o.state = State::Failed));
}

#[test]
fn two_orders_of_one_key_are_found() {
    only_broken(OneOutcome, |db| {
        let mut twin = db.order(order_id(6)).clone();
        twin.id = order_id(60);
        db.orders.insert(twin.id, Arc::new(twin));
    });
}

#[test]
fn usage_that_is_not_the_orders_is_found() {
    only_broken(UsageIsOrders, |db| usage_row(db).units -= 1);
    only_broken(UsageIsOrders, |db| usage_row(db).open_holds += 1);
    only_broken(UsageIsOrders, |db| db.usage.clear());
    only_broken(UsageIsOrders, |db| {
        let key = UsageKey { campaign: campaign_id(), limited: Limited::Account(account("nobody")) };
        db.usage.insert(key, Usage { units: 1, open_holds: 0 });
    });
}

#[test]
fn an_account_over_every_limit_that_was_ever_in_force_is_found() {
    only_broken(LimitsHold, |db| db.campaign.ceilings.account.units = Some(3));
    // A lowered limit does not undo what was sold under the higher one.
    assert!(report(|db| db.campaign.policy.account_limit = Some(1)).is_clean());
    assert!(report(|db| db.campaign.ceilings.account.units = None).is_clean());
}

#[test]
fn a_key_over_its_limit_is_found() {
    let device = LimitName::new("device").unwrap();
    let with_device = |db: &mut Authority, most: u64| {
        let limits = Limits { units: Some(most), open_holds: None };
        db.campaign.policy.key_limits.insert(device.clone(), limits);
        db.campaign.ceilings.keys.insert(device.clone(), limits);
        let order = db.orders.values_mut().find(|order| order.usage().units > 1).unwrap();
        let key = UsageKey { campaign: campaign_id(), limited: Limited::Key(device.clone(), HashedKey(7)) };
        Arc::make_mut(order).limit_keys.insert(device.clone(), HashedKey(7));
        let usage = order.usage();
        db.usage.insert(key, usage);
    };
    assert!(report(|db| with_device(db, 99)).is_clean());
    only_broken(LimitsHold, |db| with_device(db, 1));
    only_broken(UsageIsOrders, |db| {
        with_device(db, 99);
        db.usage.retain(|key, _| matches!(key.limited, Limited::Account(_)));
    });
}

#[test]
fn payments_that_do_not_add_up_are_found() {
    only_broken(PaymentsAccounted, |db| {
        db.payments.pop();
    });
    only_broken(PaymentsAccounted, |db| {
        let row = db.payments[0].clone();
        db.payments.push(row);
    });
    only_broken(PaymentsAccounted, |db| db.payments[0].order = order_id(3));
    only_broken(PaymentsAccounted, |db| {
        edit(db, 2, |o| {
            o.payments.clear();
        });
    });
}

#[test]
fn claims_that_do_not_fit_their_payments_are_found() {
    only_broken(PaymentsAccounted, |db| {
        db.claims.pop_first();
    });
    only_broken(PaymentsAccounted, |db| *db.claims.values_mut().next().unwrap() = order_id(77));
    only_broken(PaymentsAccounted, |db| {
        let ((provider, _), order) = db.claims.first_key_value().unwrap();
        let invented = (provider.clone(), holdfast_core::id::PaymentId::new("invented").unwrap());
        db.claims.insert(invented, *order);
    });
}

#[test]
fn two_payments_for_one_order_are_found() {
    only_broken(PaymentsAccounted, |db| {
        let mut row = db.payments.iter().find(|row| row.order == order_id(2)).unwrap().clone();
        row.event_id = holdfast_core::id::EventId::new("e-second").unwrap();
        db.payments.push(row.clone());
        edit(db, 2, |o| {
            let mut second = o.payments[0].clone();
            second.notice.event_id = row.event_id;
            o.payments.push(second);
        });
    });
    only_broken(PaymentsAccounted, |db| {
        edit(db, 2, |o| o.payments[0].disposition = Disposition::Parked);
    });
    only_broken(PaymentsAccounted, |db| {
        edit(db, 2, |o| o.payments[0].disposition = Disposition::Ignored);
    });
}

#[test]
fn hostile_rows_are_breaches_and_never_a_panic() {
    let worst = Delta { available: i64::MIN, held: i64::MIN, sold: i64::MAX };
    broken(LedgerIsBalance, |db| {
        for entry in db.entries.values_mut().flatten() {
            entry.delta = worst;
            entry.seq = u64::MAX;
            entry.order_version = Some(u32::MAX);
        }
        for bucket in db.buckets.values_mut() {
            (bucket.available, bucket.held, bucket.sold) = (u64::MAX, u64::MAX, u64::MAX);
        }
        for number in 1..=9 {
            edit(db, number, |o| {
                let all = o.lines.iter_mut().flat_map(|line| &mut line.allocations);
                all.for_each(|a| (a.quantity, a.restocked) = (u64::MAX, 1));
                let twice = o.lines[0].allocations.clone();
                o.lines[0].allocations.extend(twice);
            });
        }
        *usage_row(db) = Usage { units: u64::MAX, open_holds: u64::MAX };
    });
}

#[test]
fn a_report_names_the_first_breaches_and_counts_all() {
    let report = report(|db| {
        let entry = db.entries[&a0()][2].clone();
        ledger(db, a0()).extend(std::iter::repeat_n(entry, BREACHES_MAX + 10));
    });
    assert_eq!(report.breaches.len(), BREACHES_MAX);
    assert!(report.counts[&LedgerIsBalance] > BREACHES_MAX as u64);
    assert!(report.pools[0].breaches > BREACHES_MAX as u64);
}

/// The ledger as of a time.
fn past(db: &Authority, at: Timestamp) -> Report {
    let mut auditor = Auditor::as_of(Some(at));
    db.pools.values().for_each(|pool| auditor.pool(pool));
    for bucket in db.buckets.values() {
        auditor.bucket(bucket);
        let of_bucket = db.entries[&bucket.key].iter();
        of_bucket.take_while(|entry| auditor_reaches(at, entry)).for_each(|entry| auditor.entry(entry));
    }
    auditor.finish()
}

fn auditor_reaches(at: Timestamp, entry: &Entry) -> bool {
    Auditor::as_of(Some(at)).reaches(entry)
}

#[test]
fn a_ledger_is_judged_as_of_any_time() {
    let db = good();
    let times: std::collections::BTreeSet<_> = db.entries.values().flatten().map(|entry| entry.at).collect();
    for at in times {
        let report = past(&db, at);
        assert!(report.is_clean(), "{at}: {:#?}", report.breaches);
        let then = db.entries.values().flatten().filter(|entry| entry.at <= at);
        let (mut sums, mut count) = ([0_i64; 3], 0);
        for entry in then {
            let Delta { available, held, sold } = entry.delta;
            sums = [sums[0] + available, sums[1] + held, sums[2] + sold];
            count += 1;
        }
        let all = |of: fn(&holdfast_core::audit::PoolFigures) -> u64| -> i64 {
            report.pools.iter().map(|pool| of(pool) as i64).sum()
        };
        assert_eq!([all(|p| p.available), all(|p| p.held), all(|p| p.sold)], sums, "{at}");
        assert_eq!((report.entries, report.as_of), (count, Some(at)));
    }
    assert_eq!(past(&db, Timestamp(i64::MIN)).entries, 0);
}

#[test]
fn a_past_that_does_not_add_up_is_found() {
    let end = Timestamp(i64::MAX);
    let mut db = good();
    ledger(&mut db, a0()).remove(1);
    assert!(past(&db, end).counts.contains_key(&LedgerIsBalance), "a gap");
    let mut db = good();
    append(&mut db, a0(), Action::TransferOut, "t", Delta::supply(-1));
    assert!(past(&db, end).counts.contains_key(&TransfersPair), "an out without an in");
    let mut db = good();
    ledger(&mut db, a0())[0].delta = Delta::supply(-1);
    assert!(past(&db, end).counts.contains_key(&NoOversell), "less than nothing");
}
