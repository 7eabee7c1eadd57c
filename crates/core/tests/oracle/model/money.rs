//! The model's notices, refunds, operators and time.

use super::places::Again;
use super::{Answer, Late, Model, Seen, St, add_due, refused, say};
use crate::steps::NoticeStep;

impl Model {
    pub(crate) fn notice(&mut self, id: u32, notice: &NoticeStep) -> Answer {
        let Some(order) = self.orders.get(&id) else { return refused("not_found") };
        if let Some(owner) = self.events.get(&(notice.provider, notice.event)) {
            let same = |seen: &Seen| seen.notice == *notice;
            let known = *owner == id && order.seen.iter().any(same);
            return if known { say("repeated duplicate") } else { refused("key_mismatch") };
        }
        self.events.insert((notice.provider, notice.event), id);
        if notice.succeeded { self.success(id, notice) } else { self.failure(id, notice) }
    }

    /// Decides what a success does, then keeps it.
    pub(super) fn success(&mut self, id: u32, notice: &NoticeStep) -> Answer {
        let payment = (notice.provider, notice.payment);
        let was = self.orders[&id].state;
        let what = self.judge(id, notice);
        if what == "refund_due" && matches!(was, St::Sold | St::Refunded) {
            self.cases.insert((id, "charged_twice"));
        }
        let elsewhere = *self.first_success.entry(payment).or_insert(id) != id;
        let order = self.orders.get_mut(&id).unwrap();
        order.seen.push(Seen { notice: notice.clone(), what, elsewhere });
        if order.needs_a_person() {
            self.cases.insert((id, "payment_under_review"));
        }
        if what == "refund_due" {
            add_due(&mut order.due, notice);
        }
        if what != "duplicate" && what != "parked" {
            order.attempts.iter_mut().for_each(|attempt| attempt.2 = false);
        }
        format!("changed {what}")
    }

    fn judge(&mut self, id: u32, notice: &NoticeStep) -> &'static str {
        let payment = (notice.provider, notice.payment);
        let order = &self.orders[&id];
        if order.successes().any(|s| (s.notice.provider, s.notice.payment) == payment) {
            return "duplicate";
        }
        let paid_any = order.successes().any(|s| s.what == "applied" || s.what == "retaken");
        let elsewhere = self.first_success.get(&payment).is_some_and(|first| *first != id);
        let wrong = elsewhere || (order.sent.priced && notice.amount != Some(self.rules.right_amount));
        match order.state {
            St::Queued if elsewhere => "review",
            St::Queued => "parked",
            St::Failed | St::Sold | St::Refunded if elsewhere => "review",
            St::Failed | St::Refunded => "refund_due",
            St::Held => self.judge_held(id, notice, wrong),
            St::InReview if wrong => "review",
            St::InReview => {
                self.sell_held(id);
                "applied"
            }
            St::Sold if paid_any => "refund_due",
            St::Sold if wrong => "review",
            St::Sold => "applied",
            St::Released if wrong => "review",
            St::Released => match self.rules.late {
                Late::Refund => "refund_due",
                Late::Review => "review",
                Late::Retake => match self.again(id) {
                    Again::Yes => {
                        self.retake(id);
                        "retaken"
                    }
                    Again::Frozen => "review",
                    Again::No => "refund_due",
                },
            },
        }
    }

    fn judge_held(&mut self, id: u32, notice: &NoticeStep, wrong: bool) -> &'static str {
        let order = &self.orders[&id];
        let (end, skew) = (order.end.unwrap(), self.rules.skew);
        let doubtful = notice.paid_at.is_some_and(|at| at > self.now + skew || at < order.created - skew);
        if wrong || doubtful {
            self.put_in_review(id);
            return "review";
        }
        let in_time = self.rules.by_paid_at && notice.paid_at.is_some_and(|at| at < end);
        if self.now < end || in_time {
            self.sell_held(id);
            return "applied";
        }
        match self.rules.late {
            Late::Retake => {
                self.sell_held(id);
                "retaken"
            }
            Late::Refund => "refund_due",
            Late::Review => {
                self.put_in_review(id);
                "review"
            }
        }
    }

    fn failure(&mut self, id: u32, notice: &NoticeStep) -> Answer {
        let order = self.orders.get_mut(&id).unwrap();
        let concerned = order.concerned(notice);
        let others = order.open_attempts() - usize::from(concerned.is_some());
        let releases = match order.state {
            St::Held => Some(self.rules.release_on_failure && others == 0),
            St::InReview if concerned.is_some() && others == 0 && order.successes().next().is_none() => {
                Some(true)
            }
            St::Queued | St::InReview | St::Sold | St::Refunded | St::Released | St::Failed => None,
        };
        let what = if releases.is_some() { "applied" } else { "ignored" };
        order.seen.push(Seen { notice: notice.clone(), what, elsewhere: false });
        if releases.is_some() || order.state == St::InReview {
            for attempt in order.attempts.iter_mut().filter(|a| Some(a.0) == concerned) {
                attempt.2 = false;
            }
        }
        if releases == Some(true) {
            self.release_held(id, "payment_failed");
        }
        format!("changed {what}")
    }

    pub(crate) fn refund(
        &mut self,
        id: u32,
        refund: u32,
        lines: &[(u32, u32)],
        restock: Option<bool>,
    ) -> Answer {
        let Some(order) = self.orders.get_mut(&id) else { return refused("not_found") };
        let content = (refund, lines.to_vec(), restock);
        if let Some(known) = order.refunds.iter().find(|known| known.0 == refund) {
            // An absent wish is the policy's, which never changes here.
            let meant = |asked: &(u32, Vec<(u32, u32)>, Option<bool>)| asked.2.unwrap_or(self.rules.restock);
            let same = known.1 == content.1 && meant(known) == meant(&content);
            return if same { say("repeated") } else { refused("key_mismatch") };
        }
        for (line, _) in lines {
            let Some(kept) = order.lines.get(*line as usize - 1) else { return refused("invalid_value") };
            let wanted: u64 = lines.iter().filter(|l| l.0 == *line).map(|l| u64::from(l.1)).sum();
            if order.state == St::Sold && wanted > kept.quantity - kept.refunded {
                return refused("refund_exceeds_sold");
            }
        }
        match order.state {
            St::Sold => {}
            St::Queued | St::Held => return refused("not_sold"),
            St::InReview | St::Refunded | St::Released | St::Failed => return refused(order.code()),
        }
        for (line, quantity) in lines {
            let (line, quantity) = (*line as usize - 1, u64::from(*quantity));
            self.orders.get_mut(&id).unwrap().lines[line].refunded += quantity;
            if restock.unwrap_or(self.rules.restock) {
                self.restock(id, line, quantity);
            }
        }
        let order = self.orders.get_mut(&id).unwrap();
        order.refunds.push(content);
        if order.units() == 0 {
            order.state = St::Refunded;
        }
        say("changed")
    }

    pub(crate) fn confirm(&mut self, id: u32) -> Answer {
        let Some(order) = self.orders.get(&id) else { return refused("not_found") };
        match order.state {
            St::Held | St::InReview => {
                self.sell_held(id);
                self.orders.get_mut(&id).unwrap().why = "confirmed";
            }
            St::Sold if order.why == "confirmed" => return say("repeated"),
            St::Released if order.reviewed() => match self.again(id) {
                Again::Yes => self.retake(id),
                Again::Frozen => return refused("frozen"),
                Again::No => {
                    let order = self.orders.get_mut(&id).unwrap();
                    order.waiting_go_back();
                    if order.needs_a_person() {
                        self.cases.insert((id, "payment_under_review"));
                    }
                    return refused("sold_out");
                }
            },
            St::Queued | St::Sold | St::Refunded | St::Released | St::Failed => return refused(order.code()),
        }
        let order = self.orders.get_mut(&id).unwrap();
        order.waiting_pay(self.rules.right_amount);
        if order.needs_a_person() {
            self.cases.insert((id, "payment_under_review"));
        }
        say("changed")
    }

    pub(crate) fn release(&mut self, id: u32) -> Answer {
        let Some(order) = self.orders.get(&id) else { return refused("not_found") };
        if order.state == St::Released && order.why == "operator" {
            return say("repeated");
        }
        if order.state != St::Held && order.state != St::InReview {
            return refused(order.code());
        }
        self.release_held(id, "operator");
        say("changed")
    }

    pub(crate) fn extend(&mut self, id: u32, until: i64) -> Answer {
        let (now, hold_max) = (self.now, self.rules.hold_max);
        let Some(order) = self.orders.get_mut(&id) else { return refused("not_found") };
        let can_be_longer = matches!(order.state, St::Held | St::InReview);
        if can_be_longer && (order.end.is_some_and(|end| until < end) || until > order.created + hold_max) {
            return refused("invalid_value");
        }
        match (order.state, order.end) {
            (St::Held, Some(end)) if now >= end => refused("hold_expired"),
            (St::Held, Some(end)) if until == end => say("repeated"),
            (St::Held | St::InReview, _) => {
                (order.state, order.end) = (St::Held, Some(until));
                say("changed")
            }
            _ => refused(order.code()),
        }
    }

    pub(crate) fn mark_refunded(&mut self, id: u32, payments: &[u32]) -> Answer {
        let Some(order) = self.orders.get_mut(&id) else { return refused("not_found") };
        let paid = |id: &u32, what: &str| {
            let told = |s: &Seen| s.notice.succeeded && s.notice.payment == *id;
            order.seen.iter().any(|s| told(s) && (what.is_empty() || s.what == what))
        };
        let any_due = order.due.iter().any(|(_, id)| payments.is_empty() || payments.contains(id))
            || (order.has_ended() && payments.iter().any(|id| paid(id, "review")));
        if any_due && payments.iter().all(|id| paid(id, "")) {
            order.due.retain(|(_, payment)| !payments.is_empty() && !payments.contains(payment));
            for seen in &mut order.seen {
                let is_named = payments.contains(&seen.notice.payment);
                if seen.notice.succeeded && seen.what == "review" && is_named {
                    seen.what = "refund_due";
                }
            }
            return say("changed");
        }
        if !payments.is_empty() && !any_due && payments.iter().all(|id| paid(id, "refund_due")) {
            return say("repeated");
        }
        refused(if payments.iter().all(|id| paid(id, "")) { "conflict" } else { "invalid_value" })
    }

    pub(crate) fn expire(&mut self, id: u32) -> Answer {
        let Some(order) = self.orders.get(&id) else { return refused("not_found") };
        match order.state {
            St::Held if self.now >= order.end.unwrap() + self.rules.grace => {
                if order.open_attempts() > 0 {
                    self.put_in_review(id);
                } else {
                    self.release_held(id, "expired");
                }
                say("changed")
            }
            St::InReview if order.review_ends.is_some_and(|ends| self.now >= ends) => {
                self.release_held(id, "review_ended");
                say("changed")
            }
            St::Queued if self.now >= order.queue_ends => {
                self.fail_queued(id, "queue_timeout");
                say("changed")
            }
            St::Queued | St::Held | St::InReview | St::Sold | St::Refunded | St::Released | St::Failed => {
                say("not due")
            }
        }
    }

    pub(crate) fn adjust(&mut self, id: u32, pool: usize, delta: i64) -> Answer {
        if let Some(known) = self.adjustments.get(&id) {
            return if *known == (pool, delta) { say("adjusted before") } else { refused("key_mismatch") };
        }
        let Some(row) = self.pools.get_mut(pool) else { return refused("not_found") };
        if delta < 0 && (self.frozen || row.frozen) {
            return refused("frozen");
        }
        match row.available.checked_add_signed(delta) {
            None => refused("stock_in_use"),
            Some(available) => {
                row.available = available;
                self.adjustments.insert(id, (pool, delta));
                say("adjusted")
            }
        }
    }
}
