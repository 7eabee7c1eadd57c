//! Rows of loads whose boundary is known.

use std::collections::BTreeMap;

use super::{Boundary, boundary, stair};
use crate::outcome::{BucketFigures, Environment, Generator, Outcome, Parameters, Second};

const SECONDS: u64 = 12;

/// What a deployment does with so many orders a second if it can do `capacity`: the rest waits.
fn run(offered: u64, capacity: u64) -> Outcome {
    let excess = offered.saturating_sub(capacity);
    let second = |at: u64| Second {
        at,
        due: if at < SECONDS { offered } else { 0 },
        p99_us: Some(5_000 + excess * at * 1_000),
        backlog: excess * (at + 1).min(SECONDS),
        // A few are always under way, and not always the same number.
        under_way: 5 + at % 3,
        ..Second::default()
    };
    Outcome {
        scenario: "hot-pool".to_owned(),
        ok: true,
        began_at: String::new(),
        environment: Environment::default(),
        parameters: Parameters { seconds: 12.0, ..Parameters::default() },
        seconds: (0..SECONDS + 5).map(second).collect(),
        windows: Vec::new(),
        answers: BTreeMap::from([
            ("place 202".to_owned(), offered * SECONDS),
            ("look 200".to_owned(), 9_999),
        ]),
        buckets: vec![
            BucketFigures { sku: "A".to_owned(), bucket: 0, available: 900, held: 5, sold: 10 },
            BucketFigures { sku: "A".to_owned(), bucket: 1, available: 0, held: 15, sold: 30 },
        ],
        invariants: Vec::new(),
        breaches: Vec::new(),
        breaches_count: 0,
        recovered_after_ms: None,
        drained_after_ms: excess * SECONDS * 1_000 / capacity,
        generator: Generator::default(),
    }
}

fn found(offered: &[u64], capacity: u64) -> Boundary {
    boundary(&offered.iter().map(|offered| run(*offered, capacity)).collect::<Vec<_>>())
}

#[test]
fn waiting_begins_where_more_comes_than_goes() {
    let of = found(&[1_600, 100, 400, 800, 200], 500);
    assert_eq!((of.carries_rps, of.waits_from_rps), (Some(400.0), Some(800.0)));
    // 800 leave 3,600 behind after 12 seconds: 7.2 seconds; 1,600 leave 26.4.
    assert_eq!(of.stuck_from_rps, Some(1_600.0));
    assert_eq!((of.measured_to_rps, of.ends_at_generator), (1_600.0, false));
    let landed: Vec<u64> = of.stairs.iter().map(|stair| stair.landed_rps.round() as u64).collect();
    assert_eq!(landed, [100, 200, 400, 500, 500]);
}

#[test]
fn what_was_not_reached_is_not_claimed() {
    let of = found(&[100, 200], 500);
    assert_eq!((of.carries_rps, of.waits_from_rps, of.stuck_from_rps), (Some(200.0), None, None));
    let of = found(&[800], 500);
    assert_eq!((of.carries_rps, of.waits_from_rps), (None, Some(800.0)));
    let of = found(&[], 500);
    assert_eq!((of.carries_rps, of.measured_to_rps), (None, 0.0));
}

#[test]
fn orders_that_are_turned_away_are_too_many_too() {
    let mut outcome = run(100, 500);
    assert!(!stair(&outcome).accumulates);
    outcome.answers.insert("place 503 overloaded".to_owned(), 13);
    assert!(stair(&outcome).accumulates);
    // A refusal of the rules is none for want of room.
    let mut outcome = run(100, 500);
    outcome.answers.insert("place 409 sold_out".to_owned(), 900);
    assert!(!stair(&outcome).accumulates);
}

#[test]
fn a_generator_at_its_limit_says_nothing_of_the_deployment() {
    let mut runs: Vec<Outcome> = [100, 200, 900].map(|offered| run(offered, 500)).to_vec();
    runs[2].generator.is_limit = true;
    let of = boundary(&runs);
    assert_eq!((of.carries_rps, of.waits_from_rps), (Some(200.0), None));
    assert_eq!((of.measured_to_rps, of.ends_at_generator), (200.0, true));
}

#[test]
fn the_hottest_bucket_is_the_one_that_most_was_taken_from() {
    let hottest = stair(&run(100, 500)).hottest.unwrap();
    assert_eq!((&*hottest.sku, hottest.bucket, hottest.share), ("A", 1, 0.75));
    let mut outcome = run(100, 500);
    outcome.buckets.clear();
    assert_eq!(stair(&outcome).hottest, None);
}
