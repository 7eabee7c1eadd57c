//! Where a deployment's boundary is: the same sale again and again, each time with more orders a second, and what the
//! figures say of when waiting begins and does not end any more.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::{Outcome, Second};

/// What waits may grow by this much over a run and still be chance: half as much again, and a tenth of a second's orders.
const GROWTH: f64 = 1.5;
const SLACK_SECONDS: f64 = 0.1;
/// The share of orders that may be turned away for want of room before a load counts as too much.
const TURNED_AWAY_MAX: f64 = 0.01;

/// One load, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stair {
    /// Orders a second that were due.
    pub offered_rps: f64,
    /// Orders a second that were accepted and had their final answer when the load ended.
    pub landed_rps: f64,
    /// The share of the orders that were turned away because there was no room: 429 and 503.
    pub turned_away: f64,
    /// The median of the seconds' 99th percentiles of placing, in microseconds.
    pub p99_us: Option<u64>,
    /// What waited, queued or under way, early in the load and at its end.
    pub waiting_early: f64,
    /// The same at its end.
    pub waiting_late: f64,
    /// How long after the last request the last order had its final answer, in milliseconds.
    pub drained_after_ms: u64,
    /// Whether waiting accumulated: more came than went.
    pub accumulates: bool,
    /// Whether what the load left took longer to be done than the load itself.
    pub is_stuck: bool,
    /// Whether the generator offered less than it was asked for: the stair says nothing of the deployment.
    pub is_generator_limit: bool,
    /// The bucket that most units were taken from, and its share of all that were taken.
    pub hottest: Option<Hottest>,
}

/// The bucket that has the most to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hottest {
    /// What is sold.
    pub sku: String,
    /// The bucket's number.
    pub bucket: u32,
    /// Its share of all units that were taken.
    pub share: f64,
}

/// What a row of loads shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Boundary {
    /// The loads, the smallest first.
    pub stairs: Vec<Stair>,
    /// The largest load below which waiting never accumulated; none: it did from the first.
    pub carries_rps: Option<f64>,
    /// The smallest load at which waiting accumulated; none: not up to the largest that was measured.
    pub waits_from_rps: Option<f64>,
    /// The smallest load that took longer to be done than it lasted; none: none that was measured.
    pub stuck_from_rps: Option<f64>,
    /// The largest load that the generator could offer: nothing is known beyond it.
    pub measured_to_rps: f64,
    /// Whether the row ended because the generator could not offer more.
    pub ends_at_generator: bool,
}

/// What one run says. What comes after its load, the drain, is not counted as load.
#[must_use]
pub fn stair(outcome: &Outcome) -> Stair {
    let seconds = outcome.parameters.seconds.max(1.0);
    let load: Vec<&Second> = outcome.seconds.iter().filter(|second| number(second.at) < seconds).collect();
    let due = number(load.iter().map(|second| second.due).sum());
    let waiting = |part: &[&Second]| {
        let sum = part.iter().map(|second| second.backlog + second.under_way).sum();
        number(sum) / number(u64::try_from(part.len().max(1)).unwrap_or(u64::MAX))
    };
    // The first moments are those of connections and of caches that warm up.
    let third = load.len().div_ceil(3);
    let early = waiting(load.get(load.len() / 6..load.len() / 6 + third).unwrap_or_default());
    let late = waiting(load.get(load.len().saturating_sub(third)..).unwrap_or_default());
    let placed = |statuses: &[&str]| -> u64 {
        let is_of = |label: &str| statuses.iter().any(|status| label.starts_with(&format!("place {status}")));
        outcome.answers.iter().filter(|(label, _)| is_of(label)).map(|(_, count)| count).sum()
    };
    let left = load.last().map_or(0, |second| second.backlog);
    let turned_away = number(placed(&["429", "503"])) / due.max(1.0);
    let offered_rps = due / seconds;
    let grows = late > early * GROWTH + (offered_rps * SLACK_SECONDS).max(1.0);
    Stair {
        offered_rps,
        landed_rps: number(placed(&["200", "201", "202"]).saturating_sub(left)) / seconds,
        turned_away,
        p99_us: median(load.iter().filter_map(|second| second.p99_us)),
        waiting_early: early,
        waiting_late: late,
        drained_after_ms: outcome.drained_after_ms,
        accumulates: grows || turned_away > TURNED_AWAY_MAX,
        is_stuck: number(outcome.drained_after_ms) > seconds * 1e3,
        is_generator_limit: outcome.generator.is_limit,
        hottest: hottest(outcome),
    }
}

/// What a row of runs says. A run that was limited by its generator says nothing of what it drove.
#[must_use]
pub fn boundary(outcomes: &[Outcome]) -> Boundary {
    let mut stairs: Vec<Stair> = outcomes.iter().map(stair).collect();
    stairs.sort_by(|a, b| a.offered_rps.total_cmp(&b.offered_rps));
    let real = || stairs.iter().filter(|stair| !stair.is_generator_limit);
    let waits_from_rps = real().find(|stair| stair.accumulates).map(|stair| stair.offered_rps);
    let stuck_from_rps = real().find(|stair| stair.is_stuck).map(|stair| stair.offered_rps);
    let below = |stair: &&Stair| waits_from_rps.is_none_or(|from| stair.offered_rps < from);
    Boundary {
        carries_rps: real().filter(below).map(|stair| stair.offered_rps).next_back(),
        waits_from_rps,
        stuck_from_rps,
        measured_to_rps: real().map(|stair| stair.offered_rps).next_back().unwrap_or(0.0),
        ends_at_generator: stairs.last().is_some_and(|stair| stair.is_generator_limit),
        stairs,
    }
}

fn hottest(outcome: &Outcome) -> Option<Hottest> {
    let mut taken: BTreeMap<(&str, u32), u64> = BTreeMap::new();
    for of in &outcome.buckets {
        *taken.entry((&of.sku, of.bucket)).or_default() += of.held + of.sold;
    }
    let all: u64 = taken.values().sum();
    let ((sku, bucket), most) = taken.into_iter().max_by_key(|(_, units)| *units)?;
    (all > 0).then(|| Hottest { sku: sku.to_owned(), bucket, share: number(most) / number(all) })
}

fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[expect(clippy::cast_precision_loss, reason = "of a rate a few digits matter")]
const fn number(count: u64) -> f64 {
    count as f64
}
