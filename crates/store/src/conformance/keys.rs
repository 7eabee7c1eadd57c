//! Keys, the trail of operators' acts, and lists that keep to a scope.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{Adjust, AdjustmentKind, Command, OrderAction, OrderCommand, Signed, Via};
use holdfast_core::id::{AdjustmentId, CampaignId, Operator, OrderId, PoolId};
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::PoolSwitch;
use holdfast_core::time::Timestamp;

use super::START;
use super::behaviour::{Subject, TestClock};
use super::support::{
    bucket, campaign_id, one, open_campaign, open_pool, place, placed, pool_command, put, switch, whole,
};
use crate::acts::{ActFilter, ActRow};
use crate::contract::{PutCampaign, Store, SwitchPool};
use crate::keys::{CreateKey, KeyId, KeyRefusal, KeyRow, RevokeKey, Role, Scope};
use crate::read::{LedgerFilter, OrderFilter, Page, PoolFilter};

fn key_id(number: u8) -> KeyId {
    KeyId::new(&format!("key{number:013}")).expect("a good id")
}

fn via() -> Option<Arc<Via>> {
    Some(Arc::new(Via { key: "boss (hfk_x)".into(), request_id: "r-1".into() }))
}

fn make(number: u8, role: Role) -> CreateKey {
    CreateKey {
        id: key_id(number),
        name: format!("key {number}"),
        role,
        scope: Scope::All,
        secret_sha256: [number; 32],
        expires_at: None,
        via: via(),
    }
}

fn revoke(number: u8) -> RevokeKey {
    RevokeKey { id: key_id(number), via: via() }
}

fn only(campaigns: &[&str]) -> Scope {
    let campaigns = campaigns.iter().map(|id| CampaignId::new(id).expect("a good id"));
    Scope::Only(Arc::new(campaigns.collect::<BTreeSet<_>>()))
}

async fn live(store: &dyn Store) -> Vec<KeyId> {
    store.live_keys().await.expect("read").into_iter().map(|key| key.id).collect()
}

/// A key is made once, reads back as it was made, and is live until it is revoked or its time is over.
pub async fn a_key_lives_until_it_ends(store: Subject, clock: TestClock) {
    let create = CreateKey {
        scope: only(&["b", "a"]),
        expires_at: Some(Timestamp(START.0 + 1_000)),
        ..make(1, Role::Buyer)
    };
    let made = store.create_key(create.clone()).await.expect("store").expect("made");
    let expected = KeyRow {
        id: key_id(1),
        name: "key 1".into(),
        role: Role::Buyer,
        scope: only(&["a", "b"]),
        secret_sha256: [1; 32],
        created_at: START,
        expires_at: Some(Timestamp(START.0 + 1_000)),
        revoked_at: None,
        created_by: "boss (hfk_x)".into(),
    };
    assert_eq!(made, expected);
    assert_eq!(store.create_key(create).await.expect("store"), Err(KeyRefusal::Taken));
    assert_eq!(store.key(key_id(1)).await.expect("read"), Some(expected.clone()));
    assert_eq!(store.key(key_id(2)).await.expect("read"), None);
    store.create_key(make(2, Role::Read)).await.expect("store").expect("made");
    assert_eq!(live(&*store).await, [key_id(1), key_id(2)]);
    clock.advance_millis(1);
    assert_eq!(live(&*store).await, [key_id(2)], "the end itself is after the end");
    for _ in 0..2 {
        let revoked = store.revoke_key(revoke(2)).await.expect("store").expect("revoked");
        assert_eq!(revoked.revoked_at, Some(Timestamp(START.0 + 1_000)));
        clock.advance_millis(1);
    }
    assert_eq!(live(&*store).await, []);
    assert_eq!(store.revoke_key(revoke(9)).await.expect("store"), Err(KeyRefusal::Unknown));
    let (page, more) = store.keys(Page { after: None, limit: 1 }).await.expect("read");
    assert_eq!((page, more), (vec![expected], true), "ended keys stay in the list");
    let (page, more) = store.keys(Page { after: Some(key_id(1)), limit: 1 }).await.expect("read");
    assert_eq!((page.len(), more), (1, false));
}

/// There is always somebody who can make keys.
pub async fn the_last_admin_key_stays(store: Subject, clock: TestClock) {
    let ends = CreateKey { expires_at: Some(Timestamp(START.0 + 1_000)), ..make(1, Role::Admin) };
    assert!(store.create_first_key(ends).await.expect("store"));
    assert!(!store.create_first_key(make(2, Role::Admin)).await.expect("store"), "there is one");
    store.create_key(make(3, Role::Operator)).await.expect("store").expect("made");
    assert_eq!(store.revoke_key(revoke(1)).await.expect("store"), Err(KeyRefusal::LastAdmin));
    store.create_key(make(4, Role::Admin)).await.expect("store").expect("made");
    store.revoke_key(revoke(4)).await.expect("store").expect("another is live");
    clock.advance_millis(1);
    store.revoke_key(revoke(1)).await.expect("store").expect("it had ended by itself");
    assert!(store.create_first_key(make(5, Role::Admin)).await.expect("store"), "nobody could make keys");
}

async fn acts(store: &dyn Store, filter: ActFilter) -> Vec<ActRow> {
    store.acts(filter, Page { after: None, limit: 100 }).await.expect("read").0
}

/// Every act is kept once, with its way in; what changed nothing is no act.
pub async fn acts_are_kept_once_and_shown_newest_first(store: Subject, clock: TestClock) {
    for hold_seconds in [900, 900, 60] {
        let policy = Policy { hold_seconds, ..Policy::default() };
        let id = campaign_id();
        let put = PutCampaign { id, name: "Sale".into(), starts_at: None, ends_at: None, policy, via: via() };
        store.put_campaign(put).await.expect("put");
    }
    for _ in 0..2 {
        switch(&*store, Switch::Open).await;
    }
    clock.advance_millis(5);
    for _ in 0..2 {
        one(&*store, LockSet::default(), pool_command(1, 5, 1)).await;
    }
    let operator = || Operator::new("olga").expect("a good id");
    for switch in [PoolSwitch::Freeze, PoolSwitch::Freeze, PoolSwitch::Unfreeze] {
        let set =
            SwitchPool { id: PoolId(1), switch, operator: operator(), reason: "look".into(), via: via() };
        store.switch_pool(set).await.expect("store").expect("a pool");
    }
    for _ in 0..2 {
        let adjust = Command::Adjust(Adjust {
            adjustment_id: AdjustmentId::new("a-1").expect("a good id"),
            pool: PoolId(1),
            delta: -2,
            kind: AdjustmentKind::Adjust,
            bucket: None,
            signed: Signed { via: via(), ..Signed::new("olga", "count") },
        });
        one(&*store, whole(&[1]), adjust).await;
    }
    store.create_key(make(1, Role::Admin)).await.expect("store").expect("made");
    assert_eq!(store.revoke_key(revoke(1)).await.expect("store"), Err(KeyRefusal::LastAdmin));
    let all = acts(&*store, ActFilter::default()).await;
    let words: Vec<_> = all.iter().map(|act| act.action.as_str()).collect();
    let expected =
        ["create_key", "adjust", "unfreeze", "freeze", "open_pool", "open", "put_campaign", "put_campaign"];
    assert_eq!(words, expected);
    let pool = format!("pool {}", PoolId(1));
    let adjust = &all[1];
    assert_eq!((&adjust.subject, adjust.at), (&pool, Timestamp(START.0 + 5_000)));
    assert_eq!((adjust.actor.as_str(), adjust.request_id.as_deref()), ("boss (hfk_x)", Some("r-1")));
    assert_eq!((adjust.operator.clone(), adjust.reason.as_str()), (Some(operator()), "count"));
    assert_eq!(adjust.detail, "-2, adjustment a-1");
    assert_eq!(adjust.campaign, Some(campaign_id()));
    assert_eq!((all[6].detail.as_str(), all[7].detail.as_str()), ("hold_seconds 900 -> 60", "created"));
    assert_eq!((all[5].actor.as_str(), all[0].operator.clone()), ("holdfast", None));
    let of_pool = ActFilter { subject: Some(pool), ..ActFilter::default() };
    assert_eq!(acts(&*store, of_pool).await, all[1..5]);
    let of_other = ActFilter { scope: only(&["other"]), ..ActFilter::default() };
    assert_eq!(acts(&*store, of_other).await, []);
    let of_sale = ActFilter { scope: only(&["sale", "other"]), ..ActFilter::default() };
    assert_eq!(acts(&*store, of_sale).await, all[1..], "keys belong to no campaign");
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = Page { after, limit: 3 };
        let (part, more) = store.acts(ActFilter::default(), page).await.expect("read");
        after = part.last().map(|act| act.id);
        seen.extend(part);
        if !more {
            break;
        }
    }
    assert_eq!(seen, all);
}

/// An operator who cancels orders is in the trail, once an order; a buyer who cancels is not.
pub async fn cancels_of_operators_are_in_the_trail(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let before = acts(&*store, ActFilter::default()).await.len();
    let of_operator = Signed { via: via(), ..Signed::new("olga", "called off") };
    for (order, signed) in [(1, of_operator), (2, Signed::new("shop (hfk_y)", "changed my mind"))] {
        one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(order, "ann", &[(1, 1)]))).await;
        for _ in 0..2 {
            let cancel = OrderCommand::new(OrderId(order), OrderAction::Cancel, signed.clone());
            one(&*store, LockSet::bucket(bucket(1, 0)), Command::Order(cancel)).await;
        }
    }
    let all = acts(&*store, ActFilter::default()).await;
    assert_eq!(all.len(), before + 1, "{all:?}");
    let act = &all[0];
    assert_eq!((act.action.as_str(), &act.subject), ("cancel", &format!("order {}", OrderId(1))));
    assert_eq!((act.actor.as_str(), act.request_id.as_deref()), ("boss (hfk_x)", Some("r-1")));
    assert_eq!(
        (act.operator.as_ref().map(Operator::as_str), act.reason.as_str()),
        (Some("olga"), "called off")
    );
    assert_eq!(act.campaign, Some(campaign_id()));
}

/// A list shows nothing of campaigns outside its scope.
pub async fn lists_keep_to_their_scope(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(1, "ann", &[(1, 1)]))).await;
    put(&*store, Policy::default()).await;
    for (scope, shown) in
        [(Scope::All, 1), (only(&["sale"]), 1), (only(&["Sale", "other"]), 0), (only(&[]), 0)]
    {
        let (campaigns, _) =
            store.campaigns(scope.clone(), Page { after: None, limit: 9 }).await.expect("read");
        assert_eq!(campaigns.len(), shown, "{scope:?}");
        let filter = PoolFilter { scope: scope.clone(), ..PoolFilter::default() };
        let (pools, _) = store.pools(filter, Page { after: None, limit: 9 }).await.expect("read");
        assert_eq!(pools.len(), shown, "{scope:?}");
        let filter = OrderFilter { scope: scope.clone(), ..OrderFilter::default() };
        let (orders, _) = store.orders(filter, Page { after: None, limit: 9 }).await.expect("read");
        assert_eq!(orders.len(), shown, "{scope:?}");
        let filter = LedgerFilter { scope: scope.clone(), ..LedgerFilter::default() };
        let (entries, _) = store.ledger(filter, Page { after: None, limit: 9 }).await.expect("read");
        assert_eq!(entries.is_empty(), shown == 0, "{scope:?}");
    }
}
