//! The scenarios: each a sale, what breaks in it, and what must be true afterwards.

use holdfast_core::invariant::Invariant;

use crate::deployment::Kind;
use crate::fault::Fault;

/// One scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name in commands and reports.
    pub name: &'static str,
    /// What it shows.
    pub goal: &'static str,
    /// The same in Chinese.
    pub goal_zh: &'static str,
    /// The deployments that it concerns.
    pub kinds: &'static [Kind],
    /// What must hold afterwards.
    pub invariants: &'static [Invariant],
    /// Answers that may come, as the outcome counts them: any other is a breach.
    pub expected: &'static [&'static str],
    /// What is broken, and when.
    pub steps: &'static [Step],
}

/// A fault of a scenario. Moments are shares of the load's time, so that a short form and a long one are the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// What.
    pub fault: Fault,
    /// When it first begins, in thousandths of the load's time.
    pub from: u16,
    /// How long it lasts, in thousandths of the load's time.
    pub lasts: u16,
    /// How long after its beginning it begins again, in thousandths; none: it comes once.
    pub every: Option<u16>,
}
