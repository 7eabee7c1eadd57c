//! What a node measures on the way of an order: entry, lanes, what became of it, expiry.

use std::fmt;

use holdfast_core::command::{Command, How, OrderAction, Outcome};
use holdfast_core::invariant::Invariant;
use holdfast_core::order::{Disposition, Order, Reason, State};
use holdfast_core::stock::BucketKey;

use crate::exposition::{Exposed, Exposition};
use crate::instrument::{By, Counter, Gauge, Histogram};
use crate::words::{Class, Code, End, Expiry, Failure, Overload, code_of};

/// Metrics of a node.
#[derive(Debug)]
pub struct NodeMetrics {
    /// A place, from the engine's door to its answer.
    pub place: Histogram,
    /// Places that joined one of the same key.
    pub joins: Counter,
    /// Orders that were refused by the sold-out hint.
    pub hint_refusals: Counter,
    /// Keys that were looked up before an early refusal.
    pub lookups: Counter,
    /// Who was turned away by a bound.
    pub overloads: By<Overload, Counter>,
    /// How long a command waited until its batch was closed.
    pub lane_wait: By<Class, Histogram>,
    /// Batches that were tried again after a conflict.
    pub retries: Counter,
    /// Batches that were cut in two to find what cannot be stored.
    pub bisections: Counter,
    /// Commands that found too little in their bucket and went on to others.
    pub misses: Counter,
    /// Orders that are new, by the state that they began in.
    pub placed: By<State, Counter>,
    /// Commands that were known already.
    pub repeats: Counter,
    /// Refusals by code.
    pub refused: By<Code, Counter>,
    /// What the engine could not answer.
    pub failed: By<Failure, Counter>,
    /// Holds that ended.
    pub holds_ended: By<End, Counter>,
    /// How long holds lived that ended by themselves or by a person.
    pub hold_life: By<End, Histogram>,
    /// The share of the hold that was used when it was paid.
    pub confirm_share: Histogram,
    /// Queued orders that were landed, by what they became.
    pub landed: By<State, Counter>,
    /// How long orders waited in their queue.
    pub queue_wait: Histogram,
    /// Payment notices.
    pub notices: By<Disposition, Counter>,
    /// Orders that were sent to their end.
    pub expiries: By<Expiry, Counter>,
    /// How long after its end an order was taken back.
    pub expiry_lag: Histogram,
    /// Overdue orders that the last scan found, which the timer had missed.
    pub scan_found: Gauge,
    /// Cases that are open.
    pub cases_open: Gauge,
    /// Breaches of invariants that were noticed.
    pub breaches: By<Invariant, Counter>,
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections that were closed at once because there were too many.
    pub connections_refused: Counter,
}

impl Default for NodeMetrics {
    fn default() -> Self {
        Self {
            place: Histogram::of_times(),
            joins: Counter::default(),
            hint_refusals: Counter::default(),
            lookups: Counter::default(),
            overloads: By::default(),
            lane_wait: By::new(Histogram::of_times),
            retries: Counter::default(),
            bisections: Counter::default(),
            misses: Counter::default(),
            placed: By::default(),
            repeats: Counter::default(),
            refused: By::default(),
            failed: By::default(),
            holds_ended: By::default(),
            hold_life: By::new(Histogram::of_ages),
            confirm_share: Histogram::of_shares(),
            landed: By::default(),
            queue_wait: Histogram::of_ages(),
            notices: By::default(),
            expiries: By::default(),
            expiry_lag: Histogram::of_times(),
            scan_found: Gauge::default(),
            cases_open: Gauge::default(),
            breaches: By::default(),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
        }
    }
}

impl NodeMetrics {
    /// A bucket's balance is another than before without an entry that says so: somebody wrote past the ledger.
    pub fn note_drift(&self, bucket: BucketKey) {
        self.breaches.of(Invariant::LedgerIsBalance).inc();
        tracing::error!(pool = %bucket.pool, bucket = bucket.number, "a balance moved without a ledger entry");
    }

    /// Counts how a command was answered in the end.
    pub fn answered(&self, outcome: &Outcome) {
        if let Some(code) = code_of(outcome) {
            self.refused.of(code).inc();
        }
        if let Outcome::Order { order, how, .. } = outcome {
            match how {
                How::Created => self.placed.of(order.state).inc(),
                How::Repeated => self.repeats.inc(),
                How::Changed => {}
            }
        }
    }

    /// Counts what a committed command did to a hold and to its payment.
    pub fn committed(&self, command: &Command, outcome: &Outcome) {
        let (Command::Order(change), Outcome::Order { order, how, disposition }) = (command, outcome) else {
            return;
        };
        if let Some(disposition) = disposition {
            self.notices.of(*disposition).inc();
        }
        if *how != How::Changed {
            return;
        }
        let life = micros(order.updated_at.0.saturating_sub(order.created_at.0));
        if matches!(change.action, OrderAction::Land) && order.state != State::Queued {
            self.landed.of(order.state).inc();
            self.queue_wait.observe(std::time::Duration::from_micros(life));
        }
        let Some(end) = end_of(&change.action, order, *disposition) else { return };
        self.holds_ended.of(end).inc();
        self.hold_life.of(end).observe(std::time::Duration::from_micros(life));
        if let (End::Confirmed | End::Retaken | End::ConfirmedByOperator, Some(ends_at)) =
            (end, order.hold_ends_at)
        {
            let whole = micros(ends_at.0.saturating_sub(order.created_at.0)).max(1);
            self.confirm_share.observe_thousandths(life.saturating_mul(1_000) / whole);
        }
    }
}

fn micros(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0)
}

/// How a change ended a hold, if it did.
fn end_of(action: &OrderAction, order: &Order, disposition: Option<Disposition>) -> Option<End> {
    match (action, order.state) {
        (OrderAction::Notice(_), State::Sold) => match disposition? {
            Disposition::Applied => Some(End::Confirmed),
            Disposition::Retaken => Some(End::Retaken),
            Disposition::Duplicate
            | Disposition::Parked
            | Disposition::RefundDue
            | Disposition::Review
            | Disposition::Ignored => None,
        },
        (OrderAction::Confirm, State::Sold) => Some(End::ConfirmedByOperator),
        (OrderAction::Notice(_), State::Released) if disposition != Some(Disposition::Applied) => None,
        (
            OrderAction::Notice(_) | OrderAction::Cancel | OrderAction::Release | OrderAction::Expire(_),
            State::Released,
        ) => match order.reason? {
            Reason::Expired => Some(End::Expired),
            Reason::ReviewEnded => Some(End::ReviewEnded),
            Reason::Cancelled => Some(End::Cancelled),
            Reason::PaymentFailed => Some(End::PaymentFailed),
            Reason::Operator => Some(End::ReleasedByOperator),
            Reason::SoldOut
            | Reason::AccountLimit
            | Reason::AccountOpenHolds
            | Reason::KeyLimit
            | Reason::KeyOpenHolds
            | Reason::QueueTimeout
            | Reason::CampaignClosed
            | Reason::Retaken
            | Reason::Confirmed
            | Reason::PaymentDoubtful
            | Reason::PaymentUnknown
            | Reason::PaymentLate => None,
        },
        (
            OrderAction::Land
            | OrderAction::Cancel
            | OrderAction::Reduce(_)
            | OrderAction::Attempt(..)
            | OrderAction::Notice(_)
            | OrderAction::Refund(_)
            | OrderAction::Confirm
            | OrderAction::Release
            | OrderAction::Extend(_)
            | OrderAction::MarkRefunded(_)
            | OrderAction::Expire(_),
            State::Queued
            | State::Held
            | State::InReview
            | State::Sold
            | State::Refunded
            | State::Released
            | State::Failed,
        ) => None,
    }
}

impl Exposed for NodeMetrics {
    fn expose(&self, out: &mut Exposition<'_>) -> fmt::Result {
        self.expose_entry(out)?;
        self.expose_lanes(out)?;
        self.expose_orders(out)?;
        self.expose_care(out)
    }
}

impl NodeMetrics {
    fn expose_entry(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add(
            "holdfast_entry_place_seconds",
            "How long a place took in the engine, from its door to its answer.",
            &self.place,
        )?;
        out.add(
            "holdfast_entry_joins_total",
            "Places that joined one of the same key that was in flight.",
            &self.joins,
        )?;
        out.add(
            "holdfast_entry_hint_refusals_total",
            "Places that the sold-out hint turned away before the lanes.",
            &self.hint_refusals,
        )?;
        out.add(
            "holdfast_entry_lookups_total",
            "Keys that were looked up in the authority before a place was turned away early.",
            &self.lookups,
        )?;
        out.add(
            "holdfast_entry_overloads_total",
            "Requests that a bound turned away, by which.",
            &self.overloads,
        )?;
        out.add("holdfast_entry_connections", "Connections of clients that are open.", &self.connections)?;
        out.add(
            "holdfast_entry_connections_refused_total",
            "Connections that were closed at once because there were too many.",
            &self.connections_refused,
        )
    }

    fn expose_lanes(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add(
            "holdfast_lane_wait_seconds",
            "How long a command waited in its lane until its batch was closed.",
            &self.lane_wait,
        )?;
        out.add("holdfast_lane_retries_total", "Batches tried again after a conflict.", &self.retries)?;
        out.add(
            "holdfast_lane_bisections_total",
            "Batches cut in two to find the command that cannot be stored.",
            &self.bisections,
        )?;
        out.add(
            "holdfast_lane_misses_total",
            "Places that found too little in a bucket and went on to others.",
            &self.misses,
        )
    }

    fn expose_orders(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add(
            "holdfast_orders_placed_total",
            "New orders, by the state that they began in. Failed: the refusal was recorded for the key.",
            &self.placed,
        )?;
        out.add(
            "holdfast_orders_repeats_total",
            "Commands with a key that was known, or with nothing to do.",
            &self.repeats,
        )?;
        out.add("holdfast_orders_refused_total", "Refusals, by their code.", &self.refused)?;
        out.add(
            "holdfast_orders_errors_total",
            "Commands that the engine could not answer, by why.",
            &self.failed,
        )?;
        out.add(
            "holdfast_queue_landed_orders_total",
            "Queued orders that were landed, by what they became.",
            &self.landed,
        )?;
        out.add("holdfast_queue_wait_seconds", "How long orders waited in their queue.", &self.queue_wait)?;
        out.add("holdfast_holds_ended_total", "Holds that ended, by how.", &self.holds_ended)?;
        out.add(
            "holdfast_holds_life_seconds",
            "From when an order was placed to the end of its hold, by how it ended.",
            &self.hold_life,
        )?;
        out.add(
            "holdfast_holds_confirm_share_ratio",
            "The share of the hold that was used when it was confirmed: many near 1 says that holds are too short.",
            &self.confirm_share,
        )?;
        out.add(
            "holdfast_payments_notices_total",
            "Payment notices, by what became of them. Late: retaken and refund_due.",
            &self.notices,
        )
    }

    fn expose_care(&self, out: &mut Exposition<'_>) -> fmt::Result {
        out.add(
            "holdfast_expiry_orders_total",
            "Orders that were sent to their end, by what became of it.",
            &self.expiries,
        )?;
        out.add(
            "holdfast_expiry_lag_seconds",
            "How long after its time an order was taken back.",
            &self.expiry_lag,
        )?;
        out.add(
            "holdfast_expiry_scan_found_orders",
            "Overdue orders that the last scan found and no timer had taken.",
            &self.scan_found,
        )?;
        out.add("holdfast_cases_open", "Cases that wait for a person; counted up to 500.", &self.cases_open)?;
        out.add(
            "holdfast_invariant_breaches_total",
            "Breaches of invariants that this node has noticed. Anything but 0 needs a person.",
            &self.breaches,
        )
    }
}
