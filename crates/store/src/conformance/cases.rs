//! Incarnations and cases.

use holdfast_core::campaign::{CampaignStatus, Policy};
use holdfast_core::case::{CaseAction, CaseKind, CaseState};
use holdfast_core::command::{How, Inquiry, OrderAction, Outcome};
use holdfast_core::id::{AttemptId, CaseId, Incarnation, Operator, Provider};
use holdfast_core::order::{Disposition, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;

use super::behaviour::{Subject, TestClock, success};
use super::support::{
    assert_clean, balances, bucket, campaign_id, change, one, open_campaign, open_pool, order_of, place,
    placed, whole,
};
use crate::authority::{CaseFilter, NewIncarnation, ResolveCase};
use crate::clock::Clock;
use crate::contract::Store;
use crate::read::Page;

fn begin(number: u128) -> NewIncarnation {
    NewIncarnation {
        incarnation: Incarnation(number),
        case: CaseId(number),
        evidence: r#"{"why":"test"}"#.into(),
    }
}

fn acknowledge(case: u128, reason: &str) -> ResolveCase {
    ResolveCase {
        id: CaseId(case),
        action: CaseAction::Acknowledge,
        operator: Operator::new("ann").expect("a good id"),
        reason: reason.into(),
        via: None,
    }
}

async fn shown(store: &dyn Store) -> CampaignStatus {
    let totals = store.campaign(campaign_id()).await.expect("read").expect("a campaign");
    totals.status(store.now())
}

/// While the case of a new incarnation is open nothing is placed and nothing taken again; what is held is
/// paid, cancelled and released as ever.
pub async fn a_new_incarnation_stops_sales_until_its_case_is_resolved(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy { release_grace_ms: 0, ..Policy::default() }).await;
    open_pool(&*store, 1, 5, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    for order in 1..=3 {
        order_of(&one(&*store, locks.clone(), placed(place(order, "ann", &[(1, 1)]))).await);
    }
    order_of(&one(&*store, locks.clone(), change(3, OrderAction::Cancel)).await);
    assert_eq!(shown(&*store).await, CampaignStatus::Open);
    store.begin_incarnation(begin(77)).await.expect("write");
    assert_eq!(shown(&*store).await, CampaignStatus::Frozen);
    let refused = one(&*store, locks.clone(), placed(place(4, "bob", &[(1, 1)]))).await;
    assert_eq!(refused, Outcome::refused(Refusal::Halted));
    let repeated = one(&*store, locks.clone(), placed(place(1, "ann", &[(1, 1)]))).await;
    assert_eq!(order_of(&repeated).0.state, State::Held);
    let paid = one(&*store, locks.clone(), change(1, success("e1", "p1", None))).await;
    assert_eq!(order_of(&paid).0.state, State::Sold);
    clock.advance_millis(900_000);
    order_of(&one(&*store, locks.clone(), change(2, OrderAction::Expire(Inquiry::Done))).await);
    let late = one(&*store, whole(&[1]), change(2, success("e2", "p2", None))).await;
    let Outcome::Order { order, disposition, .. } = &late else { panic!("not an order: {late:?}") };
    assert_eq!((order.state, *disposition), (State::Released, Some(Disposition::Review)));
    let case = store.resolve_case(acknowledge(77, "seen")).await.expect("write").expect("allowed");
    assert_eq!((case.state(), case.kind), (CaseState::Resolved, CaseKind::Incarnation));
    assert_eq!(shown(&*store).await, CampaignStatus::Open);
    order_of(&one(&*store, locks, placed(place(4, "bob", &[(1, 1)]))).await);
    assert_eq!(balances(&*store, 1).await, (3, 1, 1));
    assert_clean(&*store).await;
}

/// Before anybody was asked, an order with a payment under way is only told; every other ends.
pub async fn a_payment_under_way_is_told_before_its_order_ends(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy { review_seconds: 60, ..Policy::default() }).await;
    open_pool(&*store, 1, 5, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    for order in [1, 2] {
        one(&*store, locks.clone(), placed(place(order, "ann", &[(1, 1)]))).await;
    }
    let attempt = OrderAction::Attempt(
        AttemptId::new("a").expect("a good id"),
        Provider::new("bank").expect("a good id"),
    );
    one(&*store, locks.clone(), change(1, attempt)).await;
    let expire =
        async |order, inquiry| one(&*store, locks.clone(), change(order, OrderAction::Expire(inquiry))).await;
    assert!(matches!(expire(1, Inquiry::Open).await, Outcome::NotDue(Some(_))), "its time is not over");
    clock.advance_millis(902_000);
    let released = expire(2, Inquiry::Open).await;
    assert_eq!((order_of(&released).0.state, order_of(&released).1), (State::Released, How::Changed));
    for state in [State::Held, State::InReview] {
        let (waits, how) = order_of(&expire(1, Inquiry::Open).await);
        assert_eq!((waits.state, how), (state, How::Repeated));
        assert_eq!(store.order(waits.id).await.expect("read"), Some(waits));
        assert_eq!(order_of(&expire(1, Inquiry::Done).await).1, How::Changed);
        clock.advance_millis(60_000);
    }
    assert_eq!(balances(&*store, 1).await, (5, 0, 0));
    assert_clean(&*store).await;
}

/// The first decision stands; a case that does not exist is said to be unknown.
pub async fn a_case_is_resolved_once(store: Subject, clock: TestClock) {
    store.begin_incarnation(begin(5)).await.expect("write");
    let opened = clock.now();
    clock.advance_millis(1_000);
    let first = store.resolve_case(acknowledge(5, "first")).await.expect("write").expect("allowed");
    let decided = clock.now();
    clock.advance_millis(1_000);
    let second = store.resolve_case(acknowledge(5, "second")).await.expect("write").expect("allowed");
    assert_eq!(first, second);
    assert_eq!(&*first.evidence, r#"{"why":"test"}"#);
    let resolution = first.resolution.expect("a resolution");
    assert_eq!((first.opened_at, resolution.at, &*resolution.reason), (opened, decided, "first"));
    let unknown = store.resolve_case(acknowledge(6, "none")).await.expect("write");
    assert_eq!(unknown, Err(Refusal::UnknownCase));
}

/// Incarnations are remembered, and positions only rise.
pub async fn an_authority_knows_its_past_and_its_position(store: Subject, clock: TestClock) {
    let first = store.authority().await.expect("read");
    assert_eq!((first.positions, first.last_ledger_at, first.past.len()), (0, None, 0));
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(1, "ann", &[(1, 1)]))).await;
    let second = store.authority().await.expect("read");
    assert_eq!((second.positions, second.last_ledger_at), (3, Some(clock.now())));
    for number in [8, 9] {
        store.begin_incarnation(begin(number)).await.expect("write");
    }
    let third = store.authority().await.expect("read");
    assert_eq!(third.incarnation, Incarnation(9));
    assert_eq!(third.past, [first.incarnation, Incarnation(8)]);
    assert_eq!(third.positions, second.positions);
}

/// Cases are listed in order of their ids, page by page.
pub async fn cases_are_listed_and_filtered(store: Subject, _: TestClock) {
    for number in [3, 1, 2] {
        store.begin_incarnation(begin(number)).await.expect("write");
    }
    store.resolve_case(acknowledge(2, "seen")).await.expect("write").expect("allowed");
    let list = async |state, after: Option<u128>, limit| {
        let filter = CaseFilter { state, kind: Some(CaseKind::Incarnation) };
        let page = Page { after: after.map(CaseId), limit };
        let (cases, more) = store.cases(filter, page).await.expect("read");
        (cases.iter().map(|case| case.id.0).collect::<Vec<_>>(), more)
    };
    assert_eq!(list(None, None, 2).await, (vec![1, 2], true));
    assert_eq!(list(None, Some(2), 2).await, (vec![3], false));
    assert_eq!(list(Some(CaseState::Open), None, 5).await, (vec![1, 3], false));
    assert_eq!(list(Some(CaseState::Resolved), None, 5).await, (vec![2], false));
}
