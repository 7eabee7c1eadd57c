//! What may arrive at one order, and every sequence of two and three of it.

use holdfast_core::campaign::{DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd, Switch};
use holdfast_core::command::{Inquiry, Keep, OrderAction, Outcome, Place};
use holdfast_core::id::{AttemptId, CampaignId, EventId, PaymentId, Provider, RefundId};
use holdfast_core::order::{Money, Notice, PaymentOutcome, Refund, RefundLine};
use holdfast_core::time::Timestamp;
use holdfast_metrics::{Code, Label};

use super::support::place;

/// How long the order holds.
pub const HOLD_SECONDS: u32 = 60;
/// What it costs.
pub const PRICE: i64 = 9_900;

/// What may arrive at an order, or be switched around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Arrival {
    Payment,
    FailedPayment,
    LatePayment,
    SecondPayment,
    Attempt,
    Cancel,
    Reduce,
    Expiry,
    PartialRefund,
    FullRefund,
    Confirm,
    Release,
    Extend,
    MarkRefunded,
    Pause,
    Freeze,
    Close,
}

impl Arrival {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Payment,
        Self::FailedPayment,
        Self::LatePayment,
        Self::SecondPayment,
        Self::Attempt,
        Self::Cancel,
        Self::Reduce,
        Self::Expiry,
        Self::PartialRefund,
        Self::FullRefund,
        Self::Confirm,
        Self::Release,
        Self::Extend,
        Self::MarkRefunded,
        Self::Pause,
        Self::Freeze,
        Self::Close,
    ];

    /// The switch of the campaign that it is.
    pub const fn switch(self) -> Option<Switch> {
        match self {
            Self::Pause => Some(Switch::Pause),
            Self::Freeze => Some(Switch::Freeze),
            Self::Close => Some(Switch::Close),
            Self::Payment
            | Self::FailedPayment
            | Self::LatePayment
            | Self::SecondPayment
            | Self::Attempt
            | Self::Cancel
            | Self::Reduce
            | Self::Expiry
            | Self::PartialRefund
            | Self::FullRefund
            | Self::Confirm
            | Self::Release
            | Self::Extend
            | Self::MarkRefunded => None,
        }
    }

    /// Whether time must pass for it: to the end of the hold, or beyond every end.
    pub const fn waits(self) -> bool {
        matches!(self, Self::LatePayment | Self::Expiry)
    }

    /// The command that it is; none of a switch. `name` keeps its keys apart from those of other orders.
    pub fn action(self, name: &str, placed_at: Timestamp) -> Option<OrderAction> {
        Some(match self {
            Self::Payment => notice(name, "pay", PaymentOutcome::Succeeded, Some(placed_at)),
            Self::FailedPayment => notice(name, "fail", PaymentOutcome::Failed, None),
            Self::LatePayment => notice(name, "late", PaymentOutcome::Succeeded, None),
            Self::SecondPayment => notice(name, "second", PaymentOutcome::Succeeded, None),
            Self::Attempt => OrderAction::Attempt(AttemptId::new("attempt").expect("a good id"), bank()),
            Self::Cancel => OrderAction::Cancel,
            Self::Reduce => OrderAction::Reduce(vec![Keep { line: 1, keep: 1 }]),
            Self::Expiry => OrderAction::Expire(Inquiry::Done),
            Self::PartialRefund => refund("part", &[(1, 1)], None),
            Self::FullRefund => refund("all", &[(1, 2), (2, 1)], Some(true)),
            Self::Confirm => OrderAction::Confirm,
            Self::Release => OrderAction::Release,
            Self::Extend => OrderAction::Extend(placed_at.plus_seconds(HOLD_SECONDS + 300)),
            Self::MarkRefunded => OrderAction::MarkRefunded(Vec::new()),
            Self::Pause | Self::Freeze | Self::Close => return None,
        })
    }
}

fn bank() -> Provider {
    Provider::new("bank").expect("a good id")
}

fn notice(name: &str, what: &str, outcome: PaymentOutcome, paid_at: Option<Timestamp>) -> OrderAction {
    let id = format!("{name}-{what}");
    OrderAction::Notice(Notice {
        provider: bank(),
        event_id: EventId::new(&id).expect("a good id"),
        payment_id: PaymentId::new(&id).expect("a good id"),
        attempt_id: None,
        outcome,
        paid_at,
        amount_minor: Some(PRICE),
        currency: Some("EUR".into()),
    })
}

fn refund(id: &str, lines: &[(u32, u32)], restock: Option<bool>) -> OrderAction {
    OrderAction::Refund(Refund {
        refund_id: RefundId::new(id).expect("a good id"),
        lines: lines.iter().map(|(line, quantity)| RefundLine { line: *line, quantity: *quantity }).collect(),
        restock,
        reason: "sequence".into(),
    })
}

/// The order at which they arrive: two lines, so that a part can go back.
pub fn order(campaign: &CampaignId, number: u128, pool: u128) -> Place {
    let mut place = place(number, "ann", &[(pool, 2), (pool, 1)]);
    place.key.campaign = campaign.clone();
    place.hold_seconds = Some(HOLD_SECONDS);
    place.amount_due = Some(Money { amount_minor: PRICE, currency: "EUR".into() });
    place
}

/// Every sequence of two and of three.
pub fn sequences() -> Vec<Vec<Arrival>> {
    let mut pairs = Vec::new();
    for first in Arrival::ALL {
        pairs.extend(Arrival::ALL.into_iter().filter(|next| *next != first).map(|next| vec![first, next]));
    }
    let longer = |pair: &Vec<Arrival>| {
        let rest = Arrival::ALL.into_iter().filter(|next| !pair.contains(next)).collect::<Vec<_>>();
        let pair = pair.clone();
        rest.into_iter().map(move |next| pair.iter().copied().chain([next]).collect())
    };
    let triples: Vec<Vec<Arrival>> = pairs.iter().flat_map(longer).collect();
    pairs.into_iter().chain(triples).collect()
}

/// What policies make of the same arrivals.
pub fn policies() -> [Policy; 3] {
    let strict = Policy {
        late_payment: LatePayment::Refund,
        payment_failed: PaymentFailed::Release,
        restock_on_refund: true,
        payment_extension_seconds: 30,
        account_limit: Some(1_000_000),
        ..Policy::default()
    };
    let by_person = Policy {
        late_payment: LatePayment::Review,
        review_end: ReviewEnd::Person,
        deadline_basis: DeadlineBasis::ProviderPaidAt,
        ..Policy::default()
    };
    [Policy::default(), strict, by_person]
}

/// An outcome in the words of the API: the code of a refusal, or what became of a notice; empty otherwise.
pub fn word_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Order { disposition: Some(disposition), .. } => disposition.as_str(),
        Outcome::Refused { refusal, .. } => Code::from(refusal).text(),
        Outcome::Order { disposition: None, .. }
        | Outcome::Pool { .. }
        | Outcome::Adjusted { .. }
        | Outcome::Transferred { .. }
        | Outcome::Imported { .. }
        | Outcome::Epoch { .. }
        | Outcome::Repaired { .. }
        | Outcome::Proposed { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated
        | Outcome::NotDue(_) => "",
    }
}
