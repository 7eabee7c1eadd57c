//! What a node measures of reconciliation.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use holdfast_core::reconcile::{Class, RunScope, RunState};

use crate::exposition::{Exposed, Exposition};
use crate::instrument::{By, Counter, Gauge, Histogram, Label};

impl Label for Class {
    const NAME: &'static str = "class";
    const VALUES: &'static [Self] = Self::ALL;

    fn text(self) -> &'static str {
        self.as_str()
    }
}

impl Label for RunScope {
    const NAME: &'static str = "scope";
    const VALUES: &'static [Self] = Self::ALL;

    fn text(self) -> &'static str {
        self.as_str()
    }
}

/// Metrics of reconciliation. The node that runs shows what is open.
#[derive(Debug)]
pub struct ReconcileMetrics {
    /// Differences that are open.
    pub open: By<Class, Gauge>,
    /// Of these, those that several runs have found.
    pub lasting: Gauge,
    /// When a run last found nothing, in seconds since 1970; 0: none did on this node.
    pub clean_at: Gauge,
    /// Runs that came to their end.
    pub done: By<RunScope, Counter>,
    /// Runs that did not.
    pub failed: By<RunScope, Counter>,
    /// How long they took.
    pub times: By<RunScope, Histogram>,
}

impl Default for ReconcileMetrics {
    fn default() -> Self {
        Self {
            open: By::default(),
            lasting: Gauge::default(),
            clean_at: Gauge::default(),
            done: By::default(),
            failed: By::default(),
            times: By::new(Histogram::of_ages),
        }
    }
}

impl ReconcileMetrics {
    /// A run has ended.
    pub fn finished(&self, scope: RunScope, state: RunState, took: Duration) {
        self.times.of(scope).observe(took);
        match state {
            RunState::Done => self.done.of(scope).inc(),
            RunState::Failed => self.failed.of(scope).inc(),
            RunState::Running => {}
        }
    }

    /// What is open now.
    pub fn show_open(&self, open: &BTreeMap<Class, u64>) {
        for class in Class::ALL {
            let count = open.get(class).copied().unwrap_or(0);
            self.open.of(*class).set(usize::try_from(count).unwrap_or(usize::MAX));
        }
    }

    /// How many were found by several runs.
    pub fn show_lasting(&self, count: usize) {
        self.lasting.set(count);
    }

    /// Another node runs, and shows it.
    pub fn forget(&self) {
        self.show_open(&BTreeMap::new());
        self.lasting.set(0);
        self.clean_at.set(0);
    }
}

impl Exposed for ReconcileMetrics {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add(
            "holdfast_reconciliation_open_discrepancies",
            "Differences that are open, by class; on the node that reconciles.",
            &self.open,
        )?;
        out.add(
            "holdfast_reconciliation_lasting_discrepancies",
            "Of these, differences that three runs or more have found.",
            &self.lasting,
        )?;
        out.add(
            "holdfast_reconciliation_clean_timestamp_seconds",
            "When a run last found nothing, in seconds since 1970; 0 on nodes that do not reconcile.",
            &self.clean_at,
        )?;
        out.add("holdfast_reconciliation_runs_total", "Runs that came to their end.", &self.done)?;
        out.add(
            "holdfast_reconciliation_failed_runs_total",
            "Runs that could not be brought to an end.",
            &self.failed,
        )?;
        out.add("holdfast_reconciliation_run_seconds", "How long runs took, with their rests.", &self.times)
    }
}
