//! Shorthands of the tests.

use std::sync::Arc;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{
    Command, How, OpenPool, OrderAction, OrderCommand, Outcome, Place, PlaceLine, Signed,
};
use holdfast_core::id::{Account, CampaignId, Location, Operator, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path};
use holdfast_postgres::{Address, Options, PostgresStore};
use holdfast_store::{Batch, Error, PutCampaign, Store, SwitchCampaign};

/// A node on the authority of this URL.
pub(crate) async fn node(url: &str) -> Arc<PostgresStore> {
    try_node(url).await.expect("open")
}

pub(crate) async fn try_node(url: &str) -> Result<Arc<PostgresStore>, Error> {
    let connections = if url.contains('?') { "&connections=6" } else { "?connections=6" };
    let address = Address::parse(&format!("{url}{connections}")).expect("a good URL");
    let options = Options { incarnation: 7, ..Options::default() };
    Ok(Arc::new(PostgresStore::open(&address, options).await?))
}

pub(crate) fn campaign() -> CampaignId {
    CampaignId::new("sale").unwrap()
}

pub(crate) fn signed() -> Signed {
    Signed::new("operator", "test")
}

pub(crate) async fn put(store: &dyn Store, policy: Policy) {
    let put = PutCampaign {
        id: campaign(),
        name: "Sale".into(),
        starts_at: None,
        ends_at: None,
        policy,
        via: None,
    };
    store.put_campaign(put).await.expect("put");
}

pub(crate) async fn switch(store: &dyn Store, switch: Switch) {
    let operator = Operator::new("operator").unwrap();
    let set = SwitchCampaign {
        unsold_to: None,
        id: campaign(),
        switch,
        operator,
        reason: "test".into(),
        via: None,
    };
    store.switch_campaign(set).await.expect("store").expect("allowed");
}

/// An open campaign with one pool.
pub(crate) async fn shop(store: &dyn Store, policy: Policy, supply: u64, buckets: u32) {
    put(store, policy).await;
    switch(store, Switch::Open).await;
    let outcome = commit(store, LockSet::default(), vec![pool(1, supply, buckets)]).await.unwrap();
    assert!(matches!(outcome[0], Outcome::Pool { how: How::Created, .. }), "{outcome:?}");
}

pub(crate) fn pool(number: u128, supply: u64, buckets: u32) -> Command {
    Command::OpenPool(OpenPool {
        id: PoolId(number),
        campaign: campaign(),
        sku: Sku::new(&format!("SKU-{number}")).unwrap(),
        location: Location::new("main").unwrap(),
        supply,
        buckets,
        path: Path::Batched,
        routing: holdfast_core::stock::Routing::OrderHash,
        signed: signed(),
    })
}

/// A place of one unit; `id` tells nodes apart that place the same number.
pub(crate) fn place(id: u128, number: u128, account: &str) -> Command {
    Command::Place(Arc::new(Place {
        id: OrderId(id),
        key: OrderKey { campaign: campaign(), order_no: OrderNo::new(&format!("no-{number}")).unwrap() },
        account: Account::new(account).unwrap(),
        lines: vec![PlaceLine {
            sku: Sku::new("SKU-1").unwrap(),
            location: Some(Location::new("main").unwrap()),
            pool: PoolId(1),
            made_of: None,
            quantity: 1,
        }],
        hold_seconds: None,
        amount_due: None,
        limit_keys: holdfast_core::limit::LimitKeys::new(),
        metadata: None,
        route: 0,
        record_refusals: true,
        assortment: None,
        intake: None,
    }))
}

pub(crate) fn change(order: u128, action: OrderAction) -> Command {
    Command::Order(OrderCommand::new(OrderId(order), action, signed()))
}

pub(crate) fn bucket(number: u32) -> LockSet {
    LockSet::bucket(BucketKey { pool: PoolId(1), number })
}

pub(crate) async fn commit(
    store: &dyn Store,
    locks: LockSet,
    commands: Vec<Command>,
) -> Result<Vec<Outcome>, Error> {
    store.commit(Batch { locks, commands: Arc::new(commands) }).await.map(|committed| committed.outcomes)
}

/// Commits as a lane does: again after a conflict, a bounded number of times.
pub(crate) async fn lane(store: &dyn Store, locks: LockSet, commands: Vec<Command>) -> Vec<Outcome> {
    for _ in 0..20 {
        match commit(store, locks.clone(), commands.clone()).await {
            Err(error) if error.is_transient() => {}
            other => return other.expect("commit"),
        }
    }
    panic!("too many conflicts");
}

pub(crate) fn is_held(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Order { .. })
}

pub(crate) async fn assert_clean(store: &dyn Store) {
    let report = store.audit().await.expect("audit");
    assert!(report.is_clean(), "{:?}", report.breaches);
}
