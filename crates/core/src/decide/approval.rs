//! Work of operators that needs a second person: asked for once, and done when somebody else agrees.

use std::sync::Arc;

use crate::approval::{APPROVAL_SECONDS, Approval, ApprovalKey, DecideApproval, Decided, Proposal, Verdict};
use crate::command::{Command, OrderAction, OrderCommand, Outcome, Repair};
use crate::id::{CampaignId, PoolId};
use crate::order::{Order, RefundMade, State};
use crate::reconcile::DiscrepancyState;
use crate::refusal::Refusal;

use super::Working;

/// Work that a policy may want a second person for.
struct Gated {
    key: ApprovalKey,
    campaigns: Vec<CampaignId>,
    units: u64,
    proposal: Proposal,
}

impl Working {
    /// The request for a second person, where one is needed and has not agreed yet.
    pub(super) fn ask_second(&mut self, command: &Command) -> Option<Outcome> {
        let Gated { key, campaigns, units, proposal } = self.gated(command)?;
        if let Some(known) = self.rows.approvals.get(&key) {
            if known.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Approve) {
                return None;
            }
            let fields = differing(&proposal, &known.proposal);
            if !fields.is_empty() {
                return Some(Outcome::refused(Refusal::KeyMismatch(fields)));
            }
            return Some(Outcome::Proposed { approval: Arc::clone(known), repeated: true });
        }
        let asks = |campaign: &CampaignId| {
            self.campaign(campaign).and_then(|c| c.policy.approval_threshold).is_some_and(|most| units > most)
        };
        let campaign = campaigns.into_iter().find(asks)?;
        let expires_at = self.now.plus_seconds(APPROVAL_SECONDS);
        let asked_at = self.now;
        let approval =
            Arc::new(Approval { key, campaign, proposal, units, asked_at, expires_at, decision: None });
        self.rows.approvals.insert(approval.key.clone(), Arc::clone(&approval));
        self.new_approvals.push(Arc::clone(&approval));
        Some(Outcome::Proposed { approval, repeated: false })
    }

    /// What is done already asks nobody.
    fn gated(&self, command: &Command) -> Option<Gated> {
        match command {
            Command::Adjust(adjust) => {
                let is_done = self.rows.adjustments.contains_key(&adjust.adjustment_id);
                let campaign = self.campaign_of(adjust.pool).filter(|_| !is_done)?;
                Some(Gated {
                    key: ApprovalKey::of_adjustment(&adjust.adjustment_id),
                    campaigns: vec![campaign],
                    units: adjust.delta.unsigned_abs(),
                    proposal: Proposal::Adjust(adjust.clone()),
                })
            }
            Command::Transfer(transfer) => {
                let is_done = self.rows.transfers.contains_key(&transfer.transfer_id);
                let ends = [transfer.from.pool, transfer.to.pool];
                let campaigns: Vec<CampaignId> =
                    ends.into_iter().filter_map(|pool| self.campaign_of(pool)).collect();
                // Within a campaign's own pool nothing comes or goes.
                let is_within = transfer.from.pool == transfer.to.pool;
                (!is_done && !is_within && campaigns.len() == ends.len()).then(|| Gated {
                    key: ApprovalKey::of_transfer(&transfer.transfer_id),
                    campaigns,
                    units: transfer.quantity,
                    proposal: Proposal::Transfer(transfer.clone()),
                })
            }
            Command::Order(change) => {
                let key = change.second.clone()?;
                let order = self.order(change.order)?;
                if !may_be_done(change, &order) {
                    return None;
                }
                Some(Gated {
                    key,
                    campaigns: vec![order.key.campaign.clone()],
                    units: units_of(change, &order),
                    proposal: Proposal::Order(change.clone()),
                })
            }
            Command::Repair(repair) => self.gated_repair(repair),
            Command::Place(_)
            | Command::OpenPool(_)
            | Command::ChangePool(_)
            | Command::Sweep(_)
            | Command::MoveUnsold(_)
            | Command::Import(_)
            | Command::Decide(_)
            | Command::Land(_)
            | Command::SetAside(_)
            | Command::TurnEpoch(_) => None,
        }
    }

    /// What a person decides of a difference. What is proved and safe asks nobody.
    fn gated_repair(&self, repair: &Arc<Repair>) -> Option<Gated> {
        repair.decides?;
        let known = self.rows.discrepancies.get(&repair.id)?;
        let campaign = self.campaign_of(repair.pool?)?;
        (known.state == DiscrepancyState::Open).then(|| Gated {
            key: ApprovalKey::of_repair(repair.id),
            campaigns: vec![campaign],
            units: known.found.proof.units(),
            proposal: Proposal::Repair(Arc::clone(repair)),
        })
    }

    fn campaign_of(&self, pool: PoolId) -> Option<CampaignId> {
        self.rows.pools.get(&pool).map(|pool| pool.campaign.clone())
    }

    /// A second person has decided. What cannot be done is refused, and the request waits on.
    pub(super) fn decide_approval(&mut self, decide: &DecideApproval) -> Outcome {
        let Some(known) = self.rows.approvals.get(&decide.key).cloned() else {
            return Outcome::refused(Refusal::UnknownApproval);
        };
        let is_repeat = match &known.decision {
            Some(decision) if decision.verdict != decide.verdict => {
                return Outcome::refused(Refusal::Conflict("the request was decided otherwise"));
            }
            Some(_) => true,
            None => false,
        };
        if !is_repeat {
            if known.is_asked_by(&decide.signed) {
                return Outcome::refused(Refusal::SamePerson);
            }
            if self.now >= known.expires_at {
                return Outcome::refused(Refusal::Conflict("nobody decided in time; ask under another key"));
            }
        }
        let outcome = match decide.verdict {
            Verdict::Approve => Some(self.apply_ungated(&known.proposal.command())),
            Verdict::Reject => None,
        };
        match outcome {
            Some(
                outcome @ (Outcome::Refused { .. }
                | Outcome::Miss(_)
                | Outcome::Elsewhere(_)
                | Outcome::Outdated
                | Outcome::NotDue(_)
                | Outcome::Proposed { .. }),
            ) => outcome,
            Some(outcome) => {
                self.keep_decision(&known, decide, is_repeat);
                outcome
            }
            None => {
                let approval = self.keep_decision(&known, decide, is_repeat);
                Outcome::Proposed { approval, repeated: is_repeat }
            }
        }
    }

    fn keep_decision(
        &mut self,
        known: &Arc<Approval>,
        decide: &DecideApproval,
        is_repeat: bool,
    ) -> Arc<Approval> {
        if is_repeat {
            return Arc::clone(known);
        }
        let (verdict, at, signed) = (decide.verdict, self.now, decide.signed.clone());
        let decided =
            Arc::new(Approval { decision: Some(Decided { verdict, at, signed }), ..(**known).clone() });
        self.rows.approvals.insert(decided.key.clone(), Arc::clone(&decided));
        self.decided_approvals.push(Arc::clone(&decided));
        decided
    }
}

/// Whether it makes sense to ask somebody: what the order's state refuses, or was done before, is answered at once.
fn may_be_done(change: &OrderCommand, order: &Order) -> bool {
    match &change.action {
        OrderAction::Refund(refund) => {
            let is_made = |made: &RefundMade| made.asked.refund_id == refund.refund_id;
            order.state == State::Sold && !order.refunds.iter().any(is_made)
        }
        OrderAction::Confirm => matches!(order.state, State::Held | State::InReview | State::Released),
        OrderAction::Land
        | OrderAction::Cancel
        | OrderAction::Reduce(_)
        | OrderAction::Attempt(..)
        | OrderAction::Notice(_)
        | OrderAction::Release
        | OrderAction::Extend(_)
        | OrderAction::MarkRefunded(_)
        | OrderAction::Expire(_) => matches!(order.state, State::Held | State::InReview),
    }
}

/// How many units the work concerns.
fn units_of(change: &OrderCommand, order: &Order) -> u64 {
    let standing = || -> u64 {
        order.lines.iter().map(|line| u64::from(line.quantity.saturating_sub(line.refunded))).sum()
    };
    match &change.action {
        OrderAction::Refund(refund) => refund.lines.iter().map(|line| u64::from(line.quantity)).sum(),
        OrderAction::Reduce(keeps) => {
            let kept = |number: u32| keeps.iter().find(|keep| keep.line == number).map(|keep| keep.keep);
            let given = (1_u32..).zip(&order.lines).map(|(number, line)| {
                u64::from(line.quantity.saturating_sub(kept(number).unwrap_or(line.quantity)))
            });
            given.sum()
        }
        OrderAction::Land
        | OrderAction::Cancel
        | OrderAction::Attempt(..)
        | OrderAction::Notice(_)
        | OrderAction::Confirm
        | OrderAction::Release
        | OrderAction::Extend(_)
        | OrderAction::MarkRefunded(_)
        | OrderAction::Expire(_) => standing(),
    }
}

/// What differs from the request that the key is bound to.
fn differing(sent: &Proposal, kept: &Proposal) -> Vec<String> {
    match (sent, kept) {
        (Proposal::Adjust(sent), Proposal::Adjust(kept)) => super::stock::mismatch(sent, kept),
        (Proposal::Transfer(sent), Proposal::Transfer(kept)) => super::pool::mismatch(sent, kept),
        (Proposal::Order(sent), Proposal::Order(kept)) => {
            let differs = [
                (sent.action != kept.action, ""),
                (sent.signed.reason != kept.signed.reason, "/reason"),
                (sent.signed.actor != kept.signed.actor, "/operator"),
            ];
            differs.into_iter().filter(|(differs, _)| *differs).map(|(_, at)| at.to_owned()).collect()
        }
        (Proposal::Repair(sent), Proposal::Repair(kept)) => {
            let differs = [
                (sent.decides != kept.decides, "/action"),
                (sent.signed.reason != kept.signed.reason, "/reason"),
                (sent.signed.actor != kept.signed.actor, "/operator"),
            ];
            differs.into_iter().filter(|(differs, _)| *differs).map(|(_, at)| at.to_owned()).collect()
        }
        (Proposal::Adjust(_) | Proposal::Transfer(_) | Proposal::Order(_) | Proposal::Repair(_), _) => {
            vec![String::new()]
        }
    }
}
