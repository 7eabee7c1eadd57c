//! Two stores hold the same rows.

use std::sync::Arc;

use holdfast_core::case::Case;
use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::ledger::Entry;
use holdfast_core::order::Order;

use crate::authority::CaseFilter;
use crate::contract::Store;
use crate::read::{LedgerFilter, OrderFilter, Page, PoolFilter, PoolRow};

const PAGE: usize = 500;

/// Compares the orders, pools, ledger and settlement of a campaign.
pub(super) async fn assert_same_campaign(store: &dyn Store, model: &dyn Store, campaign: &CampaignId) {
    assert_same(&orders(store, campaign).await, &orders(model, campaign).await);
    let pools = pools(store, campaign).await;
    assert_same(&pools, &self::pools(model, campaign).await);
    for pool in pools {
        let pool = pool.pool.id;
        assert_same(&ledger(store, pool).await, &ledger(model, pool).await);
    }
    let settled = store.settlement(campaign.clone()).await.expect("read");
    assert_eq!(settled, model.settlement(campaign.clone()).await.expect("read"));
}

/// Names the first that differs, not all of them.
pub(super) fn assert_same<T: PartialEq + std::fmt::Debug>(actual: &[T], expected: &[T]) {
    for (actual, expected) in actual.iter().zip(expected) {
        assert_eq!(actual, expected);
    }
    assert_eq!(actual.len(), expected.len(), "as many rows");
}

async fn orders(store: &dyn Store, campaign: &CampaignId) -> Vec<Arc<Order>> {
    let filter = OrderFilter { campaign: Some(campaign.clone()), ..OrderFilter::default() };
    let mut all: Vec<Arc<Order>> = Vec::new();
    loop {
        let page = Page { after: all.last().map(|order| order.id), limit: PAGE };
        let (next, more) = store.orders(filter.clone(), page).await.expect("read");
        all.extend(next);
        if !more {
            return all;
        }
    }
}

async fn pools(store: &dyn Store, campaign: &CampaignId) -> Vec<PoolRow> {
    let filter = PoolFilter { campaign: Some(campaign.clone()), ..PoolFilter::default() };
    let (pools, more) = store.pools(filter, Page { after: None, limit: PAGE }).await.expect("read");
    assert!(!more);
    pools
}

async fn ledger(store: &dyn Store, pool: PoolId) -> Vec<Entry> {
    let filter = LedgerFilter { pool: Some(pool), ..LedgerFilter::default() };
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let page = Page { after: all.last().map(|entry| (entry.bucket, entry.seq)), limit: PAGE };
        let (next, more) = store.ledger(filter.clone(), page).await.expect("read");
        all.extend(next);
        if !more {
            return all;
        }
    }
}

/// Every case, in order of their ids.
pub(super) async fn cases(store: &dyn Store) -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    loop {
        let page = Page { after: all.last().map(|case| case.id), limit: PAGE };
        let (next, more) = store.cases(CaseFilter::default(), page).await.expect("read");
        all.extend(next);
        if !more {
            return all;
        }
    }
}
