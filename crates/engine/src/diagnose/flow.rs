//! What states, queues, caches, sinks and clients tell.

use holdfast_core::time::Timestamp;

use super::facts::Facts;
use super::spell::{Spell, mean_of, peak_of};
use super::{Figure, Finding, Kind, as_f64};
use crate::measure::Sample;

/// From where on an order that is queued waits for too long, in milliseconds.
const QUEUE_AGE_MS: f64 = 5_000.0;
/// How long holds may be overdue: passes are short and many may end at once.
const OVERDUE_MS: f64 = 30_000.0;
/// From how many repeats a second on they are a flood.
const REPEATS_PER_SECOND: u64 = 20;
/// Of what is answered, in percent.
const REPEATS_PERCENT: u64 = 30;
/// From how many refusals a second on they are a storm.
const SOLD_OUT_PER_SECOND: u64 = 20;
/// Of what is answered, in percent.
const SOLD_OUT_PERCENT: u64 = 80;
/// Late payments and refused ones, of all notices, in percent.
const LATE_PERCENT: u64 = 2;

const fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    part.saturating_mul(100) >= whole.saturating_mul(percent)
}

fn sum(samples: &[Sample], of: fn(&Sample) -> u64) -> u64 {
    samples.iter().map(of).fold(0, u64::saturating_add)
}

/// Payments and ends of holds that meet.
pub(super) fn states(samples: &[Sample], findings: &mut Vec<Finding>) {
    let Some(spell) = Spell::find(samples, |s| s.counts.late > 0) else { return };
    let inside = spell.inside();
    let (late, notices) = (sum(inside, |s| s.counts.late), sum(inside, |s| s.counts.notices));
    if !is_share(late, notices.max(late), LATE_PERCENT) {
        return;
    }
    let share = peak_of(inside, |s| s.confirm_share_p95);
    let text = format!(
        "{late} payments or changes met an order whose hold had just ended, beside {notices} notices; of those in time the \
         latest used {:.0} % of the hold",
        share * 100.0
    );
    let figures = vec![
        Figure { name: "late", value: as_f64(late), usual: None },
        Figure { name: "notices", value: as_f64(notices), usual: None },
        Figure {
            name: "confirm_share_p95",
            value: share,
            usual: spell.usual(|s| Some(s.confirm_share_p95).filter(|share| *share > 0.0)),
        },
    ];
    findings.push(spell.finding(Kind::StateRace, text, figures));
}

fn age_ms(facts: &Facts, since: Timestamp) -> f64 {
    as_f64(u64::try_from(facts.now.0.saturating_sub(since.0)).unwrap_or(0)) / 1e3
}

/// What was accepted and is not done yet, or never will be.
pub(super) fn asynchronous(samples: &[Sample], facts: &Facts, findings: &mut Vec<Finding>) {
    queues(samples, facts, findings);
    caches(samples, findings);
    if let Some(spell) = Spell::find_once(samples, |s| s.counts.commits_unknown > 0) {
        let unknown = sum(spell.inside(), |s| s.counts.commits_unknown);
        let text = format!(
            "the answers to {unknown} commits were lost: those who asked were told so, and ask again"
        );
        let figures = vec![Figure { name: "commits_unknown", value: as_f64(unknown), usual: None }];
        findings.push(spell.finding(Kind::AsyncLoss, text, figures));
    }
    for sink in facts.sinks.iter().filter(|sink| sink.is_behind()) {
        let since = sink.failing_since.unwrap_or(sink.changed_at);
        findings.push(Finding {
            kind: Kind::AsyncLoss,
            since,
            until: None,
            text: format!("the sink {sink}"),
            figures: vec![
                Figure { name: "failed_attempts", value: f64::from(sink.failures), usual: None },
                Figure { name: "parked_events", value: as_f64(sink.parked), usual: None },
            ],
            timeline: Vec::new(),
        });
    }
    if let Some(earliest) = facts.overdue.filter(|earliest| age_ms(facts, *earliest) >= OVERDUE_MS) {
        let seconds = age_ms(facts, earliest) / 1e3;
        findings.push(Finding {
            kind: Kind::HoldsOverdue,
            since: earliest,
            until: None,
            text: format!("the longest overdue hold should have ended {seconds:.0} s ago"),
            figures: vec![Figure { name: "overdue_seconds", value: seconds, usual: None }],
            timeline: Vec::new(),
        });
    }
}

fn queues(samples: &[Sample], facts: &Facts, findings: &mut Vec<Finding>) {
    let spell = Spell::find(samples, |s| s.queue_depth > 0 && s.queue_age_ms >= QUEUE_AGE_MS);
    // The authority knows of every node's; the view of this one may be of few.
    let waiting = facts.queued_since.filter(|since| age_ms(facts, *since) >= QUEUE_AGE_MS);
    let landed = |samples: &[Sample]| Figure {
        name: "landed_per_second",
        value: mean_of(samples, |s| Some(as_f64(s.counts.landed))),
        usual: None,
    };
    if let Some(since) = waiting {
        let seconds = age_ms(facts, since) / 1e3;
        let recent = samples.get(samples.len().saturating_sub(super::NOW_SAMPLES)..).unwrap_or_default();
        findings.push(Finding {
            kind: Kind::AsyncLoss,
            since,
            until: None,
            text: format!("the oldest queued order waits for {seconds:.0} s to be landed"),
            figures: vec![Figure { name: "queue_age_seconds", value: seconds, usual: None }, landed(recent)],
            timeline: Vec::new(),
        });
    } else if let Some(spell) = spell.filter(|spell| spell.until().is_some()) {
        let seconds = peak_of(spell.inside(), |s| s.queue_age_ms) / 1e3;
        let text = format!("queued orders waited for up to {seconds:.0} s to be landed");
        let figures =
            vec![Figure { name: "queue_age_seconds", value: seconds, usual: None }, landed(spell.inside())];
        findings.push(spell.finding(Kind::AsyncLoss, text, figures));
    }
}

fn caches(samples: &[Sample], findings: &mut Vec<Finding>) {
    let backlog = |s: &Sample| as_f64(u64::try_from(s.cache_backlog).unwrap_or(0));
    if let Some(spell) = Spell::find(samples, |s| s.cache_backlog > 0 && s.counts.cache_landed == 0) {
        let inside = spell.inside();
        let most = peak_of(inside, backlog);
        let text = format!("{most:.0} orders that caches accepted wait, and none is landed");
        let figures = vec![
            Figure { name: "cache_backlog_max", value: most, usual: spell.usual(|s| Some(backlog(s))) },
            Figure {
                name: "landing_lag_p99_ms",
                value: peak_of(inside, |s| s.landing_lag.p99_ms),
                usual: None,
            },
        ];
        findings.push(spell.finding(Kind::AsyncLoss, text, figures));
    }
    if let Some(spell) = Spell::find_once(samples, |s| s.counts.cache_lost > 0) {
        let lost = sum(spell.inside(), |s| s.counts.cache_lost);
        let text = format!(
            "{lost} answers said that an accepted order was lost with its cache: nothing was held, the same number may be \
             used again"
        );
        let figures = vec![Figure { name: "admissions_lost", value: as_f64(lost), usual: None }];
        findings.push(spell.finding(Kind::AsyncLoss, text, figures));
    }
}

/// Repeats, and what is sold out.
pub(super) fn clients(samples: &[Sample], findings: &mut Vec<Finding>) {
    let answered =
        |s: &Sample| s.counts.placed.saturating_add(s.counts.repeats).saturating_add(s.counts.refused);
    let repeats = |s: &Sample| {
        s.counts.repeats >= REPEATS_PER_SECOND && is_share(s.counts.repeats, answered(s), REPEATS_PERCENT)
    };
    if let Some(spell) = Spell::find(samples, repeats) {
        let rate = mean_of(spell.inside(), |s| Some(as_f64(s.counts.repeats)));
        let text = format!(
            "{rate:.0} requests a second have a key that was known: clients try again what was answered"
        );
        let of = |s: &Sample| Some(as_f64(s.counts.repeats));
        let figures = vec![
            Figure { name: "repeats_per_second", value: rate, usual: spell.usual(of) },
            Figure {
                name: "orders_per_second",
                value: mean_of(spell.inside(), |s| Some(as_f64(s.counts.placed))),
                usual: spell.usual(|s| Some(as_f64(s.counts.placed))),
            },
        ];
        findings.push(spell.finding(Kind::ClientRetries, text, figures));
    }
    let sold_out = |s: &Sample| {
        s.counts.sold_out >= SOLD_OUT_PER_SECOND && is_share(s.counts.sold_out, answered(s), SOLD_OUT_PERCENT)
    };
    if let Some(spell) = Spell::find(samples, sold_out) {
        let rate = mean_of(spell.inside(), |s| Some(as_f64(s.counts.sold_out)));
        let text = format!("{rate:.0} requests a second ask for what is sold out");
        let figures = vec![Figure { name: "sold_out_per_second", value: rate, usual: None }];
        findings.push(spell.finding(Kind::SoldOutStorm, text, figures));
    }
}
