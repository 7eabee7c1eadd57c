//! What the conditions of the table look at, and the conditions themselves.

use crate::campaign::{LatePayment, PaymentFailed, ReviewEnd};
use crate::order::{Reason, Shortage};

/// How far the hold has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the end.
    Running,
    /// The end has passed, the grace has not.
    Ended,
    /// The grace is over.
    GraceOver,
}

/// Whether a released order could take stock again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retake {
    /// There is stock, and the limits allow it.
    Possible,
    /// There is none, or a limit forbids it, or the pool is gone.
    Impossible,
    /// A pool or the campaign is frozen.
    Frozen,
}

/// Whether a queued order can take stock now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// Yes, and it holds.
    Hold,
    /// Yes, and it sells at once.
    Sell,
    /// No, and why, with what was missing.
    Refused(Reason, Option<Shortage>),
    /// Not yet: a pool or the campaign is frozen.
    Waits,
}

/// What the conditions of the table look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// A success of this (provider, payment) is recorded on this order.
    pub payment_known: bool,
    /// The payment succeeded on another order.
    pub paid_elsewhere: bool,
    /// Another or no amount or currency while one is due, or the payment succeeded on another order.
    pub amount_differs: bool,
    /// The payment time lies in the future or before the order.
    pub paid_at_doubtful: bool,
    /// By policy the provider's time decides, and the payment was made before the end of the hold.
    pub paid_in_time: bool,
    /// Any success is recorded.
    pub has_success: bool,
    /// A success paid for the order.
    pub is_paid: bool,
    /// A recorded success waits for review.
    pub payment_under_review: bool,
    /// The notice is about an open attempt.
    pub of_open_attempt: bool,
    /// The notice leaves no attempt open.
    pub no_other_attempt: bool,
    /// A payment is begun and open.
    pub attempt_open: bool,
    /// The hold's phase.
    pub phase: Phase,
    /// The review or queue time is over.
    pub due: bool,
    /// Money must go back, or a named payment is under review on an order that has ended.
    pub refund_due: bool,
    /// A cancel brought the order where it is.
    pub cancelled: bool,
    /// The same decision of an operator brought the order where it is.
    pub decided_so: bool,
    /// Every line keeps what it has, or the hold its end.
    pub unchanged: bool,
    /// Nothing would be left.
    pub empties: bool,
    /// Policy.
    pub late_payment: LatePayment,
    /// Policy.
    pub payment_failed: PaymentFailed,
    /// Policy.
    pub review_end: ReviewEnd,
    /// For a released order.
    pub retake: Retake,
    /// For a queued order.
    pub landing: Landing,
}

/// A condition of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is said in words by `When::text`, which the documentation shows")]
pub enum When {
    Always,
    PaymentKnown,
    PaidElsewhere,
    AmountDiffers,
    PaidAtDoubtful,
    Running,
    EndPassed,
    PaidInTime,
    LateRetake,
    LateRefund,
    LateReview,
    ReleaseOnFailure,
    GraceOverNoAttempt,
    GraceOverAttemptOpen,
    OnlyAttemptNoSuccess,
    OfOpenAttempt,
    ReviewOverRelease,
    Due,
    IsPaid,
    DecidedSo,
    Unchanged,
    Empties,
    EmptiesAgain,
    Cancelled,
    RefundDue,
    PolicyRefund,
    PolicyReview,
    RetakePossible,
    RetakeFrozen,
    ReviewRetakePossible,
    ReviewRetakeFrozen,
    PaymentUnderReview,
    LandsInDoubt,
    LandsHeld,
    LandsSold,
    LandingRefused,
}

impl When {
    /// Whether the condition is true of these facts.
    pub fn holds(self, f: &Facts) -> bool {
        let late = |policy| f.phase != Phase::Running && f.late_payment == policy;
        match self {
            Self::Always => true,
            Self::PaymentKnown => f.payment_known,
            Self::PaidElsewhere => f.paid_elsewhere,
            Self::AmountDiffers => f.amount_differs,
            Self::PaidAtDoubtful => f.paid_at_doubtful,
            Self::Running => f.phase == Phase::Running,
            Self::EndPassed => f.phase != Phase::Running,
            Self::PaidInTime => f.paid_in_time,
            Self::LateRetake => late(LatePayment::RetakeElseRefund),
            Self::LateRefund => late(LatePayment::Refund),
            Self::LateReview => late(LatePayment::Review),
            Self::ReleaseOnFailure => f.payment_failed == PaymentFailed::Release && f.no_other_attempt,
            Self::GraceOverNoAttempt => f.phase == Phase::GraceOver && !f.attempt_open,
            Self::GraceOverAttemptOpen => f.phase == Phase::GraceOver && f.attempt_open,
            Self::OnlyAttemptNoSuccess => f.attempt_open && f.no_other_attempt && !f.has_success,
            Self::OfOpenAttempt => f.of_open_attempt,
            Self::ReviewOverRelease => f.due && f.review_end == ReviewEnd::Release,
            Self::Due => f.due,
            Self::IsPaid => f.is_paid,
            Self::DecidedSo => f.decided_so,
            Self::Unchanged => f.unchanged,
            Self::Empties => f.empties,
            Self::EmptiesAgain => f.empties && f.cancelled,
            Self::Cancelled => f.cancelled,
            Self::RefundDue => f.refund_due,
            Self::PolicyRefund => f.late_payment == LatePayment::Refund,
            Self::PolicyReview => f.late_payment == LatePayment::Review,
            Self::RetakePossible => f.retake == Retake::Possible,
            Self::RetakeFrozen => f.retake == Retake::Frozen,
            Self::ReviewRetakePossible => f.payment_under_review && f.retake == Retake::Possible,
            Self::ReviewRetakeFrozen => f.payment_under_review && f.retake == Retake::Frozen,
            Self::PaymentUnderReview => f.payment_under_review,
            Self::LandsInDoubt => f.landing == Landing::Hold && f.payment_under_review,
            Self::LandsHeld => f.landing == Landing::Hold,
            Self::LandsSold => f.landing == Landing::Sell,
            Self::LandingRefused => matches!(f.landing, Landing::Refused(..)),
        }
    }

    /// The condition in words, for the documentation.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Always => "",
            Self::PaymentKnown => "this payment's success is recorded",
            Self::PaidElsewhere => "the payment succeeded on another order",
            Self::AmountDiffers => {
                "other or missing amount or currency while one is due, or the payment succeeded on another order"
            }
            Self::PaidAtDoubtful => "`paid_at` in the future or before the order (beyond `release_grace_ms`)",
            Self::Running => "before the end",
            Self::EndPassed => "end passed",
            Self::PaidInTime => "paid before the end, basis `provider_paid_at`",
            Self::LateRetake => "late, `late_payment: retake_else_refund`",
            Self::LateRefund => "late, `late_payment: refund`",
            Self::LateReview => "late, `late_payment: review`",
            Self::ReleaseOnFailure => "`payment_failed: release`, no other attempt open",
            Self::GraceOverNoAttempt => "grace over, no attempt open",
            Self::GraceOverAttemptOpen => "grace over, attempt open",
            Self::OnlyAttemptNoSuccess => "of the only open attempt, no success recorded",
            Self::OfOpenAttempt => "of one of several open attempts, which is closed",
            Self::ReviewOverRelease => "review time over, `review_end: release`",
            Self::Due => "queue time over",
            Self::IsPaid => "another payment paid for it (charged twice)",
            Self::DecidedSo => "the same decision brought it here",
            Self::Unchanged => "nothing would change",
            Self::Empties => "nothing is left",
            Self::EmptiesAgain => "nothing is left, and a cancel brought it here",
            Self::Cancelled => "a cancel brought it here",
            Self::RefundDue => "refund due, or a named payment under review on an order that has ended",
            Self::PolicyRefund => "`late_payment: refund`",
            Self::PolicyReview => "`late_payment: review`",
            Self::RetakePossible => "`retake_else_refund`, stock and limits allow it",
            Self::RetakeFrozen => "`retake_else_refund`, pool or campaign frozen",
            Self::ReviewRetakePossible => "payment under review, stock and limits allow it",
            Self::ReviewRetakeFrozen => "payment under review, pool or campaign frozen",
            Self::PaymentUnderReview => "payment under review, no stock",
            Self::LandsInDoubt => "stock taken, `capture: hold`, a payment under review",
            Self::LandsHeld => "stock taken, `capture: hold`",
            Self::LandsSold => "stock taken, `capture: immediate`",
            Self::LandingRefused => "refused",
        }
    }
}
