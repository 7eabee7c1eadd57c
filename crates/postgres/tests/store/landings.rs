//! Landings by several nodes, and over connections that are cut.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::cache::{Accepted, EntryId, Epoch, EpochState, Landing, Turn, TurnEpoch};
use holdfast_core::campaign::Policy;
use holdfast_core::command::{Command, How, Outcome};
use holdfast_core::id::PoolId;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::Store;
use holdfast_testkit::{Database, FaultProxy, Postgres};

use crate::support::{assert_clean, bucket, commit, lane, node, place, shop, signed};

const HOME: BucketKey = BucketKey { pool: PoolId(1), number: 0 };

fn turn(epoch: u64, turn: Turn) -> Command {
    Command::TurnEpoch(TurnEpoch { bucket: HOME, epoch: Epoch(epoch), turn, signed: signed() })
}

fn open() -> Turn {
    Turn::Open { identity: "server".into() }
}

/// An order of one unit, accepted as the entry of its number.
fn landing(epoch: u64, number: u64) -> Command {
    let Command::Place(place) = place(u128::from(number), u128::from(number), "ann") else { unreachable!() };
    let accepted = Accepted {
        bucket: HOME,
        epoch: Epoch(epoch),
        entry: EntryId { millis: 1, number },
        number,
        units: 1,
    };
    let due_at = Timestamp(i64::MAX);
    Command::Land(Arc::new(Landing { place: Arc::unwrap_or_clone(place), accepted, due_at }))
}

/// Three nodes land the same entries, in other batches and under other locks, while the epoch is closed: each entry
/// lands once or is lost, and every node says the same of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_land_each_entry_once_while_the_epoch_closes() {
    let database = Database::shared().await.unwrap();
    let nodes = [node(&database.url()).await, node(&database.url()).await, node(&database.url()).await];
    shop(&*nodes[0], Policy::default(), 1_000, 2).await;
    for epoch in 1..=5_u64 {
        lane(&*nodes[0], bucket(0), vec![turn(epoch, open())]).await;
        let entries: Vec<u64> = (1..=30).map(|entry| epoch * 100 + entry).collect();
        let mut tasks = Vec::new();
        for (store, batch) in nodes.iter().cloned().zip([5, 3, 10]) {
            let entries = entries.clone();
            tasks.push(tokio::spawn(async move {
                let mut told = Vec::new();
                for some in entries.chunks(batch) {
                    let locks = if batch == 3 { LockSet::pool(PoolId(1)) } else { bucket(0) };
                    let commands = some.iter().map(|entry| landing(epoch, *entry)).collect();
                    told.extend(some.iter().copied().zip(lane(&*store, locks, commands).await));
                }
                told
            }));
        }
        let closing = Arc::clone(&nodes[1]);
        let closed = tokio::spawn(async move {
            let half = epoch * 100 + 15;
            let key = Accepted {
                bucket: HOME,
                epoch: Epoch(epoch),
                entry: EntryId { millis: 1, number: half },
                number: half,
                units: 1,
            }
            .key();
            while closing.landed(key).await.unwrap().is_none() {
                tokio::task::yield_now().await;
            }
            lane(&*closing, bucket(0), vec![turn(epoch, Turn::Close)]).await
        });
        let (mut created, mut seen, mut lost) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for task in tasks {
            for (entry, outcome) in task.await.unwrap() {
                match outcome {
                    Outcome::Order { how: How::Created, .. } => created.push(entry),
                    Outcome::Order { .. } => drop(seen.insert(entry)),
                    outcome => {
                        assert_eq!(outcome, Outcome::refused(Refusal::AdmissionLost));
                        lost.insert(entry);
                    }
                }
            }
        }
        closed.await.unwrap();
        let landed: BTreeSet<u64> = created.iter().copied().collect();
        assert_eq!(landed.len(), created.len(), "each landed once");
        assert!(seen.is_subset(&landed) && lost.is_disjoint(&landed), "{lost:?} of {landed:?}");
        let row = nodes[2].cache_bucket(HOME).await.unwrap().unwrap();
        assert_eq!((row.epoch, row.state), (Epoch(epoch), EpochState::Closed));
        let credits = nodes[2].credits(HOME, row.base_seq, 1_000).await.unwrap();
        assert_eq!(credits.units, 0, "every unit that a cache took is held");
    }
    assert_clean(&*nodes[0]).await;
}

/// A COMMIT whose answer is lost is looked up by the landing's entry, and answered as what it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_landing_whose_answer_was_lost_is_answered_all_the_same() {
    let server = Postgres::start().await.expect("a private PostgreSQL");
    let url = server.create_database("shop").await.unwrap();
    let proxy = FaultProxy::postgres(server.port()).await.unwrap();
    let store = node(&proxy.through(&url)).await;
    shop(&*store, Policy::default(), 100, 1).await;
    proxy.lose_commit_answers(1);
    // A turn leaves no entry: it is tried again, and finds itself done.
    let opened = commit(&*store, bucket(0), vec![turn(1, open())]).await.unwrap();
    assert!(matches!(&opened[0], Outcome::Epoch { how: How::Repeated, .. }), "{opened:?}");
    for number in 1..=10 {
        proxy.lose_commit_answers(1);
        let outcomes = commit(&*store, bucket(0), vec![landing(1, number)]).await.unwrap();
        assert!(matches!(&outcomes[0], Outcome::Order { how: How::Created, .. }), "{outcomes:?}");
    }
    assert!(proxy.commit_answers_lost().await >= 11);
    assert_eq!(store.cache_bucket(HOME).await.unwrap().unwrap().landed, 10);
    assert_clean(&*store).await;
}
