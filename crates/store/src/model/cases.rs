//! The model's incarnation and cases.

use std::collections::BTreeMap;

use holdfast_core::case::Case;
use holdfast_core::id::{CaseId, Incarnation};
use holdfast_core::refusal::Refusal;
use holdfast_core::time::Timestamp;

use crate::authority::{Authority, CaseFilter, NewIncarnation, ResolveCase};
use crate::read::{Page, page_of};

/// The rows about the authority itself.
#[derive(Default)]
pub(super) struct Own {
    incarnation: u128,
    past: Vec<Incarnation>,
    cases: BTreeMap<CaseId, Case>,
}

impl Own {
    pub(super) fn halted(&self) -> bool {
        self.cases.values().any(Case::halts)
    }

    pub(super) fn authority(&self, positions: u64, last_ledger_at: Option<Timestamp>) -> Authority {
        Authority {
            incarnation: Incarnation(self.incarnation),
            past: self.past.clone(),
            positions,
            last_ledger_at,
        }
    }

    pub(super) fn begin(&mut self, begin: &NewIncarnation, now: Timestamp) {
        self.past.push(Incarnation(self.incarnation));
        self.incarnation = begin.incarnation.0;
        self.cases.insert(begin.case, begin.case_at(now));
    }

    /// Opens a case of an order, unless it has one of the kind.
    pub(super) fn open(&mut self, case: Case) {
        self.cases.entry(case.id).or_insert(case);
    }

    pub(super) fn about(&self, is_about: impl Fn(&Case) -> bool) -> Vec<Case> {
        self.cases.values().filter(|case| is_about(case)).cloned().collect()
    }

    pub(super) fn all(&self) -> BTreeMap<CaseId, Case> {
        self.cases.clone()
    }

    /// A batch has decided it.
    pub(super) fn decided(&mut self, case: &Case) {
        self.cases.insert(case.id, case.clone());
    }

    pub(super) fn cases(&self, filter: CaseFilter, page: &Page<CaseId>) -> (Vec<Case>, bool) {
        let found = super::after(&self.cases, page.after.as_ref()).into_iter().map(|(_, case)| case);
        page_of(found.filter(|case| filter.shows(case)).collect(), page.limit)
    }

    pub(super) fn resolve(&mut self, resolve: &ResolveCase, now: Timestamp) -> Result<(Case, bool), Refusal> {
        let case = self.cases.get_mut(&resolve.id).ok_or(Refusal::UnknownCase)?;
        let changed = case.resolve(resolve.at(now))?;
        Ok((case.clone(), changed))
    }
}
