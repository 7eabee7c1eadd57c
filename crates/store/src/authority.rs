//! Which authority this is, and the cases that wait for a person.

use std::sync::Arc;

use holdfast_core::case::{Case, CaseAction, CaseKind, CaseState, Resolution};
use holdfast_core::command::Via;
use holdfast_core::id::{CaseId, Incarnation, Operator};
use holdfast_core::time::Timestamp;

/// Which authority this is, and how far its ledger has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its incarnation; 0 only where none was ever made.
    pub incarnation: Incarnation,
    /// The incarnations before it, the latest last.
    pub past: Vec<Incarnation>,
    /// The sum of the last ledger positions of all buckets: it only rises, so less of it is a loss.
    pub positions: u64,
    /// The time of the last ledger entry.
    pub last_ledger_at: Option<Timestamp>,
}

/// A new incarnation, and the case that stops sales until somebody has looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIncarnation {
    /// Its id.
    pub incarnation: Incarnation,
    /// The id of the case.
    pub case: CaseId,
    /// What is known, as a JSON object.
    pub evidence: Arc<str>,
}

impl NewIncarnation {
    /// The case that goes with it.
    pub fn case_at(&self, now: Timestamp) -> Case {
        Case::open(self.case, CaseKind::Incarnation, Arc::clone(&self.evidence), now)
    }
}

/// Which cases a list shows, in order of their ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaseFilter {
    /// In this state.
    pub state: Option<CaseState>,
    /// Of this kind.
    pub kind: Option<CaseKind>,
}

impl CaseFilter {
    /// Whether the list shows this case.
    pub fn shows(&self, case: &Case) -> bool {
        self.state.is_none_or(|state| state == case.state()) && self.kind.is_none_or(|kind| kind == case.kind)
    }
}

/// What a person decides on a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveCase {
    /// Which case.
    pub id: CaseId,
    /// What is decided.
    pub action: CaseAction,
    /// Who.
    pub operator: Operator,
    /// Why.
    pub reason: Arc<str>,
    /// How it came in, for the trail of operators' acts.
    pub via: Option<Arc<Via>>,
}

impl ResolveCase {
    /// The decision, made at `now`.
    pub fn at(&self, now: Timestamp) -> Resolution {
        Resolution {
            action: self.action,
            operator: self.operator.clone(),
            reason: Arc::clone(&self.reason),
            at: now,
        }
    }
}
