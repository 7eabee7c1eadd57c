//! What the ledger, locks, connections and lanes tell.

use holdfast_core::time::Timestamp;

use super::facts::Facts;
use super::spell::{Spell, mean_of, peak_of};
use super::{Figure, Finding, Kind, as_f64, lane_age, timed};
use crate::measure::Sample;

/// From where on a wait for locks is long, in milliseconds.
const LOCK_WAIT_MS: f64 = 250.0;
/// From where on a command that waits in a lane shows that the entry backs up, in milliseconds.
const LANE_AGE_MS: f64 = 250.0;
/// From where on a commit is slow, in milliseconds.
const COMMIT_MS: f64 = 100.0;
/// From where on locks are held for long, in milliseconds.
const HOLD_MS: f64 = 50.0;
/// How many times the usual is more than chance.
const GROWN: f64 = 3.0;
/// What part of the time that locks are held the commit must be to be its cause.
const COMMIT_SHARE: f64 = 0.5;
/// Samples before a finding that are looked at for what led to it.
const LEAD_SAMPLES: usize = 60;
/// Fewer connections than these are no pool that could be exhausted.
const CONNECTIONS_MIN: i64 = 2;

fn hold(sample: &Sample) -> Option<f64> {
    timed(sample.lock_hold.count, sample.lock_hold.mean_ms)
}

fn commit(sample: &Sample) -> Option<f64> {
    timed(sample.commit.count, sample.commit.mean_ms)
}

fn lock_wait(sample: &Sample) -> Option<f64> {
    timed(sample.lock_wait.count, sample.lock_wait.p99_ms)
}

/// Whether batches wait for locks: those that had them say so, or there is one that has waited for long already.
fn waits_for_locks(sample: &Sample) -> bool {
    let stands = sample.transactions_waiting > 0 && lane_age(sample) >= LANE_AGE_MS;
    sample.lock_wait.p99_ms >= LOCK_WAIT_MS || stands || sample.counts.lock_timeouts > 0
}

/// What began when, of what backs up.
fn timeline(spell: &Spell<'_>) -> Vec<(Timestamp, String)> {
    let led = spell.with_lead(LEAD_SAMPLES);
    let mut events = Vec::new();
    let mut first = |text: String, is_so: &dyn Fn(&Sample) -> bool| {
        if let Some(sample) = led.iter().find(|sample| is_so(sample)) {
            events.push((sample.at, text));
        }
    };
    first(format!("the oldest command of a lane waits for {LANE_AGE_MS} ms or more"), &|s| {
        lane_age(s) >= LANE_AGE_MS
    });
    first(format!("batches wait for their locks for {LOCK_WAIT_MS} ms or more"), &waits_for_locks);
    first(format!("locks are held for {HOLD_MS} ms or more"), &|s| hold(s).is_some_and(|ms| ms >= HOLD_MS));
    first(format!("commits take {COMMIT_MS} ms or more"), &|s| commit(s).is_some_and(|ms| ms >= COMMIT_MS));
    first("work waits for a connection".to_owned(), &|s| s.connections_waiting.iter().any(|n| *n > 0));
    first("requests are turned away".to_owned(), &|s| s.counts.lane_overloads > 0);
    events.sort_by_key(|(at, _)| *at);
    events
}

/// The figures of what waits before the lock, for it, and behind it.
fn waiting(spell: &Spell<'_>) -> Vec<Figure> {
    let inside = spell.inside();
    vec![
        Figure {
            name: "lane_age_max_ms",
            value: peak_of(inside, lane_age),
            usual: spell.usual(|s| Some(lane_age(s))),
        },
        Figure {
            name: "lock_wait_p99_ms",
            value: peak_of(inside, |s| s.lock_wait.p99_ms),
            usual: spell.usual(lock_wait),
        },
        Figure { name: "lock_hold_mean_ms", value: mean_of(inside, hold), usual: spell.usual(hold) },
        Figure { name: "commit_mean_ms", value: mean_of(inside, commit), usual: spell.usual(commit) },
        Figure {
            name: "transactions_waiting_max",
            value: peak_of(inside, |s| as_f64(u64::try_from(s.transactions_waiting).unwrap_or(0))),
            usual: None,
        },
        Figure {
            name: "lock_timeouts",
            value: inside.iter().map(|s| as_f64(s.counts.lock_timeouts)).sum(),
            usual: None,
        },
    ]
}

/// Whether something has grown beyond what is usual, and beyond a floor.
fn has_grown(value: f64, usual: Option<f64>, floor: f64) -> bool {
    value >= floor && usual.is_none_or(|usual| value >= usual * GROWN)
}

/// Tells waiting for a row apart from slow commits and slow transactions: does the time that locks are held grow?
pub(super) fn locks(samples: &[Sample], findings: &mut Vec<Finding>) {
    let slow = Spell::find(samples, |s| commit(s).is_some_and(|ms| ms >= COMMIT_MS));
    if let Some(spell) = &slow {
        let text = format!(
            "commits take {:.0} ms on average; whoever waits for their locks waits with them",
            mean_of(spell.inside(), commit)
        );
        let finding = spell.finding(Kind::SlowCommit, text, waiting(spell));
        findings.push(Finding { timeline: timeline(spell), ..finding });
    }
    let Some(spell) = Spell::find(samples, waits_for_locks) else { return };
    let (held, committed) = (mean_of(spell.inside(), hold), mean_of(spell.inside(), commit));
    let is_held_longer = has_grown(held, spell.usual(hold), HOLD_MS);
    if is_held_longer && committed >= held * COMMIT_SHARE {
        if slow.is_none() {
            let text =
                format!("locks are held for {held:.0} ms on average, of which commits are {committed:.0} ms");
            let finding = spell.finding(Kind::SlowCommit, text, waiting(&spell));
            findings.push(Finding { timeline: timeline(&spell), ..finding });
        }
        return;
    }
    let (kind, text) = if is_held_longer {
        let text = format!(
            "locks are held for {held:.0} ms on average, of which commits are only {committed:.0} ms"
        );
        (Kind::SlowTransaction, text)
    } else {
        let text = format!(
            "batches wait for the locks of a row while those who have them hold them for {held:.0} ms as ever: somebody \
             else holds the row, or too many want it"
        );
        (Kind::LockQueueing, text)
    };
    findings.push(Finding { timeline: timeline(&spell), ..spell.finding(kind, text, waiting(&spell)) });
}

/// Work that waits for a connection.
pub(super) fn connections(samples: &[Sample], facts: &Facts, findings: &mut Vec<Finding>) {
    let uses: [(usize, &str); 2] = [(0, "write"), (1, "read")];
    for (place, word) in uses {
        let of = |counts: &[i64; 2]| counts.get(place).copied().unwrap_or(0);
        // The embedded store has one writer by design: who waits for it waits for the lock.
        if place == 0 && !facts.is_shared {
            continue;
        }
        let is_exhausted =
            |s: &Sample| of(&s.connections_waiting) > 0 && of(&s.connections_executing) >= CONNECTIONS_MIN;
        let Some(spell) = Spell::find(samples, is_exhausted) else { continue };
        let most = |counts: fn(&Sample) -> &[i64; 2]| {
            peak_of(spell.inside(), |s| as_f64(u64::try_from(of(counts(s))).unwrap_or(0)))
        };
        let (executing, waiting_for) = (most(|s| &s.connections_executing), most(|s| &s.connections_waiting));
        let text = format!(
            "every connection that {word}s is in use: {executing:.0} execute and {waiting_for:.0} wait for one"
        );
        let mut figures = waiting(&spell);
        figures.push(Figure { name: "connections_executing_max", value: executing, usual: None });
        figures.push(Figure { name: "connections_waiting_max", value: waiting_for, usual: None });
        let finding = spell.finding(Kind::ConnectionsExhausted, text, figures);
        findings.push(Finding { timeline: timeline(&spell), ..finding });
    }
}

/// More than lanes let wait, and whether it backs up before the locks or behind them.
pub(super) fn overload(samples: &[Sample], findings: &mut Vec<Finding>) {
    let Some(spell) = Spell::find(samples, |s| s.counts.lane_overloads > 0) else { return };
    let inside = spell.inside();
    let rate = mean_of(inside, |s| Some(as_f64(s.counts.lane_overloads)));
    let is_behind = inside.iter().any(waits_for_locks);
    let place = if is_behind {
        "lanes back up behind locks or commits"
    } else {
        "lanes back up while locks are had at once: more comes than batches take"
    };
    let mut figures = waiting(&spell);
    let of = |s: &Sample| Some(as_f64(s.counts.lane_overloads));
    figures.push(Figure { name: "turned_away_per_second", value: rate, usual: spell.usual(of) });
    figures.push(Figure {
        name: "orders_per_second",
        value: mean_of(inside, |s| Some(as_f64(s.counts.placed))),
        usual: spell.usual(|s| Some(as_f64(s.counts.placed))),
    });
    figures.push(Figure {
        name: "batch_commands_mean",
        value: mean_of(inside, |s| timed(s.lock_hold.count, s.batch_commands)),
        usual: None,
    });
    let text = format!("{rate:.0} requests a second are turned away; {place}");
    let finding = spell.finding(Kind::Overload, text, figures);
    findings.push(Finding { timeline: timeline(&spell), ..finding });
}

/// The same act twice: what no lock and no key may let happen.
pub(super) fn ledger(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(first) = facts.doubled.iter().min_by_key(|doubled| doubled.at) else { return };
    let told: Vec<String> = facts.doubled.iter().map(ToString::to_string).collect();
    findings.push(Finding {
        kind: Kind::RepeatedDeduct,
        since: first.at,
        until: None,
        text: format!("the ledger has the same act of an order twice: {}", told.join("; ")),
        figures: vec![
            Figure { name: "doubled_entries", value: as_f64(facts.doubled.len() as u64), usual: None },
            Figure { name: "entries_looked_at", value: as_f64(facts.entries), usual: None },
        ],
        timeline: facts.doubled.iter().map(|doubled| (doubled.at, doubled.to_string())).collect(),
    });
}
