//! Admission and routing.

use std::time::Duration;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{How, OrderAction, Outcome};
use holdfast_core::order::State;
use holdfast_core::refusal::Refusal;
use holdfast_engine::Config;
use holdfast_store::Store;
use holdfast_store::model::Fault;

use crate::support::{Sale, order, refusal, request, success};

#[tokio::test]
async fn the_last_unit_is_sold_from_whichever_bucket_has_it() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 8, 8).await;
    for n in 0..8 {
        let outcome = sale.place(request(&format!("o{n}"), "ann", &[("A", 1)])).await.unwrap();
        assert_eq!(order(&outcome).1, How::Created, "{n}");
    }
    let outcome = sale.place(request("o8", "ann", &[("A", 1)])).await.unwrap();
    assert!(matches!(refusal(&outcome), Refusal::SoldOut(s) if s.available == 0));
    assert_eq!(sale.balances(pool).await, (0, 8, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_line_that_no_bucket_has_is_taken_from_several() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 8, 4).await;
    let outcome = sale.place(request("o", "ann", &[("A", 3), ("A", 4)])).await.unwrap();
    assert_eq!(order(&outcome).0.allocations().map(|a| a.quantity).sum::<u64>(), 7);
    sale.assert_clean().await;
}

#[tokio::test]
async fn orders_over_several_pools_are_all_or_nothing() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let (a, b) = (sale.pool("A", 4, 4).await, sale.pool("B", 2, 2).await);
    let outcome = sale.place(request("o1", "ann", &[("A", 3), ("B", 2)])).await.unwrap();
    assert_eq!(order(&outcome).0.lines.len(), 2);
    let outcome = sale.place(request("o2", "ann", &[("A", 1), ("B", 1)])).await.unwrap();
    let Refusal::SoldOut(shortage) = refusal(&outcome) else { panic!("{outcome:?}") };
    assert_eq!((shortage.line, shortage.requested, shortage.available), (2, 1, 0));
    assert_eq!(sale.balances(a).await, (1, 3, 0));
    assert_eq!(sale.balances(b).await, (0, 2, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn sold_out_seen_by_the_hint_needs_no_commit_and_is_not_recorded() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 1, 1).await;
    let first = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    let commits = sale.store.commits();
    let outcome = sale.place(request("o2", "bob", &[("A", 1)])).await.unwrap();
    assert!(matches!(outcome, Outcome::Refused { recorded: false, order: None, .. }), "{outcome:?}");
    // The holder who lost the answer gets it again, though the shelf is empty.
    let again = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&again), (order(&first).0, How::Repeated));
    let other = sale.place(request("o1", "bob", &[("A", 1)])).await.unwrap();
    assert!(matches!(refusal(&other), Refusal::OrderMismatch(_)));
    // Only other content for an order with stock goes by its lane, for the case.
    assert_eq!(sale.store.commits(), commits + 1);
    // What comes back is sold again at once.
    sale.change(order(&first).0.id, OrderAction::Cancel).await;
    let outcome = sale.place(request("o2", "bob", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&outcome).0.state, State::Held);
}

#[tokio::test]
async fn a_key_is_known_before_window_switches_and_unknown_goods() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 5, 1).await;
    let first = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    sale.switch(Switch::Pause).await;
    let again = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&again), (order(&first).0, How::Repeated));
    let fresh = sale.place(request("o2", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(refusal(&fresh), Refusal::CampaignPaused);
    sale.switch(Switch::Resume).await;
    let unknown = sale.place(request("o3", "ann", &[("A", 1), ("nowhere", 1)])).await.unwrap();
    assert_eq!(refusal(&unknown), Refusal::UnknownSku { line: 2 });
    let other = sale.place(request("o1", "ann", &[("nowhere", 1)])).await.unwrap();
    assert!(matches!(refusal(&other), Refusal::OrderMismatch(_)));
}

#[tokio::test]
async fn refusals_recorded_for_an_account_are_bounded() {
    let config =
        Config { recorded_refusals_per_minute: 2, verdict_age_max: Duration::ZERO, ..Config::default() };
    let policy = Policy { account_limit: Some(1), ..Policy::default() };
    let sale = Sale::open(policy, config).await;
    sale.pool("A", 5, 1).await;
    let mut recorded = 0;
    for n in 0..5 {
        sale.clock.advance_millis(1);
        let outcome = sale.place(request(&format!("o{n}"), "ann", &[("A", 2)])).await.unwrap();
        let Outcome::Refused { refusal: Refusal::AccountLimit(_), recorded: kept, .. } = outcome else {
            panic!("{outcome:?}")
        };
        recorded += usize::from(kept);
    }
    assert_eq!(recorded, 2);
    let outcome = sale.place(request("p", "bob", &[("A", 2)])).await.unwrap();
    assert!(matches!(outcome, Outcome::Refused { recorded: true, .. }));
    sale.assert_clean().await;
}

#[tokio::test]
async fn an_answer_that_was_lost_is_unknown_and_asking_again_gives_the_fact() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 1, 1).await;
    sale.fail_after(0, Fault::AnswerLost);
    let error = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap_err();
    assert!(matches!(error, holdfast_engine::Error::Store(holdfast_store::Error::OutcomeUnknown(_))));
    let again = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&again).1, How::Repeated);
    assert_eq!(sale.balances(pool).await, (0, 1, 0));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_late_payment_takes_stock_again_from_wherever_it_is() {
    let sale = Sale::open(Policy { release_grace_ms: 0, ..Policy::default() }, Config::default()).await;
    let pool = sale.pool("A", 2, 2).await;
    let (held, _) = order(&sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap());
    sale.clock.advance_millis(900_000);
    sale.engine.expire_due(sale.store.now()).await;
    // The bucket that it came from is emptied meanwhile.
    let home = held.home.unwrap().number;
    for n in 0..10 {
        let outcome = sale.place(request(&format!("x{n}"), "bob", &[("A", 1)])).await.unwrap();
        let (taken, _) = order(&outcome);
        if taken.home.unwrap().number == home {
            break;
        }
        sale.change(taken.id, OrderAction::Cancel).await;
    }
    let (sold, _) = order(&sale.change(held.id, success("e1")).await);
    assert_eq!(sold.state, State::Sold);
    assert_ne!(sold.lines[0].allocations[0].bucket.number, home);
    assert_eq!(sold.home, held.home, "the home bucket is fixed");
    assert_eq!(sale.balances(pool).await, (0, 1, 1));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_key_that_is_stored_is_answered_also_by_a_node_that_never_saw_it() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    sale.pool("A", 1, 1).await;
    let first = sale.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    let config = Config { key_page_max: 1, ..Config::default() };
    let restarted = holdfast_engine::Engine::new(
        sale.store.clone(),
        std::sync::Arc::new(holdfast_engine::UuidV7),
        config,
    );
    restarted.learn_keys().await.unwrap();
    // The first refusal comes from the authority; from then on the shelf refuses.
    for number in 2..4 {
        let outcome = restarted.place(request(&format!("o{number}"), "bob", &[("A", 1)])).await.unwrap();
        assert!(matches!(refusal(&outcome), Refusal::SoldOut(_)));
    }
    let again = restarted.place(request("o1", "ann", &[("A", 1)])).await.unwrap();
    assert_eq!(order(&again), (order(&first).0, How::Repeated));
}
