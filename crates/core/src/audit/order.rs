//! The checks of one order against its own entries: stock, events, payments.

use std::collections::BTreeMap;

use crate::id::Sku;
use crate::invariant::Invariant;
use crate::ledger::{Action, Entry};
use crate::order::{Disposition, Line, Order, Payment, State};
use crate::stock::BucketKey;
use crate::table::{TABLE, Then};

use super::{Auditor, add, count, signed};

impl Auditor {
    /// INV4: what the order says it has is what its entries gave it.
    pub(super) fn order_stock(&mut self, order: &Order, entries: &[Entry]) {
        let mut says = stock_said(order);
        let mut moved: BTreeMap<BucketKey, (i64, i64)> = BTreeMap::new();
        for entry in entries {
            let at = moved.entry(entry.bucket).or_default();
            add(&mut at.0, entry.delta.held);
            add(&mut at.1, entry.delta.sold);
        }
        moved.retain(|_, at| *at != (0, 0));
        says.retain(|_, at| *at != (0, 0));
        if says != moved {
            self.breach(
                Invariant::AllocationsAreBalance,
                format!("order {}", order.id),
                format!("{moved:?}"),
                format!("{says:?}"),
            );
        }
        for line in &order.lines {
            self.line_stock(order, line);
        }
        for (bucket, (held, sold)) in says {
            let at = self.allocated.entry(bucket).or_default();
            add(&mut at.0, held);
            add(&mut at.1, sold);
        }
    }

    /// INV4: a line that has stock has all of it, each part of a bundle its share, and from nowhere else.
    fn line_stock(&mut self, order: &Order, line: &Line) {
        let has_stock = match order.state {
            State::Held | State::InReview | State::Sold | State::Refunded => true,
            State::Queued | State::Released | State::Failed => false,
        };
        let quantity = if has_stock { u64::from(line.quantity) } else { 0 };
        let mut shares: Vec<(&Sku, u64, u64)> = match &line.made_of {
            None => vec![(&line.sku, quantity, 0)],
            Some(made_of) => made_of
                .parts
                .iter()
                .map(|part| (&part.sku, quantity.saturating_mul(u64::from(part.per_unit)), 0))
                .collect(),
        };
        let mut astray: u64 = 0;
        for allocation in &line.allocations {
            let share = match &line.made_of {
                None => Some(0),
                Some(made_of) => made_of.parts.iter().position(|part| part.has(allocation.bucket.pool)),
            };
            match share.and_then(|at| shares.get_mut(at)) {
                Some((.., has)) => count(has, allocation.quantity),
                None => count(&mut astray, allocation.quantity),
            }
        }
        let wrong = shares.into_iter().find(|(_, should, has)| should != has);
        if wrong.is_some() || astray > 0 || line.refunded > line.quantity {
            let (sku, should, has) = wrong.unwrap_or((&line.sku, quantity, astray));
            self.breach(
                Invariant::AllocationsAreBalance,
                format!("order {} line of {}: {sku}", order.id, line.sku),
                should,
                has,
            );
        }
    }

    /// INV6: one event a version, each from where the last one led, each by a row of the table.
    pub(super) fn order_events(&mut self, order: &Order, entries: &[Entry]) {
        let Some(home) = order.home else {
            // What its number settles when a cache accepted it once more is no event of the order.
            if entries.iter().any(|e| e.order_version.is_some()) || order.state != State::Failed {
                self.breach(Invariant::FinalIsFinal, format!("order {}", order.id), "a home bucket", "none");
            }
            return;
        };
        let mut state = None;
        let mut version: u32 = 0;
        for entry in told_events(entries) {
            // The intake of a queued order touches no hot row and has no event.
            if version == 0 && entry.from_state == Some(State::Queued) {
                (state, version) = (Some(State::Queued), 1);
            }
            let legal = is_legal(entry.from_state, entry.to_state, entry.action);
            let follows = entry.from_state == state && entry.order_version == version.checked_add(1);
            if !legal || !follows || entry.bucket != home {
                self.breach(
                    Invariant::FinalIsFinal,
                    format!("order {} version {:?}", order.id, entry.order_version),
                    format!("an event from {state:?} at its home"),
                    format!(
                        "{:?} to {:?} by {} in {:?}",
                        entry.from_state,
                        entry.to_state,
                        entry.action.as_str(),
                        entry.bucket
                    ),
                );
            }
            state = entry.to_state;
            version = entry.order_version.unwrap_or(version);
        }
        let queued = order.state == State::Queued && version == 0 && order.version == 1;
        if !queued && (state != Some(order.state) || version != order.version) {
            self.breach(
                Invariant::FinalIsFinal,
                format!("order {}", order.id),
                format!("{:?} at version {}", state, version),
                format!("{:?} at version {}", order.state, order.version),
            );
        }
    }

    /// INV12: every success has one disposition that is one for a success, and those that pay for the order pay no more
    /// than is due, unless it is one alone.
    pub(super) fn order_payments(&mut self, order: &Order) {
        let mut paying: u64 = 0;
        for payment in &order.payments {
            add(self.events.entry(order.id).or_default(), 1);
            let known = payment.succeeded();
            let fits = match payment.disposition {
                Disposition::Applied => {
                    count(&mut paying, u64::from(known));
                    true
                }
                Disposition::Retaken => {
                    count(&mut paying, 1);
                    known
                }
                Disposition::Duplicate | Disposition::RefundDue | Disposition::Review => known,
                Disposition::Parked => known && order.state == State::Queued,
                Disposition::Ignored => !known,
            };
            if !fits {
                self.breach(
                    Invariant::PaymentsAccounted,
                    format!("order {} event {}", order.id, payment.notice.event_id),
                    "a disposition that fits the outcome",
                    payment.disposition.as_str(),
                );
            }
        }
        if paying > 1 && !is_within_due(order) {
            self.breach(
                Invariant::PaymentsAccounted,
                format!("order {}", order.id),
                "one payment applied, or some that together are no more than is due",
                paying,
            );
        }
    }
}

/// The entries that carry an order's events, by version: a repair may tell of one after those that came later. What a
/// repair covers is told by nothing else.
fn told_events(entries: &[Entry]) -> Vec<&Entry> {
    let covers = |repair: &Entry, entry: &Entry| {
        repair.bucket == entry.bucket
            && repair.covers.is_some_and(|covers| (covers.first..=covers.last).contains(&entry.seq))
    };
    let is_told =
        |entry: &&Entry| entry.order_version.is_some() && !entries.iter().any(|repair| covers(repair, entry));
    let mut events: Vec<&Entry> = entries.iter().filter(is_told).collect();
    events.sort_by_key(|entry| entry.order_version);
    events
}

/// What an order's row says that it has of each bucket: (held, sold). Who has ended without stock says so, too.
pub(crate) fn stock_said(order: &Order) -> BTreeMap<BucketKey, (i64, i64)> {
    let mut says: BTreeMap<BucketKey, (i64, i64)> = BTreeMap::new();
    for allocation in order.allocations() {
        let at = says.entry(allocation.bucket).or_default();
        match order.state {
            State::Held | State::InReview => add(&mut at.0, signed(allocation.standing())),
            State::Sold | State::Refunded => add(&mut at.1, signed(allocation.standing())),
            State::Queued | State::Released | State::Failed => {
                add(&mut at.0, signed(allocation.standing()));
                add(&mut at.1, signed(allocation.standing()));
            }
        }
    }
    says
}

/// Whether what pays for the order together is no more than is due.
fn is_within_due(order: &Order) -> bool {
    let pays = |payment: &&Payment| {
        payment.succeeded() && matches!(payment.disposition, Disposition::Applied | Disposition::Retaken)
    };
    order.amount_due.as_ref().is_some_and(|due| {
        let amount = |payment: &Payment| {
            let is_of_due = payment.notice.currency.as_ref() == Some(&due.currency);
            payment.notice.amount_minor.filter(|_| is_of_due).map(i128::from)
        };
        let sum: Option<i128> = order.payments.iter().filter(pays).map(amount).sum();
        sum.is_some_and(|sum| sum <= i128::from(due.amount_minor))
    })
}

/// Whether some row of the table leads from one state to the other. A released order is sold again only
/// by a retake.
fn is_legal(from: Option<State>, to: Option<State>, action: Action) -> bool {
    let Some(to) = to else { return false };
    let Some(from) = from else { return matches!(to, State::Held | State::Sold) };
    if from == State::Released && to == State::Sold && !matches!(action, Action::Retake | Action::Repair) {
        return false;
    }
    from == to
        || TABLE.iter().any(|rule| {
            rule.from.contains(&from) && matches!(rule.then, Then::Go { to: Some(next), .. } if next == to)
        })
}
