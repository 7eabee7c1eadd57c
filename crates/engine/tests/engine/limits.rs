//! Limits at the node: rates, verdicts that are remembered, keys that are hashed, and cases of mismatches.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::Policy;
use holdfast_core::case::CaseKind;
use holdfast_core::command::{How, OrderAction, Outcome};
use holdfast_core::id::{LimitKey, LimitName};
use holdfast_core::limit::Limits;
use holdfast_core::refusal::Refusal;
use holdfast_engine::{Config, Error, PlaceRequest};
use holdfast_store::model::Fault;
use holdfast_store::{CaseFilter, Page, Store};
use tokio::sync::Notify;

use crate::support::{Sale, order, refusal, request};

fn device_limit(units: Option<u64>, open_holds: Option<u64>) -> Policy {
    let limits = [(LimitName::new("device").unwrap(), Limits { units, open_holds })];
    Policy { key_limits: limits.into(), ..Policy::default() }
}

fn by_device(order_no: &str, account: &str, device: &str) -> PlaceRequest {
    let mut sent = request(order_no, account, &[("A", 1)]);
    sent.limit_keys.insert(LimitName::new("device").unwrap(), LimitKey::new(device).unwrap());
    sent
}

async fn kinds_of_cases(sale: &Sale) -> Vec<CaseKind> {
    let page = Page { after: None, limit: 9 };
    sale.store.cases(CaseFilter::default(), page).await.unwrap().0.iter().map(|case| case.kind).collect()
}

#[tokio::test]
async fn orders_a_second_are_bounded_before_the_key_is_looked_up() {
    let policy = Policy { order_rate_per_account: Some(2), order_rate: Some(5), ..Policy::default() };
    let sale = Sale::open(policy, Config::default()).await;
    sale.pool("A", 50, 1).await;
    let place =
        async |n: usize, account: &str| sale.place(request(&format!("o{n}"), account, &[("A", 1)])).await;
    assert!(place(1, "ann").await.is_ok() && place(2, "ann").await.is_ok());
    let limited = place(1, "ann").await;
    assert_eq!(limited, Err(Error::RateLimited { retry_after: Duration::from_millis(500) }));
    // The campaign lets in five, whoever they are.
    for (n, account) in ["bob", "eve", "joe"].iter().enumerate() {
        assert!(place(10 + n, account).await.is_ok());
    }
    let limited = place(20, "sue").await;
    assert_eq!(limited, Err(Error::RateLimited { retry_after: Duration::from_millis(200) }));
    let commits = sale.store.commits();
    for n in 0..100 {
        assert!(matches!(place(n, "sue").await, Err(Error::RateLimited { .. })));
    }
    assert_eq!(sale.store.commits(), commits, "a flood costs the authority nothing");
    sale.clock.advance_millis(500);
    assert_eq!(order(&place(1, "ann").await.unwrap()).1, How::Repeated);
    assert!(place(20, "sue").await.is_ok());
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_verdict_is_remembered_until_what_the_account_has_changes() {
    let sale = Sale::open(Policy { account_limit: Some(2), ..Policy::default() }, Config::default()).await;
    sale.pool("A", 50, 1).await;
    let ann = async |n: &str, quantity: u32| sale.place(request(n, "ann", &[("A", quantity)])).await.unwrap();
    let (held, _) = order(&ann("o1", 1).await);
    let first = ann("o2", 2).await;
    assert!(matches!(first, Outcome::Refused { recorded: true, .. }), "{first:?}");
    let commits = sale.store.commits();
    for n in 3..50 {
        let outcome = ann(&format!("o{n}"), 2).await;
        let Outcome::Refused { refusal: Refusal::AccountLimit(shortage), recorded: false, .. } = outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!((shortage.requested, shortage.available), (2, 1));
    }
    // A known key is what it was, and who asks for what is left is let in.
    assert!(matches!(ann("o2", 2).await, Outcome::Refused { recorded: true, repeated: true, .. }));
    assert_eq!(sale.store.commits(), commits);
    assert_eq!(order(&ann("o1", 1).await).1, How::Repeated);
    let (second, _) = order(&ann("p1", 1).await);
    let none_left = ann("p2", 1).await;
    assert!(matches!(refusal(&none_left), Refusal::AccountLimit(s) if s.available == 0), "{none_left:?}");
    sale.change(second.id, OrderAction::Cancel).await;
    order(&ann("p3", 1).await);
    sale.change(held.id, OrderAction::Cancel).await;
    order(&ann("p4", 1).await);
    // A verdict ends by itself: another node may have changed what it rests on.
    ann("p5", 1).await;
    let commits = sale.store.commits();
    sale.clock.advance_millis(1_001);
    ann("p6", 1).await;
    assert_eq!(sale.store.commits(), commits + 1);
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_verdict_from_before_a_change_is_not_remembered_after_it() {
    let sale = Sale::open(Policy { account_limit: Some(1), ..Policy::default() }, Config::default()).await;
    sale.pool("A", 50, 2).await;
    let (held, _) = order(&sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap());
    // The refusal is decided, and its answer waits while the account's order is cancelled.
    let go = Arc::new(Notify::new());
    sale.fail_after(0, Fault::Wait(go.clone()));
    let engine = sale.engine.clone();
    let refused = tokio::spawn(async move { engine.place(request("o2", "ann", &[("A", 2)])).await });
    while sale.store.commits() == 2 + u64::from(held.version) - 1 {
        tokio::task::yield_now().await;
    }
    sale.change(held.id, OrderAction::Cancel).await;
    go.notify_one();
    assert!(matches!(refusal(&refused.await.unwrap().unwrap()), Refusal::AccountLimit(_)));
    order(&sale.place(request("o3", "ann", &[("A", 1)])).await.unwrap());
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_device_is_limited_over_accounts_and_never_stored_as_it_is() {
    let sale = Sale::open(device_limit(Some(1), None), Config::default()).await;
    sale.pool("A", 500, 4).await;
    let mut attempts = Vec::new();
    for n in 0..300 {
        let engine = sale.engine.clone();
        let sent = by_device(&format!("o{n}"), &format!("account-{n}"), "one device");
        attempts.push(tokio::spawn(async move { engine.place(sent).await.unwrap() }));
    }
    for n in 0..99 {
        let engine = sale.engine.clone();
        let sent = by_device(&format!("p{n}"), &format!("account-{n}"), &format!("device-{n}"));
        attempts.push(tokio::spawn(async move { engine.place(sent).await.unwrap() }));
    }
    let mut held = Vec::new();
    for attempt in attempts {
        match attempt.await.unwrap() {
            Outcome::Order { order, .. } => held.push(order),
            Outcome::Refused { refusal: Refusal::KeyLimit(name, _), recorded: false, .. } => {
                assert_eq!(name.as_str(), "device");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(held.len(), 1 + 99);
    assert!(held.iter().all(|order| !format!("{order:?}").contains("one device")));
    sale.assert_clean().await;
}

#[tokio::test]
async fn other_content_is_a_case_wherever_the_node_meets_it() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 1, 1).await;
    order(&sale.place(by_device("o1", "ann", "a")).await.unwrap());
    // The shelf is empty: a new key is refused without a transaction, a known one is looked up.
    let outcome = sale.place(by_device("o1", "ann", "b")).await.unwrap();
    assert_eq!(refusal(&outcome), Refusal::OrderMismatch(vec!["/limit_keys/device".into()]));
    assert_eq!(kinds_of_cases(&sale).await, [CaseKind::OrderMismatch]);
    for _ in 0..3 {
        sale.place(by_device("o1", "bob", "a")).await.unwrap();
    }
    assert_eq!(kinds_of_cases(&sale).await.len(), 1);
    sale.assert_clean().await;
}
