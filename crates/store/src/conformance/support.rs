//! Shorthands of the cases.

use std::sync::Arc;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{
    Command, How, OpenPool, OrderAction, OrderCommand, Outcome, Place, PlaceLine, Signed,
};
use holdfast_core::id::{Account, CampaignId, Location, Operator, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::limit::LimitKeys;
use holdfast_core::order::Order;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path, Routing};

use crate::contract::{Batch, PutCampaign, Store, SwitchCampaign};

pub(super) fn campaign_id() -> CampaignId {
    CampaignId::new("sale").expect("a good id")
}

pub(super) fn signed() -> Signed {
    Signed::new("operator", "test")
}

/// A campaign that is open.
pub(super) async fn open_campaign(store: &dyn Store, policy: Policy) {
    put(store, policy).await;
    switch(store, Switch::Open).await;
}

pub(super) async fn put(store: &dyn Store, policy: Policy) {
    let put = PutCampaign {
        id: campaign_id(),
        name: "Sale".into(),
        starts_at: None,
        ends_at: None,
        policy,
        via: None,
    };
    store.put_campaign(put).await.expect("put");
}

pub(super) async fn switch(store: &dyn Store, switch: Switch) {
    let operator = Operator::new("operator").expect("a good id");
    let switch = SwitchCampaign {
        unsold_to: None,
        id: campaign_id(),
        switch,
        operator,
        reason: "test".into(),
        via: None,
    };
    store.switch_campaign(switch).await.expect("store").expect("allowed");
}

pub(super) fn pool_command(pool: u128, supply: u64, buckets: u32) -> Command {
    Command::OpenPool(OpenPool {
        id: PoolId(pool),
        campaign: campaign_id(),
        sku: Sku::new(&format!("SKU-{pool}")).expect("a good id"),
        location: Location::new("main").expect("a good id"),
        supply,
        buckets,
        path: Path::Batched,
        routing: Routing::OrderHash,
        signed: signed(),
    })
}

pub(super) async fn open_pool(store: &dyn Store, pool: u128, supply: u64, buckets: u32) {
    let outcome = one(store, LockSet::default(), pool_command(pool, supply, buckets)).await;
    assert!(matches!(outcome, Outcome::Pool { how: How::Created, .. }), "{outcome:?}");
}

pub(super) fn place(order: u128, account: &str, lines: &[(u128, u32)]) -> Place {
    Place {
        id: OrderId(order),
        key: OrderKey {
            campaign: campaign_id(),
            order_no: OrderNo::new(&format!("no-{order}")).expect("a good id"),
        },
        account: Account::new(account).expect("a good id"),
        lines: lines
            .iter()
            .map(|(pool, quantity)| PlaceLine {
                sku: Sku::new(&format!("SKU-{pool}")).expect("a good id"),
                location: Some(Location::new("main").expect("a good id")),
                pool: PoolId(*pool),
                made_of: None,
                quantity: *quantity,
            })
            .collect(),
        hold_seconds: None,
        amount_due: None,
        limit_keys: LimitKeys::new(),
        metadata: None,
        route: 0,
        record_refusals: true,
        assortment: None,
        intake: None,
    }
}

pub(super) fn placed(place: Place) -> Command {
    Command::Place(Arc::new(place))
}

pub(super) fn change(order: u128, action: OrderAction) -> Command {
    Command::Order(OrderCommand::new(OrderId(order), action, signed()))
}

pub(super) fn bucket(pool: u128, number: u32) -> BucketKey {
    BucketKey { pool: PoolId(pool), number }
}

pub(super) fn whole(pools: &[u128]) -> LockSet {
    LockSet { pools: pools.iter().map(|pool| PoolId(*pool)).collect(), ..LockSet::default() }
}

/// How often a batch may lose a race to a key that no lock keeps apart, among the few that the cases run at once.
const CONFLICTS_MAX: u32 = 16;

/// Commits a batch; one that lost a race is told so, and runs again, as a lane does.
pub(super) async fn commit(store: &dyn Store, locks: LockSet, commands: Vec<Command>) -> Vec<Outcome> {
    let batch = Batch { locks, commands: Arc::new(commands) };
    for _ in 0..CONFLICTS_MAX {
        match store.commit(batch.clone()).await {
            Err(error) if error.is_transient() => {}
            done => return done.expect("commit").outcomes,
        }
    }
    panic!("{CONFLICTS_MAX} conflicts over one batch")
}

pub(super) async fn one(store: &dyn Store, locks: LockSet, command: Command) -> Outcome {
    commit(store, locks, vec![command]).await.pop().expect("one outcome")
}

/// The order of an outcome, and how it came to be.
pub(super) fn order_of(outcome: &Outcome) -> (Arc<Order>, How) {
    match outcome {
        Outcome::Order { order, how, .. } => (Arc::clone(order), *how),
        other => panic!("not an order: {other:?}"),
    }
}

pub(super) async fn balances(store: &dyn Store, pool: u128) -> (u64, u64, u64) {
    let row = store.pool(PoolId(pool)).await.expect("read").expect("a pool");
    row.buckets.iter().fold((0, 0, 0), |(a, h, s), b| (a + b.available, h + b.held, s + b.sold))
}

pub(super) async fn assert_clean(store: &dyn Store) {
    let report = store.audit().await.expect("audit");
    assert!(report.is_clean(), "{:?}", report.breaches);
}
