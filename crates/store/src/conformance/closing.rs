//! A campaign that is closed, and where its unsold stock goes.

use holdfast_core::cache::Turn;
use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{Command, MoveUnsold, OpenPool, OrderAction, Outcome};
use holdfast_core::id::{CampaignId, MoveId, Operator, PoolId};
use holdfast_core::ledger::Action;
use holdfast_core::order::State;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

use super::behaviour::{Subject, TestClock};
use super::caches::{accepted, landing, open, turn};
use super::support::{
    assert_clean, balances, bucket, campaign_id, change, one, open_campaign, open_pool, order_of, place,
    placed, pool_command, put, signed, switch,
};
use crate::acts::ActFilter;
use crate::contract::{PutCampaign, Store, SwitchCampaign};
use crate::read::{LedgerFilter, Page};

fn named(name: &str) -> CampaignId {
    CampaignId::new(name).expect("a good id")
}

/// Another campaign that sells, with a pool.
async fn another(store: &dyn Store, name: &str, pool: u128, policy: Policy) {
    let put =
        PutCampaign { id: named(name), name: name.into(), starts_at: None, ends_at: None, policy, via: None };
    store.put_campaign(put).await.expect("put");
    let Command::OpenPool(open) = pool_command(pool, 1, 2) else { unreachable!() };
    let open = OpenPool { campaign: named(name), ..open };
    one(store, LockSet::default(), Command::OpenPool(open)).await;
}

async fn close(store: &dyn Store, campaign: CampaignId, to: Option<u128>) -> Result<Option<PoolId>, Refusal> {
    let set = SwitchCampaign {
        id: campaign,
        switch: Switch::Close,
        unsold_to: to.map(PoolId),
        operator: Operator::new("operator").expect("a good id"),
        reason: "over".into(),
        via: None,
    };
    store.switch_campaign(set).await.expect("store").map(|campaign| campaign.unsold_to)
}

async fn closed_into(store: &dyn Store, only: Option<CampaignId>) -> Vec<(CampaignId, PoolId)> {
    store.closed_into(only, Page { after: None, limit: 10 }).await.expect("read")
}

/// Moves what these buckets have to give, as a worker does.
async fn give(store: &dyn Store, id: u128, from: &[BucketKey], to: u128) -> Outcome {
    let locks = LockSet { buckets: from.iter().copied().collect(), pools: [PoolId(to)].into() };
    let unsold = MoveUnsold { id: MoveId(id), from: from.to_vec(), to: PoolId(to), signed: signed() };
    one(store, locks, Command::MoveUnsold(unsold)).await
}

/// Only what a closed campaign has, only to the pool that was named, in pairs, and once.
pub async fn unsold_stock_moves_when_its_campaign_is_closed(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    another(&*store, "other", 2, Policy::default()).await;
    another(&*store, "third", 3, Policy::default()).await;
    let from = [bucket(1, 0), bucket(1, 1)];
    one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(1, "ann", &[(1, 3)]))).await;
    let nothing = Outcome::Transferred { repeated: true };
    assert_eq!(give(&*store, 1, &from, 2).await, nothing, "it is not closed");
    assert_eq!(close(&*store, campaign_id(), Some(2)).await, Ok(Some(PoolId(2))));
    assert_eq!(closed_into(&*store, None).await, [(campaign_id(), PoolId(2))]);
    assert_eq!(closed_into(&*store, Some(named("other"))).await, []);
    assert_eq!(give(&*store, 2, &from, 3).await, nothing, "nobody said so");
    let locks = LockSet { buckets: from.into(), ..LockSet::default() };
    let blind = MoveUnsold { id: MoveId(9), from: from.to_vec(), to: PoolId(2), signed: signed() };
    let elsewhere = one(&*store, locks, Command::MoveUnsold(blind)).await;
    assert_eq!(elsewhere, Outcome::Elsewhere(vec![PoolId(2)]));
    assert_eq!(give(&*store, 3, &from, 2).await, Outcome::Transferred { repeated: false });
    assert_eq!(give(&*store, 3, &from, 2).await, nothing);
    assert_eq!((balances(&*store, 1).await, balances(&*store, 2).await), ((0, 3, 0), (8, 0, 0)));
    let page = Page { after: None, limit: 100 };
    let (entries, _) = store.ledger(LedgerFilter::default(), page).await.expect("read");
    let moved: Vec<_> = entries.iter().filter(|entry| &*entry.source == "unsold").collect();
    let sum: i64 = moved.iter().map(|entry| entry.delta.available).sum();
    let outs = moved.iter().filter(|entry| entry.action == Action::TransferOut).count();
    assert_eq!((moved.len(), outs, sum), (4, 2, 0));
    // Holds go on to their end, and what comes back follows; a freeze keeps it.
    one(&*store, LockSet::bucket(bucket(1, 0)), change(1, OrderAction::Cancel)).await;
    switch(&*store, Switch::Freeze).await;
    assert_eq!(closed_into(&*store, None).await, []);
    assert_eq!(give(&*store, 4, &from, 2).await, nothing);
    switch(&*store, Switch::Unfreeze).await;
    assert_eq!(give(&*store, 5, &from, 2).await, Outcome::Transferred { repeated: false });
    assert_eq!((balances(&*store, 1).await, balances(&*store, 2).await), ((0, 0, 0), (11, 0, 0)));
    // A policy that is put later leaves it as it is.
    put(&*store, Policy { account_limit: Some(9), ..Policy::default() }).await;
    assert_eq!(closed_into(&*store, Some(campaign_id())).await, [(campaign_id(), PoolId(2))]);
    assert_clean(&*store).await;
}

/// Where unsold stock may go, and that a repeat is none.
pub async fn the_pool_of_a_close_is_judged(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    another(&*store, "other", 2, Policy::default()).await;
    another(&*store, "third", 3, Policy::default()).await;
    another(&*store, "careful", 4, Policy { approval_threshold: Some(1), ..Policy::default() }).await;
    assert_eq!(close(&*store, named("third"), None).await, Ok(None));
    for bad in [1, 3, 9] {
        let refused = close(&*store, campaign_id(), Some(bad)).await;
        assert!(matches!(refused, Err(Refusal::InvalidValue { .. })), "{bad}: {refused:?}");
    }
    assert!(matches!(close(&*store, campaign_id(), Some(4)).await, Err(Refusal::Conflict(_))));
    assert!(matches!(close(&*store, named("careful"), Some(1)).await, Err(Refusal::Conflict(_))));
    let open = store.campaign(campaign_id()).await.expect("read").expect("a campaign").campaign;
    assert!(!open.switches.closed);
    assert_eq!(close(&*store, campaign_id(), None).await, Ok(None));
    for again in [Some(2), Some(2), None] {
        assert_eq!(close(&*store, campaign_id(), again).await, Ok(Some(PoolId(2))));
    }
    assert!(matches!(close(&*store, campaign_id(), Some(4)).await, Err(Refusal::Conflict(_))));
    assert!(matches!(close(&*store, named("other"), Some(1)).await, Err(Refusal::InvalidValue { .. })));
    let page = Page { after: None, limit: 100 };
    let acts = store.acts(ActFilter::default(), page).await.expect("read").0;
    let closings: Vec<_> = acts.iter().filter(|act| act.action == "close").collect();
    assert_eq!(closings.len(), 3, "{closings:?}");
    assert!(closings[0].detail.contains(&PoolId(2).to_string()), "{closings:?}");
}

/// Two campaigns that are closed at the same time, each into the other: stock never goes in a circle.
pub async fn two_closes_never_make_a_circle(store: Subject, _: TestClock) {
    for number in 0..10_u128 {
        let (first, second) = (format!("first-{number}"), format!("second-{number}"));
        let (one, other) = (100 + 2 * number, 101 + 2 * number);
        another(&*store, &first, one, Policy::default()).await;
        another(&*store, &second, other, Policy::default()).await;
        let both = tokio::join!(
            close(&*store, named(&first), Some(other)),
            close(&*store, named(&second), Some(one))
        );
        assert!(both.0.is_ok() != both.1.is_ok(), "{both:?}");
    }
}

/// Whoever waits in a queue was let in before: nothing leaves until the last one was served.
pub async fn a_queue_is_served_before_stock_leaves(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    another(&*store, "other", 2, Policy::default()).await;
    let mut queued = place(1, "ann", &[(1, 3)]);
    queued.intake = Some(bucket(1, 0));
    one(&*store, LockSet::default(), placed(queued)).await;
    assert_eq!(close(&*store, campaign_id(), Some(2)).await, Ok(Some(PoolId(2))));
    assert_eq!(closed_into(&*store, None).await, []);
    one(&*store, LockSet::bucket(bucket(1, 0)), change(1, OrderAction::Land)).await;
    assert_eq!(closed_into(&*store, None).await, [(campaign_id(), PoolId(2))]);
    assert_eq!(balances(&*store, 1).await, (7, 3, 0));
}

/// So does what a cache accepted: nothing leaves while an epoch may land, and a closed campaign begins none.
pub async fn what_a_cache_accepted_lands_before_stock_leaves(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    another(&*store, "other", 2, Policy::default()).await;
    let (home, from) = (bucket(1, 0), [bucket(1, 0), bucket(1, 1)]);
    let lock = || LockSet::bucket(home);
    one(&*store, lock(), turn(home, 1, open())).await;
    assert_eq!(close(&*store, campaign_id(), Some(2)).await, Ok(Some(PoolId(2))));
    for state in [Turn::Drain, Turn::Close] {
        assert_eq!(closed_into(&*store, None).await, []);
        // A pass that was told before the epoch began leaves it alone, too.
        assert_eq!(give(&*store, 1, &[home], 2).await, Outcome::Transferred { repeated: true });
        let at = accepted(home, 1, 1, 3);
        let landed = landing(place(1, "ann", &[(1, 3)]), at, Timestamp(i64::MAX));
        assert_eq!(order_of(&one(&*store, lock(), landed).await).0.state, State::Held);
        one(&*store, lock(), turn(home, 1, state)).await;
    }
    let again = one(&*store, lock(), turn(home, 2, open())).await;
    assert_eq!(again, Outcome::refused(Refusal::CampaignClosed));
    assert_eq!(closed_into(&*store, None).await, [(campaign_id(), PoolId(2))]);
    assert_eq!(give(&*store, 2, &from, 2).await, Outcome::Transferred { repeated: false });
    assert_eq!((balances(&*store, 1).await, balances(&*store, 2).await), ((0, 3, 0), (8, 0, 0)));
    assert_clean(&*store).await;
}

/// Warming is written down and told to the nodes each time; a campaign that is over needs none.
pub async fn a_warming_is_told(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    let mut version = store.catalog(None).await.expect("read").version;
    let mut before = None;
    for _ in 0..2 {
        clock.advance_millis(10);
        switch(&*store, Switch::Warm).await;
        let told = store.catalog(Some(version)).await.expect("read");
        let asked_at = told.campaigns[0].warm_asked_at;
        assert!(asked_at > before, "{asked_at:?}");
        (version, before) = (told.version, asked_at);
    }
    assert!(store.warm().await.is_ok());
    close(&*store, campaign_id(), None).await.expect("closed");
    let operator = Operator::new("operator").expect("a good id");
    let set = SwitchCampaign {
        id: campaign_id(),
        switch: Switch::Warm,
        unsold_to: None,
        operator,
        reason: "r".into(),
        via: None,
    };
    assert_eq!(store.switch_campaign(set).await.expect("store"), Err(Refusal::CampaignClosed));
}
