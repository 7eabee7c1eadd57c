//! Classic faults, each found by a scenario, and by a finding that names it. Without a fault nothing is found.

use std::sync::Arc;

use holdfast_drill::{Kind, Outcome, Plan, Scenario, run};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use crate::double::{Bug, Double};

/// Seconds of load: as long as holds last, and some more in which what came back could be sold.
const SECONDS: u32 = 9;

async fn drill(scenario: &str, kind: Kind, bug: Option<Bug>) -> Outcome {
    let double = Double::start(kind, bug).await;
    let plan = Plan {
        scenario: Scenario::named(scenario).unwrap(),
        seed: 7,
        seconds: SECONDS,
        orders_a_second: 100.0,
        connections: 64,
        stored_orders: 0,
        campaign: "drill-7".to_owned(),
        began_at: "2026-11-27T10:00:00Z".to_owned(),
        ca_pem: None,
        private: true,
        processes: 1,
        program: std::path::PathBuf::new(),
    };
    let (_go, stop) = watch::channel(false);
    run(&plan, Arc::new(double), stop).await.unwrap().outcome
}

/// Which scenario finds a fault, on what, and by which check.
fn found_by(bug: Bug) -> (&'static str, Kind, &'static str) {
    match bug {
        Bug::UnconditionalDecrement | Bug::CheckThenAct => ("last-units", Kind::Sqlite, "INV1"),
        Bug::RetryWithNewKey => ("hot-pool", Kind::Sqlite, "answers_true"),
        Bug::ReleaseAlways => ("confirm-vs-expiry", Kind::Sqlite, "INV6"),
        Bug::LostCredit => ("hot-pool", Kind::SqliteRedis, "at_rest"),
        Bug::LandingTwice => ("duplicate-delivery", Kind::SqliteRedis, "INV13"),
        Bug::StaleRebuild => ("cache-wipe", Kind::SqliteRedis, "INV1"),
        Bug::PublishBeforeCommit => ("hot-pool", Kind::Sqlite, "INV10"),
        Bug::LimitReadThenWritten => ("last-units", Kind::Sqlite, "INV8"),
        Bug::HintStays => ("last-units", Kind::Sqlite, "sold_out_true"),
    }
}

fn assert_clean(outcome: &Outcome) {
    assert!(outcome.ok, "{}: {:#?} {:?}", outcome.scenario, outcome.breaches, outcome.answers);
}

async fn is_found(bug: Bug) {
    let (scenario, kind, code) = found_by(bug);
    let found = drill(scenario, kind, Some(bug)).await;
    let codes: Vec<(&str, u64)> = found
        .invariants
        .iter()
        .filter_map(|verdict| Some((verdict.code.as_str(), verdict.breaches.filter(|count| *count > 0)?)))
        .collect();
    assert!(
        !found.ok && codes.iter().any(|(found, _)| *found == code),
        "{bug:?}: {codes:?}, {:#?}",
        found.answers
    );
}

/// Side by side: most of the time a drill waits.
async fn all(drills: impl IntoIterator<Item = impl Future<Output = ()> + 'static>) {
    let here = LocalSet::new();
    let mut running = JoinSet::new();
    for drill in drills {
        running.spawn_local_on(drill, &here);
    }
    here.await;
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_fault_nothing_is_found() {
    let mut cases: Vec<(&str, Kind)> =
        Bug::ALL.map(found_by).map(|(scenario, kind, _)| (scenario, kind)).to_vec();
    cases.sort_unstable();
    cases.dedup();
    let clean = |(scenario, kind)| async move { assert_clean(&drill(scenario, kind, None).await) };
    all(cases.into_iter().map(clean)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_classic_fault_is_found_by_a_scenario_and_named() {
    all(Bug::ALL.into_iter().map(is_found)).await;
}
