//! Expiry by timer and by scan.

use async_trait::async_trait;
use holdfast_core::campaign::Policy;
use holdfast_core::case::{CaseKind, CaseState};
use holdfast_core::command::OrderAction;
use holdfast_core::id::{AttemptId, PaymentId, Provider};
use holdfast_core::order::{Reason, State};
use holdfast_engine::{Config, Engine, PaymentStatus, StatusQuestion, StatusSource, UuidV7};
use holdfast_store::model::Fault;
use holdfast_store::{CaseFilter, Page, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Sale, order, request, settle, success};

#[tokio::test]
async fn the_timer_releases_after_the_grace_and_not_before() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 3, 1).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(order(&sale.place(request(&format!("o{n}"), "ann", &[("A", 1)])).await.unwrap()).0.id);
    }
    sale.change(ids[0], success("e0")).await;
    let bank = Provider::new("bank").unwrap();
    sale.change(ids[1], OrderAction::Attempt(AttemptId::new("a").unwrap(), bank)).await;
    sale.clock.advance_millis(901_999);
    let pass = sale.engine.expire_due(sale.store.now()).await;
    assert_eq!((pass.changed, pass.unchanged), (0, 0));
    sale.clock.advance_millis(1);
    let pass = sale.engine.expire_due(sale.store.now()).await;
    // The sold order is still in the timer: it is asked, and does nothing.
    assert_eq!((pass.changed, pass.unchanged, pass.failed), (2, 1, 0));
    let states: Vec<_> = futures(&sale, &ids).await;
    assert_eq!(
        states,
        [
            (State::Sold, None),
            (State::InReview, Some(Reason::PaymentUnknown)),
            (State::Released, Some(Reason::Expired))
        ]
    );
    assert_eq!(sale.balances(pool).await, (1, 1, 1));
    sale.assert_clean().await;
}

async fn futures(sale: &Sale, ids: &[holdfast_core::id::OrderId]) -> Vec<(State, Option<Reason>)> {
    let mut states = Vec::new();
    for id in ids {
        let order = sale.store.order(*id).await.unwrap().unwrap();
        states.push((order.state, order.reason));
    }
    states
}

#[tokio::test]
async fn the_scan_finds_what_a_lost_timer_forgot() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 1_000, 4).await;
    for n in 0..600 {
        order(&sale.place(request(&format!("o{n}"), "ann", &[("A", 1)])).await.unwrap());
    }
    sale.clock.advance_millis(1_000_000);
    // Another process: nothing is in its timer.
    let config = Config { expiry_pass_max: 512, ..Config::default() };
    let restarted = Engine::new(sale.store.clone(), Arc::new(UuidV7), config);
    let now = sale.store.now();
    assert_eq!(restarted.expire_due(now).await.changed, 0);
    let first = restarted.scan_overdue(now).await;
    assert_eq!((first.changed, first.more), (512, true), "a pass is bounded");
    let second = restarted.scan_overdue(now).await;
    assert_eq!((second.changed, second.more), (88, false));
    assert_eq!(sale.balances(pool).await, (1_000, 0, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn one_order_that_cannot_be_expired_stops_no_other_and_is_no_hot_loop() {
    let sale = Sale::open(Policy::default(), Config { batch_size_max: 1, ..Config::default() }).await;
    let pool = sale.pool("A", 100, 1).await;
    for n in 0..100 {
        order(&sale.place(request(&format!("o{n}"), "ann", &[("A", 1)])).await.unwrap());
    }
    sale.clock.advance_millis(1_000_000);
    sale.fail_after(4, Fault::Before(holdfast_store::Error::Data("on request".into())));
    let config = Config { batch_size_max: 1, expiry_pass_max: 200, ..Config::default() };
    let engine = Engine::new(sale.store.clone(), Arc::new(UuidV7), config);
    let pass = engine.scan_overdue(sale.store.now()).await;
    assert_eq!((pass.changed, pass.failed), (99, 1));
    let open = CaseFilter { state: Some(CaseState::Open), kind: None };
    let (cases, _) = sale.store.cases(open, Page { after: None, limit: 9 }).await.unwrap();
    assert_eq!(cases.len(), 1, "the odd one needs a person");
    assert_eq!((cases[0].kind, cases[0].pool), (CaseKind::HoldOverdue, Some(pool)));
    assert!(cases[0].evidence.contains("on request"), "{}", cases[0].evidence);
    let commits = sale.store.commits();
    let pass = engine.scan_overdue(sale.store.now()).await;
    assert_eq!((pass.changed, pass.failed, sale.store.commits()), (0, 0, commits), "it is set aside");
    sale.clock.advance_millis(30_001);
    assert_eq!(engine.scan_overdue(sale.store.now()).await.changed, 1);
    assert_eq!(sale.balances(pool).await, (100, 0, 0));
}

/// A provider that says the same of every attempt, and counts.
struct Says(PaymentStatus, AtomicUsize);

#[async_trait]
impl StatusSource for Says {
    fn knows(&self, provider: &Provider) -> bool {
        provider.as_str() == "bank"
    }

    async fn ask(&self, _: &StatusQuestion) -> PaymentStatus {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.clone()
    }
}

/// An order with an open attempt, whose time is over, after a pass that asked; its state, and how often was asked.
async fn asked(status: PaymentStatus) -> (State, usize) {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 3, 1).await;
    let bank = Arc::new(Says(status, AtomicUsize::new(0)));
    sale.engine.ask_providers(bank.clone());
    let id = order(&sale.place(request("o", "ann", &[("A", 1)])).await.unwrap()).0.id;
    let attempt = OrderAction::Attempt(AttemptId::new("a").unwrap(), Provider::new("bank").unwrap());
    sale.change(id, attempt).await;
    let watcher = sale.engine.watch(id).unwrap();
    sale.clock.advance_millis(902_000);
    let pass = sale.engine.expire_due(sale.store.now()).await;
    assert_eq!((pass.changed, pass.unchanged, pass.failed), (0, 1, 0), "the pass waits for nobody");
    loop {
        let after = watcher.changed().await.unwrap();
        // A failed payment is noted before the hold is let go.
        if after.state != State::Held {
            sale.assert_clean().await;
            return (after.state, bank.1.load(Ordering::SeqCst));
        }
    }
}

#[tokio::test]
async fn a_provider_is_asked_before_a_hold_is_let_go() {
    let payment_id = PaymentId::new("p").unwrap();
    let paid = PaymentStatus::Paid { payment_id, paid_at: None, amount_minor: None, currency: None };
    assert_eq!(asked(paid).await, (State::Sold, 1));
    assert_eq!(asked(PaymentStatus::Failed { payment_id: None }).await, (State::Released, 1));
    assert_eq!(asked(PaymentStatus::Unknown).await, (State::InReview, 1));
}

/// A provider that never answers.
struct Silent(AtomicUsize);

#[async_trait]
impl StatusSource for Silent {
    fn knows(&self, provider: &Provider) -> bool {
        provider.as_str() == "bank"
    }

    async fn ask(&self, _: &StatusQuestion) -> PaymentStatus {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_provider_that_never_answers_holds_up_nobody_else() {
    let config = Config { asking_max: 4, expiry_pass_max: 200, ..Config::default() };
    let sale = Sale::open(Policy::default(), config).await;
    let pool = sale.pool("A", 100, 4).await;
    sale.pool("B", 100, 1).await;
    let bank = Arc::new(Silent(AtomicUsize::new(0)));
    sale.engine.ask_providers(bank.clone());
    // Every second one has a payment under way, of which one in ten is of somebody who cannot be asked.
    for n in 0..40 {
        // Some over two pools, so that the lane of their home alone cannot end them.
        let lines: &[(&str, u32)] = if n % 8 == 0 { &[("A", 1), ("B", 1)] } else { &[("A", 1)] };
        let placed = sale.place(request(&format!("o{n}"), "ann", lines)).await.unwrap();
        let id = order(&placed).0.id;
        if n % 2 == 0 {
            let provider = Provider::new(if n % 20 == 0 { "cash" } else { "bank" }).unwrap();
            sale.change(id, OrderAction::Attempt(AttemptId::new("a").unwrap(), provider)).await;
        }
    }
    sale.clock.advance_millis(902_000);
    let before = sale.store.commits();
    let pass = sale.engine.expire_due(sale.store.now()).await;
    settle().await;
    // 20 are released and 2 go to review; 18 wait, 4 of them for an answer.
    assert_eq!((pass.changed, pass.unchanged, pass.failed), (22, 18, 0));
    assert_eq!(bank.0.load(Ordering::SeqCst), 4, "no more than may be asked at once");
    assert!(sale.store.commits() - before <= 50, "nobody is tried again and again in a pass");
    // The next passes find nothing new, and do not spin on what waits.
    for _ in 0..3 {
        let pass = sale.engine.scan_overdue(sale.store.now()).await;
        assert_eq!((pass.changed, pass.unchanged, pass.failed), (0, 0, 0));
        assert_eq!(sale.engine.expire_due(sale.store.now()).await.unchanged, 0);
    }
    // After a moment those who were too many are tried again, and wait on.
    sale.clock.advance_millis(1_000);
    assert_eq!(sale.engine.expire_due(sale.store.now()).await.unchanged, 14);
    settle().await;
    assert_eq!(bank.0.load(Ordering::SeqCst), 4);
    assert_eq!(sale.balances(pool).await, (80, 20, 0));
    sale.assert_clean().await;
}
