//! What a store tells of itself.

use holdfast_core::campaign::Policy;
use holdfast_core::snapshot::LockSet;
use holdfast_metrics::{Label, Use};

use super::behaviour::{Subject, TestClock};
use super::support::{bucket, commit, one, open_campaign, open_pool, place, placed};

/// Orders with an end are counted by how far it is, at most so many.
pub async fn open_ends_are_counted(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 100, 1).await;
    let none = store.open_ends(store.now(), 10).await.expect("read");
    assert_eq!((none.all, none.within, none.earliest), (0, [0; 5], None));
    let locks = LockSet::bucket(bucket(1, 0));
    for (order, hold_seconds) in [(1, 30), (2, 30), (3, 600), (4, 3_600)] {
        let mut place = place(order, "ann", &[(1, 1)]);
        place.hold_seconds = Some(hold_seconds);
        one(&*store, locks.clone(), placed(place)).await;
    }
    // The grace is part of the end: an hour's hold ends beyond the hour.
    let ends = store.open_ends(store.now(), 10).await.expect("read");
    assert_eq!((ends.all, ends.within), (4, [0, 2, 2, 3, 3]));
    clock.advance_millis(60_000);
    let ends = store.open_ends(store.now(), 10).await.expect("read");
    assert_eq!((ends.all, ends.within), (4, [2, 2, 2, 3, 4]));
    assert!(ends.earliest.is_some_and(|end| end < store.now()));
    let some = store.open_ends(store.now(), 3).await.expect("read");
    assert_eq!((some.all, some.within), (3, [2, 2, 2, 3, 3]), "those that end first");
}

/// Batches are counted by their size; whatever waits or executes is over when the answer is there.
pub async fn a_store_measures_its_batches(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 100, 1).await;
    let before = store.metrics().batch_commands.seen();
    let commands = (1..=3).map(|order| placed(place(order, "ann", &[(1, 1)]))).collect();
    commit(&*store, LockSet::bucket(bucket(1, 0)), commands).await;
    let batches = store.metrics().batch_commands.seen().since(&before);
    assert_eq!((batches.count(), batches.mean()), (1, 3.0));
    let metrics = store.metrics();
    assert_eq!(metrics.transactions_waiting.get(), 0);
    for of in Use::VALUES {
        assert_eq!(metrics.connections_waiting.of(*of).get(), 0, "{of:?}");
    }
}
