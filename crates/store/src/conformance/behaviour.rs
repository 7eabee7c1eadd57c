//! What a commit does.

use std::sync::Arc;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{Adjust, AdjustmentKind, Command, How, Inquiry, OrderAction, Outcome};
use holdfast_core::id::{
    Account, AdjustmentId, AttemptId, EventId, Operator, OrderId, PaymentId, PoolId, Provider, RefundId,
};
use holdfast_core::ledger::Action;
use holdfast_core::order::{Disposition, Money, Notice, PaymentOutcome, Refund, RefundLine, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::PoolSwitch;
use holdfast_core::time::Timestamp;

use super::support::{
    assert_clean, balances, bucket, campaign_id, change, commit, one, open_campaign, open_pool, order_of,
    place, placed, put, signed, switch, whole,
};
use crate::clock::{Clock, ManualClock};
use crate::contract::{Batch, Store, SwitchPool};
use crate::read::{LedgerFilter, Page};

/// A store under test.
pub type Subject = Arc<dyn Store>;
/// The clock that it was opened with.
pub type TestClock = Arc<ManualClock>;

pub(super) fn success(event: &str, payment: &str, amount: Option<i64>) -> OrderAction {
    OrderAction::Notice(Notice {
        provider: Provider::new("bank").expect("a good id"),
        event_id: EventId::new(event).expect("a good id"),
        payment_id: PaymentId::new(payment).expect("a good id"),
        attempt_id: None,
        outcome: PaymentOutcome::Succeeded,
        paid_at: None,
        amount_minor: amount,
        currency: amount.map(|_| "EUR".into()),
    })
}

/// Stock, order and entry are written together.
pub async fn a_place_takes_stock_and_writes_its_entry(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let outcome =
        one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(7, "ann", &[(1, 3), (1, 1)]))).await;
    let (order, how) = order_of(&outcome);
    assert_eq!((order.state, how, order.version), (State::Held, How::Created, 1));
    assert_eq!(order.hold_ends_at, Some(clock.now().plus_seconds(900)));
    assert_eq!(balances(&*store, 1).await, (6, 4, 0));
    let filter = LedgerFilter { order: Some(OrderId(7)), ..LedgerFilter::default() };
    let (entries, more) = store.ledger(filter, Page { after: None, limit: 10 }).await.expect("ledger");
    assert_eq!((entries.len(), more), (1, false));
    let entry = entries.first().expect("one entry");
    assert_eq!(
        (entry.seq, entry.action, entry.delta.held, entry.order_version),
        (2, Action::Place, 4, Some(1))
    );
    assert_clean(&*store).await;
}

/// The key finds its order; other content is refused.
pub async fn a_repeat_finds_the_same_order_in_the_same_and_in_another_batch(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 1, 1).await;
    let first = place(1, "ann", &[(1, 1)]);
    let mut again = first.clone();
    again.id = OrderId(2);
    let locks = LockSet::bucket(bucket(1, 0));
    let outcomes = commit(&*store, locks.clone(), vec![placed(first.clone()), placed(again.clone())]).await;
    let (kept, _) = order_of(&outcomes[0]);
    assert_eq!(order_of(&outcomes[1]), (Arc::clone(&kept), How::Repeated));
    let (found, how) = order_of(&one(&*store, locks.clone(), placed(again)).await);
    assert_eq!((found, how), (kept, How::Repeated));
    let mut other = first;
    other.account = Account::new("bob").expect("a good id");
    let outcome = one(&*store, locks, placed(other)).await;
    assert!(
        matches!(&outcome, Outcome::Refused { refusal: Refusal::OrderMismatch(fields), .. } if fields == &["/account"]),
        "{outcome:?}"
    );
    assert_eq!(balances(&*store, 1).await, (0, 1, 0));
    assert_clean(&*store).await;
}

/// Everything that an order may carry survives the store.
pub async fn an_order_reads_back_as_it_was_answered(store: Subject, clock: TestClock) {
    let policy = Policy { payment_extension_seconds: 60, ..Policy::default() };
    open_campaign(&*store, policy).await;
    open_pool(&*store, 1, 10, 2).await;
    open_pool(&*store, 2, 10, 1).await;
    let mut wanted = place(1, "ann", &[(1, 7), (2, 2)]);
    wanted.hold_seconds = Some(120);
    wanted.amount_due = Some(Money { amount_minor: 995, currency: "EUR".into() });
    wanted.metadata = Some("{\"note\": \"\u{4f60}\\u597d\", \"n\": 1.0}".into());
    let locks = whole(&[1, 2]);
    let mut commands = vec![placed(wanted)];
    let attempt = AttemptId::new("try 1").expect("a good id");
    commands.push(change(1, OrderAction::Attempt(attempt, Provider::new("bank").expect("a good id"))));
    commands.push(change(1, success("e1", "p1", Some(995))));
    commands.push(change(1, success("e2", "p2", Some(995))));
    let refund = |id: &str, line, quantity| {
        OrderAction::Refund(Refund {
            refund_id: RefundId::new(id).expect("a good id"),
            lines: vec![RefundLine { line, quantity }],
            restock: Some(true),
            reason: "late".into(),
        })
    };
    commands.push(change(1, refund("r1", 1, 3)));
    for command in commands {
        clock.advance_millis(10);
        let (answered, _) = order_of(&one(&*store, locks.clone(), command).await);
        let read = store.order(OrderId(1)).await.expect("read").expect("an order");
        assert_eq!(read, answered);
        let by_key = store.order_by_key(answered.key.clone()).await.expect("read").expect("an order");
        assert_eq!(by_key, answered);
        assert_clean(&*store).await;
    }
    let order = store.order(OrderId(1)).await.expect("read").expect("an order");
    assert_eq!(order.state, State::Sold);
    assert!(order.refund_due.is_some(), "charged twice");
    assert_eq!(balances(&*store, 1).await, (6, 0, 4));
    // A recorded refusal reads back too, and repeats itself.
    let short = placed(place(2, "ann", &[(1, 7)]));
    for repeated in [false, true] {
        let outcome = one(&*store, locks.clone(), short.clone()).await;
        let Outcome::Refused { refusal: Refusal::SoldOut(shortage), recorded: true, repeated: was, order } =
            outcome
        else {
            panic!("{outcome:?}")
        };
        assert_eq!((was, shortage.requested, shortage.available), (repeated, 7, 6));
        assert_eq!(store.order(OrderId(2)).await.expect("read"), order);
    }
}

/// *Sold out* is said only under the lock of the whole pool, where a line may be split.
pub async fn one_bucket_of_many_misses_and_the_whole_pool_serves(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 4, 2).await;
    let wanted = placed(place(1, "ann", &[(1, 3)]));
    let outcome = one(&*store, LockSet::bucket(bucket(1, 1)), wanted.clone()).await;
    assert_eq!(outcome, Outcome::Miss(vec![PoolId(1)]));
    let (order, _) = order_of(&one(&*store, whole(&[1]), wanted).await);
    assert_eq!(order.lines[0].allocations.len(), 2);
    let outcome = one(&*store, LockSet::bucket(bucket(1, 1)), change(1, OrderAction::Cancel)).await;
    assert_eq!(outcome, Outcome::Elsewhere(vec![PoolId(1)]), "home and the other bucket must be locked");
    order_of(&one(&*store, whole(&[1]), change(1, OrderAction::Cancel)).await);
    let row = store.pool(PoolId(1)).await.expect("read").expect("a pool");
    assert_eq!(row.buckets.iter().map(|b| b.available).collect::<Vec<_>>(), [2, 2]);
    assert_clean(&*store).await;
}

/// Many batches at once: never more, never fewer.
pub async fn concurrent_batches_sell_exactly_what_there_is(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 50, 4).await;
    let mut tasks = Vec::new();
    for task in 0..20_u128 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            let commands = (0..5).map(|n| placed(place(1 + task * 5 + n, "ann", &[(1, 1)]))).collect();
            commit(&*store, whole(&[1]), commands).await
        }));
    }
    let mut held = 0;
    for task in tasks {
        let outcomes = task.await.expect("no panic");
        held += outcomes.iter().filter(|o| matches!(o, Outcome::Order { .. })).count();
    }
    assert_eq!(held, 50);
    assert_eq!(balances(&*store, 1).await, (0, 50, 0));
    assert_clean(&*store).await;
}

/// The same event changes nothing twice, also on another order.
pub async fn a_doubled_notice_is_kept_once(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 5, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    one(&*store, locks.clone(), placed(place(1, "ann", &[(1, 1)]))).await;
    one(&*store, locks.clone(), placed(place(2, "bob", &[(1, 1)]))).await;
    let outcome = one(&*store, locks.clone(), change(1, success("e1", "p1", None))).await;
    assert!(matches!(outcome, Outcome::Order { disposition: Some(Disposition::Applied), .. }), "{outcome:?}");
    let outcome = one(&*store, locks.clone(), change(1, success("e1", "p1", None))).await;
    assert!(
        matches!(outcome, Outcome::Order { disposition: Some(Disposition::Duplicate), .. }),
        "{outcome:?}"
    );
    let outcome = one(&*store, locks.clone(), change(2, success("e1", "p1", None))).await;
    assert!(matches!(outcome, Outcome::Refused { refusal: Refusal::KeyMismatch(_), .. }), "{outcome:?}");
    // The payment of another order is no payment of this one: a person must look.
    let outcome = one(&*store, locks, change(2, success("e2", "p1", None))).await;
    assert!(matches!(outcome, Outcome::Order { disposition: Some(Disposition::Review), .. }), "{outcome:?}");
    assert_clean(&*store).await;
}

/// Their batches share no lock, wherever buckets have locks of their own.
pub async fn a_payment_told_for_two_orders_at_once_pays_one(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 40, 2).await;
    for round in 0..20 {
        let (first, second) = (2 * round + 1, 2 * round + 2);
        let homes = [0, 1].map(|number| LockSet::bucket(bucket(1, number)));
        one(&*store, homes[0].clone(), placed(place(first, "ann", &[(1, 1)]))).await;
        one(&*store, homes[1].clone(), placed(place(second, "bob", &[(1, 1)]))).await;
        let payment = format!("p{round}");
        let tell = |order: u128, home: &LockSet| {
            let notice = success(&format!("e{order}"), &payment, None);
            let (store, home) = (Arc::clone(&store), home.clone());
            tokio::spawn(async move { one(&*store, home, change(order, notice)).await })
        };
        let told = [tell(first, &homes[0]), tell(second, &homes[1])];
        let mut dispositions = Vec::new();
        for outcome in told {
            match outcome.await.expect("an outcome") {
                Outcome::Order { disposition: Some(disposition), .. } => dispositions.push(disposition),
                other => panic!("{other:?}"),
            }
        }
        dispositions.sort_unstable_by_key(|disposition| disposition.as_str());
        assert_eq!(dispositions, [Disposition::Applied, Disposition::Review], "round {round}");
    }
    assert_eq!(balances(&*store, 1).await, (0, 20, 20));
    assert_clean(&*store).await;
}

/// Usage is kept only under a limit, so one that comes later counts what was there.
pub async fn a_limit_added_later_is_counted_first(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    one(&*store, locks.clone(), placed(place(1, "ann", &[(1, 2)]))).await;
    put(&*store, Policy { account_limit: Some(3), ..Policy::default() }).await;
    assert_clean(&*store).await;
    let outcome = one(&*store, locks.clone(), placed(place(2, "ann", &[(1, 2)]))).await;
    let Outcome::Refused { refusal: Refusal::AccountLimit(shortage), .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((shortage.requested, shortage.available), (2, 1));
    order_of(&one(&*store, locks.clone(), placed(place(3, "ann", &[(1, 1)]))).await);
    order_of(&one(&*store, locks.clone(), change(1, OrderAction::Cancel)).await);
    order_of(&one(&*store, locks.clone(), placed(place(4, "ann", &[(1, 2)]))).await);
    assert_clean(&*store).await;
    put(&*store, Policy::default()).await;
    order_of(&one(&*store, locks, placed(place(5, "ann", &[(1, 5)]))).await);
    assert_clean(&*store).await;
}

/// A switch that was answered is seen by the next batch.
pub async fn switches_hold_from_their_answer_on(store: Subject, _: TestClock) {
    put(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    let mut next = 0;
    let mut ask = async || {
        next += 1;
        match one(&*store, locks.clone(), placed(place(next, "ann", &[(1, 1)]))).await {
            Outcome::Refused { refusal, recorded: false, .. } => Some(refusal),
            outcome => {
                order_of(&outcome);
                None
            }
        }
    };
    assert_eq!(ask().await, Some(Refusal::CampaignNotOpen));
    for (set, expected) in [
        (Switch::Open, None),
        (Switch::Pause, Some(Refusal::CampaignPaused)),
        (Switch::Freeze, Some(Refusal::Frozen)),
        (Switch::Unfreeze, Some(Refusal::CampaignPaused)),
        (Switch::Resume, None),
        (Switch::Resume, None),
        (Switch::Close, Some(Refusal::CampaignClosed)),
        (Switch::Close, Some(Refusal::CampaignClosed)),
    ] {
        switch(&*store, set).await;
        assert_eq!(ask().await, expected, "{set:?}");
    }
    assert_clean(&*store).await;
}

/// A frozen pool keeps what comes back and gives nothing out.
pub async fn a_frozen_pool_sells_nothing(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 2, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    order_of(&one(&*store, locks.clone(), placed(place(1, "ann", &[(1, 1)]))).await);
    let set = |switch| SwitchPool {
        id: PoolId(1),
        switch,
        operator: Operator::new("operator").expect("a good id"),
        reason: "test".into(),
        via: None,
    };
    let row = store.switch_pool(set(PoolSwitch::Freeze)).await.expect("store").expect("a pool");
    assert!(row.pool.frozen);
    let outcome = one(&*store, locks.clone(), placed(place(2, "ann", &[(1, 1)]))).await;
    assert_eq!(outcome, Outcome::refused(Refusal::LineFrozen { line: 1 }));
    order_of(&one(&*store, locks.clone(), change(1, OrderAction::Cancel)).await);
    assert_eq!(balances(&*store, 1).await, (2, 0, 0));
    store.switch_pool(set(PoolSwitch::Unfreeze)).await.expect("store").expect("a pool");
    order_of(&one(&*store, locks, placed(place(2, "ann", &[(1, 2)]))).await);
    let missing = SwitchPool { id: PoolId(9), ..set(PoolSwitch::Freeze) };
    assert_eq!(store.switch_pool(missing).await.expect("store"), Err(Refusal::UnknownPool));
}

/// Its id is its key; what is held or sold cannot be taken away.
pub async fn an_adjustment_is_applied_once(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 4, 2).await;
    let adjust = |id: &str, delta| {
        Command::Adjust(Adjust {
            adjustment_id: AdjustmentId::new(id).expect("a good id"),
            pool: PoolId(1),
            delta,
            kind: AdjustmentKind::Adjust,
            bucket: None,
            signed: signed(),
        })
    };
    for repeated in [false, true] {
        let outcome = one(&*store, whole(&[1]), adjust("a1", -3)).await;
        assert!(matches!(outcome, Outcome::Adjusted { repeated: was, .. } if was == repeated), "{outcome:?}");
    }
    let outcome = one(&*store, whole(&[1]), adjust("a1", -2)).await;
    assert_eq!(outcome, Outcome::refused(Refusal::KeyMismatch(vec!["/delta".into()])));
    let outcome = one(&*store, whole(&[1]), adjust("a2", -2)).await;
    assert!(matches!(outcome, Outcome::Refused { refusal: Refusal::StockInUse(_), .. }), "{outcome:?}");
    one(&*store, whole(&[1]), adjust("a3", 9)).await;
    assert_eq!(balances(&*store, 1).await, (10, 0, 0));
    assert_clean(&*store).await;
}

/// The scan sees what is due, in order, page by page, and nothing else.
pub async fn overdue_orders_are_listed_longest_first(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy { release_grace_ms: 0, ..Policy::default() }).await;
    open_pool(&*store, 1, 10, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    for (order, seconds) in [(1, 30), (2, 10), (3, 20), (4, 20)] {
        let mut wanted = place(order, "ann", &[(1, 1)]);
        wanted.hold_seconds = Some(seconds);
        one(&*store, locks.clone(), placed(wanted)).await;
    }
    one(&*store, locks.clone(), change(3, success("e", "p", None))).await;
    let due = async |after| {
        let due = store.due(clock.now(), Page { after, limit: 2 }).await.expect("read");
        due.iter().map(|d| (d.id.0, d.due_at)).collect::<Vec<_>>()
    };
    assert_eq!(due(None).await, []);
    clock.advance_millis(30_000);
    let first = due(None).await;
    assert_eq!(first.iter().map(|d| d.0).collect::<Vec<_>>(), [2, 4]);
    let second = due(first.last().map(|(id, at)| (*at, OrderId(*id)))).await;
    assert_eq!(second.iter().map(|d| d.0).collect::<Vec<_>>(), [1]);
    let outcome = one(&*store, locks, change(2, OrderAction::Expire(Inquiry::Done))).await;
    assert_eq!(order_of(&outcome).0.state, State::Released);
    assert_eq!(due(None).await.iter().map(|d| d.0).collect::<Vec<_>>(), [4, 1]);
    assert_clean(&*store).await;
}

/// A clock that jumps back does not move the ledger back.
pub async fn the_clock_never_runs_behind_the_ledger(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    clock.advance_millis(60_000);
    open_pool(&*store, 1, 2, 1).await;
    let high = clock.now();
    clock.set(Timestamp(high.0 - 50_000_000));
    let (order, _) =
        order_of(&one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(1, "ann", &[(1, 1)]))).await);
    assert_eq!(order.created_at, high);
    let totals = store.campaign(campaign_id()).await.expect("read").expect("a campaign");
    assert_eq!((totals.pools, totals.available, totals.held, totals.sold), (1, 1, 1, 0));
    let empty = Batch { locks: LockSet::default(), commands: Arc::new(Vec::new()) };
    assert_eq!(store.commit(empty).await.expect("commit").outcomes, []);
}
