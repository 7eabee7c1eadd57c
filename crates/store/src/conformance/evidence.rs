//! What is known of orders and pools.

use holdfast_core::campaign::Policy;
use holdfast_core::command::{Command, OrderAction, Outcome, Transfer, TransferEnd};
use holdfast_core::id::{EventId, OrderId, PaymentId, PoolId, Provider, TransferId};
use holdfast_core::ledger::Action;
use holdfast_core::order::{Notice, PaymentOutcome, State};
use holdfast_core::stock::Delta;

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, bucket, change, one, open_campaign, open_pool, order_of, place, placed, signed, whole,
};
use crate::clock::Clock;
use crate::evidence::{ExplainOrder, ExplainPool, PoolEvidence};

fn paid(event: &str, payment: &str) -> OrderAction {
    OrderAction::Notice(Notice {
        provider: Provider::new("bank").expect("a good id"),
        event_id: EventId::new(event).expect("a good id"),
        payment_id: PaymentId::new(payment).expect("a good id"),
        attempt_id: None,
        outcome: PaymentOutcome::Succeeded,
        paid_at: None,
        amount_minor: None,
        currency: None,
    })
}

/// Its entries, which order its payments are for, its cases: by its id as by its number, and nothing of others.
pub async fn the_evidence_of_an_order_is_whole(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    for order in [1, 2] {
        one(&*store, whole(&[1]), placed(place(order, "ann", &[(1, 2)]))).await;
        let sold = one(&*store, whole(&[1]), change(order, paid(&format!("e{order}"), "p1"))).await;
        // The second is told a payment that is the first one's.
        let expected = if order == 1 { State::Sold } else { State::InReview };
        assert_eq!(order_of(&sold).0.state, expected);
    }
    one(&*store, whole(&[1]), change(1, paid("e3", "p2"))).await;
    let first = store.order_evidence(ExplainOrder::Id(OrderId(1))).await.expect("read").expect("an order");
    let actions: Vec<_> = first.entries.0.iter().map(|entry| entry.action).collect();
    assert_eq!(actions, [Action::Place, Action::Confirm, Action::OrderEvent]);
    assert!(first.entries.0.iter().all(|entry| entry.order_id == Some(OrderId(1))));
    let claims: Vec<_> = first.claims.iter().map(|c| (c.payment_id.as_str().to_owned(), c.order)).collect();
    assert_eq!(claims, [("p1".to_owned(), OrderId(1)), ("p2".to_owned(), OrderId(1))]);
    let kinds: Vec<_> = first.cases.0.iter().map(|case| case.kind.as_str()).collect();
    assert_eq!(kinds, ["charged_twice"]);
    assert!(first.approvals.0.is_empty() && first.acts.0.is_empty() && first.cache.is_none());
    let key = place(2, "ann", &[]).key;
    let second = store.order_evidence(ExplainOrder::Key(key)).await.expect("read").expect("an order");
    assert_eq!((second.order.id, second.claims.len()), (OrderId(2), 1));
    assert_eq!(second.claims[0].order, OrderId(1), "the payment is the first one's");
    assert!(store.order_evidence(ExplainOrder::Id(OrderId(9))).await.expect("read").is_none());
    assert_clean(&*store).await;
}

async fn of_pool(store: &Subject, of: ExplainPool) -> PoolEvidence {
    store.pool_evidence(of).await.expect("read").expect("a pool")
}

fn sums(evidence: &PoolEvidence) -> Vec<(u32, u64, Delta)> {
    evidence.buckets.iter().map(|b| (b.bucket.number, b.seq, b.sums.unwrap_or_default())).collect()
}

fn owners(evidence: &PoolEvidence) -> Vec<(u128, i64, i64)> {
    let (told, more) = evidence.owners.as_ref().expect("few entries");
    assert!(!more);
    told.iter().map(|owner| (owner.order.0, owner.held, owner.sold)).collect()
}

/// Balances and owners are those of the time or of the entry that is asked for, bucket by bucket.
pub async fn the_evidence_of_a_pool_adds_up_as_of_any_time(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    open_pool(&*store, 2, 10, 1).await;
    let opened = clock.now();
    clock.advance_millis(10_000);
    one(&*store, whole(&[1]), placed(place(1, "ann", &[(1, 2)]))).await;
    one(&*store, whole(&[1]), placed(place(2, "bob", &[(1, 3)]))).await;
    let held = clock.now();
    clock.advance_millis(10_000);
    one(&*store, whole(&[1]), change(1, OrderAction::Confirm)).await;
    one(&*store, whole(&[1]), change(2, OrderAction::Cancel)).await;
    let transfer = Command::Transfer(Transfer {
        transfer_id: TransferId::new("t1").expect("a good id"),
        from: TransferEnd { pool: PoolId(1), bucket: Some(0) },
        to: TransferEnd { pool: PoolId(2), bucket: None },
        quantity: 1,
        signed: signed(),
    });
    let moved = one(&*store, whole(&[1, 2]), transfer).await;
    assert!(matches!(moved, Outcome::Transferred { repeated: false }), "{moved:?}");
    let whole_pool = ExplainPool::whole(PoolId(1));
    let now = of_pool(&store, whole_pool.clone()).await;
    for (number, seq, sum) in sums(&now) {
        let row = now.row.buckets.iter().find(|b| b.key == bucket(1, number)).expect("a bucket");
        let stored = (row.available as i64, row.held as i64, row.sold as i64);
        assert_eq!((row.ledger_seq, stored), (seq, (sum.available, sum.held, sum.sold)));
    }
    assert_eq!(owners(&now), [(1, 0, 2)]);
    assert_eq!(now.transfers.len(), 1);
    assert_eq!(now.actions[&Action::Opening].entries, 2);
    assert_eq!(now.actions[&Action::TransferOut].delta, Delta { available: -1, held: 0, sold: 0 });
    let entries = now.entries.0.len() as u64;
    assert_eq!((entries, now.entries.1), (now.row.buckets.iter().map(|b| b.ledger_seq).sum(), false));
    let then = of_pool(&store, ExplainPool { at: Some(held), ..whole_pool.clone() }).await;
    assert_eq!(owners(&then), [(2, 3, 0), (1, 2, 0)]);
    assert!(then.transfers.is_empty() && then.entries.0.iter().all(|entry| entry.at <= held));
    let first = of_pool(&store, ExplainPool { at: Some(opened), ..whole_pool.clone() }).await;
    let five = Delta { available: 5, held: 0, sold: 0 };
    assert_eq!(sums(&first), [(0, 1, five), (1, 1, five)]);
    let before = holdfast_core::time::Timestamp(opened.0 - 1);
    let nothing = of_pool(&store, ExplainPool { at: Some(before), ..whole_pool.clone() }).await;
    assert_eq!(sums(&nothing), [(0, 0, Delta::default()), (1, 0, Delta::default())]);
    assert!(nothing.entries.0.is_empty());
    let range = ExplainPool { bucket: Some(0), from_seq: Some(2), to_seq: Some(2), ..whole_pool.clone() };
    let range = of_pool(&store, range).await;
    let seqs: Vec<_> = range.entries.0.iter().map(|entry| (entry.bucket.number, entry.seq)).collect();
    assert_eq!(seqs, [(0, 2)]);
    let other = ExplainPool { bucket: Some(2), ..whole_pool };
    assert!(store.pool_evidence(other).await.expect("read").is_none(), "there is no such bucket");
    assert!(store.pool_evidence(ExplainPool::whole(PoolId(9))).await.expect("read").is_none());
    assert_clean(&*store).await;
}
