//! What a row of the table does to an order, piece by piece.

use std::sync::Arc;

use crate::assortment::Part;
use crate::campaign::{Policy, ReviewEnd};
use crate::command::{Keep, OrderAction, OrderCommand};
use crate::id::{AttemptId, PaymentId, Provider};
use crate::ledger::Action;
use crate::order::{
    Allocation, Attempt, Disposition, Line, Money, Notice, ORDER_RECORDS_MAX, Order, Payment, PaymentOutcome,
    Reason, Refund, RefundDue, RefundMade, Shortage, State,
};
use crate::refusal::Refusal;
use crate::stock::Delta;
use crate::table::{Code, Facts, Landing, Mark, Stock, Trigger};
use crate::time::Timestamp;

use super::{Deltas, Note};

/// The effects of one row of the table.
pub(super) struct Step {
    pub(super) to: Option<State>,
    pub(super) stock: Stock,
    pub(super) reason: Option<Reason>,
    pub(super) mark: Mark,
    pub(super) disposition: Option<Disposition>,
}

/// Checks what does not depend on the order's state: that its numbers name lines that exist, and that
/// records are left.
pub(super) fn check_content(order: &Order, action: &OrderAction, policy: &Policy) -> Result<(), Refusal> {
    let line_of = |number: u32, index: usize| {
        position(number).and_then(|p| order.lines.get(p)).ok_or_else(|| Refusal::InvalidValue {
            pointer: format!("/lines/{index}/line"),
            why: "the order has no such line",
        })
    };
    let full = |records: usize| {
        if records < ORDER_RECORDS_MAX {
            Ok(())
        } else {
            Err(Refusal::Conflict("the order has as many records of this kind as it may have"))
        }
    };
    match action {
        OrderAction::Reduce(keeps) => {
            for (index, keep) in keeps.iter().enumerate() {
                let line = line_of(keep.line, index)?;
                if order.state == State::Held && keep.keep > line.quantity {
                    return Err(Refusal::Conflict("a line can only be reduced, never raised"));
                }
            }
            Ok(())
        }
        OrderAction::Refund(refund) => {
            full(order.refunds.len())?;
            for (index, refunded) in refund.lines.iter().enumerate() {
                let line = line_of(refunded.line, index)?;
                let requested: u64 = refund
                    .lines
                    .iter()
                    .filter(|l| l.line == refunded.line)
                    .map(|l| u64::from(l.quantity))
                    .sum();
                let available = u64::from(line.quantity.saturating_sub(line.refunded));
                if order.state == State::Sold && requested > available {
                    return Err(Refusal::RefundExceedsSold(Shortage {
                        line: refunded.line,
                        requested,
                        available,
                    }));
                }
            }
            Ok(())
        }
        OrderAction::Attempt(..) => full(order.attempts.len()),
        OrderAction::Extend(until) => check_end(order, *until, policy),
        OrderAction::MarkRefunded(payments) => {
            let is_known = |id| order.payments.iter().any(|kept| is_success_of(kept, id));
            let unknown = payments.iter().position(|id| !is_known(id));
            unknown.map_or(Ok(()), |index| {
                let (pointer, why) = (format!("/payment_ids/{index}"), "is no payment of this order");
                Err(Refusal::InvalidValue { pointer, why })
            })
        }
        OrderAction::Land
        | OrderAction::Cancel
        | OrderAction::Notice(_)
        | OrderAction::Confirm
        | OrderAction::Release
        | OrderAction::Expire(_) => Ok(()),
    }
}

/// The range of a new end; an order that has ended is refused for that.
fn check_end(order: &Order, until: Timestamp, policy: &Policy) -> Result<(), Refusal> {
    let latest = order.created_at.plus_seconds(policy.hold_seconds_max);
    let fits = order.hold_ends_at.is_none_or(|end| until >= end) && until <= latest;
    if fits || !matches!(order.state, State::Held | State::InReview) {
        return Ok(());
    }
    Err(Refusal::InvalidValue {
        pointer: "/until".into(),
        why: "must lie between the end of the hold and the campaign's hold_seconds_max",
    })
}

/// Whether this notice told of a success of the payment.
pub(super) fn is_success_of(kept: &Payment, payment: &PaymentId) -> bool {
    kept.notice.outcome == PaymentOutcome::Succeeded && kept.notice.payment_id == *payment
}

/// Whether money of a named payment still has to go back; of any, where none is named. Where an order has ended, a
/// person may also have sent back what was under review.
pub(super) fn is_due(order: &Order, named: &[PaymentId]) -> bool {
    let due = order.refund_due.iter().flat_map(|due| &due.payments);
    due.map(|(_, id)| id).any(|id| named.is_empty() || named.contains(id))
        || (has_ended(order.state)
            && order.payments.iter().any(|p| p.is_under_review() && named.contains(&p.notice.payment_id)))
}

/// Whether no time and no decision about its stock is waited for: nobody looks at its payments any more.
pub(super) const fn has_ended(state: State) -> bool {
    match state {
        State::Queued | State::Held | State::InReview => false,
        State::Sold | State::Refunded | State::Released | State::Failed => true,
    }
}

/// An operator says that the order is paid: by the first of the payments that were made for it, and by further ones as
/// long as together they are no more than is due. What more was paid must go back.
pub(super) fn apply_reviewed(order: &mut Order) {
    let due = order.amount_due.clone();
    let (mut is_first, mut paid) = (true, 0_i64);
    for payment in &mut order.payments {
        if !payment.is_under_review() || payment.elsewhere {
            continue;
        }
        let is_of = |due: &&Money| payment.notice.currency.as_ref() == Some(&due.currency);
        let sum = payment.notice.amount_minor.map(|amount| paid.saturating_add(amount));
        let fits = due.as_ref().filter(is_of).zip(sum).is_some_and(|(due, sum)| sum <= due.amount_minor);
        if is_first || fits {
            payment.disposition = Disposition::Applied;
            // Of one that cannot be compared nobody knows what is missing: nothing more is applied.
            paid = if fits { sum.unwrap_or(i64::MAX) } else { i64::MAX };
        }
        is_first = false;
    }
}

pub(super) fn refusal_of(code: Code, order: &Order) -> Refusal {
    match code {
        Code::NotHeld => Refusal::NotHeld,
        Code::NotSold => Refusal::NotSold,
        Code::HoldExpired => Refusal::HoldExpired,
        Code::InReview => Refusal::InReview,
        Code::AlreadySold => Refusal::AlreadySold,
        Code::AlreadyReleased => Refusal::AlreadyReleased,
        Code::AlreadyRefunded => Refusal::AlreadyRefunded,
        Code::AlreadyFailed if order.reason == Some(Reason::Cancelled) => Refusal::Cancelled,
        Code::AlreadyFailed => Refusal::AlreadyFailed,
        Code::NothingDue => {
            Refusal::Conflict("nothing of this order, or of the named payments, is due to be sent back")
        }
        Code::SoldOut => Refusal::SoldOut(Shortage { line: 1, requested: 0, available: 0 }),
        Code::Frozen => Refusal::Frozen,
    }
}

/// Lines are numbered from 1.
fn position(number: u32) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

fn line_mut(order: &mut Order, number: u32) -> Option<&mut Line> {
    order.lines.get_mut(position(number)?)
}

pub(super) fn add_standing(deltas: &mut Deltas, order: &Order, step: fn(u64) -> Delta) {
    for allocation in order.allocations() {
        let delta = deltas.entry(allocation.bucket).or_default();
        *delta = delta.and(step(allocation.standing()));
    }
}

/// Takes so many units of a line from its allocations, of each part its share, the highest (pool, bucket) first.
/// `take` is given an allocation and how many units it may take, and says how many it took.
fn from_the_highest(line: &mut Line, quantity: u32, mut take: impl FnMut(&mut Allocation, u64) -> u64) {
    line.allocations.sort_unstable_by_key(|a| a.bucket);
    let made_of = line.made_of.clone();
    let mut take_of = |part: Option<&Part>| {
        let each = part.map_or(1, |part| u64::from(part.per_unit));
        let mut rest = u64::from(quantity).saturating_mul(each);
        let is_of = |a: &&mut Allocation| part.is_none_or(|part| part.has(a.bucket.pool));
        for allocation in line.allocations.iter_mut().rev().filter(is_of) {
            rest = rest.saturating_sub(take(allocation, rest));
        }
    };
    match &made_of {
        None => take_of(None),
        Some(made_of) => made_of.parts.iter().for_each(|part| take_of(Some(part))),
    }
}

/// Reduces lines to what stays. The highest (pool, bucket) gives first.
pub(super) fn reduce(deltas: &mut Deltas, order: &mut Order, keeps: &[Keep]) {
    for keep in keeps {
        let Some(line) = line_mut(order, keep.line) else { continue };
        let gone = line.quantity.saturating_sub(keep.keep);
        line.quantity = line.quantity.min(keep.keep);
        from_the_highest(line, gone, |allocation, rest| {
            let units = rest.min(allocation.quantity);
            allocation.quantity = allocation.quantity.saturating_sub(units);
            let delta = deltas.entry(allocation.bucket).or_default();
            *delta = delta.and(Delta::release(units));
            units
        });
        line.allocations.retain(|a| a.quantity > 0);
    }
    deltas.retain(|_, delta| *delta != Delta::default());
}

/// Whether a refund puts stock back.
pub(super) fn restocks(refund: &Refund, policy: &Policy) -> bool {
    refund.restock.unwrap_or(policy.restock_on_refund)
}

/// The fields of a refund that differ from the one of the same id, an absent field being its default.
pub(super) fn refund_mismatch(made: &RefundMade, sent: &Refund, policy: &Policy) -> Vec<&'static str> {
    let kept = &made.asked;
    [
        (kept.lines != sent.lines, "/lines"),
        (kept.restock != sent.restock && made.restocked != restocks(sent, policy), "/restock"),
        (kept.reason != sent.reason, "/reason"),
    ]
    .into_iter()
    .filter_map(|(differs, field)| differs.then_some(field))
    .collect()
}

/// Refunds units of lines; restocked units go back to the highest (pool, bucket) first.
pub(super) fn take_refund(deltas: &mut Deltas, order: &mut Order, refund: &Refund, restock: bool) {
    for refunded in &refund.lines {
        let Some(line) = line_mut(order, refunded.line) else { continue };
        line.refunded = line.refunded.saturating_add(refunded.quantity);
        let back = if restock { refunded.quantity } else { 0 };
        from_the_highest(line, back, |allocation, rest| {
            let units = rest.min(allocation.standing());
            if units > 0 {
                allocation.restocked = allocation.restocked.saturating_add(units);
                let delta = deltas.entry(allocation.bucket).or_default();
                *delta = delta.and(Delta::restock(units));
            }
            units
        });
    }
}

pub(super) fn begin_attempt(
    order: &mut Order,
    id: &AttemptId,
    provider: &Provider,
    policy: &Policy,
    now: Timestamp,
) {
    order.attempts.push(Attempt {
        attempt_id: id.clone(),
        provider: provider.clone(),
        started_at: now,
        open: true,
    });
    let latest = order.created_at.plus_seconds(policy.hold_seconds_max);
    if let Some(end) = order.hold_ends_at
        && !order.extended
        && policy.payment_extension_seconds > 0
    {
        let extended = end.plus_seconds(policy.payment_extension_seconds).min(latest);
        if extended > end {
            order.hold_ends_at = Some(extended);
            order.extended = true;
        }
    }
}

pub(super) fn set_reason(after: &mut Order, before: &Order, facts: &Facts, step: &Step) {
    if let Some(reason) = step.reason {
        after.reason = Some(reason);
    } else if let (State::Queued, State::Failed, Landing::Refused(reason, shortage)) =
        (before.state, after.state, facts.landing)
    {
        after.reason = Some(reason);
        after.shortage = shortage;
    } else if after.state != before.state {
        after.reason = None;
    }
}

pub(super) fn set_due(after: &mut Order, before: &Order, policy: &Policy, now: Timestamp) {
    after.due_at = match after.state {
        State::Held => after.hold_ends_at.map(|end| policy.release_at(end)),
        State::InReview if before.state == State::InReview => before.due_at,
        State::InReview => match policy.review_end {
            ReviewEnd::Release => Some(now.plus_seconds(policy.review_seconds)),
            ReviewEnd::Person => None,
        },
        State::Queued => before.due_at,
        State::Sold | State::Refunded | State::Released | State::Failed => None,
    };
}

/// Sets or clears the flag *refund due* with its payments.
pub(super) fn mark(after: &mut Order, command: &OrderCommand, mark: Mark, now: Timestamp) {
    let mut due: Vec<(Provider, PaymentId)> = Vec::new();
    match mark {
        Mark::No => {}
        Mark::ThisPayment => {
            if let OrderAction::Notice(notice) = &command.action {
                due.push((notice.provider.clone(), notice.payment_id.clone()));
            }
        }
        Mark::Recorded => {
            for payment in &mut after.payments {
                // What paid another order is no money to give back.
                let waits = match payment.disposition {
                    Disposition::Parked => true,
                    Disposition::Review => !payment.elsewhere,
                    Disposition::Applied
                    | Disposition::Duplicate
                    | Disposition::Retaken
                    | Disposition::RefundDue
                    | Disposition::Ignored => false,
                };
                if payment.succeeded() && waits {
                    payment.disposition = Disposition::RefundDue;
                    due.push((payment.notice.provider.clone(), payment.notice.payment_id.clone()));
                }
            }
        }
        Mark::Clear => {
            if let OrderAction::MarkRefunded(cleared) = &command.action {
                let rest = after.refund_due.take().map(|mut known| {
                    known.payments.retain(|(_, id)| !cleared.contains(id) && !cleared.is_empty());
                    known
                });
                after.refund_due = rest.filter(|known| !known.payments.is_empty());
                for payment in &mut after.payments {
                    if payment.is_under_review() && cleared.contains(&payment.notice.payment_id) {
                        payment.disposition = Disposition::RefundDue;
                    }
                }
            }
        }
    }
    if !due.is_empty() {
        let known = after.refund_due.get_or_insert_with(|| RefundDue { since: now, payments: Vec::new() });
        for payment in due {
            if !known.payments.contains(&payment) {
                known.payments.push(payment);
            }
        }
    }
}

pub(super) fn note(command: &OrderCommand, step: &Step) -> Note {
    let source: Arc<str> = match &command.action {
        OrderAction::Attempt(id, _) => format!("attempt:{id}").into(),
        OrderAction::Notice(notice) => format!("payment:{}/{}", notice.provider, notice.event_id).into(),
        OrderAction::Refund(refund) => format!("refund:{}", refund.refund_id).into(),
        OrderAction::Land
        | OrderAction::Cancel
        | OrderAction::Reduce(_)
        | OrderAction::Confirm
        | OrderAction::Release
        | OrderAction::Extend(_)
        | OrderAction::MarkRefunded(_)
        | OrderAction::Expire(_) => command.action.trigger().as_str().into(),
    };
    let action = match step.stock {
        Stock::Take | Stock::Sell => Action::Land,
        Stock::Confirm => Action::Confirm,
        Stock::Release => Action::Release,
        Stock::ReleasePart => Action::Reduce,
        Stock::Restock => Action::Refund,
        Stock::Retake => Action::Retake,
        Stock::Stays if command.action.trigger() == Trigger::Land => Action::Land,
        Stock::Stays => Action::OrderEvent,
    };
    Note {
        action,
        source,
        actor: Arc::clone(&command.signed.actor),
        reason: Arc::clone(&command.signed.reason),
        settles: None,
    }
}

pub(super) fn notice_mismatch(kept: &Notice, sent: &Notice) -> Vec<&'static str> {
    [
        (kept.payment_id != sent.payment_id, "/payment_id"),
        (kept.attempt_id != sent.attempt_id, "/attempt_id"),
        (kept.outcome != sent.outcome, "/outcome"),
        (kept.paid_at != sent.paid_at, "/paid_at"),
        (kept.amount_minor != sent.amount_minor, "/amount_minor"),
        (kept.currency != sent.currency, "/currency"),
    ]
    .into_iter()
    .filter_map(|(differs, field)| differs.then_some(field))
    .collect()
}
