//! States × commands: the one table that decides, and that the documentation is generated from.
//!
//! Rows are read top down; the first that matches wins. Repeats by key are found before the table is
//! asked. A row says where the order goes and what its stock does; the numbers are worked out in
//! [`crate::decide`].

mod facts;

use crate::order::{Disposition, Reason, State};

pub use facts::{Facts, Landing, Phase, Retake, When};

use State::{Failed, Held, InReview, Queued, Refunded, Released, Sold};

/// What may happen to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// A queued order is landed.
    Land,
    /// A notice says that money came.
    Success,
    /// A notice says that it did not.
    FailedNotice,
    /// A payment has begun.
    Attempt,
    /// The client gives everything back.
    Cancel,
    /// The client gives a part back.
    Reduce,
    /// Sold units are refunded.
    Refund,
    /// An operator confirms.
    Confirm,
    /// An operator releases.
    Release,
    /// An operator gives more time.
    Extend,
    /// An operator says that money went back.
    MarkRefunded,
    /// The time of the hold, the review or the queue is over.
    Expire,
}

crate::campaign::spelled! {
    Trigger {
        Land = "land", Success = "success", FailedNotice = "failed notice", Attempt = "attempt",
        Cancel = "cancel", Reduce = "reduce", Refund = "refund", Confirm = "confirm",
        Release = "release", Extend = "extend", MarkRefunded = "mark refunded", Expire = "expire",
    }
}

/// What the order's stock does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    /// Nothing.
    Stays,
    /// available → held.
    Take,
    /// available → sold.
    Sell,
    /// held → sold.
    Confirm,
    /// held → available, to the same buckets.
    Release,
    /// held → available for the part.
    ReleasePart,
    /// sold → available if restocked, else it stays sold.
    Restock,
    /// available → sold, new allocations.
    Retake,
}

impl Stock {
    /// For the documentation.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Stays => "none",
            Self::Take => "available→held",
            Self::Sell => "available→sold",
            Self::Confirm => "held→sold",
            Self::Release => "held→available",
            Self::ReleasePart => "held→available for the part",
            Self::Restock => "sold→available only if restocked",
            Self::Retake => "available→sold (new allocations)",
        }
    }
}

/// What happens to the flag *refund due*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Nothing.
    No,
    /// The notice's payment must go back.
    ThisPayment,
    /// Every success that is recorded, was not applied and is of this order must go back.
    Recorded,
    /// The named payments went back.
    Clear,
}

/// Codes with which the table refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the code's spelling is its meaning; see `Refusal`")]
pub enum Code {
    NotHeld,
    NotSold,
    HoldExpired,
    InReview,
    AlreadySold,
    AlreadyReleased,
    AlreadyRefunded,
    /// `cancelled`, `sold_out`, … by the order's reason.
    AlreadyFailed,
    NothingDue,
    SoldOut,
    Frozen,
}

impl Code {
    /// For the documentation.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotHeld => "not_held",
            Self::NotSold => "not_sold",
            Self::HoldExpired => "hold_expired",
            Self::InReview => "in_review",
            Self::AlreadySold => "already_sold",
            Self::AlreadyReleased => "already_released",
            Self::AlreadyRefunded => "already_refunded",
            Self::AlreadyFailed => "already_failed",
            Self::NothingDue => "conflict",
            Self::SoldOut => "sold_out",
            Self::Frozen => "frozen",
        }
    }
}

/// What a row does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The order changes: one order event.
    Go {
        /// The state after; none: it stays.
        to: Option<State>,
        /// What its stock does.
        stock: Stock,
        /// The reason after; none: as it was, or the landing's.
        reason: Option<Reason>,
        /// The flag *refund due*.
        mark: Mark,
        /// What the notice is answered with.
        disposition: Option<Disposition>,
    },
    /// Evidence is kept, the order does not change.
    Record(Disposition),
    /// Nothing to do; the order as it stands now.
    Again,
    /// Nothing is due yet.
    NotDue,
    /// Refused; nothing moves.
    Refuse(Code),
    /// Refused for want of stock, and the recorded success must go back.
    RefuseRefundDue(Code),
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The states that it concerns.
    pub from: &'static [State],
    /// What happens.
    pub on: Trigger,
    /// Under which condition.
    pub when: When,
    /// What follows.
    pub then: Then,
}

const ALL: &[State] = State::ALL;
const OPEN: &[State] = &[Held, InReview];
const PAID: &[State] = &[Sold, Refunded];

const fn rule(from: &'static [State], on: Trigger, when: When, then: Then) -> Rule {
    Rule { from, on, when, then }
}

const fn go(to: Option<State>, stock: Stock, reason: Option<Reason>) -> Then {
    Then::Go { to, stock, reason, mark: Mark::No, disposition: None }
}

const fn paid(to: Option<State>, stock: Stock, reason: Option<Reason>, disposition: Disposition) -> Then {
    Then::Go { to, stock, reason, mark: Mark::No, disposition: Some(disposition) }
}

const fn due_back(to: Option<State>, stock: Stock, reason: Reason) -> Then {
    Then::Go { to, stock, reason: Some(reason), mark: Mark::Recorded, disposition: None }
}

const REFUND_DUE: Then = Then::Go {
    to: None,
    stock: Stock::Stays,
    reason: None,
    mark: Mark::ThisPayment,
    disposition: Some(Disposition::RefundDue),
};
const TO_REVIEW: Disposition = Disposition::Review;

/// The table. For every state and trigger the last matching row has no condition.
pub const TABLE: &[Rule] = &[
    // A queued order lands.
    rule(
        &[Queued],
        Trigger::Land,
        When::LandsInDoubt,
        go(Some(InReview), Stock::Take, Some(Reason::PaymentDoubtful)),
    ),
    rule(&[Queued], Trigger::Land, When::LandsHeld, go(Some(Held), Stock::Take, None)),
    rule(&[Queued], Trigger::Land, When::LandsSold, go(Some(Sold), Stock::Sell, None)),
    rule(
        &[Queued],
        Trigger::Land,
        When::LandingRefused,
        Then::Go {
            to: Some(Failed),
            stock: Stock::Stays,
            reason: None,
            mark: Mark::Recorded,
            disposition: None,
        },
    ),
    rule(ALL, Trigger::Land, When::Always, Then::Again),
    // Money came. Amount is judged before lateness.
    rule(ALL, Trigger::Success, When::PaymentKnown, Then::Record(Disposition::Duplicate)),
    // Money that paid another order is not money to give back: a person must look.
    rule(&[Queued, Failed], Trigger::Success, When::PaidElsewhere, Then::Record(TO_REVIEW)),
    rule(&[Queued], Trigger::Success, When::Always, Then::Record(Disposition::Parked)),
    rule(PAID, Trigger::Success, When::PaidElsewhere, paid(None, Stock::Stays, None, TO_REVIEW)),
    rule(&[Failed], Trigger::Success, When::Always, REFUND_DUE),
    rule(
        &[Held],
        Trigger::Success,
        When::AmountDiffers,
        paid(Some(InReview), Stock::Stays, Some(Reason::PaymentDoubtful), TO_REVIEW),
    ),
    rule(
        &[Held],
        Trigger::Success,
        When::PaidAtDoubtful,
        paid(Some(InReview), Stock::Stays, Some(Reason::PaymentDoubtful), TO_REVIEW),
    ),
    rule(
        &[Held],
        Trigger::Success,
        When::Running,
        paid(Some(Sold), Stock::Confirm, None, Disposition::Applied),
    ),
    rule(
        &[Held],
        Trigger::Success,
        When::PaidInTime,
        paid(Some(Sold), Stock::Confirm, None, Disposition::Applied),
    ),
    rule(
        &[Held],
        Trigger::Success,
        When::LateRetake,
        paid(Some(Sold), Stock::Confirm, Some(Reason::Retaken), Disposition::Retaken),
    ),
    rule(&[Held], Trigger::Success, When::LateRefund, REFUND_DUE),
    rule(
        &[Held],
        Trigger::Success,
        When::Always,
        paid(Some(InReview), Stock::Stays, Some(Reason::PaymentLate), TO_REVIEW),
    ),
    rule(&[InReview], Trigger::Success, When::AmountDiffers, paid(None, Stock::Stays, None, TO_REVIEW)),
    rule(
        &[InReview],
        Trigger::Success,
        When::Always,
        paid(Some(Sold), Stock::Confirm, None, Disposition::Applied),
    ),
    rule(PAID, Trigger::Success, When::IsPaid, REFUND_DUE),
    rule(&[Sold], Trigger::Success, When::AmountDiffers, paid(None, Stock::Stays, None, TO_REVIEW)),
    rule(&[Sold], Trigger::Success, When::Always, paid(None, Stock::Stays, None, Disposition::Applied)),
    rule(&[Refunded], Trigger::Success, When::Always, REFUND_DUE),
    rule(&[Released], Trigger::Success, When::AmountDiffers, paid(None, Stock::Stays, None, TO_REVIEW)),
    rule(&[Released], Trigger::Success, When::PolicyRefund, REFUND_DUE),
    rule(&[Released], Trigger::Success, When::PolicyReview, paid(None, Stock::Stays, None, TO_REVIEW)),
    rule(
        &[Released],
        Trigger::Success,
        When::RetakePossible,
        paid(Some(Sold), Stock::Retake, Some(Reason::Retaken), Disposition::Retaken),
    ),
    rule(&[Released], Trigger::Success, When::RetakeFrozen, paid(None, Stock::Stays, None, TO_REVIEW)),
    rule(&[Released], Trigger::Success, When::Always, REFUND_DUE),
    // Money did not come.
    rule(
        &[Held],
        Trigger::FailedNotice,
        When::ReleaseOnFailure,
        Then::Go {
            to: Some(Released),
            stock: Stock::Release,
            reason: Some(Reason::PaymentFailed),
            mark: Mark::Recorded,
            disposition: Some(Disposition::Applied),
        },
    ),
    rule(&[Held], Trigger::FailedNotice, When::Always, paid(None, Stock::Stays, None, Disposition::Applied)),
    rule(
        &[InReview],
        Trigger::FailedNotice,
        When::OnlyAttemptNoSuccess,
        paid(Some(Released), Stock::Release, Some(Reason::PaymentFailed), Disposition::Applied),
    ),
    // Nothing is decided by it, but one attempt less is waited for.
    rule(
        &[InReview],
        Trigger::FailedNotice,
        When::OfOpenAttempt,
        paid(None, Stock::Stays, None, Disposition::Ignored),
    ),
    rule(ALL, Trigger::FailedNotice, When::Always, Then::Record(Disposition::Ignored)),
    // A payment has begun.
    rule(&[Held], Trigger::Attempt, When::Running, go(None, Stock::Stays, None)),
    rule(&[Held], Trigger::Attempt, When::Always, Then::Refuse(Code::HoldExpired)),
    rule(&[Queued], Trigger::Attempt, When::Always, Then::Refuse(Code::NotHeld)),
    rule(&[InReview], Trigger::Attempt, When::Always, Then::Refuse(Code::InReview)),
    // The client gives everything back.
    rule(&[Held], Trigger::Cancel, When::Always, due_back(Some(Released), Stock::Release, Reason::Cancelled)),
    rule(&[Queued], Trigger::Cancel, When::Always, due_back(Some(Failed), Stock::Stays, Reason::Cancelled)),
    rule(&[InReview], Trigger::Cancel, When::Always, Then::Refuse(Code::InReview)),
    rule(&[Released, Failed], Trigger::Cancel, When::Cancelled, Then::Again),
    // The client gives a part back.
    rule(&[Held], Trigger::Reduce, When::Unchanged, Then::Again),
    rule(
        &[Held],
        Trigger::Reduce,
        When::Empties,
        due_back(Some(Released), Stock::Release, Reason::Cancelled),
    ),
    rule(&[Held], Trigger::Reduce, When::Always, go(None, Stock::ReleasePart, None)),
    rule(&[Queued], Trigger::Reduce, When::Always, Then::Refuse(Code::NotHeld)),
    rule(&[Released], Trigger::Reduce, When::EmptiesAgain, Then::Again),
    rule(&[InReview], Trigger::Reduce, When::Always, Then::Refuse(Code::InReview)),
    // Sold units are refunded.
    rule(&[Sold], Trigger::Refund, When::Empties, go(Some(Refunded), Stock::Restock, None)),
    rule(&[Sold], Trigger::Refund, When::Always, go(None, Stock::Restock, None)),
    rule(&[Refunded], Trigger::Refund, When::Always, Then::Refuse(Code::AlreadyRefunded)),
    rule(&[Queued, Held], Trigger::Refund, When::Always, Then::Refuse(Code::NotSold)),
    // An operator decides.
    rule(OPEN, Trigger::Confirm, When::Always, due_back(Some(Sold), Stock::Confirm, Reason::Confirmed)),
    rule(&[Sold], Trigger::Confirm, When::DecidedSo, Then::Again),
    rule(
        &[Released],
        Trigger::Confirm,
        When::ReviewRetakePossible,
        due_back(Some(Sold), Stock::Retake, Reason::Retaken),
    ),
    rule(&[Released], Trigger::Confirm, When::ReviewRetakeFrozen, Then::Refuse(Code::Frozen)),
    rule(&[Released], Trigger::Confirm, When::PaymentUnderReview, Then::RefuseRefundDue(Code::SoldOut)),
    rule(&[Queued], Trigger::Confirm, When::Always, Then::Refuse(Code::NotHeld)),
    rule(OPEN, Trigger::Release, When::Always, due_back(Some(Released), Stock::Release, Reason::Operator)),
    rule(&[Released], Trigger::Release, When::DecidedSo, Then::Again),
    rule(&[Queued], Trigger::Release, When::Always, Then::Refuse(Code::NotHeld)),
    rule(&[Held], Trigger::Extend, When::EndPassed, Then::Refuse(Code::HoldExpired)),
    rule(&[Held], Trigger::Extend, When::Unchanged, Then::Again),
    rule(OPEN, Trigger::Extend, When::Always, go(Some(Held), Stock::Stays, None)),
    rule(&[Queued], Trigger::Extend, When::Always, Then::Refuse(Code::NotHeld)),
    rule(
        ALL,
        Trigger::MarkRefunded,
        When::RefundDue,
        Then::Go { to: None, stock: Stock::Stays, reason: None, mark: Mark::Clear, disposition: None },
    ),
    rule(ALL, Trigger::MarkRefunded, When::Always, Then::Refuse(Code::NothingDue)),
    // Time is over.
    rule(
        &[Held],
        Trigger::Expire,
        When::GraceOverNoAttempt,
        due_back(Some(Released), Stock::Release, Reason::Expired),
    ),
    rule(
        &[Held],
        Trigger::Expire,
        When::GraceOverAttemptOpen,
        go(Some(InReview), Stock::Stays, Some(Reason::PaymentUnknown)),
    ),
    rule(
        &[InReview],
        Trigger::Expire,
        When::ReviewOverRelease,
        due_back(Some(Released), Stock::Release, Reason::ReviewEnded),
    ),
    rule(&[Queued], Trigger::Expire, When::Due, due_back(Some(Failed), Stock::Stays, Reason::QueueTimeout)),
    rule(ALL, Trigger::Expire, When::Always, Then::NotDue),
];

/// What every command that the table does not name meets on a finished order.
const fn refusal_of(state: State) -> Code {
    match state {
        Queued | Held => Code::NotHeld,
        InReview => Code::InReview,
        Sold => Code::AlreadySold,
        Refunded => Code::AlreadyRefunded,
        Released => Code::AlreadyReleased,
        Failed => Code::AlreadyFailed,
    }
}

/// Every row that concerns a state and a trigger, in order. The last has no condition.
pub fn rules(state: State, on: Trigger) -> Vec<Rule> {
    let mut rules: Vec<Rule> =
        TABLE.iter().filter(|r| r.on == on && r.from.contains(&state)).copied().collect();
    if rules.last().is_none_or(|last| last.when != When::Always) {
        rules.push(rule(ALL, on, When::Always, Then::Refuse(refusal_of(state))));
    }
    rules
}

/// The row that decides.
pub fn rule_for(state: State, on: Trigger, facts: &Facts) -> Then {
    TABLE
        .iter()
        .find(|r| r.on == on && r.from.contains(&state) && r.when.holds(facts))
        .map_or(Then::Refuse(refusal_of(state)), |r| r.then)
}
