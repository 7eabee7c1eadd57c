//! Bundles, location orders, and lines that are taken from several pools.

use std::sync::Arc;

use holdfast_core::assortment::{AssortmentChange, Component, MakeUp, Part, Source};
use holdfast_core::campaign::Policy;
use holdfast_core::command::{Command, How, Keep, OrderAction, Outcome, Place, PlaceLine};
use holdfast_core::id::{CampaignId, ImportId, Location, OrderId, PoolId, RefundId, Sku};
use holdfast_core::import::{Import, ImportMode, ImportRow, RowFault, RowRefusal};
use holdfast_core::order::{Refund, RefundLine};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, balances, bucket, campaign_id, change, one, open_campaign, open_pool, order_of, place,
    placed, pool_command, signed, whole,
};
use crate::acts::ActFilter;
use crate::assortment::PutAssortment;
use crate::contract::Store;
use crate::read::Page;

/// A part that takes so many units each from these pools, whose locations are `l1`, `l2` … by their numbers.
pub(super) fn part(per_unit: u32, pools: &[u128]) -> Part {
    let location = |pool| Location::new(&format!("l{pool}")).expect("a good id");
    let sources = pools.iter().map(|pool| Source { pool: PoolId(*pool), location: location(*pool) });
    let first = pools.first().copied().unwrap_or(0);
    Part { sku: Sku::new(&format!("SKU-{first}")).expect("a good id"), per_unit, sources: sources.collect() }
}

/// A line that is made up of these parts.
pub(super) fn made_up(quantity: u32, parts: &[Part], split: bool) -> PlaceLine {
    let made_of = MakeUp { parts: parts.to_vec(), split };
    let pool = made_of.pools().next().expect("a pool");
    let sku = Sku::new("SET").expect("a good id");
    PlaceLine { sku, location: None, pool, made_of: Some(Arc::new(made_of)), quantity }
}

fn with_lines(order: u128, lines: Vec<PlaceLine>) -> Place {
    Place { lines, ..place(order, "ann", &[]) }
}

fn locations(names: &[&str], split: bool) -> AssortmentChange {
    let order = names.iter().map(|name| Location::new(name).expect("a good id")).collect();
    AssortmentChange::Locations { order, split }
}

fn bundle(sku: &str, components: &[(&str, u32)]) -> AssortmentChange {
    let sku_of = |name: &str| Sku::new(name).expect("a good id");
    let component = |(name, quantity): &(&str, u32)| Component { sku: sku_of(name), quantity: *quantity };
    AssortmentChange::Bundle { sku: sku_of(sku), components: components.iter().map(component).collect() }
}

async fn set(store: &dyn Store, change: AssortmentChange) -> Result<(u64, How), Refusal> {
    let put = PutAssortment { campaign: campaign_id(), change, via: None };
    let done = store.put_assortment(put).await.expect("store");
    done.map(|(campaign, how)| (campaign.assortment.version, how))
}

/// What was set reads back, is told to the nodes, and is written down; the same again is none of it.
pub async fn an_assortment_is_set_told_and_written_down(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let before = store.catalog(None).await.expect("read").version;
    assert_eq!(set(&*store, locations(&["east", "main"], true)).await, Ok((1, How::Changed)));
    let set_of_cups = || bundle("set", &[("SKU-1", 2), ("pot", 1)]);
    assert_eq!(set(&*store, set_of_cups()).await, Ok((2, How::Created)));
    assert_eq!(set(&*store, set_of_cups()).await, Ok((2, How::Repeated)));
    assert_eq!(set(&*store, bundle("set", &[("SKU-1", 1)])).await, Ok((3, How::Changed)));
    let told = store.catalog(Some(before)).await.expect("read");
    let read = store.campaign(campaign_id()).await.expect("read").expect("a campaign").campaign;
    assert_eq!(told.campaigns, [Arc::clone(&read)]);
    assert_eq!((read.assortment.order().len(), read.assortment.split), (2, true));
    assert_eq!(read.assortment.bundles.values().flatten().count(), 1);
    let acts = store.acts(ActFilter::default(), Page { after: None, limit: 10 }).await.expect("read").0;
    let words: Vec<_> = acts.iter().map(|act| act.action.as_str()).take(3).collect();
    assert_eq!(words, ["put_bundle", "put_bundle", "put_locations"]);
    // A policy that is put later leaves it as it is.
    super::support::put(&*store, Policy { account_limit: Some(9), ..Policy::default() }).await;
    let after = store.campaign(campaign_id()).await.expect("read").expect("a campaign").campaign;
    assert_eq!(after.assortment, read.assortment);
    assert!(matches!(set(&*store, bundle("SKU-1", &[("x", 1)])).await, Err(Refusal::Conflict(_))));
    let nowhere = CampaignId::new("none").expect("a good id");
    let put = PutAssortment { campaign: nowhere, change: locations(&["a"], false), via: None };
    assert_eq!(store.put_assortment(put).await.expect("store"), Err(Refusal::UnknownCampaign));
    // A bundle has no stock of its own.
    let Command::OpenPool(mut open) = pool_command(9, 1, 1) else { unreachable!() };
    open.sku = Sku::new("set").expect("a good id");
    let refused = one(&*store, LockSet::default(), Command::OpenPool(open)).await;
    assert!(matches!(refused, Outcome::Refused { refusal: Refusal::Conflict(_), .. }), "{refused:?}");
    let refused = one(&*store, LockSet::default(), opening_file("set", 9)).await;
    let Outcome::Refused { refusal: Refusal::Rows(faults), .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(faults, &[RowFault { line: 2, why: RowRefusal::Bundle }]);
}

/// A file of one row that opens a pool of this SKU.
fn opening_file(sku: &str, pool: u128) -> Command {
    let (sku, location) = (Sku::new(sku).expect("a good id"), Location::main());
    let row = ImportRow { line: 2, sku, location, quantity: 1, counted: None, new_pool: PoolId(pool) };
    Command::Import(Arc::new(Import {
        id: ImportId::new(&format!("file-{pool}")).expect("a good id"),
        campaign: campaign_id(),
        mode: ImportMode::Open,
        digest: [0; 32],
        rows: vec![row],
        dry_run: false,
        signed: signed(),
    }))
}

/// Whoever makes a bundle and whoever opens a pool of its SKU at the same time: one of them is refused.
pub async fn no_sku_becomes_a_bundle_and_a_pool_at_once(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    for number in 1..=40_u128 {
        let sku = format!("SKU-{number}");
        let opening = async {
            let command =
                if number % 2 == 0 { opening_file(&sku, number) } else { pool_command(number, 1, 1) };
            !matches!(one(&*store, LockSet::default(), command).await, Outcome::Refused { .. })
        };
        let (made, opened) = tokio::join!(set(&*store, bundle(&sku, &[("part", 1)])), opening);
        assert!(made.is_ok() != opened, "{sku}: made {made:?}, opened {opened}");
    }
    assert_clean(&*store).await;
}

/// Lines over several pools read back whole, give back where they took, and the books add up.
pub async fn a_line_over_several_pools_lives_like_any_other(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy { account_limit: Some(100), ..Policy::default() }).await;
    open_pool(&*store, 1, 4, 2).await;
    open_pool(&*store, 2, 10, 1).await;
    open_pool(&*store, 3, 10, 1).await;
    let pools = whole(&[1, 2, 3]);
    let lines =
        || vec![made_up(3, &[part(2, &[1, 2]), part(1, &[3])], true), made_up(2, &[part(1, &[2, 1])], false)];
    let outcome = one(&*store, pools.clone(), placed(with_lines(1, lines()))).await;
    let (order, how) = order_of(&outcome);
    assert_eq!(how, How::Created);
    assert_eq!(store.order(OrderId(1)).await.expect("read").as_deref(), Some(&*order));
    let held = async |pool| balances(&*store, pool).await;
    assert_eq!((held(1).await, held(2).await, held(3).await), ((0, 4, 0), (6, 4, 0), (7, 3, 0)));
    let again = one(&*store, pools.clone(), placed(with_lines(1, lines()))).await;
    assert_eq!(order_of(&again).1, How::Repeated);
    one(&*store, pools.clone(), change(1, OrderAction::Reduce(vec![Keep { line: 1, keep: 2 }]))).await;
    assert_eq!((held(1).await, held(2).await, held(3).await), ((0, 4, 0), (8, 2, 0), (8, 2, 0)));
    one(&*store, pools.clone(), change(1, OrderAction::Confirm)).await;
    for (id, restock) in [("r1", false), ("r2", true)] {
        let refund = OrderAction::Refund(Refund {
            refund_id: RefundId::new(id).expect("a good id"),
            lines: vec![RefundLine { line: 1, quantity: 1 }],
            restock: Some(restock),
            reason: "test".into(),
        });
        one(&*store, pools.clone(), change(1, refund)).await;
    }
    assert_eq!((held(1).await, held(2).await, held(3).await), ((2, 0, 2), (8, 0, 2), (9, 0, 1)));
    let books = store.settlement(campaign_id()).await.expect("read").expect("a campaign");
    assert_eq!((books.units.refunded_restocked, books.units.refunded_kept), (3, 3));
    assert_clean(&*store).await;
}

/// What one lock does not show is asked for; a place by an assortment of before does nothing.
pub async fn a_choice_of_places_is_decided_by_the_authority(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 1, 1).await;
    open_pool(&*store, 2, 5, 1).await;
    let line = |quantity| vec![made_up(quantity, &[part(1, &[1, 2])], false)];
    let first = LockSet::bucket(bucket(1, 0));
    let miss = one(&*store, first.clone(), placed(with_lines(1, line(2)))).await;
    assert_eq!(miss, Outcome::Miss(vec![PoolId(2)]));
    let (order, _) = order_of(&one(&*store, whole(&[1, 2]), placed(with_lines(1, line(2)))).await);
    assert_eq!(order.home, Some(bucket(2, 0)));
    set(&*store, locations(&["l1", "l2"], false)).await.expect("set");
    let by = |version| Place { assortment: Some(version), ..with_lines(2, line(1)) };
    assert_eq!(one(&*store, first.clone(), placed(by(0))).await, Outcome::Outdated);
    assert_eq!(store.order(OrderId(2)).await.expect("read"), None);
    assert_eq!(order_of(&one(&*store, first, placed(by(1))).await).1, How::Created);
    assert_clean(&*store).await;
}
