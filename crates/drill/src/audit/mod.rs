//! The auditor: pure, from what was told and what the authority says to what was broken.

mod answers;
mod enough;
pub(crate) mod facts;
mod findings;
mod ledger;
mod limits;
mod orders;
#[cfg(test)]
mod tests;

use holdfast_core::invariant::Invariant;

pub(crate) use self::facts::Facts;
use self::findings::Check;
pub(crate) use self::findings::{BREACHES_MAX, Findings};
use crate::fault::Fault;
use crate::history::Exchange;
use crate::outcome::Window;
use crate::sale::Sale;
use crate::scenario::Scenario;

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    /// The scenario: which answers may come.
    pub(crate) scenario: &'a Scenario,
    /// The sale: what each buyer wanted.
    pub(crate) sale: &'a Sale,
    /// When what was broken.
    pub(crate) windows: &'a [Window],
    /// What was asked and told.
    pub(crate) history: &'a [Exchange],
    /// What the authority says.
    pub(crate) facts: &'a Facts,
}

/// Judges.
pub(crate) fn audit(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    // What is only delivered again gives no cache a reason to begin a new epoch.
    let again = Fault::RepeatDeliveries.name();
    let may_turn = case.windows.iter().any(|window| window.fault != again);
    let lives = ledger::judge(case.facts, may_turn, &mut findings);
    let rows = orders::judge(case, &lives, &mut findings);
    answers::judge(case, &rows, &lives, &mut findings);
    limits::judge(case, &mut findings);
    enough::judge(case, &rows, &lives, &mut findings);
    judge_events(case.facts, &mut findings);
    judge_rest(case.facts, &mut findings);
    findings
}

/// Every order event is in the feed, in the order of its bucket, and nothing else is.
fn judge_events(facts: &Facts, findings: &mut Findings) {
    let Some(events) = &facts.events else { return };
    findings.looks_at(&[Check::Law(Invariant::EventsComplete)]);
    let written = facts.entries.iter().filter_map(|entry| {
        let order = entry.order.filter(|_| entry.to.is_some())?;
        Some((entry.bucket, entry.seq, order))
    });
    let mut written: Vec<_> = written.collect();
    written.sort_unstable();
    let mut last = std::collections::BTreeMap::new();
    let mut told = std::collections::BTreeSet::new();
    for event in events {
        let newest = last.entry(event.bucket).or_insert(0_u64);
        if event.seq <= *newest {
            let subject = ledger::name(facts, event.bucket);
            findings.breach(
                Check::Law(Invariant::EventsComplete),
                subject,
                format!("an event after {newest}"),
                event.seq.to_string(),
            );
        }
        *newest = event.seq.max(*newest);
        told.insert((event.bucket, event.seq, event.order));
    }
    for (bucket, seq, order) in &written {
        if !told.remove(&(*bucket, *seq, *order)) {
            let subject = format!("{}, entry {seq}", ledger::name(facts, *bucket));
            findings.breach(
                Check::Law(Invariant::EventsComplete),
                subject,
                format!("an event of order {order}"),
                "none",
            );
        }
    }
    for (bucket, seq, order) in told {
        let subject = format!("{}, entry {seq}", ledger::name(facts, bucket));
        findings.breach(
            Check::Law(Invariant::EventsComplete),
            subject,
            "no event",
            format!("one of order {order}"),
        );
    }
}

/// Nothing stopped, and nothing waits in a cache.
fn judge_rest(facts: &Facts, findings: &mut Findings) {
    if !facts.is_open {
        findings.breach(Check::AtRest, "the campaign", "open", "it does not sell");
    }
    for pool in &facts.pools {
        if pool.frozen {
            findings.breach(Check::AtRest, &pool.sku, "a pool that sells", "frozen");
        }
        for (number, bucket) in pool.buckets.iter().enumerate() {
            if let Some(backlog) = bucket.backlog.filter(|backlog| *backlog > 0) {
                findings.breach(
                    Check::AtRest,
                    format!("{} bucket {number}", pool.sku),
                    "an empty backlog",
                    backlog.to_string(),
                );
            }
            let available = bucket.units.available;
            if let Some(cached) = bucket.cached.filter(|cached| *cached != available) {
                findings.breach(
                    Check::AtRest,
                    format!("{} bucket {number}", pool.sku),
                    format!("{available} units in its cache, as in the authority"),
                    cached.to_string(),
                );
            }
        }
        if pool.units.held > 0 {
            findings.breach(
                Check::AtRest,
                &pool.sku,
                "every unit available or sold",
                format!("{} held", pool.units.held),
            );
        }
    }
}
