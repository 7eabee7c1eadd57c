//! The end of a campaign, where its unsold stock goes; and making a node ready before its beginning.

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{OpenPool, OrderAction, Outcome};
use holdfast_core::id::{CampaignId, Location, Operator, PoolId, Sku};
use holdfast_core::stock::{Path, Routing};
use holdfast_engine::{Config, UnsoldPasses};
use holdfast_store::model::Fault;
use holdfast_store::{Error as StoreError, PutCampaign, Store, SwitchCampaign};

use crate::support::{Sale, campaign, order, request, signed};

fn named(name: &str) -> CampaignId {
    CampaignId::new(name).unwrap()
}

impl Sale {
    async fn another_campaign(&self, name: &str) {
        let id = named(name);
        let put = PutCampaign {
            id,
            name: name.into(),
            starts_at: None,
            ends_at: None,
            policy: Policy::default(),
            via: None,
        };
        self.engine.put_campaign(put).await.unwrap();
    }

    async fn pool_of(&self, campaign: &str, sku: &str, supply: u64) -> PoolId {
        let open = OpenPool {
            id: PoolId(0),
            campaign: named(campaign),
            sku: Sku::new(sku).unwrap(),
            location: Location::main(),
            supply,
            buckets: 1,
            path: Path::Batched,
            routing: Routing::OrderHash,
            signed: signed(),
        };
        match self.engine.open_pool(open).await.unwrap() {
            Outcome::Pool { pool, .. } => pool.id,
            other => panic!("{other:?}"),
        }
    }

    fn close(&self, campaign: &str, to: PoolId) -> SwitchCampaign {
        SwitchCampaign {
            id: named(campaign),
            switch: Switch::Close,
            unsold_to: Some(to),
            operator: Operator::new("op").unwrap(),
            reason: "over".into(),
            via: None,
        }
    }
}

#[tokio::test]
async fn what_comes_back_after_the_close_is_found_by_the_next_pass() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let from = sale.pool("A", 10, 3).await;
    sale.another_campaign("shop").await;
    let to = sale.pool_of("shop", "REST", 0).await;
    let (held, _) = order(&sale.place(request("o1", "ann", &[("A", 4)])).await.unwrap());
    sale.engine.switch_campaign(sale.close("sale", to)).await.unwrap().unwrap();
    assert_eq!((sale.balances(from).await, sale.balances(to).await), ((0, 4, 0), (6, 0, 0)));
    let mut passes = UnsoldPasses::default();
    let before = sale.store.commits();
    sale.engine.unsold_pass(&mut passes).await.unwrap();
    assert_eq!(sale.store.commits(), before, "a pass that finds nothing writes nothing");
    sale.change(held.id, OrderAction::Cancel).await;
    assert_eq!(sale.balances(from).await, (4, 0, 0));
    sale.engine.unsold_pass(&mut passes).await.unwrap();
    assert_eq!((sale.balances(from).await, sale.balances(to).await), ((0, 0, 0), (10, 0, 0)));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_pass_goes_on_where_the_one_before_ended_and_steps_over_what_fails() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    for name in ["a", "b", "shop"] {
        sale.another_campaign(name).await;
    }
    let to = sale.pool_of("shop", "REST", 0).await;
    for number in 0..250 {
        sale.pool_of("a", &format!("SKU-{number}"), 1).await;
    }
    let other = sale.pool_of("b", "B", 7).await;
    // As if the node that closed them had died before it moved anything.
    for name in ["a", "b"] {
        sale.store.switch_campaign(sale.close(name, to)).await.unwrap().unwrap();
    }
    let mut passes = UnsoldPasses::default();
    sale.fail_after(0, Fault::Before(StoreError::StorageFull));
    sale.engine.unsold_pass(&mut passes).await.unwrap_err();
    assert_eq!(sale.balances(to).await, (0, 0, 0));
    sale.engine.unsold_pass(&mut passes).await.unwrap();
    assert_eq!((sale.balances(other).await, sale.balances(to).await), ((0, 0, 0), (7, 0, 0)));
    // Two pages of pools, each of it in a transaction of its own.
    let before = sale.store.commits();
    sale.engine.unsold_pass(&mut passes).await.unwrap();
    assert_eq!((sale.balances(to).await, sale.store.commits() - before), ((257, 0, 0), 2));
    sale.assert_clean().await;
}

#[tokio::test]
async fn a_node_makes_ready_when_it_is_asked_or_another_was() {
    let sale = Sale::open(Policy::default(), Config::default()).await;
    let pool = sale.pool("A", 10, 3).await;
    sale.pool("B", 10, 1).await;
    let other = sale.another_node();
    other.engine.refresh_catalog().await.unwrap();
    sale.switch(Switch::Warm).await;
    let asked = sale.store.campaign(campaign()).await.unwrap().unwrap().campaign;
    let warmth = sale.engine.warm(&asked).await.unwrap();
    assert_eq!((warmth.is_ready, warmth.pools, warmth.buckets, warmth.offers), (true, 2, 4, 0));
    assert_eq!(sale.engine.warm(&asked).await.unwrap(), warmth, "once for each time that it is asked");
    // The other node was not asked; whoever asks it now waits for what it does by itself, or finds it done.
    other.engine.refresh_catalog().await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(other.engine.warm(&asked).await.unwrap().buckets, 4);
    assert_eq!(other.engine.availability(pool).await.unwrap().unwrap().source, "node");
}
