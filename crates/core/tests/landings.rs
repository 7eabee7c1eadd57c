//! The audit accepts a good history of landings, and names what a bad one breaks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod support;

use std::sync::Arc;

use holdfast_core::cache::{Accepted, EntryId, Epoch, Landing, Turn, TurnEpoch};
use holdfast_core::campaign::Policy;
use holdfast_core::command::Command;
use holdfast_core::invariant::Invariant;
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

use support::Authority;
use support::build::*;

fn home() -> BucketKey {
    bucket("A", 0)
}

fn turn(epoch: u64, turn: Turn) -> Command {
    Command::TurnEpoch(TurnEpoch { bucket: home(), epoch: Epoch(epoch), turn, signed: signed() })
}

fn open() -> Turn {
    Turn::Open { identity: "server".into() }
}

fn landed(order: u32, epoch: u64, number: u64) -> Command {
    let entry = EntryId { millis: 1, number };
    let accepted = Accepted { bucket: home(), epoch: Epoch(epoch), entry, number, units: 2 };
    let due_at = Timestamp(i64::MAX);
    Command::Land(Arc::new(Landing { place: place(order, &[("A", 2)]), accepted, due_at }))
}

/// Order 1 is held and came twice, 2 failed for want of stock; then a second epoch, in which 3 is held.
fn good() -> Authority {
    let mut db = Authority::new(Policy::default());
    db.open_pool("A", 3, 1);
    for command in [turn(1, open()), landed(1, 1, 1), landed(1, 1, 2), landed(2, 1, 3), turn(1, Turn::Close)]
    {
        db.send(&command);
    }
    db.send(&adjust("j1", "A", 2, None));
    for command in [turn(2, open()), landed(3, 2, 1)] {
        db.send(&command);
    }
    db
}

fn entry_of<'d>(db: &'d mut Authority, source: &str) -> &'d mut Entry {
    db.entries.get_mut(&home()).unwrap().iter_mut().find(|entry| &*entry.source == source).unwrap()
}

/// The audit finds that landings do not settle once, and nothing else.
fn only_broken(change: impl FnOnce(&mut Authority)) {
    let mut db = good();
    change(&mut db);
    let report = db.audit();
    let broken: Vec<_> = report.counts.keys().collect();
    assert_eq!(broken, [&Invariant::LandingsSettleOnce], "{:#?}", report.breaches);
}

#[test]
fn every_landing_is_one_entry_that_settles() {
    let db = good();
    assert!(db.audit().is_clean());
    let settled: Vec<_> = db.entries[&home()].iter().filter(|entry| entry.settled > 0).collect();
    let told: Vec<_> = settled.iter().map(|e| (&*e.source, e.settled, e.delta.available)).collect();
    assert_eq!(
        told,
        [("cache:1/1-1", 2, -2), ("cache:1/1-2", 2, 0), ("cache:1/1-3", 2, 0), ("cache:2/1-1", 2, -2)]
    );
    assert!(settled.iter().all(|entry| entry.action == Action::Land));
    assert_eq!(db.caches[&home()].base_available, 3);
}

#[test]
fn what_settles_wrongly_is_found() {
    // An entry that settles and is no landing, or of no cache.
    only_broken(|db| entry_of(db, "adjustment").settled = 1);
    only_broken(|db| entry_of(db, "cache:1/1-2").source = "place".into());
    // One landing twice.
    only_broken(|db| entry_of(db, "cache:1/1-2").source = "cache:1/1-1".into());
    // Of an epoch that has not come, or is over.
    only_broken(|db| entry_of(db, "cache:2/1-1").source = "cache:3/1-1".into());
    only_broken(|db| entry_of(db, "cache:2/1-1").source = "cache:1/1-9".into());
    only_broken(|db| entry_of(db, "cache:1/1-2").source = "cache:2/1-9".into());
}

#[test]
fn a_row_that_does_not_stand_on_the_ledger_is_found() {
    let row = |db: &mut Authority, change: fn(&mut holdfast_core::cache::CacheBucket)| {
        change(db.caches.get_mut(&home()).unwrap());
    };
    only_broken(|db| row(db, |row| row.base_available += 1));
    only_broken(|db| row(db, |row| row.base_seq += 100));
    only_broken(|db| row(db, |row| row.epoch = Epoch(3)));
    only_broken(|db| {
        db.caches.remove(&home());
    });
    only_broken(|db| {
        let row = db.caches[&home()].clone();
        let alone = bucket("A", 7);
        db.caches.insert(alone, holdfast_core::cache::CacheBucket { key: alone, ..row });
    });
}
