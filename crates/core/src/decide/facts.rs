//! What the transition table looks at, worked out from an order, its command and the policy.

use crate::campaign::Policy;
use crate::command::{Keep, OrderAction, OrderCommand};
use crate::order::{Attempt, Line, Notice, Order, Payment, Reason, Refund, State};
use crate::table::{Facts, Landing, Phase, Retake, Trigger};
use crate::time::Timestamp;

use super::Working;
use super::allocate::reason_of;
use super::effects::is_due;
use super::place::opens_hold;
use super::serve::{Asker, Standing, Unserved};

impl Working {
    /// Works out the facts. `Err` names the pools that must be locked before they can be known.
    pub(super) fn facts(
        &self,
        order: &Order,
        command: &OrderCommand,
        policy: &Policy,
    ) -> Result<Facts, Vec<crate::id::PoolId>> {
        let notice = match &command.action {
            OrderAction::Notice(notice) => Some(notice),
            OrderAction::Land
            | OrderAction::Cancel
            | OrderAction::Reduce(_)
            | OrderAction::Attempt(..)
            | OrderAction::Refund(_)
            | OrderAction::Confirm
            | OrderAction::Release
            | OrderAction::Extend(_)
            | OrderAction::MarkRefunded(_)
            | OrderAction::Expire(_) => None,
        };
        let phase = phase(order, policy, self.now);
        let payment_under_review = under_review(order);
        let trigger = command.action.trigger();
        let wants_retake = order.state == State::Released
            && (trigger == Trigger::Success || (trigger == Trigger::Confirm && payment_under_review));
        Ok(Facts {
            payment_known: notice.is_some_and(|n| order.has_success_of(&n.provider, &n.payment_id)),
            paid_elsewhere: notice.is_some_and(|n| self.paid_elsewhere(order, n)),
            amount_differs: notice.is_some_and(|n| self.paid_elsewhere(order, n) || amount_differs(order, n)),
            paid_at_doubtful: notice.is_some_and(|n| paid_at_doubtful(order, n, policy, self.now)),
            paid_in_time: notice.is_some_and(|n| paid_in_time(order, n, policy)),
            has_success: order.has_success(),
            is_paid: order.is_paid(),
            payment_under_review,
            of_open_attempt: notice.is_some_and(|n| concerned_attempt(order, n).is_some()),
            no_other_attempt: notice.is_none_or(|n| !leaves_open_attempt(order, n)),
            attempt_open: order.has_open_attempt(),
            phase,
            due: order.due_at.is_some_and(|due| self.now >= due),
            refund_due: match &command.action {
                OrderAction::MarkRefunded(named) => is_due(order, named),
                OrderAction::Land
                | OrderAction::Cancel
                | OrderAction::Reduce(_)
                | OrderAction::Attempt(..)
                | OrderAction::Notice(_)
                | OrderAction::Refund(_)
                | OrderAction::Confirm
                | OrderAction::Release
                | OrderAction::Extend(_)
                | OrderAction::Expire(_) => order.refund_due.is_some(),
            },
            cancelled: order.reason == Some(Reason::Cancelled),
            decided_so: decided_so(order, trigger),
            unchanged: unchanged(order, &command.action),
            empties: empties(order, &command.action),
            late_payment: policy.late_payment,
            payment_failed: policy.payment_failed,
            review_end: policy.review_end,
            retake: if wants_retake { self.retake(order)? } else { Retake::Impossible },
            landing: if order.state == State::Queued && command.action == OrderAction::Land {
                self.landing(order, policy)?
            } else {
                Landing::Hold
            },
        })
    }

    /// Whether the payment succeeded on another order.
    pub(super) fn paid_elsewhere(&self, order: &Order, notice: &Notice) -> bool {
        let payment = (notice.provider.clone(), notice.payment_id.clone());
        self.rows.claims.get(&payment).is_some_and(|id| *id != order.id)
    }

    /// Whether a released order could take its units again.
    fn retake(&self, order: &Order) -> Result<Retake, Vec<crate::id::PoolId>> {
        let Some(campaign) = self.campaign(&order.key.campaign).cloned() else {
            return Ok(Retake::Impossible);
        };
        // A retired pool gives nothing again, frozen or not.
        let standing = order.lines.iter().map(|line| self.standing(line, Asker::Anew)).max();
        if standing == Some(Standing::Gone) {
            return Ok(Retake::Impossible);
        }
        if self.rows.halted || campaign.switches.frozen || standing == Some(Standing::Frozen) {
            return Ok(Retake::Frozen);
        }
        // It is sold at once: other open holds don't matter.
        if self.check_limits(&campaign, order, false).is_err() {
            return Ok(Retake::Impossible);
        }
        match self.allocate(&mut order.lines.clone(), 0, Asker::Anew) {
            Ok(()) => Ok(Retake::Possible),
            Err(Unserved::SoldOut(_)) => Ok(Retake::Impossible),
            Err(Unserved::Frozen) => Ok(Retake::Frozen),
            Err(Unserved::Miss(pools)) => Err(pools),
        }
    }

    /// Whether a queued order can take its units now: before the end of its queue time, and by the limits
    /// of now. Pause and close let in what was accepted before them; freeze waits.
    fn landing(&self, order: &Order, policy: &Policy) -> Result<Landing, Vec<crate::id::PoolId>> {
        let Some(campaign) = self.campaign(&order.key.campaign).cloned() else {
            return Ok(Landing::Refused(crate::order::Reason::CampaignClosed, None));
        };
        if order.due_at.is_some_and(|due| self.now >= due) {
            return Ok(Landing::Refused(crate::order::Reason::QueueTimeout, None));
        }
        if self.rows.halted || campaign.switches.frozen || self.any_frozen(&order.lines, Asker::Waited) {
            return Ok(Landing::Waits);
        }
        let opens_hold = opens_hold(policy);
        if let Err(refusal) = self.check_limits(&campaign, order, opens_hold) {
            let (reason, shortage) = reason_of(&refusal);
            return Ok(Landing::Refused(reason, shortage));
        }
        match self.allocate(&mut order.lines.clone(), 0, Asker::Waited) {
            Ok(()) => Ok(match policy.capture {
                crate::campaign::Capture::Hold => Landing::Hold,
                crate::campaign::Capture::Immediate => Landing::Sell,
            }),
            Err(Unserved::SoldOut(shortage)) => {
                Ok(Landing::Refused(crate::order::Reason::SoldOut, Some(shortage)))
            }
            Err(Unserved::Frozen) => Ok(Landing::Waits),
            Err(Unserved::Miss(pools)) => Err(pools),
        }
    }
}

/// How far the hold has run. Confirm strictly before the end; release not before end + grace.
fn phase(order: &Order, policy: &Policy, now: Timestamp) -> Phase {
    match order.hold_ends_at {
        Some(end) if now >= policy.release_at(end) => Phase::GraceOver,
        Some(end) if now >= end => Phase::Ended,
        Some(_) | None => Phase::Running,
    }
}

/// Another or no amount or currency while one is due.
fn amount_differs(order: &Order, notice: &Notice) -> bool {
    order.amount_due.as_ref().is_some_and(|due| {
        notice.amount_minor != Some(due.amount_minor) || notice.currency.as_ref() != Some(&due.currency)
    })
}

fn paid_at_doubtful(order: &Order, notice: &Notice, policy: &Policy, now: Timestamp) -> bool {
    // Clients see times cut to milliseconds: a payment at the moment that they see is not before the order.
    let created_at = Timestamp(order.created_at.0.saturating_sub(order.created_at.0.rem_euclid(1_000)));
    notice.paid_at.is_some_and(|paid| {
        paid > now.plus_millis(policy.release_grace_ms)
            || paid < created_at.minus_millis(policy.release_grace_ms)
    })
}

fn paid_in_time(order: &Order, notice: &Notice, policy: &Policy) -> bool {
    policy.deadline_basis == crate::campaign::DeadlineBasis::ProviderPaidAt
        && notice.paid_at.zip(order.hold_ends_at).is_some_and(|(paid, end)| paid < end)
}

/// Whether a success was recorded that a person must judge.
fn under_review(order: &Order) -> bool {
    order.payments.iter().any(Payment::is_under_review)
}

/// Which open attempt a notice concerns: the named one, else the only open one of its provider.
pub(super) fn concerned_attempt(order: &Order, notice: &Notice) -> Option<usize> {
    let mut open = order.attempts.iter().enumerate().filter(|(_, attempt)| attempt.open);
    match &notice.attempt_id {
        Some(id) => {
            let is_it = |attempt: &Attempt| attempt.attempt_id == *id && attempt.provider == notice.provider;
            open.find(|(_, attempt)| is_it(attempt)).map(|(index, _)| index)
        }
        None => {
            let (index, _) = open.find(|(_, attempt)| attempt.provider == notice.provider)?;
            open.all(|(_, attempt)| attempt.provider != notice.provider).then_some(index)
        }
    }
}

fn leaves_open_attempt(order: &Order, notice: &Notice) -> bool {
    let concerned = concerned_attempt(order, notice);
    order.attempts.iter().enumerate().any(|(index, attempt)| attempt.open && Some(index) != concerned)
}

/// Whether an operator who lost the answer asks for what he decided.
fn decided_so(order: &Order, trigger: Trigger) -> bool {
    match order.reason {
        Some(Reason::Confirmed) => trigger == Trigger::Confirm,
        Some(Reason::Operator) => trigger == Trigger::Release,
        Some(_) | None => false,
    }
}

/// Whether the command asks for what is there already.
fn unchanged(order: &Order, action: &OrderAction) -> bool {
    if let OrderAction::Reduce(keeps) = action {
        kept(order, keeps).all(|(line, keep)| keep == line.quantity)
    } else if let OrderAction::Extend(until) = action {
        order.hold_ends_at == Some(*until)
    } else {
        false
    }
}

/// Whether nothing of the order would be left.
fn empties(order: &Order, action: &OrderAction) -> bool {
    if let OrderAction::Reduce(keeps) = action {
        kept(order, keeps).all(|(_, keep)| keep == 0)
    } else if let OrderAction::Refund(refund) = action {
        refund_empties(order, refund)
    } else {
        false
    }
}

fn refund_empties(order: &Order, refund: &Refund) -> bool {
    let left: u64 = order.lines.iter().map(|l| u64::from(l.quantity.saturating_sub(l.refunded))).sum();
    let taken: u64 = refund.lines.iter().map(|l| u64::from(l.quantity)).sum();
    taken >= left
}

/// Every line with what would stay of it.
fn kept<'a>(order: &'a Order, keeps: &'a [Keep]) -> impl Iterator<Item = (&'a Line, u32)> {
    order.lines.iter().zip(1_u32..).map(|(line, number)| {
        let named = keeps.iter().filter(|k| k.line == number).map(|k| k.keep).min();
        (line, named.unwrap_or(line.quantity))
    })
}
