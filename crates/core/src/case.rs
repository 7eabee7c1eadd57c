//! Cases: what needs a person.

use std::sync::Arc;

use crate::campaign::spelled;
use crate::id::{CaseId, Operator, OrderId, PoolId};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// What a case is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKind {
    /// The authority stands on older data than it once had: it was restored, or a file was put back.
    Incarnation,
}

/// Whether somebody still has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseState {
    /// It waits for a person.
    Open,
    /// A person has decided.
    Resolved,
}

/// What a person may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseAction {
    /// The loss is known and accepted; go on.
    Acknowledge,
}

spelled! {
    CaseKind { Incarnation = "incarnation" }
    CaseState { Open = "open", Resolved = "resolved" }
    CaseAction { Acknowledge = "acknowledge" }
}

impl CaseKind {
    /// Whether nothing may be sold while it is open. Holds, payments, cancels and releases go on.
    pub const fn halts(self) -> bool {
        match self {
            Self::Incarnation => true,
        }
    }

    /// What is suggested to the person.
    pub const fn suggested(self) -> CaseAction {
        match self {
            Self::Incarnation => CaseAction::Acknowledge,
        }
    }

    /// Whether the action fits the case.
    pub const fn allows(self, action: CaseAction) -> bool {
        match (self, action) {
            (Self::Incarnation, CaseAction::Acknowledge) => true,
        }
    }
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What.
    pub action: CaseAction,
    /// Who.
    pub operator: Operator,
    /// Why.
    pub reason: Arc<str>,
    /// When.
    pub at: Timestamp,
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its id.
    pub id: CaseId,
    /// What it is about.
    pub kind: CaseKind,
    /// The pool concerned.
    pub pool: Option<PoolId>,
    /// The order concerned.
    pub order: Option<OrderId>,
    /// What is known, as a JSON object.
    pub evidence: Arc<str>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// What was decided; none while it is open.
    pub resolution: Option<Resolution>,
}

impl Case {
    /// A case that nobody has decided yet.
    pub const fn open(id: CaseId, kind: CaseKind, evidence: Arc<str>, opened_at: Timestamp) -> Self {
        Self { id, kind, pool: None, order: None, evidence, opened_at, resolution: None }
    }

    /// Whether somebody still has to act.
    pub const fn state(&self) -> CaseState {
        match self.resolution {
            None => CaseState::Open,
            Some(_) => CaseState::Resolved,
        }
    }

    /// Whether it stops all sales now.
    pub const fn halts(&self) -> bool {
        self.kind.halts() && matches!(self.state(), CaseState::Open)
    }

    /// Takes a decision. The same action again is a repeat: the first decision stands, with its reason.
    /// Whether the case has changed.
    pub fn resolve(&mut self, resolution: Resolution) -> Result<bool, Refusal> {
        if !self.kind.allows(resolution.action) {
            return Err(Refusal::InvalidValue {
                pointer: "/action".into(),
                why: "does not fit this kind of case",
            });
        }
        match &self.resolution {
            Some(known) if known.action == resolution.action => Ok(false),
            Some(_) => Err(Refusal::Conflict("the case was resolved otherwise")),
            None => {
                self.resolution = Some(resolution);
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_stands() {
        let mut case = Case::open(CaseId(1), CaseKind::Incarnation, "{}".into(), Timestamp(1));
        assert!(case.halts());
        let decide = |reason: &str| Resolution {
            action: CaseAction::Acknowledge,
            operator: Operator::new("ann").unwrap(),
            reason: reason.into(),
            at: Timestamp(2),
        };
        assert_eq!(case.resolve(decide("first")), Ok(true));
        assert_eq!(case.resolve(decide("second")), Ok(false));
        assert_eq!(case.resolution, Some(decide("first")));
        assert_eq!((case.state(), case.halts()), (CaseState::Resolved, false));
    }

    #[test]
    fn words_read_back() {
        for kind in CaseKind::ALL {
            assert_eq!(CaseKind::parse(kind.as_str()), Some(*kind));
            assert!(kind.allows(kind.suggested()), "what is suggested is allowed");
        }
        for state in CaseState::ALL {
            assert_eq!(CaseState::parse(state.as_str()), Some(*state));
        }
    }
}
