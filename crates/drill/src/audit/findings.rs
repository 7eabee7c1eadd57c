//! What an audit found.

use std::collections::BTreeMap;

use holdfast_core::invariant::Invariant;

use crate::outcome::{Breach, InvariantVerdict};

/// Most breaches that are told in full; all are counted.
pub(crate) const BREACHES_MAX: usize = 1_000;

/// What is held against answers and facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// An invariant of the contract.
    Law(Invariant),
    /// No answer was false.
    True,
    /// No answer but those that the scenario expects; no failure without its reason and time.
    Expected,
    /// Every answer came in its time.
    InTime,
    /// Nothing that was read was older than what the same buyer had been told before.
    Fresh,
    /// Nobody was sent away while there was enough.
    Enough,
    /// Nothing is left waiting, held or stopped.
    AtRest,
}

impl Check {
    /// Those that are no invariants of the authority.
    const OF_ANSWERS: [Self; 6] =
        [Self::True, Self::Expected, Self::InTime, Self::Fresh, Self::Enough, Self::AtRest];

    /// Every check, invariants first.
    pub(crate) fn all() -> Vec<Self> {
        Invariant::ALL.into_iter().map(Self::Law).chain(Self::OF_ANSWERS).collect()
    }

    /// Its word in reports.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Law(invariant) => invariant.code(),
            Self::True => "answers_true",
            Self::Expected => "answers_expected",
            Self::InTime => "answers_in_time",
            Self::Fresh => "reads_fresh",
            Self::Enough => "sold_out_true",
            Self::AtRest => "at_rest",
        }
    }

    /// In words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Law(invariant) => invariant.name(),
            Self::True => "no answer was false",
            Self::Expected => "only expected answers came",
            Self::InTime => "every answer came in time",
            Self::Fresh => "no read went back",
            Self::Enough => "nobody was sent away while there was enough",
            Self::AtRest => "nothing is left waiting",
        }
    }
}

/// Breaches, as they are found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    counts: BTreeMap<Check, u64>,
    looked: Vec<Check>,
    /// The first of them.
    pub(crate) breaches: Vec<Breach>,
}

impl Findings {
    /// Nothing could be read: whatever was told, nothing shows that it is so.
    pub(crate) fn unreadable(why: &str) -> Self {
        let mut findings = Self::default();
        findings.breach(Check::AtRest, "the deployment", "facts that can be read", why);
        findings
    }

    /// Says that something can be judged from what there is.
    pub(super) fn looks_at(&mut self, checks: &[Check]) {
        self.looked.extend(checks);
    }

    /// Notes a breach.
    pub(super) fn breach(
        &mut self,
        check: Check,
        subject: impl Into<String>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) {
        let count = self.counts.entry(check).or_default();
        *count = count.saturating_add(1);
        if self.breaches.len() < BREACHES_MAX {
            let (subject, expected, actual) = (subject.into(), expected.into(), actual.into());
            self.breaches.push(Breach { code: check.code().to_owned(), subject, expected, actual });
        }
    }

    /// How many breaches there are.
    pub(crate) fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// How many there are of one kind.
    pub(crate) fn count_of(&self, check: Check) -> u64 {
        self.counts.get(&check).copied().unwrap_or_default()
    }

    /// A verdict a check.
    pub(crate) fn verdicts(&self) -> Vec<InvariantVerdict> {
        let verdict = |check: Check| {
            let is_shown = self.looked.contains(&check) || self.counts.contains_key(&check);
            InvariantVerdict {
                code: check.code().to_owned(),
                name: check.name().to_owned(),
                breaches: is_shown.then(|| self.count_of(check)),
            }
        };
        Check::all().into_iter().map(verdict).collect()
    }
}
