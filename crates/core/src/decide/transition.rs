//! Changing an order: repeats by key first, then the table, then its effects.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::campaign::Policy;
use crate::case::Case;
use crate::command::{How, Inquiry, OrderAction, OrderCommand, Outcome};
use crate::id::OrderId;
use crate::order::{
    Disposition, Notice, ORDER_RECORDS_MAX, Order, Payment, PaymentOutcome, RefundMade, State,
};
use crate::refusal::Refusal;
use crate::snapshot::{PaymentClaim, PaymentRow};
use crate::stock::Delta;
use crate::table::{Facts, Mark, Stock, Then, Trigger, rule_for};

use super::effects::{
    Step, add_standing, apply_reviewed, begin_attempt, check_content, has_ended, is_due, is_success_of, mark,
    note, notice_mismatch, reduce, refund_mismatch, refusal_of, restocks, set_due, set_reason, take_refund,
};
use super::facts::concerned_attempt;
use super::serve::Asker;
use super::{Blocked, Deltas, Working, blocked};

impl Working {
    pub(super) fn change(&mut self, command: &OrderCommand) -> Outcome {
        let Some(order) = self.order(command.order) else {
            return Outcome::refused(Refusal::UnknownOrder);
        };
        let policy = self.policy_of(&order.key.campaign);
        if let Some(known) = self.known(&order, command, &policy) {
            return known;
        }
        if let Err(refusal) = check_content(&order, &command.action, &policy) {
            return Outcome::refused_on(refusal, order);
        }
        let facts = match self.facts(&order, command, &policy) {
            Ok(facts) => facts,
            Err(pools) => return Outcome::Elsewhere(pools),
        };
        match rule_for(order.state, command.action.trigger(), &facts) {
            Then::Go { .. } | Then::Record(Disposition::Parked | Disposition::Review)
                if notices_full(&order, &command.action) =>
            {
                Outcome::refused_on(
                    Refusal::Conflict("the order has as many payment notices as it may have"),
                    order,
                )
            }
            Then::Go { .. } if waits_for_an_answer(&order, &command.action) => {
                Outcome::Order { order, how: How::Repeated, disposition: None }
            }
            Then::Go { to, stock, reason, mark, disposition } => {
                let step = Step { to, stock, reason, mark, disposition };
                match self.go(&order, command, &policy, &facts, &step) {
                    Ok(outcome) => outcome,
                    Err(why) => blocked(why),
                }
            }
            Then::Record(disposition) => self.record(&order, command, disposition),
            Then::Again => Outcome::Order { order, how: How::Repeated, disposition: None },
            Then::NotDue => Outcome::NotDue(if order.state == State::Held || order.state == State::Queued {
                order.hold_ends_at.map(|end| policy.release_at(end)).or(order.due_at)
            } else {
                order.due_at
            }),
            Then::Refuse(code) => Outcome::refused_on(refusal_of(code, &order), order),
            Then::RefuseRefundDue(code) => {
                let step = Step {
                    to: None,
                    stock: Stock::Stays,
                    reason: None,
                    mark: Mark::Recorded,
                    disposition: None,
                };
                match self.go(&order, command, &policy, &facts, &step) {
                    Ok(Outcome::Order { order, .. }) => Outcome::refused_on(refusal_of(code, &order), order),
                    Ok(other) => other,
                    Err(why) => blocked(why),
                }
            }
        }
    }

    /// A command whose key is known: the order as it stands now, or a mismatch.
    fn known(&self, order: &Arc<Order>, command: &OrderCommand, policy: &Policy) -> Option<Outcome> {
        let again =
            |disposition| Some(Outcome::Order { order: Arc::clone(order), how: How::Repeated, disposition });
        let differs = |fields: &[&str]| {
            let fields = fields.iter().map(|f| (*f).to_owned()).collect();
            Some(Outcome::refused_on(Refusal::KeyMismatch(fields), Arc::clone(order)))
        };
        match &command.action {
            OrderAction::Attempt(id, provider) => {
                let attempt = order.attempts.iter().find(|a| a.attempt_id == *id)?;
                if attempt.provider == *provider { again(None) } else { differs(&["/provider"]) }
            }
            OrderAction::Refund(refund) => {
                let made = order.refunds.iter().find(|r| r.asked.refund_id == refund.refund_id)?;
                let fields = refund_mismatch(made, refund, policy);
                if fields.is_empty() { again(None) } else { differs(&fields) }
            }
            OrderAction::Notice(notice) => {
                let owner = self.rows.events.get(&(notice.provider.clone(), notice.event_id.clone()))?;
                if *owner != order.id {
                    return differs(&["/order_id"]);
                }
                let kept = order
                    .payments
                    .iter()
                    .find(|p| p.notice.provider == notice.provider && p.notice.event_id == notice.event_id)?;
                if kept.notice == *notice {
                    return again(Some(Disposition::Duplicate));
                }
                let fields = notice_mismatch(&kept.notice, notice);
                differs(&fields)
            }
            // Named payments that had to go back, and of which none has to any more.
            OrderAction::MarkRefunded(named) => {
                let had_to = |kept: &Payment, id| {
                    is_success_of(kept, id) && kept.disposition == Disposition::RefundDue
                };
                let went_back = named.iter().all(|id| order.payments.iter().any(|kept| had_to(kept, id)));
                if named.is_empty() || is_due(order, named) || !went_back { None } else { again(None) }
            }
            OrderAction::Land
            | OrderAction::Cancel
            | OrderAction::Reduce(_)
            | OrderAction::Confirm
            | OrderAction::Release
            | OrderAction::Extend(_)
            | OrderAction::Expire(_) => None,
        }
    }

    /// Keeps a notice as evidence on an order that does not change.
    fn record(&mut self, order: &Arc<Order>, command: &OrderCommand, disposition: Disposition) -> Outcome {
        // An order row is written only under its home bucket's lock, also where no entry is written.
        if let Some(home) = order.home.filter(|home| !self.rows.buckets.contains_key(home)) {
            return Outcome::Elsewhere(vec![home.pool]);
        }
        let mut after = Order::clone(order);
        if let OrderAction::Notice(notice) = &command.action
            && !notices_full(order, &command.action)
        {
            self.keep_notice(&mut after, notice, disposition);
            let order = self.store_silently(order, after);
            self.mind_review(&order, command);
            return Outcome::Order { order, how: How::Changed, disposition: Some(disposition) };
        }
        // Past the limit a notice that changes nothing is answered and not kept.
        Outcome::Order { order: Arc::clone(order), how: How::Repeated, disposition: Some(disposition) }
    }

    fn keep_notice(&mut self, order: &mut Order, notice: &Notice, disposition: Disposition) {
        let elsewhere = notice.outcome == PaymentOutcome::Succeeded && self.paid_elsewhere(order, notice);
        order.payments.push(Payment {
            notice: notice.clone(),
            received_at: self.now,
            order_version: order.version,
            disposition,
            elsewhere,
        });
        let event = (notice.provider.clone(), notice.event_id.clone());
        // An event whose row is there and whose order knows nothing of it is told again by reconciliation.
        let is_new = self.rows.events.insert(event, order.id).is_none();
        if notice.outcome == PaymentOutcome::Succeeded {
            self.claim(notice, order.id);
        }
        if is_new {
            self.new_payments.push(PaymentRow {
                provider: notice.provider.clone(),
                event_id: notice.event_id.clone(),
                payment_id: notice.payment_id.clone(),
                order: order.id,
                outcome: notice.outcome,
            });
        }
    }

    /// The payment is for the order on which it succeeds first.
    fn claim(&mut self, notice: &Notice, order: OrderId) {
        let (provider, payment_id) = (notice.provider.clone(), notice.payment_id.clone());
        if let Entry::Vacant(free) = self.rows.claims.entry((provider.clone(), payment_id.clone())) {
            free.insert(order);
            self.new_claims.insert(PaymentClaim { provider, payment_id, order });
        }
    }

    /// Carries out a row of the table: works out the order after, then stores it with its entries.
    fn go(
        &mut self,
        before: &Arc<Order>,
        command: &OrderCommand,
        policy: &Policy,
        facts: &Facts,
        step: &Step,
    ) -> Result<Outcome, Blocked> {
        let mut after = Order::clone(before);
        let mut deltas = self.move_stock(&mut after, command, policy, step)?;
        if let Some(home) = after.home {
            deltas.entry(home).or_default();
        }
        // Balances, the event's bucket included, are checked before anything is kept, so that a blocked
        // change leaves no trace.
        self.balances_after(&deltas)?;
        if let Some(to) = step.to {
            after.state = to;
        }
        set_reason(&mut after, before, facts, step);
        let parked = std::mem::take(&mut after.payments);
        let (parked, kept): (Vec<_>, Vec<_>) = parked.into_iter().partition(|p| {
            command.action == OrderAction::Land
                && p.disposition == Disposition::Parked
                && after.state != State::Failed
        });
        after.payments = kept;
        self.own_effects(&mut after, command, policy, step);
        mark(&mut after, command, step.mark, self.now);
        set_due(&mut after, before, policy, self.now);
        let note = note(command, step);
        let order = self.store_event(Some(before), after, deltas, &note)?;
        self.mind_charge(before, &order, command, step);
        self.mind_review(&order, command);
        let outcome = Outcome::Order { order, how: How::Changed, disposition: step.disposition };
        Ok(self.apply_parked(parked, command, outcome))
    }

    /// Money for an order that was sold or refunded must go back, and somebody should know why it came.
    fn mind_charge(&mut self, before: &Order, after: &Order, command: &OrderCommand, step: &Step) {
        if let OrderAction::Notice(notice) = &command.action
            && step.mark == Mark::ThisPayment
            && matches!(before.state, State::Sold | State::Refunded)
        {
            self.open_case(Case::charged_twice(after, notice, self.now));
        }
    }

    /// Money of an order that nobody looks at any more needs a person: it was not applied, and may have to go back.
    fn mind_review(&mut self, order: &Order, command: &OrderCommand) {
        let trigger = command.action.trigger();
        if matches!(trigger, Trigger::Success | Trigger::Confirm)
            && has_ended(order.state)
            && order.payments.iter().any(Payment::is_under_review)
        {
            self.open_case(Case::payment_under_review(order, self.now));
        }
    }

    /// A success that waited for its order to land is applied now, as if it had just come.
    fn apply_parked(
        &mut self,
        parked: Vec<Payment>,
        command: &OrderCommand,
        mut outcome: Outcome,
    ) -> Outcome {
        for payment in parked {
            let event = (payment.notice.provider.clone(), payment.notice.event_id.clone());
            self.rows.events.remove(&event);
            // It is this order's since it was parked.
            let claimed = (payment.notice.provider.clone(), payment.notice.payment_id.clone());
            self.rows.claims.entry(claimed).or_insert(command.order);
            let rows = self.new_payments.len();
            let action = OrderAction::Notice(payment.notice);
            outcome = self.change(&OrderCommand { action, ..command.clone() });
            // The event's row exists since it was parked.
            self.new_payments.truncate(rows);
        }
        outcome
    }

    /// Moves the order's stock in its lines, and works out what its buckets give and take.
    pub(super) fn move_stock(
        &self,
        after: &mut Order,
        command: &OrderCommand,
        policy: &Policy,
        step: &Step,
    ) -> Result<Deltas, Blocked> {
        let mut deltas = Deltas::new();
        match step.stock {
            Stock::Stays => {}
            Stock::Take | Stock::Sell => {
                self.allocate(&mut after.lines, 0, Asker::Waited).map_err(|_| Blocked::Impossible)?;
                deltas = self.take_stock(after, policy);
            }
            Stock::Confirm => add_standing(&mut deltas, after, Delta::confirm),
            Stock::Release => {
                add_standing(&mut deltas, after, Delta::release);
                for line in &mut after.lines {
                    line.allocations.clear();
                }
            }
            Stock::ReleasePart => {
                if let OrderAction::Reduce(keeps) = &command.action {
                    reduce(&mut deltas, after, keeps);
                }
            }
            Stock::Restock => {
                if let OrderAction::Refund(refund) = &command.action {
                    take_refund(&mut deltas, after, refund, restocks(refund, policy));
                }
            }
            Stock::Retake => {
                self.allocate(&mut after.lines, 0, Asker::Anew).map_err(|_| Blocked::Impossible)?;
                add_standing(&mut deltas, after, Delta::sell);
            }
        }
        Ok(deltas)
    }

    /// What the command itself leaves on the order.
    fn own_effects(&mut self, after: &mut Order, command: &OrderCommand, policy: &Policy, step: &Step) {
        match &command.action {
            OrderAction::Attempt(id, provider) => {
                begin_attempt(after, id, provider, policy, self.now);
            }
            OrderAction::Notice(notice) => {
                match notice.outcome {
                    PaymentOutcome::Succeeded => after.attempts.iter_mut().for_each(|a| a.open = false),
                    PaymentOutcome::Failed => {
                        let concerned = concerned_attempt(after, notice);
                        if let Some(attempt) = concerned.and_then(|index| after.attempts.get_mut(index)) {
                            attempt.open = false;
                        }
                    }
                }
                self.keep_notice(after, notice, step.disposition.unwrap_or(Disposition::Applied));
            }
            OrderAction::Refund(refund) => {
                after.refunds.push(RefundMade { asked: refund.clone(), restocked: restocks(refund, policy) })
            }
            OrderAction::Extend(until) => after.hold_ends_at = Some(*until),
            // A confirmation refused for want of stock pays for nothing: its payments must go back.
            OrderAction::Confirm if step.to.is_none() => {}
            OrderAction::Confirm => {
                // What is not needed must go back, which the row's mark does.
                apply_reviewed(after);
            }
            OrderAction::Land
            | OrderAction::Cancel
            | OrderAction::Reduce(_)
            | OrderAction::Release
            | OrderAction::MarkRefunded(_)
            | OrderAction::Expire(_) => {}
        }
    }
}

/// A notice that would change an order is never dropped: past the limit it is refused, and the provider
/// sends it again. Failed notices may fill only half of the room, so that money that comes is always heard.
fn notices_full(order: &Order, action: &OrderAction) -> bool {
    match action {
        OrderAction::Notice(notice) => match notice.outcome {
            PaymentOutcome::Succeeded => order.payments.len() >= ORDER_RECORDS_MAX,
            PaymentOutcome::Failed => order.payments.len() >= ORDER_RECORDS_MAX / 2,
        },
        OrderAction::Land
        | OrderAction::Cancel
        | OrderAction::Reduce(_)
        | OrderAction::Attempt(..)
        | OrderAction::Refund(_)
        | OrderAction::Confirm
        | OrderAction::Release
        | OrderAction::Extend(_)
        | OrderAction::MarkRefunded(_)
        | OrderAction::Expire(_) => false,
    }
}

/// Whether somebody may know what became of a payment of this order, and is to be asked before it ends.
fn waits_for_an_answer(order: &Order, action: &OrderAction) -> bool {
    *action == OrderAction::Expire(Inquiry::Open) && order.attempts.iter().any(|attempt| attempt.open)
}
