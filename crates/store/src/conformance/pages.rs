//! What lists show.

use holdfast_core::campaign::Policy;
use holdfast_core::command::OrderAction;
use holdfast_core::id::{Account, CampaignId, OrderId, PoolId, Sku};
use holdfast_core::order::State;
use holdfast_core::snapshot::LockSet;

use super::behaviour::{Subject, TestClock};
use super::support::{bucket, campaign_id, change, one, open_campaign, open_pool, place, placed};
use crate::read::{LedgerFilter, OrderFilter, Page, PoolFilter};

/// A page begins after the last key of the one before, whatever came in between.
pub async fn pages_are_stable_under_inserts(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 100, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    for order in [10, 20, 30, 40] {
        one(&*store, locks.clone(), placed(place(order, "ann", &[(1, 1)]))).await;
    }
    let page = async |after| {
        let page = Page { after, limit: 2 };
        let (orders, more) = store.orders(OrderFilter::default(), page).await.expect("read");
        (orders.iter().map(|o| o.id.0).collect::<Vec<_>>(), more)
    };
    assert_eq!(page(None).await, (vec![10, 20], true));
    one(&*store, locks.clone(), placed(place(15, "ann", &[(1, 1)]))).await;
    one(&*store, locks.clone(), placed(place(35, "ann", &[(1, 1)]))).await;
    assert_eq!(page(Some(OrderId(20))).await, (vec![30, 35], true));
    assert_eq!(page(Some(OrderId(35))).await, (vec![40], false));
    assert_eq!(page(Some(OrderId(40))).await, (vec![], false));
    let mut keys = Vec::new();
    let mut after = None;
    loop {
        let (page, more) = store.order_keys(Page { after, limit: 4 }).await.expect("read");
        after = page.last().cloned();
        keys.extend(page.into_iter().map(|key| key.order_no.to_string()));
        if !more {
            break;
        }
    }
    assert_eq!(keys, ["no-10", "no-15", "no-20", "no-30", "no-35", "no-40"]);
    let filter = LedgerFilter { pool: Some(PoolId(1)), ..LedgerFilter::default() };
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let (entries, more) = store.ledger(filter.clone(), Page { after, limit: 3 }).await.expect("read");
        after = entries.last().map(|entry| (entry.bucket, entry.seq));
        seen.extend(entries.iter().map(|entry| entry.seq));
        if !more {
            break;
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7]);
}

/// An order may have 1,000 lines: a page is cut by lines too, and goes on where it was cut.
pub async fn pages_of_long_orders_are_bounded(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 100_000, 1).await;
    for order in 1..=7 {
        let lines = vec![(1, 1); 1_000];
        one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(order, "ann", &lines))).await;
    }
    let page = async |after| {
        let page = Page { after, limit: 500 };
        let (orders, more) = store.orders(OrderFilter::default(), page).await.expect("read");
        (orders.iter().map(|o| o.id.0).collect::<Vec<_>>(), more)
    };
    assert_eq!(page(None).await, (vec![1, 2, 3, 4, 5], true));
    assert_eq!(page(Some(OrderId(5))).await, (vec![6, 7], false));
}

/// Each filter shows what it names and nothing else.
pub async fn lists_are_filtered(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 100, 1).await;
    open_pool(&*store, 2, 100, 1).await;
    for (order, account, pool) in [(1, "ann", 1), (2, "bob", 1), (3, "ann", 2)] {
        one(&*store, LockSet::bucket(bucket(pool, 0)), placed(place(order, account, &[(pool, 1)]))).await;
    }
    one(&*store, LockSet::bucket(bucket(1, 0)), change(1, OrderAction::Cancel)).await;
    let orders = async |filter: OrderFilter| {
        let (orders, _) = store.orders(filter, Page { after: None, limit: 10 }).await.expect("read");
        orders.iter().map(|o| o.id.0).collect::<Vec<_>>()
    };
    let all = OrderFilter::default;
    let ann = Account::new("ann").expect("a good id");
    assert_eq!(orders(OrderFilter { account: Some(ann), ..all() }).await, [1, 3]);
    assert_eq!(orders(OrderFilter { state: Some(State::Held), ..all() }).await, [2, 3]);
    assert_eq!(orders(OrderFilter { pool: Some(PoolId(1)), ..all() }).await, [1, 2]);
    assert_eq!(orders(OrderFilter { refund_due: Some(true), ..all() }).await, []);
    assert_eq!(orders(OrderFilter { refund_due: Some(false), ..all() }).await, [1, 2, 3]);
    let other = CampaignId::new("Sale").expect("a good id");
    assert_eq!(orders(OrderFilter { campaign: Some(other), ..all() }).await, [], "ids are exact");
    let pools = async |filter: PoolFilter| {
        let (pools, _) = store.pools(filter, Page { after: None, limit: 10 }).await.expect("read");
        pools.iter().map(|row| row.pool.id.0).collect::<Vec<_>>()
    };
    let sku = |sku: &str| Some(Sku::new(sku).expect("a good id"));
    assert_eq!(pools(PoolFilter { campaign: Some(campaign_id()), ..PoolFilter::default() }).await, [1, 2]);
    assert_eq!(pools(PoolFilter { sku: sku("SKU-2"), ..PoolFilter::default() }).await, [2]);
    assert_eq!(pools(PoolFilter { sku: sku("sku-2"), ..PoolFilter::default() }).await, []);
}
