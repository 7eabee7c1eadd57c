//! Sinks: what they are told, where they stand, and who may say so.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::campaign::Policy;
use holdfast_core::command::{How, OrderAction, Via};
use holdfast_core::event::OrderEventKind;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

use super::START;
use super::behaviour::{Subject, TestClock};
use super::support::{bucket, campaign_id, change, one, open_campaign, open_pool, place, placed};
use crate::acts::ActFilter;
use crate::contract::Store;
use crate::queue::Lease;
use crate::read::Page;
use crate::sinks::{
    AdvanceSink, BEGINNING, Backlog, ChangeSink, DeadLetterState, DeliveryState, Lag, Park, PutSink,
    SECRETS_MAX, SINKS_MAX, SinkChange, SinkHealth, SinkKind, SinkName, SinkPosition, SinkRefusal, SinkRow,
    SinkSettings, SinkState,
};

fn named(name: &str) -> SinkName {
    SinkName::new(name).expect("a good name")
}

fn via() -> Option<Arc<Via>> {
    Some(Arc::new(Via { key: "boss (hfk_x)".into(), request_id: "r-1".into() }))
}

fn sink(name: &str, from: Timestamp) -> PutSink {
    PutSink {
        name: named(name),
        kind: SinkKind::Webhook,
        settings: SinkSettings { to: "https://shop.example/in?token=t".into(), ..SinkSettings::default() },
        secrets: vec![("s1".into(), "whsec_c2VjcmV0".into())],
        from,
        via: via(),
    }
}

async fn made(store: &dyn Store, name: &str, from: Timestamp) -> SinkRow {
    store.put_sink(sink(name, from)).await.expect("store").expect("made").0
}

async fn changed(store: &dyn Store, name: &str, change: SinkChange) -> Result<Option<SinkRow>, SinkRefusal> {
    let (operator, reason) = ("olga".to_owned(), "test".to_owned());
    store
        .change_sink(ChangeSink { name: named(name), change, operator, reason, via: via() })
        .await
        .expect("store")
}

async fn now_is(store: &dyn Store, name: &str, change: SinkChange) -> SinkRow {
    changed(store, name, change).await.expect("allowed").expect("it is still there")
}

async fn lags(store: &dyn Store, name: &str) -> Vec<Lag> {
    let mut found = Vec::new();
    loop {
        // Pages of two, so that pages are tried too.
        let after = found.last().map(|lag: &Lag| lag.bucket);
        let page = store.lagging(named(name), Page { after, limit: 2 }).await.expect("read");
        if page.is_empty() {
            return found;
        }
        found.extend(page);
    }
}

async fn sell(store: &dyn Store, order: u128, at: BucketKey) {
    let pool = at.pool.0;
    one(store, LockSet::bucket(at), placed(place(order, "ann", &[(pool, 1)]))).await;
}

fn lag(at: BucketKey, seq: u64, ledger_seq: u64) -> Lag {
    Lag { bucket: at, seq, ledger_seq, strikes: 0 }
}

async fn reach(store: &dyn Store, sink: &SinkRow, reached: &[(BucketKey, u64)]) -> bool {
    let position = |(bucket, seq): &(BucketKey, u64)| SinkPosition { bucket: *bucket, seq: *seq, strikes: 0 };
    let positions = reached.iter().map(position).collect();
    let advance = AdvanceSink { positions, ..AdvanceSink::of(sink.name.clone(), sink.round, None) };
    store.advance_sink(advance).await.expect("store")
}

/// A sink is made once, keeps what it was told and its secrets, and is in the trail without them.
pub async fn a_sink_is_made_changed_and_forgotten(store: Subject, clock: TestClock) {
    let store = &*store;
    let (row, how) = store.put_sink(sink("erp", BEGINNING)).await.expect("store").expect("made");
    assert_eq!((how, row.state, row.round, row.created_at), (How::Created, SinkState::Active, 1, START));
    assert_eq!(store.sink(named("erp")).await.expect("read"), Some(row.clone()));
    assert_eq!(store.sink(named("other")).await.expect("read"), None);
    clock.advance_millis(1);
    // A repeat changes nothing, also not the secret.
    let again = PutSink { secrets: vec![("s2".into(), "whsec_b3RoZXI=".into())], ..sink("erp", START) };
    assert_eq!(store.put_sink(again).await.expect("store").expect("known"), (row, How::Repeated));
    let mut other = sink("erp", BEGINNING);
    other.kind = SinkKind::Nats;
    let refused = store.put_sink(other).await.expect("store");
    assert!(matches!(refused, Err(SinkRefusal::Conflict(_))), "{refused:?}");
    let mut other = sink("erp", BEGINNING);
    other.settings.to = "https://shop.example/hidden".into();
    other.settings.types = vec![OrderEventKind::Sold, OrderEventKind::PartlyRefunded];
    other.settings.retry_seconds = vec![1, 2];
    let (row, how) = store.put_sink(other.clone()).await.expect("store").expect("known");
    assert_eq!((how, &row.settings), (How::Changed, &other.settings));
    for number in 2..=SECRETS_MAX {
        let secret = SinkChange::AddSecret(format!("s{number}"), "whsec_bmV3".into());
        assert_eq!(now_is(store, "erp", secret).await.secrets.len(), number);
    }
    let one_more = SinkChange::AddSecret("s9".into(), "whsec_bmV3".into());
    assert!(matches!(changed(store, "erp", one_more).await, Err(SinkRefusal::Conflict(_))));
    for number in (2..=SECRETS_MAX).rev() {
        now_is(store, "erp", SinkChange::DropSecret(format!("s{number}"))).await;
    }
    let last = changed(store, "erp", SinkChange::DropSecret("s1".into())).await;
    assert!(matches!(last, Err(SinkRefusal::Conflict(_))), "{last:?}");
    assert_eq!(changed(store, "erp", SinkChange::DropSecret("s7".into())).await, Err(SinkRefusal::Unknown));
    let paused = now_is(store, "erp", SinkChange::Pause).await;
    assert_eq!((paused.state, paused.why.as_deref()), (SinkState::Paused, Some("test")));
    assert_eq!(now_is(store, "erp", SinkChange::Pause).await, paused);
    assert_eq!(now_is(store, "erp", SinkChange::Resume).await.state, SinkState::Active);
    made(store, "a-first", BEGINNING).await;
    let names: Vec<_> = store.sinks().await.expect("read").into_iter().map(|row| row.name).collect();
    assert_eq!(names, [named("a-first"), named("erp")]);
    assert_eq!(changed(store, "erp", SinkChange::Delete).await, Ok(None));
    assert_eq!(changed(store, "erp", SinkChange::Delete).await, Err(SinkRefusal::Unknown));
    let filter = ActFilter { subject: Some("sink erp".into()), ..ActFilter::default() };
    let (acts, _) = store.acts(filter, Page { after: None, limit: 500 }).await.expect("read");
    assert!(acts.iter().all(|act| !format!("{act:?}").contains("hidden")), "{acts:?}");
    let words: Vec<_> = acts.iter().rev().map(|act| act.action.as_str()).collect();
    assert_eq!((words.first(), words.last()), (Some(&"put_sink"), Some(&"delete_sink")));
    assert_eq!(acts.last().map(|act| act.detail.as_str()), Some("created, kind webhook"));
    assert!(
        acts.iter().any(|act| act.detail.contains(r#"types [] -> ["sold", "partly_refunded"]"#)),
        "{acts:?}"
    );
    assert_eq!(words.len(), 2 + 2 * (SECRETS_MAX - 1) + 3, "{words:?}");
    for number in 1..SINKS_MAX {
        made(store, &format!("s{number}"), BEGINNING).await;
    }
    let refused = store.put_sink(sink("erp", BEGINNING)).await.expect("store");
    assert_eq!(refused.expect_err("too many"), SinkRefusal::TooMany);
}

/// What stands after a sink's positions is undelivered: it is told so by every view of it.
pub async fn a_sink_is_behind_until_it_advances(store: Subject, clock: TestClock) {
    let store = &*store;
    open_campaign(store, Policy::default()).await;
    let erp = made(store, "erp", BEGINNING).await;
    assert_eq!(lags(store, "erp").await, []);
    assert_eq!(store.backlog(named("erp")).await.expect("read"), Backlog::default());
    open_pool(store, 1, 10, 2).await;
    open_pool(store, 2, 10, 1).await;
    clock.advance_millis(1_000);
    for order in 1..=3 {
        sell(store, order, bucket(1, 0)).await;
    }
    one(store, LockSet::bucket(bucket(1, 0)), change(1, OrderAction::Cancel)).await;
    let (first, other, third) = (bucket(1, 0), bucket(1, 1), bucket(2, 0));
    assert_eq!(lags(store, "erp").await, [lag(first, 0, 5), lag(other, 0, 1), lag(third, 0, 1)]);
    let found = store.entries_after(first, 1, 3).await.expect("read").expect("a pool");
    assert_eq!(found.campaign, campaign_id());
    assert_eq!(found.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(store.entries_after(bucket(9, 0), 0, 3).await.expect("read"), None);
    let kinds = found.entries.iter().map(OrderEventKind::of).collect::<Vec<_>>();
    assert_eq!(kinds, [Some(OrderEventKind::Held); 3]);
    assert!(reach(store, &erp, &[(first, 4), (other, 1), (third, 1)]).await);
    assert_eq!(lags(store, "erp").await, [lag(first, 4, 5)]);
    let oldest = Some((Timestamp(START.0 + 1_000_000), (first, 5)));
    let behind = Backlog { buckets: 1, entries: 1, oldest, more: false };
    assert_eq!(store.backlog(named("erp")).await.expect("read"), behind);
    let told = store.deliveries(vec![(first, 5), (first, 4), (first, 99)]).await.expect("read");
    let told: Vec<_> = told.into_iter().map(|told| (told.position.1, told.state)).collect();
    assert_eq!(told, [(5, DeliveryState::Waiting), (4, DeliveryState::Delivered)]);
    assert_eq!(store.sinks_behind(campaign_id()).await.expect("read"), [named("erp")]);
    // A position never goes back.
    assert!(reach(store, &erp, &[(first, 2)]).await);
    assert_eq!(lags(store, "erp").await, [lag(first, 4, 5)]);
    assert!(reach(store, &erp, &[(first, 5)]).await);
    assert_eq!(store.sinks_behind(campaign_id()).await.expect("read"), []);
    assert_eq!(lags(store, "erp").await, []);
}

/// A node that lost the lease, or began before a replay, writes nothing.
pub async fn only_who_may_deliver_says_how_far_it_has_come(store: Subject, clock: TestClock) {
    let store = &*store;
    open_campaign(store, Policy::default()).await;
    open_pool(store, 1, 10, 1).await;
    sell(store, 1, bucket(1, 0)).await;
    let erp = made(store, "erp", BEGINNING).await;
    let lease = |holder| Lease { name: erp.name.lease(), holder, lasts: Duration::from_secs(10) };
    let health = SinkHealth {
        failing_since: Some(START),
        failures: 2,
        next_attempt_at: Some(Timestamp(START.0 + 5)),
        last_error: Some("no route".into()),
        delivered_at: Some(Timestamp(START.0 + 1)),
    };
    let advance = |holder, round| AdvanceSink {
        positions: vec![SinkPosition { bucket: bucket(1, 0), seq: 1, strikes: 3 }],
        health: Some(health.clone()),
        ..AdvanceSink::of(erp.name.clone(), round, Some(holder))
    };
    assert!(!store.advance_sink(advance(7, 1)).await.expect("store"), "nobody has the lease");
    assert!(store.take_lease(lease(7)).await.expect("store"));
    assert!(!store.advance_sink(advance(8, 1)).await.expect("store"), "somebody else has it");
    assert!(!store.advance_sink(advance(7, 2)).await.expect("store"), "there is no such round");
    assert!(store.advance_sink(advance(7, 1)).await.expect("store"));
    assert_eq!(lags(store, "erp").await, [Lag { strikes: 3, ..lag(bucket(1, 0), 1, 2) }]);
    assert_eq!(store.sink(named("erp")).await.expect("read").expect("known").health, health);
    clock.advance_millis(11_000);
    assert!(store.take_lease(lease(8)).await.expect("store"));
    assert!(!store.advance_sink(advance(7, 1)).await.expect("store"), "the lease went to another");
    now_is(store, "erp", SinkChange::ReplayFrom(BEGINNING)).await;
    assert!(!store.advance_sink(advance(8, 1)).await.expect("store"), "a replay has begun");
    assert!(store.advance_sink(advance(8, 2)).await.expect("store"));
    let disable = AdvanceSink { disable: Some("gone".into()), ..AdvanceSink::of(named("erp"), 2, Some(8)) };
    assert!(store.advance_sink(disable).await.expect("store"));
    let row = store.sink(named("erp")).await.expect("read").expect("known");
    assert_eq!((row.state, row.why.as_deref(), &row.health), (SinkState::Disabled, Some("gone"), &health));
    let resumed = now_is(store, "erp", SinkChange::Resume).await;
    let mended = SinkHealth { delivered_at: health.delivered_at, ..SinkHealth::default() };
    assert_eq!((resumed.state, resumed.health), (SinkState::Active, mended));
    let nobody = AdvanceSink::of(named("nobody"), 1, None);
    assert!(!store.advance_sink(nobody).await.expect("store"));
}

/// A sink is told of what happens from its time on. A replay goes back and never skips what was not delivered.
pub async fn a_sink_is_told_from_its_time_on_and_again_by_a_replay(store: Subject, clock: TestClock) {
    let store = &*store;
    open_campaign(store, Policy::default()).await;
    for pool in 1..=3 {
        open_pool(store, pool, 100, 1).await;
    }
    let (first, quiet, late) = (bucket(1, 0), bucket(2, 0), bucket(3, 0));
    for order in 1..=5 {
        clock.advance_millis(1_000);
        sell(store, order, first).await;
    }
    clock.advance_millis(1_000);
    let began = store.now();
    let erp = made(store, "erp", began).await;
    assert_eq!(lags(store, "erp").await, [], "nothing has happened since");
    sell(store, 6, first).await;
    assert_eq!(lags(store, "erp").await, [lag(first, 6, 7)]);
    assert_eq!(store.backlog(named("erp")).await.expect("read").entries, 1);
    let told = store.deliveries(vec![(first, 6), (first, 7)]).await.expect("read");
    assert_eq!(
        told.into_iter().map(|told| told.state).collect::<Vec<_>>(),
        [DeliveryState::Before, DeliveryState::Waiting]
    );
    assert!(reach(store, &erp, &[(first, 7)]).await);
    sell(store, 7, late).await;
    // From order 4 on; what no replay names stays where it was.
    let from = Timestamp(START.0 + 4_000_000);
    let erp = now_is(store, "erp", SinkChange::ReplayFrom(from)).await;
    assert_eq!(erp.round, 2);
    assert_eq!(lags(store, "erp").await, [lag(first, 4, 7), lag(late, 1, 2)]);
    let told = store.deliveries(vec![(first, 4), (first, 5)]).await.expect("read");
    assert_eq!(
        told.into_iter().map(|told| told.state).collect::<Vec<_>>(),
        [DeliveryState::Delivered, DeliveryState::Waiting]
    );
    // A later time skips nothing of it.
    clock.advance_millis(1_000);
    let erp = now_is(store, "erp", SinkChange::ReplayFrom(store.now())).await;
    assert_eq!(lags(store, "erp").await, [lag(first, 4, 7), lag(late, 1, 2)]);
    assert!(reach(store, &erp, &[(first, 5)]).await);
    assert_eq!(lags(store, "erp").await, [lag(first, 5, 7), lag(late, 1, 2)]);
    // Replaying from the beginning tells also what was before the sink.
    now_is(store, "erp", SinkChange::ReplayFrom(BEGINNING)).await;
    assert_eq!(lags(store, "erp").await, [lag(first, 0, 7), lag(quiet, 0, 1), lag(late, 0, 2)]);
}

/// An event that is set aside is listed, asked for, and delivered or set aside again.
pub async fn a_parked_event_waits_until_somebody_asks_for_it(store: Subject, clock: TestClock) {
    let store = &*store;
    open_campaign(store, Policy::default()).await;
    open_pool(store, 1, 10, 1).await;
    let at = bucket(1, 0);
    for order in 1..=3 {
        sell(store, order, at).await;
    }
    let erp = made(store, "erp", BEGINNING).await;
    let park = |seq, attempts| Park { position: (at, seq), attempts, why: format!("400 for {seq}") };
    let parked = AdvanceSink {
        positions: vec![SinkPosition { bucket: at, seq: 4, strikes: 0 }],
        parked: vec![park(2, 5), park(3, 5)],
        ..AdvanceSink::of(erp.name.clone(), 1, None)
    };
    assert!(store.advance_sink(parked).await.expect("store"));
    let letters = |state| async move {
        let page = Page { after: None, limit: 500 };
        let (found, _) = store.dead_letters(named("erp"), state, page).await.expect("read");
        found.into_iter().map(|letter| (letter.position.1, letter.attempts, letter.state)).collect::<Vec<_>>()
    };
    let (is_parked, is_waiting) = (DeadLetterState::Parked, DeadLetterState::Waiting);
    assert_eq!(letters(None).await, [(2, 5, is_parked), (3, 5, is_parked)]);
    let (page, more) =
        store.dead_letters(named("erp"), None, Page { after: Some((at, 2)), limit: 1 }).await.expect("read");
    assert_eq!(
        (page[0].position, page[0].why.as_str(), page[0].at, more),
        ((at, 3), "400 for 3", START, false)
    );
    let row = store.sink(named("erp")).await.expect("read").expect("known");
    assert_eq!((row.parked, row.waiting), (2, 0));
    assert_eq!(
        store.sinks_behind(campaign_id()).await.expect("read"),
        [named("erp")],
        "they are not delivered"
    );
    let told = store.deliveries(vec![(at, 3)]).await.expect("read");
    assert_eq!(told[0].state, DeliveryState::Parked { attempts: 5, why: "400 for 3".into() });
    clock.advance_millis(1);
    let row = now_is(store, "erp", SinkChange::ReplayDeadLetters).await;
    assert_eq!((row.parked, row.waiting, row.round), (0, 2, 1));
    assert_eq!(letters(Some(is_waiting)).await, [(2, 5, is_waiting), (3, 5, is_waiting)]);
    let tried = AdvanceSink {
        parked: vec![park(2, 6)],
        redelivered: vec![(at, 3)],
        ..AdvanceSink::of(erp.name, 1, None)
    };
    assert!(store.advance_sink(tried).await.expect("store"));
    assert_eq!(letters(None).await, [(2, 6, is_parked), (3, 5, DeadLetterState::Delivered)]);
    let told = store.deliveries(vec![(at, 2), (at, 3)]).await.expect("read");
    assert!(matches!(told[0].state, DeliveryState::Parked { attempts: 6, .. }), "{told:?}");
    assert_eq!(told[1].state, DeliveryState::Delivered);
    assert_eq!(lags(store, "erp").await, []);
}
