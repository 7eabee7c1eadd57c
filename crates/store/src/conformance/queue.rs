//! Queues: orders taken in without a lock, landed by state, bounded in length and time; and leases.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::{Capture, Policy, Switch};
use holdfast_core::command::{Command, How, Inquiry, OrderAction, Outcome};
use holdfast_core::id::{EventId, OrderId, PaymentId, PoolId, Provider};
use holdfast_core::order::{Disposition, Notice, PaymentOutcome, Reason, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, balances, bucket, change, commit, one, open_campaign, open_pool, order_of, place, placed,
    switch, whole,
};
use crate::contract::{Batch, Store};
use crate::queue::Lease;
use crate::read::Page;

/// An order of one unit for the queue of a bucket of pool 1.
fn queued(order: u128, number: u32) -> Command {
    let mut wanted = place(order, "ann", &[(1, 1)]);
    wanted.intake = Some(bucket(1, number));
    placed(wanted)
}

/// Takes an order in, without any lock.
async fn take_in(store: &dyn Store, order: u128, number: u32) {
    let (order, how) = order_of(&one(store, LockSet::default(), queued(order, number)).await);
    assert_eq!((order.state, how, order.home), (State::Queued, How::Created, Some(bucket(1, number))));
}

async fn land(store: &dyn Store, order: u128, number: u32) -> Outcome {
    one(store, LockSet::bucket(bucket(1, number)), change(order, OrderAction::Land)).await
}

/// Who waits in a bucket's queue, read two at a time.
async fn waiting(store: &dyn Store, bucket: BucketKey) -> Vec<u128> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.queued(bucket, Page { after, limit: 2 }).await.expect("read");
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { return found };
        after = Some(*last);
        found.extend(page.into_iter().map(|(_, id)| id.0));
    }
}

async fn queues(store: &dyn Store) -> Vec<BucketKey> {
    store.queues(Page { after: None, limit: 10 }).await.expect("read")
}

fn paid(payment: &str) -> OrderAction {
    OrderAction::Notice(Notice {
        provider: Provider::new("bank").expect("a good id"),
        event_id: EventId::new(&format!("event of {payment}")).expect("a good id"),
        payment_id: PaymentId::new(payment).expect("a good id"),
        attempt_id: None,
        outcome: PaymentOutcome::Succeeded,
        paid_at: None,
        amount_minor: None,
        currency: None,
    })
}

/// The queue is the orders in their state and the order in which they were taken in, a bucket at a time.
pub async fn queued_orders_wait_as_they_were_taken_in(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    assert_eq!(queues(&*store).await, []);
    // Later ids may be taken in earlier; the time comes first.
    for (order, number) in [(9, 0), (4, 1), (7, 0), (2, 0), (5, 0)] {
        take_in(&*store, order, number).await;
        clock.advance_millis(1);
    }
    let together = vec![queued(8, 0), queued(3, 0)];
    assert_eq!(commit(&*store, LockSet::default(), together).await.len(), 2);
    assert_eq!(queues(&*store).await, [bucket(1, 0), bucket(1, 1)]);
    let rest = store.queues(Page { after: Some(bucket(1, 0)), limit: 1 }).await.expect("read");
    assert_eq!(rest, [bucket(1, 1)]);
    assert_eq!(waiting(&*store, bucket(1, 0)).await, [9, 7, 2, 5, 3, 8]);
    assert_eq!(balances(&*store, 1).await, (10, 0, 0), "nothing is held");

    let (landed, _) = order_of(&land(&*store, 2, 0).await);
    assert_eq!((landed.state, landed.version), (State::Held, 2));
    let locks = LockSet::bucket(bucket(1, 0));
    one(&*store, locks, change(9, OrderAction::Cancel)).await;
    assert_eq!(waiting(&*store, bucket(1, 0)).await, [7, 5, 3, 8]);
    let again = land(&*store, 9, 0).await;
    let (cancelled, how) = order_of(&again);
    assert_eq!((cancelled.reason, how), (Some(Reason::Cancelled), How::Repeated));
    order_of(&land(&*store, 4, 1).await);
    assert_eq!(queues(&*store).await, [bucket(1, 0)]);
    assert_eq!(balances(&*store, 1).await, (8, 2, 0));
    assert_clean(&*store).await;
}

/// Takers-in of one key make one order, from however many batches.
pub async fn a_key_is_taken_in_once(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    let mut tasks = tokio::task::JoinSet::new();
    for id in 1..=16_u128 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut wanted = place(1, "ann", &[(1, 1)]);
            wanted.id = OrderId(id);
            wanted.intake = Some(bucket(1, u32::try_from(id % 2).expect("small")));
            commit(&*store, LockSet::default(), vec![placed(wanted)]).await
        });
    }
    let mut created = 0;
    let mut found = std::collections::BTreeSet::new();
    while let Some(outcomes) = tasks.join_next().await {
        let (order, how) = order_of(&outcomes.expect("a task")[0]);
        created += u32::from(how == How::Created);
        found.insert(order.id);
    }
    assert_eq!((created, found.len()), (1, 1));
    assert_clean(&*store).await;
}

/// A queue holds no more than it may; who has left makes room.
pub async fn a_full_queue_takes_in_nobody(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy { queue_limit: 3, ..Policy::default() }).await;
    open_pool(&*store, 1, 10, 2).await;
    take_in(&*store, 1, 0).await;
    let commands = vec![queued(2, 1), queued(3, 0), queued(4, 0), queued(1, 0)];
    let outcomes = commit(&*store, LockSet::default(), commands).await;
    assert!(matches!(outcomes[1], Outcome::Order { how: How::Created, .. }), "{outcomes:?}");
    assert_eq!(outcomes[2], Outcome::refused(Refusal::QueueFull { limit: 3 }));
    assert!(matches!(outcomes[3], Outcome::Order { how: How::Repeated, .. }), "{outcomes:?}");
    order_of(&land(&*store, 2, 1).await);
    take_in(&*store, 4, 0).await;
    assert_eq!(store.order(OrderId(4)).await.expect("read").expect("an order").state, State::Queued);
}

/// Landing takes as a place does: from its own bucket, else from others, else it fails for good.
pub async fn a_landing_takes_what_there_is(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 3, 2).await;
    for order in 1..=4 {
        take_in(&*store, order, 1).await;
    }
    assert_eq!(order_of(&land(&*store, 1, 1).await).0.state, State::Held);
    assert_eq!(land(&*store, 2, 1).await, Outcome::Elsewhere(vec![PoolId(1)]));
    let both = LockSet { buckets: [bucket(1, 0), bucket(1, 1)].into(), ..LockSet::default() };
    let (second, _) = order_of(&one(&*store, both, change(2, OrderAction::Land)).await);
    assert_eq!(second.allocations().next().expect("an allocation").bucket, bucket(1, 0));
    assert_eq!(second.home, Some(bucket(1, 1)), "its home stays where it was taken in");
    let land = |order| change(order, OrderAction::Land);
    let outcomes = commit(&*store, whole(&[1]), vec![land(3), land(4)]).await;
    assert_eq!(order_of(&outcomes[0]).0.state, State::Held);
    let failed = order_of(&outcomes[1]).0;
    assert_eq!((failed.state, failed.reason), (State::Failed, Some(Reason::SoldOut)));
    let again = one(&*store, LockSet::default(), queued(4, 1)).await;
    assert!(matches!(again, Outcome::Refused { recorded: true, repeated: true, .. }), "{again:?}");
    assert_eq!(balances(&*store, 1).await, (0, 3, 0));
    assert_clean(&*store).await;
}

/// What was parked is applied at landing, what ends without stock goes back, and a payment of another
/// order is for a person.
pub async fn a_parked_payment_meets_the_landing(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let home = LockSet::bucket(bucket(1, 0));
    for order in 1..=4 {
        take_in(&*store, order, 0).await;
    }
    one(&*store, home.clone(), placed(place(5, "eve", &[(1, 1)]))).await;
    one(&*store, home.clone(), change(5, paid("fifth"))).await;
    for (order, payment, expected) in [
        (1, "first", Disposition::Parked),
        (2, "second", Disposition::Parked),
        (3, "fifth", Disposition::Duplicate),
    ] {
        let outcome = one(&*store, home.clone(), change(order, paid(payment))).await;
        match outcome {
            Outcome::Order { disposition, .. } => assert_eq!(disposition, Some(expected)),
            // The event is bound to the order that it came for.
            Outcome::Refused { refusal, .. } => assert!(matches!(refusal, Refusal::KeyMismatch(_))),
            other => panic!("{other:?}"),
        }
    }
    let mut elsewhere = paid("fifth");
    if let OrderAction::Notice(notice) = &mut elsewhere {
        notice.event_id = EventId::new("another event").expect("a good id");
    }
    let Outcome::Order { disposition, .. } = one(&*store, home.clone(), change(3, elsewhere)).await else {
        panic!("an order")
    };
    assert_eq!(disposition, Some(Disposition::Review));
    assert_eq!(order_of(&land(&*store, 1, 0).await).0.state, State::Sold);
    let cancelled = order_of(&one(&*store, home, change(2, OrderAction::Cancel)).await).0;
    assert_eq!(cancelled.refund_due.as_ref().map(|due| due.payments.len()), Some(1));
    assert_eq!(order_of(&land(&*store, 3, 0).await).0.state, State::InReview);
    assert_eq!(order_of(&land(&*store, 4, 0).await).0.state, State::Held);
    assert_clean(&*store).await;
}

/// An order that waited too long is listed as due, and fails; also while the campaign is frozen.
pub async fn a_queued_order_runs_out_of_time(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy { queue_wait_ms: 5_000, ..Policy::default() }).await;
    open_pool(&*store, 1, 10, 1).await;
    take_in(&*store, 1, 0).await;
    take_in(&*store, 2, 0).await;
    switch(&*store, Switch::Freeze).await;
    let (waits, how) = order_of(&land(&*store, 1, 0).await);
    assert_eq!((waits.state, how), (State::Queued, How::Repeated), "freeze waits");
    let page = || Page { after: None, limit: 10 };
    assert_eq!(store.due(store.now(), page()).await.expect("read"), []);
    clock.advance_millis(5_000);
    let due = store.due(store.now(), page()).await.expect("read");
    assert_eq!(
        due.iter().map(|due| (due.id.0, due.home)).collect::<Vec<_>>(),
        [(1, bucket(1, 0)), (2, bucket(1, 0))]
    );
    let home = LockSet::bucket(bucket(1, 0));
    let (expired, _) = order_of(&one(&*store, home, change(1, OrderAction::Expire(Inquiry::Done))).await);
    assert_eq!((expired.state, expired.reason), (State::Failed, Some(Reason::QueueTimeout)));
    let (late, _) = order_of(&land(&*store, 2, 0).await);
    assert_eq!((late.state, late.reason), (State::Failed, Some(Reason::QueueTimeout)));
    assert_eq!(waiting(&*store, bucket(1, 0)).await, []);
    assert_eq!(balances(&*store, 1).await, (10, 0, 0));
    assert_clean(&*store).await;
}

/// Landing, cancel and the end of the time race for the same orders: each order has one end, and no unit
/// has two owners.
pub async fn a_queued_order_ends_once(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy { capture: Capture::Immediate, ..Policy::default() }).await;
    open_pool(&*store, 1, 20, 1).await;
    for order in 1..=30 {
        take_in(&*store, order, 0).await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for order in 1..=30 {
        for action in [OrderAction::Land, OrderAction::Cancel, OrderAction::Land] {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                let locks = LockSet::bucket(bucket(1, 0));
                let commands = Arc::new(vec![change(order, action)]);
                store.commit(Batch { locks, commands }).await.expect("commit").outcomes
            });
        }
    }
    while let Some(outcomes) = tasks.join_next().await {
        assert_eq!(outcomes.expect("a task").len(), 1);
    }
    let mut sold = 0;
    for order in 1..=30 {
        let order = store.order(OrderId(order)).await.expect("read").expect("an order");
        assert!(matches!(order.state, State::Sold | State::Failed), "{order:?}");
        sold += u64::from(order.state == State::Sold);
    }
    assert_eq!(balances(&*store, 1).await, (20 - sold, 0, sold));
    assert_eq!(queues(&*store).await, []);
    assert_clean(&*store).await;
}

/// One holder at a time has a lease, until it ends by the authority's clock or is given up.
pub async fn a_lease_has_one_holder(store: Subject, clock: TestClock) {
    let take = |name: &str, holder, seconds| {
        let lease = Lease { name: name.to_owned(), holder, lasts: Duration::from_secs(seconds) };
        let store = Arc::clone(&store);
        async move { store.take_lease(lease).await.expect("asked") }
    };
    assert!(take("a", 1, 10).await);
    assert!(!take("a", 2, 10).await);
    assert!(take("b", 2, 10).await, "another lease is another matter");
    clock.advance_millis(9_999);
    assert!(take("a", 1, 10).await, "renewed");
    clock.advance_millis(9_999);
    assert!(!take("a", 2, 10).await);
    clock.advance_millis(1);
    assert!(take("a", 2, 10).await, "it ended");
    assert!(!take("a", 1, 10).await);
    store.give_up_leases(1).await.expect("nothing to give up");
    assert!(!take("a", 1, 10).await);
    store.give_up_leases(2).await.expect("given up");
    assert!(take("a", 1, 10).await);
    assert!(take("b", 1, 10).await);
}
