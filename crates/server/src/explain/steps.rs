//! Steps of a chain, told in words.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use holdfast_core::approval::{Approval, Verdict};
use holdfast_core::case::Case;
use holdfast_core::ledger::Entry;
use holdfast_core::time::Timestamp;
use holdfast_store::ActRow;
use holdfast_wire::{PositionView, StepView};

use crate::view::time;

/// Steps with their times, which are finer than what is shown.
#[derive(Default)]
pub(super) struct Steps(Vec<(Timestamp, StepView)>);

/// A step by itself.
pub(super) fn step(kind: &'static str, text: String) -> StepView {
    StepView {
        at: String::new(),
        kind: kind.into(),
        text,
        actor: None,
        request_id: None,
        position: None,
        order_id: None,
    }
}

impl Steps {
    /// Adds a step. Of those of one time the one that is added first comes first.
    pub(super) fn add(&mut self, at: Timestamp, step: StepView) {
        self.0.push((at, StepView { at: time(at), ..step }));
    }

    /// Adds what operators did.
    pub(super) fn acts(&mut self, acts: &[ActRow]) {
        for act in acts {
            let mut text = act.action.clone();
            if !act.detail.is_empty() {
                text += &format!(": {}", act.detail);
            }
            let named = act.operator.as_ref().map(|operator| format!("{operator} ({})", act.actor));
            let request_id = act.request_id.clone();
            let actor = Some(named.unwrap_or_else(|| act.actor.clone()));
            self.add(
                act.at,
                StepView { actor, request_id, ..step("act", text + &Why(&act.reason).to_string()) },
            );
        }
    }

    /// Adds what needed a person: when it was found, and when it was decided.
    pub(super) fn cases(&mut self, cases: &[Case]) {
        for case in cases {
            let text = format!("case {} {}: {}", case.kind.as_str(), case.id, case.evidence);
            self.add(case.opened_at, step("case", text));
            let Some(decided) = &case.resolution else { continue };
            let text = format!("case {} {}: {}", case.kind.as_str(), case.id, decided.action.as_str());
            let actor = Some(decided.operator.to_string());
            self.add(
                decided.at,
                StepView { actor, ..step("case", text + &Why(&decided.reason).to_string()) },
            );
        }
    }

    /// Adds work that needed a second person: when it was asked for, and when it was decided.
    pub(super) fn approvals(&mut self, approvals: &[Arc<Approval>]) {
        for approval in approvals {
            let asked = approval.proposal.signed();
            let text = format!("{} needs a second person, {} units", approval.key.as_str(), approval.units);
            let request = |via: &Option<Arc<holdfast_core::command::Via>>| {
                via.as_ref().map(|via| via.request_id.to_string()).filter(|id| !id.is_empty())
            };
            let of = |signed: &holdfast_core::command::Signed, text: String| StepView {
                actor: Some(signed.actor.to_string()),
                request_id: request(&signed.via),
                ..step("approval", text + &Why(&signed.reason).to_string())
            };
            self.add(approval.asked_at, of(asked, text));
            let Some(decision) = &approval.decision else { continue };
            let word = match decision.verdict {
                Verdict::Approve => "approved",
                Verdict::Reject => "rejected",
            };
            self.add(decision.at, of(&decision.signed, format!("{} is {word}", approval.key.as_str())));
        }
    }

    /// Adds a ledger entry, with more to say of it.
    pub(super) fn entry(&mut self, entry: &Entry, of_pool: bool, more: &str) {
        let position = PositionView {
            pool_id: entry.bucket.pool.to_string(),
            bucket: entry.bucket.number,
            seq: entry.seq,
        };
        let view = StepView {
            actor: Some(entry.actor.to_string()),
            position: Some(position),
            order_id: entry.order_id.filter(|_| of_pool).map(|id| id.to_string()),
            ..step("ledger", told(entry, of_pool) + more)
        };
        self.add(entry.at, view);
    }

    /// In time order.
    pub(super) fn finish(mut self) -> Vec<StepView> {
        self.0.sort_by_key(|(at, _)| *at);
        self.0.into_iter().map(|(_, step)| step).collect()
    }
}

/// What an entry says.
fn told(entry: &Entry, of_pool: bool) -> String {
    let mut text = entry.action.as_str().to_owned();
    if of_pool {
        text += &format!(" {}", entry.business_no);
    }
    let changes =
        [("available", entry.delta.available), ("held", entry.delta.held), ("sold", entry.delta.sold)];
    for (name, change) in changes.into_iter().filter(|(_, change)| *change != 0) {
        text += &format!(" {name} {change:+}");
    }
    if entry.settled > 0 {
        text += &format!(" settles {} of the cache", entry.settled);
    }
    if let Some(to) = entry.to_state {
        text += &format!(" {} → {}", entry.from_state.map_or("new", |from| from.as_str()), to.as_str());
    }
    if !entry.source.is_empty() {
        text += &format!(" [{}]", entry.source);
    }
    text + &Why(&entry.reason).to_string()
}

/// A reason, if one was given.
pub(super) struct Why<'a>(pub(super) &'a str);

impl Display for Why<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " (reason: {})", self.0) }
    }
}
