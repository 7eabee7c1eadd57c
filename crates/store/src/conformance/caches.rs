//! The cache path: epochs of buckets' caches, and how what they accepted lands.

use std::sync::Arc;

use holdfast_core::cache::{
    Accepted, CacheBucket, EntryId, Epoch, EpochState, Landing, SetAside, Turn, TurnEpoch,
};
use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::case::CaseKind;
use holdfast_core::command::{Command, How, OrderAction, Outcome, Place, Signed};
use holdfast_core::id::{CaseId, Incarnation, OrderId, PoolId};
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::order::{Reason, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, balances, bucket, change, commit, one, open_campaign, open_pool, order_of, place, placed,
    switch, whole,
};
use crate::acts::ActFilter;
use crate::authority::{CaseFilter, NewIncarnation};
use crate::cache::Credits;
use crate::clock::Clock;
use crate::contract::Store;
use crate::read::Page;

/// Later than any case goes.
const NEVER: Timestamp = Timestamp(i64::MAX);

pub(super) fn turn(bucket: BucketKey, epoch: u64, turn: Turn) -> Command {
    let signed = Signed::new("cache", "test");
    Command::TurnEpoch(TurnEpoch { bucket, epoch: Epoch(epoch), turn, signed })
}

pub(super) fn open() -> Turn {
    Turn::Open { identity: "server 1".into() }
}

pub(super) fn accepted(bucket: BucketKey, epoch: u64, number: u64, units: u64) -> Accepted {
    let entry = EntryId { millis: 1_700_000_000_000, number };
    Accepted { bucket, epoch: Epoch(epoch), entry, number, units }
}

pub(super) fn landing(place: Place, accepted: Accepted, due_at: Timestamp) -> Command {
    Command::Land(Arc::new(Landing { place, accepted, due_at }))
}

/// An order of one line of the first pool, accepted in the first epoch of a bucket of it.
fn land(order: u128, account: &str, units: u32, number: u32, entry: u64) -> Command {
    let accepted = accepted(bucket(1, number), 1, entry, u64::from(units));
    landing(place(order, account, &[(1, units)]), accepted, NEVER)
}

fn row_of(outcome: &Outcome) -> (CacheBucket, How) {
    match outcome {
        Outcome::Epoch { row, how } => (row.clone(), *how),
        other => panic!("not an epoch: {other:?}"),
    }
}

/// A pool of so many units in so many buckets, with the first epoch open in each.
async fn open_cached(store: &dyn Store, units: u64, buckets: u32) {
    open_pool(store, 1, units, buckets).await;
    for number in 0..buckets {
        row_of(&one(store, home(number), turn(bucket(1, number), 1, open())).await);
    }
}

fn home(number: u32) -> LockSet {
    LockSet::bucket(bucket(1, number))
}

async fn landed(store: &dyn Store, number: u32, entry: u64) -> Entry {
    let key = accepted(bucket(1, number), 1, entry, 1).key();
    store.landed(key).await.expect("read").expect("an entry")
}

/// The law: what the cache has, by the authority alone, when it has accepted this many units.
async fn assert_law(store: &dyn Store, number: u32, accepted_units: u64, available: i64) {
    let row = store.cache_bucket(bucket(1, number)).await.expect("read").expect("a row");
    let (mut at, mut units) = (row.base_seq, 0);
    loop {
        let Credits { to, units: more } = store.credits(bucket(1, number), at, 2).await.expect("read");
        assert!(to - at <= 2);
        if to == at {
            break;
        }
        (at, units) = (to, units + more);
    }
    assert_eq!(row.base_available.cast_signed() + units - accepted_units.cast_signed(), available);
}

/// Epochs follow one another, each from open to closed, and every turn may come again.
pub async fn an_epoch_turns_in_order(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 7, 2).await;
    let key = bucket(1, 1);
    let send = async |command| one(&*store, home(1), command).await;
    assert_eq!(store.cache_bucket(key).await.expect("read"), None);
    let unknown = one(&*store, home(1), turn(bucket(9, 0), 1, open())).await;
    assert_eq!(unknown, Outcome::refused(Refusal::UnknownPool));
    let conflict = |outcome: Outcome| {
        assert!(matches!(outcome, Outcome::Refused { refusal: Refusal::Conflict(_), .. }), "{outcome:?}");
    };
    for early in [turn(key, 1, Turn::Drain), turn(key, 1, Turn::Close), turn(key, 0, open())] {
        conflict(send(early).await);
    }
    // What came before it in the batch is in its base.
    let opening = vec![placed(place(1, "ann", &[(1, 2)])), turn(key, 1, open())];
    let outcomes = commit(&*store, home(1), opening).await;
    let (row, how) = row_of(&outcomes[1]);
    let expected = CacheBucket {
        key,
        epoch: Epoch(1),
        state: EpochState::Open,
        identity: "server 1".into(),
        base_seq: 2,
        base_available: 1,
        landed: 0,
        changed_at: clock.now(),
    };
    assert_eq!((row, how), (expected.clone(), How::Created));
    clock.advance_millis(1_000);
    assert_eq!(row_of(&send(turn(key, 1, open())).await), (expected.clone(), How::Repeated));
    conflict(send(turn(key, 1, Turn::Open { identity: "server 2".into() })).await);
    conflict(send(turn(key, 2, open())).await);
    for (wanted, state) in [(Turn::Drain, EpochState::Draining), (Turn::Close, EpochState::Closed)] {
        for how in [How::Changed, How::Repeated] {
            let row = CacheBucket { state, changed_at: clock.now(), ..expected.clone() };
            assert_eq!(row_of(&send(turn(key, 1, wanted.clone())).await), (row, how));
        }
    }
    assert_eq!(row_of(&send(turn(key, 1, Turn::Drain)).await).1, How::Repeated);
    conflict(send(turn(key, 1, open())).await);
    // Later than all that a cache may know of another time.
    let (second, how) = row_of(&send(turn(key, 3, Turn::Open { identity: "server 2".into() })).await);
    assert_eq!((second.epoch, &*second.identity, how), (Epoch(3), "server 2", How::Changed));
    conflict(send(turn(key, 1, Turn::Close)).await);
    let elsewhere = one(&*store, home(0), turn(key, 3, Turn::Drain)).await;
    assert_eq!(elsewhere, Outcome::Elsewhere(vec![PoolId(1)]));
    row_of(&one(&*store, home(0), turn(bucket(1, 0), 1, open())).await);
    let page = |after| Page { after, limit: 1 };
    let (first, more) = store.cache_buckets(page(None)).await.expect("read");
    assert_eq!((first[0].key, more), (bucket(1, 0), true));
    let last = store.cache_buckets(page(Some(first[0].key))).await.expect("read");
    assert_eq!(last, (vec![second], false));
    assert_clean(&*store).await;
}

/// Nodes learn of turned epochs with the rest of the catalog; landings are no change of it.
pub async fn the_catalog_tells_of_turned_epochs(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    let since = |version| store.catalog(Some(version));
    let start = store.catalog(None).await.expect("read").version;
    let both = vec![turn(bucket(1, 0), 1, open()), turn(bucket(1, 1), 1, open())];
    commit(&*store, whole(&[1]), both).await;
    let opened = since(start).await.expect("read");
    assert_eq!(opened.caches.iter().map(|row| row.key.number).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((opened.campaigns.len(), opened.pools.len()), (0, 0));
    order_of(&one(&*store, home(0), land(1, "ann", 1, 0, 1)).await);
    assert_eq!(since(opened.version).await.expect("read").version, opened.version);
    one(&*store, home(1), turn(bucket(1, 1), 1, Turn::Drain)).await;
    let drained = since(opened.version).await.expect("read");
    let expected = store.cache_bucket(bucket(1, 1)).await.expect("read").expect("a row");
    assert_eq!((drained.caches, expected.state), (vec![expected.clone()], EpochState::Draining));
    let filter = ActFilter { subject: Some(format!("pool {}", PoolId(1))), ..ActFilter::default() };
    let (acts, _) = store.acts(filter, Page { after: None, limit: 9 }).await.expect("read");
    let told: Vec<_> = acts.iter().map(|act| (act.action.as_str(), act.detail.as_str())).take(2).collect();
    assert_eq!(told, [("drain_epoch", "bucket 1, epoch 1"), ("open_epoch", "bucket 1, epoch 1")]);
}

/// A landing is one entry that settles, whether its order is new or known, and however often it comes.
pub async fn a_landing_is_written_once(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_cached(&*store, 10, 1).await;
    let (order, how) = order_of(&one(&*store, home(0), land(1, "ann", 2, 0, 3)).await);
    assert_eq!(
        (order.state, order.version, order.home, how),
        (State::Held, 2, Some(bucket(1, 0)), How::Created)
    );
    let entry = landed(&*store, 0, 3).await;
    assert_eq!((entry.action, entry.delta.available, entry.settled), (Action::Land, -2, 2));
    assert_eq!((entry.order_id, entry.order_version), (Some(order.id), Some(2)));
    assert_eq!((entry.from_state, entry.to_state), (Some(State::Queued), Some(State::Held)));
    assert_eq!((&*entry.source, entry.at), ("cache:1/1700000000000-3", clock.now()));
    assert_eq!(store.cache_bucket(bucket(1, 0)).await.expect("read").expect("a row").landed, 3);
    // Delivered again, in another batch and twice in one.
    for _ in 0..2 {
        let again = commit(&*store, home(0), vec![land(1, "ann", 2, 0, 3), land(1, "ann", 2, 0, 3)]).await;
        again.iter().for_each(|outcome| assert_eq!(order_of(outcome), (order.clone(), How::Repeated)));
    }
    assert_law(&*store, 0, 2, 8).await;
    // Another entry of the same number, with the same content and with other: settled, and holds nothing.
    let again = order_of(&one(&*store, home(0), land(1, "ann", 2, 0, 2)).await);
    assert_eq!(again, (order.clone(), How::Repeated));
    let other = one(&*store, home(0), land(1, "bob", 3, 0, 4)).await;
    let Outcome::Refused { refusal: Refusal::OrderMismatch(_), order: Some(kept), .. } = other else {
        panic!("{other:?}")
    };
    assert_eq!(kept, order);
    let entry = landed(&*store, 0, 4).await;
    assert_eq!((entry.delta.available, entry.settled, entry.order_id), (0, 3, Some(order.id)));
    assert_eq!((entry.to_state, entry.order_version), (None, None));
    let filter = CaseFilter { kind: Some(CaseKind::OrderMismatch), ..CaseFilter::default() };
    let (cases, _) = store.cases(filter, Page { after: None, limit: 9 }).await.expect("read");
    assert_eq!(cases.len(), 1);
    assert_law(&*store, 0, 7, 8).await;
    // What goes back to the shelf goes back to the cache.
    order_of(&one(&*store, home(0), change(1, OrderAction::Cancel)).await);
    assert_law(&*store, 0, 7, 10).await;
    assert_eq!(store.cache_bucket(bucket(1, 0)).await.expect("read").expect("a row").landed, 4);
    assert_eq!(balances(&*store, 1).await, (10, 0, 0));
    assert_clean(&*store).await;
}

/// Whatever the refusal, the order fails with its code, and its units are credited.
pub async fn a_landing_that_is_refused_fails_and_is_settled(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy { account_limit: Some(3), ..Policy::default() }).await;
    open_cached(&*store, 5, 1).await;
    let send = async |command| order_of(&one(&*store, home(0), command).await).0;
    assert_eq!(send(land(1, "ann", 3, 0, 1)).await.state, State::Held);
    let late = landing(place(3, "eve", &[(1, 1)]), accepted(bucket(1, 0), 1, 3, 1), clock.now());
    for (order, command, reason) in [
        (2, land(2, "ann", 1, 0, 2), Reason::AccountLimit),
        (3, late, Reason::QueueTimeout),
        (4, land(4, "bob", 3, 0, 4), Reason::SoldOut),
    ] {
        let failed = send(command.clone()).await;
        assert_eq!((failed.state, failed.reason, failed.version), (State::Failed, Some(reason), 2));
        assert_eq!((failed.home, failed.due_at), (Some(bucket(1, 0)), None));
        let entry = landed(&*store, 0, order).await;
        assert_eq!((entry.action, entry.delta.available, entry.order_version), (Action::Land, 0, Some(2)));
        assert_eq!((entry.from_state, entry.to_state), (Some(State::Queued), Some(State::Failed)));
        let again = one(&*store, home(0), command).await;
        assert!(matches!(again, Outcome::Refused { recorded: true, repeated: true, .. }), "{again:?}");
    }
    assert_law(&*store, 0, 8, 2).await;
    // Pause and close let in what was accepted before; freeze waits, at most until its time is over.
    switch(&*store, Switch::Pause).await;
    assert_eq!(send(land(5, "bob", 1, 0, 5)).await.state, State::Held);
    switch(&*store, Switch::Freeze).await;
    let due_at = clock.now().plus_seconds(10);
    let waits = landing(place(6, "eve", &[(1, 1)]), accepted(bucket(1, 0), 1, 6, 1), due_at);
    assert_eq!(one(&*store, home(0), waits.clone()).await, Outcome::NotDue(Some(due_at)));
    clock.set(due_at);
    assert_eq!(send(waits).await.reason, Some(Reason::QueueTimeout));
    assert_law(&*store, 0, 10, 1).await;
    assert_eq!(balances(&*store, 1).await, (1, 4, 0));
    assert_clean(&*store).await;
}

/// A bucket that has too little sends an order on; the home entry settles, the others credit what they gave.
pub async fn a_landing_is_served_elsewhere(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_cached(&*store, 6, 3).await;
    one(&*store, home(0), placed(place(1, "ann", &[(1, 2)]))).await;
    let wanted = land(2, "bob", 2, 0, 1);
    assert_eq!(one(&*store, home(0), wanted.clone()).await, Outcome::Miss(vec![PoolId(1)]));
    assert_eq!(one(&*store, home(1), wanted.clone()).await, Outcome::Elsewhere(vec![PoolId(1)]));
    let two = LockSet { buckets: [bucket(1, 0), bucket(1, 2)].into(), ..LockSet::default() };
    let (order, _) = order_of(&one(&*store, two, wanted).await);
    assert_eq!((order.home, order.lines[0].allocations[0].bucket), (Some(bucket(1, 0)), bucket(1, 2)));
    let entry = landed(&*store, 0, 1).await;
    assert_eq!((entry.action, entry.delta.available, entry.settled), (Action::Land, 0, 2));
    // The cache of bucket 0 took two that others had taken meanwhile; that of bucket 2 gave two.
    assert_law(&*store, 0, 2, 0).await;
    assert_law(&*store, 2, 0, 0).await;
    // Only who has the whole pool says that it is sold out.
    let three = land(3, "eve", 3, 1, 1);
    assert_eq!(one(&*store, home(1), three.clone()).await, Outcome::Miss(vec![PoolId(1)]));
    let (failed, _) = order_of(&one(&*store, whole(&[1]), three).await);
    assert_eq!((failed.state, failed.reason), (State::Failed, Some(Reason::SoldOut)));
    assert_law(&*store, 1, 3, 2).await;
    assert_eq!(balances(&*store, 1).await, (2, 4, 0));
    assert_clean(&*store).await;
}

/// Of a closed epoch nothing lands any more, and what landed before is found.
pub async fn a_closed_epoch_admits_nothing(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let lost = Outcome::refused(Refusal::AdmissionLost);
    let send = async |command| one(&*store, home(0), command).await;
    assert_eq!(send(land(1, "ann", 1, 0, 1)).await, lost, "no epoch");
    send(turn(bucket(1, 0), 1, open())).await;
    let second = landing(place(2, "ann", &[(1, 1)]), accepted(bucket(1, 0), 2, 1, 1), NEVER);
    assert_eq!(send(second.clone()).await, lost, "not yet");
    // A batch that closes in the middle: what stands before it lands.
    let commands = vec![
        turn(bucket(1, 0), 1, Turn::Drain),
        land(1, "ann", 1, 0, 1),
        turn(bucket(1, 0), 1, Turn::Close),
        land(3, "bob", 1, 0, 2),
    ];
    let outcomes = commit(&*store, home(0), commands).await;
    assert_eq!(order_of(&outcomes[1]).0.state, State::Held);
    assert_eq!(outcomes[3], lost);
    assert_eq!(store.order(OrderId(3)).await.expect("read"), None);
    send(turn(bucket(1, 0), 2, open())).await;
    assert_eq!(order_of(&send(land(1, "ann", 1, 0, 1)).await).1, How::Repeated, "it has landed");
    assert_eq!(send(land(3, "bob", 1, 0, 2)).await, lost);
    assert_eq!(order_of(&send(second).await).0.state, State::Held);
    assert_clean(&*store).await;
}

/// What cannot be landed is settled once, and a person is told.
pub async fn a_poison_entry_is_set_aside_once(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_cached(&*store, 10, 1).await;
    let aside = |entry, units| {
        let accepted = accepted(bucket(1, 0), 1, entry, units);
        Command::SetAside(SetAside { accepted, why: "no \"JSON\"\n".into() })
    };
    for how in [How::Changed, How::Repeated] {
        let (row, was) = row_of(&one(&*store, home(0), aside(5, 4)).await);
        assert_eq!((row.landed, was), (5, how));
    }
    let entry = landed(&*store, 0, 5).await;
    assert_eq!((entry.action, entry.settled, entry.order_id), (Action::Land, 4, None));
    assert_law(&*store, 0, 4, 10).await;
    // Where nobody knows what it took, only the person is told.
    one(&*store, home(0), aside(6, 0)).await;
    one(&*store, home(0), aside(6, 0)).await;
    assert_law(&*store, 0, 4, 10).await;
    let filter = CaseFilter { kind: Some(CaseKind::PoisonEntry), ..CaseFilter::default() };
    let (cases, _) = store.cases(filter, Page { after: None, limit: 9 }).await.expect("read");
    assert_eq!(cases.iter().map(|case| case.pool).collect::<Vec<_>>(), [Some(PoolId(1)); 2]);
    let evidence =
        r#"{"bucket":0,"epoch":1,"entry":"1700000000000-5","number":5,"units":4,"why":"no \"JSON\" "}"#;
    assert!(cases.iter().any(|case| &*case.evidence == evidence), "{cases:?}");
    // The same entry as an order: it was set aside.
    let lost = Outcome::refused(Refusal::AdmissionLost);
    assert_eq!(one(&*store, home(0), land(1, "ann", 4, 0, 5)).await, lost);
    one(&*store, home(0), turn(bucket(1, 0), 1, Turn::Close)).await;
    assert_eq!(one(&*store, home(0), aside(7, 1)).await, lost);
    assert_clean(&*store).await;
}

/// Two landers that have the same entries land each once; a close lets each in whole or not at all.
pub async fn landers_race_and_an_epoch_closes(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_cached(&*store, 100, 2).await;
    let mut tasks = tokio::task::JoinSet::new();
    for lander in 0..2_u64 {
        for entry in 1..=20_u64 {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                // One lander has the buckets' entries under another lock than the other.
                let locks = if lander == 0 { home(0) } else { whole(&[1]) };
                let command = land(u128::from(entry), "ann", 1, 0, entry);
                (entry, one(&*store, locks, command).await)
            });
        }
    }
    let closing = Arc::clone(&store);
    tasks.spawn(async move {
        tokio::task::yield_now().await;
        (0, one(&*closing, home(0), turn(bucket(1, 0), 1, Turn::Close)).await)
    });
    let (mut created, mut lost) = (Vec::new(), Vec::new());
    while let Some(done) = tasks.join_next().await {
        match done.expect("no panic") {
            (0, outcome) => assert_eq!(row_of(&outcome).0.state, EpochState::Closed),
            (entry, Outcome::Order { how: How::Created, .. }) => created.push(entry),
            (_, Outcome::Order { how: How::Repeated, .. }) => {}
            (entry, outcome) => {
                assert_eq!(outcome, Outcome::refused(Refusal::AdmissionLost));
                lost.push(entry);
            }
        }
    }
    let landings = created.len() as u64;
    created.sort_unstable();
    created.dedup();
    assert_eq!(created.len() as u64, landings, "each landed once");
    assert!(lost.iter().all(|entry| !created.contains(entry)), "{lost:?} of {created:?}");
    assert_eq!(balances(&*store, 1).await, (100 - landings, landings, 0));
    assert_law(&*store, 0, landings, 50 - landings.cast_signed()).await;
    assert_clean(&*store).await;
}

/// A cache that went back may use an entry again. Whoever comes second has not landed, whatever becomes of his
/// number later.
pub async fn an_entry_lands_for_one_order(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_cached(&*store, 10, 1).await;
    let lost = Outcome::refused(Refusal::AdmissionLost);
    let (first, second) = (|| land(1, "ann", 1, 0, 1), || land(2, "bob", 2, 0, 1));
    let landed = commit(&*store, home(0), vec![first(), second(), first()]).await;
    assert_eq!(
        (order_of(&landed[0]).1, &landed[1], order_of(&landed[2]).1),
        (How::Created, &lost, How::Repeated)
    );
    assert_eq!(one(&*store, home(0), second()).await, lost, "nor in a batch of its own");
    one(&*store, home(0), placed(place(2, "bob", &[(1, 2)]))).await;
    assert_eq!(one(&*store, home(0), second()).await, lost, "the order of its number came another way");
    let entry = self::landed(&*store, 0, 1).await;
    assert_eq!((entry.order_id, entry.settled), (Some(OrderId(1)), 1));
    // The number comes as an entry of its own, too: that one tells of its order.
    assert_eq!(order_of(&one(&*store, home(0), land(2, "bob", 2, 0, 2)).await).1, How::Repeated);
    assert_eq!(self::landed(&*store, 0, 2).await.order_id, Some(OrderId(2)));
    // What was set aside is no order, also when its number is one.
    one(
        &*store,
        home(0),
        Command::SetAside(SetAside { accepted: accepted(bucket(1, 0), 1, 3, 1), why: "x".into() }),
    )
    .await;
    assert_eq!(one(&*store, home(0), land(1, "ann", 1, 0, 3)).await, lost);
    assert_eq!(balances(&*store, 1).await, (7, 3, 0));
    assert_clean(&*store).await;
}

/// A restored authority has no cache: what one took of the authority before is nothing to it.
pub async fn a_new_incarnation_closes_every_epoch(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_cached(&*store, 10, 3).await;
    one(&*store, home(0), turn(bucket(1, 0), 1, Turn::Drain)).await;
    one(&*store, home(1), turn(bucket(1, 1), 1, Turn::Close)).await;
    let before = store.catalog(None).await.expect("read").version;
    clock.advance_millis(1_000);
    let begin =
        NewIncarnation { incarnation: Incarnation(7), case: CaseId(7), evidence: r#"{"why":"test"}"#.into() };
    store.begin_incarnation(begin).await.expect("write");
    let (rows, _) = store.cache_buckets(Page { after: None, limit: 9 }).await.expect("read");
    assert!(rows.len() == 3 && rows.iter().all(|row| row.state == EpochState::Closed), "{rows:?}");
    assert_eq!(rows[0].changed_at, clock.now());
    let changed = store.catalog(Some(before)).await.expect("read").caches;
    assert_eq!(changed.iter().map(|row| row.key.number).collect::<Vec<_>>(), [0, 2]);
    let lost = one(&*store, home(0), land(1, "ann", 1, 0, 1)).await;
    assert_eq!(lost, Outcome::refused(Refusal::AdmissionLost));
    assert_clean(&*store).await;
}
