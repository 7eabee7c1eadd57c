//! A sale on the model store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{How, OpenPool, OrderAction, Outcome, Signed};
use holdfast_core::id::*;
use holdfast_core::order::{Notice, Order, PaymentOutcome};
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::{Path, PoolSwitch, Routing};
use holdfast_core::time::Timestamp;
use holdfast_engine::{Config, Engine, Error, IdSource, PlaceRequest, RequestedLine};
use holdfast_store::model::ModelStore;
use holdfast_store::{ManualClock, PutCampaign, Store, SwitchCampaign, SwitchPool};

/// Ids that count up.
struct Counter(AtomicU64);

impl IdSource for Counter {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

pub(crate) struct Sale {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<ModelStore>,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) fn campaign() -> CampaignId {
    CampaignId::new("sale").unwrap()
}

pub(crate) fn signed() -> Signed {
    Signed::new("test", "")
}

impl Sale {
    pub(crate) async fn open(policy: Policy, config: Config) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp(1_700_000_000_000_000)));
        let store = Arc::new(ModelStore::new(clock.clone()));
        let engine = Engine::new(store.clone(), Arc::new(Counter(AtomicU64::new(1))), config);
        let put = PutCampaign {
            id: campaign(),
            name: "Sale".into(),
            starts_at: None,
            ends_at: None,
            policy,
            via: None,
        };
        engine.put_campaign(put).await.unwrap();
        let sale = Self { engine, store, clock };
        sale.switch(Switch::Open).await;
        sale
    }

    /// Another node on the same authority.
    pub(crate) fn another_node(&self) -> Self {
        let ids = Arc::new(Counter(AtomicU64::new(1_000_000)));
        let engine = Engine::new(self.store.clone(), ids, Config::default());
        Self { engine, store: self.store.clone(), clock: self.clock.clone() }
    }

    pub(crate) async fn switch(&self, switch: Switch) {
        let operator = Operator::new("op").unwrap();
        let switch = SwitchCampaign {
            unsold_to: None,
            id: campaign(),
            switch,
            operator,
            reason: String::new(),
            via: None,
        };
        self.engine.switch_campaign(switch).await.unwrap().unwrap();
    }

    pub(crate) async fn pool(&self, sku: &str, supply: u64, buckets: u32) -> PoolId {
        self.pool_by(Path::Batched, sku, supply, buckets).await
    }

    pub(crate) async fn queued_pool(&self, sku: &str, supply: u64, buckets: u32) -> PoolId {
        self.pool_by(Path::Queued, sku, supply, buckets).await
    }

    pub(crate) async fn freeze(&self, pool: PoolId, frozen: bool) {
        let operator = Operator::new("op").unwrap();
        let switch = if frozen { PoolSwitch::Freeze } else { PoolSwitch::Unfreeze };
        let set = SwitchPool { id: pool, switch, operator, reason: String::new(), via: None };
        self.engine.switch_pool(set).await.unwrap().unwrap();
    }

    async fn pool_by(&self, path: Path, sku: &str, supply: u64, buckets: u32) -> PoolId {
        let open = OpenPool {
            id: PoolId(0),
            campaign: campaign(),
            sku: Sku::new(sku).unwrap(),
            location: Location::new("main").unwrap(),
            supply,
            buckets,
            path,
            routing: Routing::OrderHash,
            signed: signed(),
        };
        match self.engine.open_pool(open).await.unwrap() {
            Outcome::Pool { pool, .. } => pool.id,
            other => panic!("{other:?}"),
        }
    }

    /// Makes the commit after `skip` more go wrong.
    pub(crate) fn fail_after(&self, skip: u64, fault: holdfast_store::model::Fault) {
        self.store.fail_commit(self.store.commits() + skip + 1, fault);
    }

    pub(crate) async fn place(&self, request: PlaceRequest) -> Result<Outcome, Error> {
        self.engine.place(request).await
    }

    pub(crate) async fn change(&self, order: OrderId, action: OrderAction) -> Outcome {
        self.engine.change(order, action, signed()).await.unwrap()
    }

    pub(crate) async fn balances(&self, pool: PoolId) -> (u64, u64, u64) {
        let row = self.store.pool(pool).await.unwrap().unwrap();
        row.buckets.iter().fold((0, 0, 0), |(a, h, s), b| (a + b.available, h + b.held, s + b.sold))
    }

    pub(crate) async fn assert_clean(&self) {
        let report = self.store.audit().await.unwrap();
        assert!(report.is_clean(), "{:?}", report.breaches);
    }
}

pub(crate) fn request(order_no: &str, account: &str, lines: &[(&str, u32)]) -> PlaceRequest {
    PlaceRequest {
        key: OrderKey { campaign: campaign(), order_no: OrderNo::new(order_no).unwrap() },
        account: Account::new(account).unwrap(),
        lines: lines
            .iter()
            .map(|(sku, quantity)| RequestedLine {
                sku: Sku::new(sku).unwrap(),
                location: Some(Location::new("main").unwrap()),
                quantity: *quantity,
            })
            .collect(),
        hold_seconds: None,
        amount_due: None,
        limit_keys: BTreeMap::new(),
        metadata: None,
    }
}

pub(crate) fn success(event: &str) -> OrderAction {
    OrderAction::Notice(Notice {
        provider: Provider::new("bank").unwrap(),
        event_id: EventId::new(event).unwrap(),
        payment_id: PaymentId::new(event).unwrap(),
        attempt_id: None,
        outcome: PaymentOutcome::Succeeded,
        paid_at: None,
        amount_minor: None,
        currency: None,
    })
}

#[track_caller]
pub(crate) fn order(outcome: &Outcome) -> (Arc<Order>, How) {
    match outcome {
        Outcome::Order { order, how, .. } => (order.clone(), *how),
        other => panic!("not an order: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn refusal(outcome: &Outcome) -> Refusal {
    match outcome {
        Outcome::Refused { refusal, .. } => refusal.clone(),
        other => panic!("not refused: {other:?}"),
    }
}

/// Lets every task that can run do so. The tests run on one thread, so that this is no hope but a fact:
/// each task runs until it waits for something that only the test can give.
pub(crate) async fn settle() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}
