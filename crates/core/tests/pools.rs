//! Pools, their buckets, and stock that moves between them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod support;

use std::sync::Arc;

use holdfast_core::campaign::Policy;
use holdfast_core::command::{ChangePool, Command, OrderAction, Outcome};
use holdfast_core::ledger::Action;
use holdfast_core::order::State;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{CacheFallback, Path, PoolSwitch, Routing};

use support::build::*;
use support::{Authority, answer};

/// A pool `A` of some buckets and a pool `B` of one.
fn shop(supply: u64, buckets: u32) -> Authority {
    let mut db = Authority::new(Policy::default());
    db.open_pool("A", supply, buckets);
    db.open_pool("B", 0, 1);
    db
}

fn available(db: &Authority, name: &str) -> Vec<u64> {
    db.buckets.values().filter(|b| b.key.pool == pool_id(name)).map(|b| b.available).collect()
}

fn say(db: &mut Authority, command: &Command) -> String {
    answer(&db.send(command))
}

/// Action and change of available of the entries after the first of every bucket, by (bucket, sequence).
fn moved(db: &Authority) -> Vec<(u32, Action, i64, &str)> {
    let entries = db.entries.values().flat_map(|ledger| &ledger[1..]);
    entries.map(|e| (e.bucket.number, e.action, e.delta.available, &*e.business_no)).collect()
}

fn change(db: &mut Authority, change: ChangePool) -> String {
    say(db, &Command::ChangePool(change))
}

fn switch(db: &mut Authority, name: &str, switch: PoolSwitch) {
    let pool = db.pools.get_mut(&pool_id(name)).unwrap();
    *pool = pool.clone().after(switch);
}

#[test]
fn a_pool_grows_and_every_new_bucket_begins_with_an_opening_of_0() {
    let mut db = shop(5, 1);
    assert_eq!(change(&mut db, ChangePool { buckets: Some(3), ..no_change("A") }), "pool changed");
    assert_eq!(available(&db, "A"), [5, 0, 0]);
    for number in [1, 2] {
        let [entry] = &db.entries[&bucket("A", number)][..] else { panic!("one entry") };
        assert_eq!((entry.seq, entry.action, entry.delta.available), (1, Action::Opening, 0));
    }
    assert_eq!(change(&mut db, ChangePool { buckets: Some(3), ..no_change("A") }), "pool as it was");
    assert_eq!(change(&mut db, ChangePool { buckets: Some(2), ..no_change("A") }), "refused invalid_value");
    assert_eq!(change(&mut db, no_change("Z")), "refused not_found");
}

#[test]
fn a_bucket_that_was_locked_alone_is_not_the_whole_pool_once_it_has_grown() {
    let mut db = shop(1, 1);
    let alone = LockSet::bucket(bucket("A", 0));
    assert_eq!(answer(&db.commit(&alone, &[placed(1, &[("A", 2)])])[0]), "refused sold_out recorded");
    change(&mut db, ChangePool { buckets: Some(2), ..no_change("A") });
    assert_eq!(answer(&db.commit(&alone, &[placed(2, &[("A", 2)])])[0]), "miss");
    // All of them one by one are the whole pool.
    let both = LockSet { buckets: [bucket("A", 0), bucket("A", 1)].into(), ..LockSet::default() };
    assert_eq!(answer(&db.commit(&both, &[placed(2, &[("A", 2)])])[0]), "refused sold_out recorded");
}

#[test]
fn weights_and_settings_change_and_what_is_not_named_stays() {
    let mut db = shop(4, 2);
    let wanted = ChangePool {
        path: Some(Path::Direct),
        routing: Some(Routing::NodeAffinity),
        weights: Some(vec![0, 7]),
        max_concurrency: Some(Some(0)),
        cache_fallback: Some(CacheFallback::Refuse),
        ..no_change("A")
    };
    assert_eq!(change(&mut db, wanted.clone()), "pool changed");
    let row = &db.pools[&pool_id("A")];
    assert_eq!((row.path, row.routing, row.buckets), (Path::Direct, Routing::NodeAffinity, 2));
    assert_eq!((row.max_concurrency, row.cache_fallback), (Some(0), CacheFallback::Refuse));
    assert_eq!([0, 1].map(|number| db.buckets[&bucket("A", number)].weight), [0, 7]);
    assert_eq!(change(&mut db, wanted), "pool as it was");
    let unlimited = ChangePool { max_concurrency: Some(None), ..no_change("A") };
    assert_eq!(change(&mut db, unlimited), "pool changed");
    assert_eq!(db.pools[&pool_id("A")].max_concurrency, None);
    assert_eq!(db.pools[&pool_id("A")].path, Path::Direct);
    // What a bucket weighs is kept when its balance changes.
    db.send(&placed(1, &[("A", 3)]));
    assert_eq!(db.buckets[&bucket("A", 1)].weight, 7);
    for weights in [vec![1], vec![1, 1, 1], vec![0, 0]] {
        let wrong = ChangePool { weights: Some(weights), ..no_change("A") };
        assert_eq!(change(&mut db, wrong), "refused invalid_value");
    }
    let together = ChangePool { buckets: Some(3), weights: Some(vec![1, 0, 5]), ..no_change("A") };
    assert_eq!(change(&mut db, together), "pool changed");
    assert_eq!([0, 1, 2].map(|number| db.buckets[&bucket("A", number)].weight), [1, 0, 5]);
}

#[test]
fn a_transfer_pairs_an_in_with_every_out() {
    let mut db = shop(7, 3);
    let command = transfer("t1", end("A", None), end("B", None), 5);
    assert_eq!(say(&mut db, &command), "transferred");
    assert_eq!((available(&db, "A"), available(&db, "B")), (vec![0, 0, 2], vec![5]));
    assert_eq!(
        moved(&db),
        [
            (0, Action::TransferOut, -3, "t1"),
            (1, Action::TransferOut, -2, "t1"),
            (0, Action::TransferIn, 3, "t1"),
            (0, Action::TransferIn, 2, "t1"),
        ]
    );
    assert_eq!(say(&mut db, &command), "transferred before");
    assert_eq!(say(&mut db, &transfer("t1", end("A", None), end("B", None), 4)), "refused key_mismatch");
    assert_eq!(say(&mut db, &transfer("t2", end("A", None), end("B", None), 3)), "refused stock_in_use");
    assert_eq!(say(&mut db, &transfer("t3", end("A", None), end("Z", None), 1)), "refused not_found");
    assert_eq!(available(&db, "A"), [0, 0, 2]);
}

#[test]
fn a_transfer_that_is_another_names_every_field_that_differs() {
    let mut db = shop(7, 3);
    say(&mut db, &transfer("t1", end("A", None), end("B", None), 1));
    let outcome = db.send(&transfer("t1", end("B", Some(0)), end("A", Some(1)), 2));
    let Outcome::Refused { refusal, .. } = outcome else { panic!("{outcome:?}") };
    let holdfast_core::refusal::Refusal::KeyMismatch(fields) = refusal else { panic!("{refusal:?}") };
    assert_eq!(fields, ["/from/pool_id", "/from/bucket", "/to/pool_id", "/to/bucket", "/quantity"]);
}

#[test]
fn stock_moves_between_buckets_of_a_pool() {
    let mut db = shop(6, 3);
    assert_eq!(say(&mut db, &transfer("t1", end("A", Some(0)), end("A", Some(2)), 2)), "transferred");
    assert_eq!(available(&db, "A"), [0, 2, 4]);
    assert_eq!(say(&mut db, &transfer("t2", end("A", Some(2)), end("A", None), 1)), "transferred");
    assert_eq!(available(&db, "A"), [1, 2, 3], "to the emptiest of the others");
    assert_eq!(say(&mut db, &transfer("t3", end("A", None), end("A", Some(0)), 4)), "transferred");
    assert_eq!(available(&db, "A"), [5, 1, 0], "from the fullest of the others first");
    assert_eq!(say(&mut db, &transfer("t4", end("A", None), end("A", Some(0)), 2)), "refused stock_in_use");
    for (from, to) in [(Some(1), Some(1)), (None, None), (Some(3), Some(0)), (Some(0), Some(3))] {
        let command = transfer("t5", end("A", from), end("A", to), 1);
        assert_eq!(say(&mut db, &command), "refused invalid_value", "{from:?} {to:?}");
    }
    assert_eq!(say(&mut db, &transfer("t5", end("B", None), end("B", Some(0)), 1)), "refused invalid_value");
}

#[test]
fn a_transfer_locks_only_the_buckets_that_it_names() {
    let mut db = shop(6, 3);
    let narrow = LockSet { buckets: [bucket("A", 0), bucket("A", 2)].into(), ..LockSet::default() };
    let named = transfer("t1", end("A", Some(0)), end("A", Some(2)), 1);
    assert_eq!(answer(&db.commit(&narrow, &[named])[0]), "transferred");
    let by_rule = transfer("t2", end("A", None), end("A", Some(2)), 1);
    assert_eq!(db.commit(&narrow, &[by_rule])[0], Outcome::Elsewhere(vec![pool_id("A")]));
    let outside = transfer("t3", end("A", Some(1)), end("A", Some(2)), 1);
    assert_eq!(db.commit(&narrow, &[outside])[0], Outcome::Elsewhere(vec![pool_id("A")]));
    assert_eq!(db.commit(&narrow, &[sweep(1, "A", None)])[0], Outcome::Elsewhere(vec![pool_id("A")]));
}

#[test]
fn held_and_sold_units_do_not_move() {
    let mut db = shop(3, 1);
    db.send(&placed(1, &[("A", 2)]));
    assert_eq!(say(&mut db, &transfer("t1", end("A", None), end("B", None), 2)), "refused stock_in_use");
    assert_eq!(say(&mut db, &transfer("t2", end("A", None), end("B", None), 1)), "transferred");
    // What comes back comes back to where it was.
    db.send(&on_order(1, OrderAction::Cancel));
    assert_eq!((available(&db, "A"), available(&db, "B")), (vec![2], vec![1]));
}

#[test]
fn a_frozen_pool_gives_nothing_away_and_takes_what_comes() {
    let mut db = shop(4, 2);
    say(&mut db, &transfer("t1", end("A", None), end("B", None), 1));
    switch(&mut db, "A", PoolSwitch::Freeze);
    assert_eq!(say(&mut db, &transfer("t2", end("A", None), end("B", None), 1)), "refused frozen");
    assert_eq!(say(&mut db, &transfer("t2", end("A", Some(0)), end("A", Some(1)), 1)), "refused frozen");
    assert_eq!(say(&mut db, &sweep(1, "A", None)), "refused frozen");
    assert_eq!(say(&mut db, &transfer("t2", end("B", None), end("A", None), 1)), "transferred");
    switch(&mut db, "A", PoolSwitch::Unfreeze);
    db.campaign.switches.frozen = true;
    assert_eq!(say(&mut db, &transfer("t3", end("A", None), end("B", None), 1)), "refused frozen");
}

#[test]
fn a_sweep_gathers_fragments_so_that_a_line_of_many_fits_one_bucket() {
    let mut db = shop(6, 3);
    assert_eq!(say(&mut db, &sweep(1, "A", None)), "pool changed");
    assert_eq!(available(&db, "A"), [6, 0, 0]);
    assert_eq!(say(&mut db, &sweep(2, "A", None)), "pool as it was");
    let one = LockSet::bucket(bucket("A", 0));
    assert_eq!(answer(&db.commit(&one, &[placed(1, &[("A", 6)])])[0]), "created");
    db.send(&on_order(1, OrderAction::Cancel));
    assert_eq!(say(&mut db, &sweep(3, "A", Some(2))), "pool changed");
    assert_eq!(available(&db, "A"), [0, 0, 6]);
    assert_eq!(say(&mut db, &sweep(4, "A", Some(3))), "refused invalid_value");
    assert_eq!(say(&mut db, &sweep(4, "Z", None)), "refused not_found");
    // Where routing does not send orders nothing is gathered.
    change(&mut db, ChangePool { weights: Some(vec![0, 1, 0]), ..no_change("A") });
    assert_eq!(say(&mut db, &sweep(5, "A", None)), "pool changed");
    assert_eq!(available(&db, "A"), [0, 6, 0]);
}

#[test]
fn a_retired_pool_sells_nothing_and_the_rest_goes_on() {
    let mut db = shop(5, 1);
    db.send(&placed(1, &[("A", 1)]));
    db.send(&placed(2, &[("A", 1)]));
    let mut queued = place(3, &[("A", 1)]);
    queued.intake = Some(bucket("A", 0));
    db.send(&Command::Place(Arc::new(queued)));
    switch(&mut db, "A", PoolSwitch::Retire);
    assert_eq!(say(&mut db, &placed(4, &[("A", 1)])), "refused unknown_sku");
    assert_eq!(say(&mut db, &placed(1, &[("A", 1)])), "repeated");
    assert_eq!(say(&mut db, &paid(1, "e1", "p1")), "changed applied");
    assert_eq!(say(&mut db, &on_order(2, OrderAction::Cancel)), "changed");
    // A late payment takes nothing again, also where a freeze would ask a person.
    switch(&mut db, "A", PoolSwitch::Freeze);
    assert_eq!(say(&mut db, &paid(2, "e2", "p2")), "changed refund_due");
    switch(&mut db, "A", PoolSwitch::Unfreeze);
    // What was let in before goes on to its end.
    assert_eq!(say(&mut db, &on_order(3, OrderAction::Land)), "changed");
    assert_eq!(db.order(order_id(3)).state, State::Held);
    // Its stock can be taken where it sells.
    assert_eq!(say(&mut db, &transfer("t1", end("A", None), end("B", None), 3)), "transferred");
    assert_eq!(say(&mut db, &placed(5, &[("B", 3)])), "created");
}
