//! Limits of named keys, and cases of orders.

use std::sync::Arc;

use holdfast_core::campaign::Policy;
use holdfast_core::case::{CaseAction, CaseKind, CaseState};
use holdfast_core::command::{Command, OrderAction, Outcome, Place};
use holdfast_core::id::{HashedKey, LimitName, Operator, OrderId};
use holdfast_core::limit::Limits;
use holdfast_core::order::{Order, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;

use super::behaviour::{Subject, TestClock, success};
use super::support::{
    assert_clean, bucket, change, commit, one, open_campaign, open_pool, order_of, place, placed, put, whole,
};
use crate::authority::{CaseFilter, ResolveCase};
use crate::read::Page;

fn name(name: &str) -> LimitName {
    LimitName::new(name).expect("a good id")
}

pub(super) fn device_limit(units: Option<u64>, open_holds: Option<u64>) -> Policy {
    let limits = Limits { units, open_holds };
    Policy { key_limits: [(name("device"), limits)].into(), ..Policy::default() }
}

/// A place of `order` by an account of its own on this device.
fn by_device(order: u128, device: u128, lines: &[(u128, u32)]) -> Place {
    let mut sent = place(order, &format!("account-{order}"), lines);
    sent.limit_keys.insert(name("device"), HashedKey(device));
    sent.limit_keys.insert(name("address"), HashedKey(1));
    sent
}

/// A limited key counts over accounts, pools, buckets and batches, and gives room when units come back.
pub async fn a_limited_key_counts_over_accounts_and_pools(store: Subject, _: TestClock) {
    open_campaign(&*store, device_limit(Some(3), Some(2))).await;
    open_pool(&*store, 1, 20, 3).await;
    open_pool(&*store, 2, 20, 1).await;
    let batch: Vec<Command> = [(1, 7, 1), (2, 7, 1), (3, 7, 1), (4, 8, 3)]
        .map(|(order, device, quantity)| placed(by_device(order, device, &[(1, quantity)])))
        .into();
    let outcomes = commit(&*store, whole(&[1, 2]), batch).await;
    let open_holds = Refusal::KeyOpenHolds(
        name("device"),
        holdfast_core::order::Shortage { line: 2, requested: 1, available: 0 },
    );
    assert_eq!(outcomes[2], Outcome::refused(open_holds));
    assert!([0, 1, 3].iter().all(|at| matches!(outcomes[*at], Outcome::Order { .. })), "{outcomes:?}");
    order_of(&one(&*store, whole(&[1, 2]), change(1, success("e1", "p1", None))).await);
    let outcome = one(&*store, whole(&[1, 2]), placed(by_device(3, 7, &[(1, 1), (2, 1)]))).await;
    let Outcome::Refused { refusal: Refusal::KeyLimit(limited, shortage), recorded: false, .. } = &outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!((limited.as_str(), shortage.requested, shortage.available), ("device", 2, 1));
    order_of(&one(&*store, whole(&[1, 2]), placed(by_device(3, 7, &[(2, 1)]))).await);
    assert_clean(&*store).await;
    order_of(&one(&*store, whole(&[1, 2]), change(2, OrderAction::Cancel)).await);
    order_of(&one(&*store, whole(&[1, 2]), placed(by_device(5, 7, &[(2, 1)]))).await);
    assert_clean(&*store).await;
}

/// The keys of an order read back as they were, hashed, and are part of its content.
pub async fn the_keys_of_an_order_read_back(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 5, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    let sent = by_device(1, u128::MAX, &[(1, 1)]);
    order_of(&one(&*store, locks.clone(), placed(sent.clone())).await);
    order_of(&one(&*store, locks.clone(), change(1, success("e1", "p1", None))).await);
    let read: Arc<Order> = store.order(OrderId(1)).await.expect("read").expect("an order");
    assert_eq!((read.state, &read.limit_keys), (State::Sold, &sent.limit_keys));
    let other = by_device(1, 7, &[(1, 1)]);
    let outcome = one(&*store, locks, placed(other)).await;
    let Outcome::Refused { refusal: Refusal::OrderMismatch(fields), .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(fields, ["/limit_keys/device"]);
    assert_eq!(store.limit_salt().await.expect("read"), store.limit_salt().await.expect("read"));
}

/// A key's limit that comes later counts what was there; one that goes leaves no row behind.
pub async fn a_key_limit_added_later_is_counted_first(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 20, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    for (order, device, quantity) in [(1, 7, 2), (2, 7, 2), (3, 8, 1)] {
        order_of(&one(&*store, locks.clone(), placed(by_device(order, device, &[(1, quantity)]))).await);
    }
    order_of(&one(&*store, locks.clone(), change(2, success("e2", "p2", None))).await);
    put(&*store, device_limit(Some(3), None)).await;
    // More than the limit was there before it: that is no breach, and nothing is added.
    assert_clean(&*store).await;
    let refused = one(&*store, locks.clone(), placed(by_device(4, 7, &[(1, 1)]))).await;
    assert!(matches!(refused, Outcome::Refused { refusal: Refusal::KeyLimit(..), .. }), "{refused:?}");
    order_of(&one(&*store, locks.clone(), placed(by_device(5, 8, &[(1, 2)]))).await);
    // Another kind of limit, an account's beside it, then none, then the first again.
    let both = Policy { account_limit: Some(2), ..device_limit(None, Some(9)) };
    for policy in [both, Policy::default(), device_limit(Some(3), None)] {
        put(&*store, policy).await;
        assert_clean(&*store).await;
    }
    let refused = one(&*store, locks, placed(by_device(6, 8, &[(1, 1)]))).await;
    assert!(matches!(refused, Outcome::Refused { refusal: Refusal::KeyLimit(..), .. }), "{refused:?}");
    assert_clean(&*store).await;
}

/// Batches that know nothing of each other let in what a key may have, and no more.
pub async fn concurrent_batches_keep_to_the_limit_of_a_key(store: Subject, _: TestClock) {
    open_campaign(&*store, device_limit(Some(4), None)).await;
    open_pool(&*store, 1, 100, 4).await;
    let tasks = (0..40_u32).map(|number| {
        let store = Arc::clone(&store);
        let order = u128::from(number) + 1;
        let place = placed(by_device(order, u128::from(number % 2), &[(1, 1)]));
        tokio::spawn(async move { one(&*store, LockSet::bucket(bucket(1, number % 4)), place).await })
    });
    let mut held = 0;
    for task in tasks.collect::<Vec<_>>() {
        match task.await.expect("no panic") {
            Outcome::Order { .. } => held += 1,
            Outcome::Refused { refusal: Refusal::KeyLimit(..), recorded: false, .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(held, 8);
    assert_clean(&*store).await;
}

/// Another content for an order with stock, and money for one that is paid, are one case each, written with
/// the commit that met them.
pub async fn an_order_has_one_case_of_a_kind(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 9, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    order_of(&one(&*store, locks.clone(), placed(place(1, "ann", &[(1, 1)]))).await);
    for quantity in [2, 3] {
        let outcome = one(&*store, locks.clone(), placed(place(1, "ann", &[(1, quantity)]))).await;
        assert!(
            matches!(outcome, Outcome::Refused { refusal: Refusal::OrderMismatch(_), .. }),
            "{outcome:?}"
        );
    }
    for payment in ["p1", "p2", "p3"] {
        order_of(
            &one(&*store, locks.clone(), change(1, success(&format!("e-{payment}"), payment, None))).await,
        );
    }
    let list = async |state| {
        let filter = CaseFilter { state, kind: None };
        let (cases, _) = store.cases(filter, Page { after: None, limit: 9 }).await.expect("read");
        cases
    };
    let cases = list(Some(CaseState::Open)).await;
    let mut kinds: Vec<_> = cases.iter().map(|case| case.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["charged_twice", "order_mismatch"]);
    assert!(cases.iter().all(|case| case.order == Some(OrderId(1)) && !case.halts()));
    let charged = cases.iter().find(|case| case.kind == CaseKind::ChargedTwice).expect("a case");
    assert!(charged.evidence.contains(r#""payment_id":"p2""#), "{}", charged.evidence);
    let resolve = ResolveCase {
        id: charged.id,
        action: CaseAction::Acknowledge,
        operator: Operator::new("ann").expect("a good id"),
        reason: "asked the bank".into(),
        via: None,
    };
    store.resolve_case(resolve).await.expect("write").expect("allowed");
    // What was decided stays decided, and it sells on.
    order_of(&one(&*store, locks.clone(), change(1, success("e-p4", "p4", None))).await);
    order_of(&one(&*store, locks, placed(place(2, "bob", &[(1, 1)]))).await);
    assert_eq!((list(Some(CaseState::Open)).await.len(), list(None).await.len()), (1, 2));
    assert_clean(&*store).await;
}
