//! Given samples and facts, what is found.

use std::time::Duration;

use holdfast_core::id::{OrderId, PoolId};
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::stock::{BucketKey, Delta};
use holdfast_core::time::Timestamp;
use holdfast_store::SinkState;

use super::facts::{Doubled, SinkFact, doubled};
use super::{Diagnosis, Facts, Finding, Kind, diagnose};
use crate::measure::{Counts, Sample, Times};

const SECOND: i64 = 1_000_000;
/// Quiet samples around what is looked for.
const QUIET: usize = 120;

const fn times(count: u64, mean_ms: f64, p99_ms: f64) -> Times {
    Times { count, mean_ms, p99_ms }
}

/// A second of an ordinary sale.
fn ordinary() -> Sample {
    Sample {
        span: Duration::from_secs(1),
        counts: Counts { placed: 100, notices: 50, ..Counts::default() },
        placing: times(100, 3.0, 10.0),
        lane_wait: times(100, 1.0, 5.0),
        lock_wait: times(50, 0.2, 1.0),
        lock_hold: times(50, 2.0, 5.0),
        commit: times(50, 1.0, 2.5),
        batch_commands: 2.0,
        confirm_share_p95: 0.4,
        ..Sample::default()
    }
}

/// Ordinary seconds, then these, then so many ordinary ones.
fn half_hour(odd: impl Iterator<Item = Sample>, after: usize) -> Vec<Sample> {
    let quiet = |count| std::iter::repeat_with(ordinary).take(count);
    let mut all: Vec<Sample> = quiet(QUIET).chain(odd).chain(quiet(after)).collect();
    (1..).zip(&mut all).for_each(|(second, sample)| sample.at = Timestamp(second * SECOND));
    all
}

fn seconds(sample: Sample, count: usize) -> impl Iterator<Item = Sample> {
    std::iter::repeat_n(sample, count)
}

fn facts(samples: &[Sample]) -> Facts {
    Facts {
        now: samples.last().map_or(Timestamp(0), |sample| sample.at),
        is_shared: true,
        ..Facts::default()
    }
}

fn found(samples: &[Sample]) -> Diagnosis {
    diagnose(samples, &facts(samples))
}

fn kinds(diagnosis: &Diagnosis) -> Vec<Kind> {
    diagnosis.findings.iter().map(|finding| finding.kind).collect()
}

fn figure(finding: &Finding, name: &str) -> (f64, Option<f64>) {
    let figure = finding.figures.iter().find(|figure| figure.name == name).unwrap();
    (figure.value, figure.usual)
}

/// A second as it is in trouble, and what is found of many of them.
type Trouble = (&'static str, Sample, &'static [Kind]);

#[test]
fn each_trouble_of_the_authority_is_told_apart() {
    told_apart(vec![
        ("ordinary", ordinary(), &[]),
        (
            "a row held from outside: nothing is locked, and lanes stand",
            Sample {
                counts: Counts::default(),
                placing: Times::default(),
                lock_wait: Times::default(),
                lock_hold: Times::default(),
                commit: Times::default(),
                transactions_waiting: 1,
                lane_age_ms: [1_500.0, 0.0],
                ..ordinary()
            },
            &[Kind::LockQueueing],
        ),
        (
            "too many want one row: the wait grows, the hold is flat",
            Sample { lock_wait: times(80, 300.0, 500.0), ..ordinary() },
            &[Kind::LockQueueing],
        ),
        (
            "a slow disk: the hold grows with the commit, and the wait with both",
            Sample {
                lock_wait: times(5, 400.0, 1_000.0),
                lock_hold: times(5, 210.0, 500.0),
                commit: times(5, 200.0, 500.0),
                ..ordinary()
            },
            &[Kind::SlowCommit],
        ),
        (
            "slow statements: the hold grows without the commit",
            Sample { lock_wait: times(5, 400.0, 1_000.0), lock_hold: times(5, 210.0, 500.0), ..ordinary() },
            &[Kind::SlowTransaction],
        ),
        (
            "connections run out",
            Sample { connections_executing: [16, 0], connections_waiting: [40, 0], ..ordinary() },
            &[Kind::ConnectionsExhausted],
        ),
        (
            "readers run out",
            Sample { connections_executing: [1, 4], connections_waiting: [0, 9], ..ordinary() },
            &[Kind::ConnectionsExhausted],
        ),
    ]);
}

#[test]
fn each_trouble_at_the_entry_and_behind_it_is_told_apart() {
    told_apart(vec![
        (
            "more than lanes take",
            Sample {
                counts: Counts { placed: 900, lane_overloads: 400, ..Counts::default() },
                lane_age_ms: [600.0, 0.0],
                ..ordinary()
            },
            &[Kind::Overload],
        ),
        (
            "clients that repeat",
            Sample { counts: Counts { placed: 20, repeats: 300, ..Counts::default() }, ..ordinary() },
            &[Kind::ClientRetries],
        ),
        (
            "holds that end while they are paid",
            Sample {
                counts: Counts { late: 3, notices: 40, ..Counts::default() },
                confirm_share_p95: 1.0,
                ..ordinary()
            },
            &[Kind::StateRace],
        ),
        (
            "a payment too late among thousands",
            Sample { counts: Counts { late: 1, notices: 1_000, ..Counts::default() }, ..ordinary() },
            &[],
        ),
        (
            "a cache whose orders nobody lands",
            Sample { cache_backlog: 500, ..ordinary() },
            &[Kind::AsyncLoss],
        ),
        (
            "admissions that were lost",
            Sample { counts: Counts { cache_lost: 2, ..Counts::default() }, ..ordinary() },
            &[Kind::AsyncLoss],
        ),
        (
            "commits without an answer",
            Sample { counts: Counts { commits_unknown: 1, ..Counts::default() }, ..ordinary() },
            &[Kind::AsyncLoss],
        ),
        (
            "sold out",
            Sample {
                counts: Counts { placed: 1, refused: 900, sold_out: 890, ..Counts::default() },
                ..ordinary()
            },
            &[Kind::SoldOutStorm],
        ),
    ]);
}

fn told_apart(table: Vec<Trouble>) {
    for (what, sample, expected) in table {
        let diagnosis = found(&half_hour(seconds(sample, 30), 2));
        assert_eq!(kinds(&diagnosis), expected, "{what}: {diagnosis:#?}");
        let is_trouble = expected.iter().any(|kind| kind.is_trouble());
        assert_eq!(diagnosis.is_healthy(), !is_trouble, "{what}");
        for finding in &diagnosis.findings {
            let began = i64::try_from(QUIET).unwrap() * SECOND;
            assert_eq!((finding.since, finding.until), (Timestamp(began), None), "{what}");
        }
    }
}

#[test]
fn what_is_over_is_told_with_its_end_and_is_healthy() {
    let waits = Sample { lock_wait: times(80, 300.0, 500.0), ..ordinary() };
    let diagnosis = found(&half_hour(seconds(waits, 20), 60));
    assert_eq!(kinds(&diagnosis), [Kind::LockQueueing]);
    let end = i64::try_from(QUIET + 20).unwrap() * SECOND;
    assert_eq!(diagnosis.findings[0].until, Some(Timestamp(end)));
    assert!(diagnosis.is_healthy());
}

#[test]
fn a_second_or_two_say_nothing() {
    let waits = Sample { lock_wait: times(80, 300.0, 500.0), ..ordinary() };
    assert_eq!(kinds(&found(&half_hour(seconds(waits, 2), 1))), []);
    assert!(found(&[]).is_healthy());
}

#[test]
fn gaps_do_not_cut_a_spell_in_two() {
    let waits = Sample { lock_wait: times(80, 300.0, 500.0), ..ordinary() };
    let often = (0..40).map(|second| if second % 4 == 0 { waits.clone() } else { ordinary() });
    let diagnosis = found(&half_hour(often, 0));
    assert_eq!(diagnosis.findings[0].since, Timestamp(i64::try_from(QUIET).unwrap() * SECOND));
}

#[test]
fn figures_stand_beside_what_is_usual_and_the_timeline_says_what_came_first() {
    let backs_up = Sample { lane_age_ms: [400.0, 0.0], ..ordinary() };
    let waits = Sample { lock_wait: times(5, 400.0, 1_000.0), ..backs_up.clone() };
    let odd = seconds(backs_up, 5).chain(seconds(waits, 20));
    let diagnosis = found(&half_hour(odd, 0));
    let finding = &diagnosis.findings[0];
    assert_eq!(figure(finding, "lock_wait_p99_ms"), (1_000.0, Some(1.0)));
    assert_eq!(figure(finding, "lock_hold_mean_ms"), (2.0, Some(2.0)));
    let order: Vec<_> = finding.timeline.iter().map(|(_, text)| text.split(' ').nth(1).unwrap()).collect();
    assert_eq!(order, ["oldest", "wait"], "{:?}", finding.timeline);
    let value = diagnosis.grounds.iter().find(|figure| figure.name == "lock_hold_mean_ms").unwrap();
    assert_eq!((value.value, value.usual), (2.0, Some(2.0)));
}

#[test]
fn one_writer_is_no_exhausted_pool() {
    let odd = Sample { connections_executing: [1, 0], connections_waiting: [40, 0], ..ordinary() };
    let samples = half_hour(seconds(odd, 30), 0);
    let embedded = Facts { is_shared: false, ..facts(&samples) };
    assert_eq!(kinds(&diagnose(&samples, &embedded)), []);
}

#[test]
fn the_authority_knows_what_no_sample_shows() {
    let samples = half_hour(std::iter::empty(), 0);
    let now = facts(&samples).now;
    let before = |seconds: i64| Timestamp(now.0 - seconds * SECOND);
    let sink = |state, failing_since, parked| SinkFact {
        name: "erp".into(),
        state,
        changed_at: before(50),
        failing_since,
        failures: 3,
        parked,
    };
    let doubled = Doubled {
        bucket: BucketKey { pool: PoolId(1), number: 0 },
        order: OrderId(1),
        action: Action::Place,
        seqs: [2, 3],
        at: before(9),
    };
    let of = |change: &dyn Fn(&mut Facts)| {
        let mut facts = facts(&samples);
        change(&mut facts);
        let diagnosis = diagnose(&samples, &facts);
        diagnosis.findings.iter().map(|f| (f.kind, f.since)).collect::<Vec<_>>()
    };
    assert_eq!(of(&|f| f.queued_since = Some(before(9))), [(Kind::AsyncLoss, before(9))]);
    assert_eq!(of(&|f| f.queued_since = Some(before(2))), []);
    assert_eq!(of(&|f| f.overdue = Some(before(40))), [(Kind::HoldsOverdue, before(40))]);
    assert_eq!(of(&|f| f.overdue = Some(before(10))), []);
    assert_eq!(of(&|f| f.doubled = vec![doubled.clone()]), [(Kind::RepeatedDeduct, before(9))]);
    let sinks = |fact: SinkFact| of(&move |f| f.sinks = vec![fact.clone()]);
    assert_eq!(sinks(sink(SinkState::Active, Some(before(30)), 0)), [(Kind::AsyncLoss, before(30))]);
    assert_eq!(sinks(sink(SinkState::Disabled, None, 0)), [(Kind::AsyncLoss, before(50))]);
    assert_eq!(sinks(sink(SinkState::Active, None, 2)), [(Kind::AsyncLoss, before(50))]);
    assert_eq!(sinks(sink(SinkState::Active, None, 0)), []);
    assert_eq!(sinks(sink(SinkState::Paused, None, 0)), [], "an operator said so");
}

#[test]
fn the_same_act_twice_is_found_and_a_life_is_not() {
    let entry = |seq: u64, order: u128, action: Action, held: i64, sold: i64| Entry {
        bucket: BucketKey { pool: PoolId(1), number: 0 },
        seq,
        at: Timestamp(0),
        order_id: Some(OrderId(order)),
        business_no: "a".into(),
        action,
        delta: Delta { available: 0, held, sold },
        settled: 0,
        from_state: None,
        to_state: None,
        order_version: None,
        covers: None,
        source: "".into(),
        actor: "".into(),
        reason: "".into(),
    };
    let life = [
        entry(2, 1, Action::Place, 2, 0),
        entry(3, 1, Action::Release, -2, 0),
        entry(4, 1, Action::Retake, 0, 2),
        entry(5, 1, Action::Refund, 0, -2),
        entry(6, 2, Action::Place, 1, 0),
        entry(7, 2, Action::Confirm, -1, 1),
        // A cache accepted it once more: settled, and no unit taken.
        entry(8, 2, Action::Land, 0, 0),
        entry(9, 2, Action::Land, 0, 0),
    ];
    assert_eq!(doubled(&life), []);
    let again = [life.as_slice(), &[entry(10, 1, Action::Place, 2, 0)]].concat();
    let found = doubled(&again);
    assert_eq!((found.len(), found[0].seqs, found[0].order), (1, [2, 10], OrderId(1)));
}
