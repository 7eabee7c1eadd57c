//! Bundles, and lines that may be taken from several places: what they take, and where it goes back to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod support;

use holdfast_core::assortment::{AssortmentChange, Component};
use holdfast_core::campaign::Policy;
use holdfast_core::command::{Command, OrderAction, Outcome, PlaceLine};
use holdfast_core::id::{Location, PoolId};
use holdfast_core::order::{Shortage, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use support::build::*;
use support::{Authority, answer};

const PLACES: [(&str, &str); 2] = [("E", "east"), ("W", "west")];

/// A SKU in the east and in the west.
fn east_and_west(east: u64, west: u64) -> Authority {
    let mut db = Authority::new(Policy::default());
    db.open_pool_at("E", "cup", "east", east, 1);
    db.open_pool_at("W", "cup", "west", west, 1);
    db
}

fn anywhere(quantity: u32, split: bool) -> PlaceLine {
    made_up("cup", quantity, &[part("cup", 1, &PLACES)], split)
}

fn shelf(db: &Authority, pools: &[&str]) -> Vec<u64> {
    pools.iter().map(|pool| db.totals(pool_id(pool)).0).collect()
}

/// What the lines of an order stand for, by line: pools and units.
fn taken(db: &Authority, number: u32) -> Vec<Vec<(PoolId, u64)>> {
    let order = db.order(order_id(number));
    let of_line = |line: &holdfast_core::order::Line| {
        line.allocations.iter().map(|a| (a.bucket.pool, a.standing())).collect()
    };
    order.lines.iter().map(of_line).collect()
}

fn sold_out(outcome: &Outcome) -> (u32, u64, u64) {
    let Outcome::Refused { refusal: Refusal::SoldOut(short), .. } = outcome else {
        panic!("not sold out: {outcome:?}")
    };
    let Shortage { line, requested, available } = *short;
    (line, requested, available)
}

#[test]
fn a_line_that_may_be_split_takes_in_the_order_of_its_places() {
    let mut db = east_and_west(3, 10);
    assert_eq!(answer(&db.send(&placed_lines(1, vec![anywhere(5, true)]))), "created");
    assert_eq!(taken(&db, 1), [[(pool_id("E"), 3), (pool_id("W"), 2)]]);
    assert_eq!(shelf(&db, &["E", "W"]), [0, 8]);
    // It comes back to where it was taken: the highest first, then the rest.
    db.send(&on_order(1, reduce(&[(1, 2)])));
    assert_eq!(shelf(&db, &["E", "W"]), [1, 10]);
    db.send(&on_order(1, OrderAction::Cancel));
    assert_eq!(shelf(&db, &["E", "W"]), [3, 10]);
}

#[test]
fn a_line_that_may_not_be_split_comes_from_the_first_place_that_has_it_all() {
    let mut db = east_and_west(3, 10);
    db.send(&placed_lines(1, vec![anywhere(5, false), anywhere(3, false)]));
    assert_eq!(taken(&db, 1), [[(pool_id("W"), 5)], [(pool_id("E"), 3)]]);
    // Together there would be enough.
    db.send(&placed_lines(2, vec![anywhere(5, false)]));
    db.send(&adjust("in", "E", 4, None));
    assert_eq!(shelf(&db, &["E", "W"]), [4, 0]);
    let outcome = db.send(&placed_lines(3, vec![anywhere(5, false)]));
    assert_eq!(sold_out(&outcome), (1, 5, 4));
}

#[test]
fn what_is_short_is_told_in_units_of_the_line_and_over_all_lines_of_it() {
    let mut db = east_and_west(3, 4);
    let outcome = db.send(&placed_lines(1, vec![anywhere(5, true), anywhere(4, true)]));
    assert_eq!(sold_out(&outcome), (2, 9, 7));
    let set = |quantity| made_up("set", quantity, &[part("cup", 2, &PLACES[..1])], false);
    assert_eq!(sold_out(&db.send(&placed_lines(2, vec![set(2)]))), (1, 2, 1));
    let cup = PlaceLine {
        location: Location::new("east").ok(),
        pool: pool_id("E"),
        made_of: None,
        ..anywhere(2, false)
    };
    assert_eq!(sold_out(&db.send(&placed_lines(3, vec![cup.clone(), set(1)]))), (2, 1, 0));
    assert_eq!(sold_out(&db.send(&placed_lines(4, vec![set(1), cup]))), (2, 2, 1));
}

#[test]
fn a_line_with_one_place_is_served_before_those_that_have_a_choice() {
    let mut db = east_and_west(2, 2);
    let east = PlaceLine {
        location: Location::new("east").ok(),
        pool: pool_id("E"),
        made_of: None,
        ..anywhere(2, false)
    };
    assert_eq!(answer(&db.send(&placed_lines(1, vec![anywhere(2, false), east]))), "created");
    assert_eq!(taken(&db, 1), [[(pool_id("W"), 2)], [(pool_id("E"), 2)]]);
}

#[test]
fn what_is_not_locked_is_asked_for_all_at_once() {
    let mut db = east_and_west(1, 5);
    db.open_pool_at("N", "cup", "north", 5, 1);
    let places = [("E", "east"), ("W", "west"), ("N", "north")];
    let line = |quantity, split| made_up("cup", quantity, &[part("cup", 1, &places)], split);
    let east = LockSet::bucket(bucket("E", 0));
    for split in [true, false] {
        let outcomes = db.commit(&east, &[placed_lines(1, vec![line(2, split)])]);
        assert_eq!(outcomes, [Outcome::Miss(vec![pool_id("W"), pool_id("N")])]);
    }
    // The first place has enough: nobody asks for the others.
    assert_eq!(answer(&db.commit(&east, &[placed_lines(2, vec![line(1, true)])])[0]), "created");
}

#[test]
fn frozen_places_are_passed_over_and_never_called_sold_out() {
    let mut db = east_and_west(5, 5);
    db.pools.get_mut(&pool_id("E")).unwrap().frozen = true;
    assert_eq!(answer(&db.send(&placed_lines(1, vec![anywhere(5, false)]))), "created");
    assert_eq!(taken(&db, 1), [[(pool_id("W"), 5)]]);
    for split in [true, false] {
        assert_eq!(answer(&db.send(&placed_lines(2, vec![anywhere(1, split)]))), "refused frozen");
    }
    db.pools.get_mut(&pool_id("E")).unwrap().retired = true;
    assert_eq!(sold_out(&db.send(&placed_lines(3, vec![anywhere(1, true)]))), (1, 1, 0));
    db.pools.get_mut(&pool_id("W")).unwrap().frozen = true;
    assert_eq!(answer(&db.send(&placed_lines(4, vec![anywhere(1, true)]))), "refused frozen");
    db.pools.get_mut(&pool_id("W")).unwrap().retired = true;
    assert_eq!(answer(&db.send(&placed_lines(4, vec![anywhere(1, true)]))), "refused unknown_sku");
}

fn cups_and_pots(policy: Policy, cups: u64, pots: u64) -> Authority {
    let mut db = Authority::new(policy);
    db.open_pool("C", cups, 2);
    db.open_pool("P", pots, 1);
    db
}

/// Two cups and a pot.
fn set(quantity: u32) -> PlaceLine {
    made_up("set", quantity, &[part("C", 2, &[("C", "main")]), part("P", 1, &[("P", "main")])], false)
}

#[test]
fn a_bundle_takes_all_of_its_components_and_gives_them_back_in_proportion() {
    let mut db = cups_and_pots(Policy::default(), 10, 10);
    db.send(&placed_lines(1, vec![set(3)]));
    assert_eq!(shelf(&db, &["C", "P"]), [4, 7]);
    db.send(&on_order(1, reduce(&[(1, 2)])));
    assert_eq!(shelf(&db, &["C", "P"]), [6, 8]);
    db.send(&paid(1, "e1", "p1"));
    db.send(&on_order(1, refund("r1", &[(1, 1)], Some(true))));
    assert_eq!(shelf(&db, &["C", "P"]), [8, 9]);
    assert_eq!((db.totals(pool_id("C")), db.totals(pool_id("P"))), ((8, 0, 2), (9, 0, 1)));
    let outcome = db.send(&on_order(1, refund("r2", &[(1, 2)], Some(true))));
    assert_eq!(answer(&outcome), "refused refund_exceeds_sold");
    db.send(&on_order(1, refund("r3", &[(1, 1)], Some(true))));
    assert_eq!((db.order(order_id(1)).state, shelf(&db, &["C", "P"])), (State::Refunded, vec![10, 10]));
}

#[test]
fn a_bundle_and_its_component_in_one_order_count_together() {
    let mut db = cups_and_pots(Policy::default(), 6, 2);
    let cup = |quantity| place(9, &[("C", quantity)]).lines;
    db.send(&placed_lines(1, [vec![set(1)], cup(1)].concat()));
    assert_eq!(shelf(&db, &["C", "P"]), [3, 1]);
    let outcome = db.send(&placed_lines(2, [vec![set(1)], cup(2)].concat()));
    assert_eq!(sold_out(&outcome), (2, 2, 1));
    assert_eq!(shelf(&db, &["C", "P"]), [3, 1], "all or nothing");
}

#[test]
fn a_bundle_counts_as_its_units_against_limits() {
    let policy = Policy { account_limit: Some(4), ..Policy::default() };
    let mut db = cups_and_pots(policy, 10, 10);
    assert_eq!(answer(&db.send(&placed_lines(1, vec![set(2)]))), "refused account_limit recorded");
    db.send(&placed_lines(2, vec![set(1)]));
    assert_eq!(db.usage.values().map(|usage| usage.units).collect::<Vec<_>>(), [3]);
    assert_eq!(answer(&db.send(&placed_lines(3, vec![set(1)]))), "refused account_limit recorded");
    db.send(&on_order(2, OrderAction::Cancel));
    assert_eq!(answer(&db.send(&placed_lines(4, vec![set(1)]))), "created");
}

#[test]
fn a_bundle_that_is_not_split_comes_from_one_location() {
    let mut db = east_and_west(9, 9);
    db.open_pool_at("e", "pot", "east", 1, 1);
    db.open_pool_at("w", "pot", "west", 5, 1);
    let parts = [part("cup", 2, &PLACES), part("pot", 1, &[("e", "east"), ("w", "west")])];
    let set = |quantity, split| made_up("set", quantity, &parts, split);
    db.send(&placed_lines(1, vec![set(2, false)]));
    assert_eq!(taken(&db, 1), [[(pool_id("W"), 4), (pool_id("w"), 2)]]);
    db.send(&placed_lines(2, vec![set(2, true)]));
    assert_eq!(taken(&db, 2), [[(pool_id("E"), 4), (pool_id("e"), 1), (pool_id("w"), 1)]]);
    let outcome = db.send(&placed_lines(3, vec![set(3, false)]));
    assert_eq!(sold_out(&outcome), (1, 3, 2));
}

#[test]
fn a_late_payment_takes_again_from_the_places_of_then() {
    let mut db = east_and_west(2, 5);
    db.send(&placed_lines(1, vec![anywhere(2, false)]));
    assert_eq!(taken(&db, 1), [[(pool_id("E"), 2)]]);
    db.send(&on_order(1, OrderAction::Cancel));
    db.send(&placed_lines(2, vec![anywhere(2, false)]));
    assert_eq!(answer(&db.send(&paid(1, "e1", "p1"))), "changed retaken");
    assert_eq!(taken(&db, 1), [[(pool_id("W"), 2)]]);
    assert_eq!(db.order(order_id(1)).home, Some(bucket("E", 0)), "the home stays");
}

#[test]
fn a_place_made_up_by_another_assortment_does_nothing() {
    let mut db = cups_and_pots(Policy::default(), 10, 10);
    let components = vec![Component { sku: sku("C"), quantity: 1 }];
    let change = AssortmentChange::Bundle { sku: sku("set"), components };
    db.campaign.assortment = db.campaign.assortment.after(&change, false).unwrap();
    let by = |version| {
        let Command::Place(place) = placed_lines(1, vec![set(1)]) else { unreachable!() };
        let mut place = place.as_ref().clone();
        place.assortment = Some(version);
        Command::Place(place.into())
    };
    let entries = db.ledger_len();
    assert_eq!(db.send(&by(0)), Outcome::Outdated);
    assert_eq!((db.orders.len(), db.ledger_len()), (0, entries));
    assert_eq!(answer(&db.send(&by(1))), "created");
    // The order keeps what it was made of, and its key is known whatever the assortment has become.
    assert_eq!(answer(&db.send(&by(0))), "repeated");
    let open = |name: &str| db.campaign.assortment.is_bundle(&sku(name));
    assert!(open("set") && !open("C"));
}

#[test]
fn no_location_is_the_same_as_the_only_one() {
    let mut db = Authority::new(Policy::default());
    db.open_pool("A", 10, 1);
    let line = |location: Option<&str>| PlaceLine {
        location: location.map(|name| Location::new(name).unwrap()),
        ..place(1, &[("A", 1)]).lines.remove(0)
    };
    let again =
        |db: &mut Authority, number, location| answer(&db.send(&placed_lines(number, vec![line(location)])));
    assert_eq!(again(&mut db, 1, None), "created");
    assert_eq!(again(&mut db, 2, Some("main")), "created");
    for number in [1, 2] {
        assert_eq!(again(&mut db, number, None), "repeated");
        assert_eq!(again(&mut db, number, Some("main")), "repeated");
        assert_eq!(again(&mut db, number, Some("east")), "refused order_mismatch");
    }
    // What absent means now is another thing than main; what was sent stays what it was.
    let order = ["east", "main"].map(|name| Location::new(name).unwrap()).to_vec();
    let change = AssortmentChange::Locations { order, split: false };
    db.campaign.assortment = db.campaign.assortment.after(&change, false).unwrap();
    assert_eq!(again(&mut db, 1, None), "repeated");
    assert_eq!(again(&mut db, 1, Some("main")), "repeated");
    assert_eq!(again(&mut db, 2, None), "refused order_mismatch");
}

#[test]
fn who_waited_is_served_by_a_pool_that_was_retired_meanwhile_and_never_by_a_frozen_one() {
    let mut db = east_and_west(0, 5);
    for (number, split) in [(1, true), (2, false)] {
        let Command::Place(place) = placed_lines(number, vec![anywhere(2, split)]) else { unreachable!() };
        let mut place = place.as_ref().clone();
        place.intake = Some(bucket("E", 0));
        assert_eq!(answer(&db.send(&Command::Place(place.into()))), "created");
    }
    let west = db.pools.get_mut(&pool_id("W")).unwrap();
    (west.retired, west.frozen) = (true, true);
    for number in [1, 2] {
        assert_eq!(answer(&db.send(&on_order(number, OrderAction::Land))), "repeated");
        assert_eq!(db.order(order_id(number)).state, State::Queued, "it waits for the end of the freeze");
    }
    db.pools.get_mut(&pool_id("W")).unwrap().frozen = false;
    for number in [1, 2] {
        assert_eq!(answer(&db.send(&on_order(number, OrderAction::Land))), "changed");
        assert_eq!(taken(&db, number), [[(pool_id("W"), 2)]]);
    }
    assert_eq!(sold_out(&db.send(&placed_lines(3, vec![anywhere(1, true)]))), (1, 1, 0));
}
