//! The words of the node's labels: closed sets, so that what is scraped is bounded.

use holdfast_core::command::Outcome;
use holdfast_core::import::RowRefusal;
use holdfast_core::invariant::Invariant;
use holdfast_core::order::{Disposition, State};
use holdfast_core::refusal::Refusal;

use crate::instrument::Label;

crate::label! {
    /// Whose room in a lane a command takes.
    Class as "class" {
        /// New orders.
        Placing = "placing",
        /// Everything that ends or supplies what exists.
        Settling = "settling",
    }
}

crate::label! {
    /// Which bound turned somebody away.
    Overload as "reason" {
        /// Too many wait for a key that is in flight.
        Joins = "joins",
        /// A lane has as many commands as it may.
        LaneDepth = "lane_depth",
        /// The oldest command of a lane waits for too long.
        LaneAge = "lane_age",
        /// The reserved room of a lane is full.
        LaneReserved = "lane_reserved",
        /// An order kept moving, or a pool growing, while it was being locked.
        Rounds = "rounds",
        /// A pool places as many orders at the same time as it may.
        PoolConcurrency = "pool_concurrency",
        /// Too many wait for orders to change.
        Watchers = "watchers",
        /// Too many writes are under way.
        Writes = "writes",
        /// Too many notices are not verified yet.
        Notices = "notices",
        /// Too many follow orders.
        Events = "events",
        /// Too many exports are under way.
        Exports = "exports",
        /// Too many imports are under way.
        Imports = "imports",
    }
}

crate::label! {
    /// Why the engine did not answer.
    Failure as "error" {
        /// A bound turned it away.
        Overloaded = "overloaded",
        /// More a second than the campaign lets in.
        RateLimited = "rate_limited",
        /// The cache cannot be used.
        CacheNotReady = "cache_not_ready",
        /// The node goes down.
        ShuttingDown = "shutting_down",
        /// Nobody knows whether it was done.
        OutcomeUnknown = "outcome_unknown",
        /// Another transaction was in the way too often.
        Conflict = "conflict",
        /// It cannot be stored.
        Data = "data",
        /// The authority cannot be reached, or refuses to work.
        Unavailable = "unavailable",
        /// There is no space left.
        StorageFull = "storage_full",
        /// The authority did not answer in time.
        Timeout = "timeout",
        /// What is stored contradicts itself.
        Corrupt = "corrupt",
    }
}

crate::label! {
    /// The code of a refusal, as the answer spells it.
    Code as "code" {
        /// The same key with other content.
        OrderMismatch = "order_mismatch",
        /// The same.
        KeyMismatch = "key_mismatch",
        /// There is no such thing.
        NotFound = "not_found",
        /// Who asked is no second person.
        Forbidden = "forbidden",
        /// The campaign has no such stock.
        UnknownSku = "unknown_sku",
        /// A value is not allowed.
        InvalidValue = "invalid_value",
        /// The campaign is over.
        CampaignClosed = "campaign_closed",
        /// The campaign, the pool or the authority is frozen.
        Frozen = "frozen",
        /// The campaign is paused.
        CampaignPaused = "campaign_paused",
        /// The campaign does not sell yet.
        CampaignNotOpen = "campaign_not_open",
        /// Too many open holds.
        AccountOpenHolds = "account_open_holds",
        /// Too many units.
        AccountLimit = "account_limit",
        /// A key that the order carries may not have as much.
        KeyLimit = "key_limit",
        /// Too little stock.
        SoldOut = "sold_out",
        /// As many wait in the queue as may.
        QueueFull = "queue_full",
        /// Too long in the queue.
        QueueTimeout = "queue_timeout",
        /// Accepted by a cache in an epoch that is over.
        AdmissionLost = "admission_lost",
        /// The order was cancelled.
        Cancelled = "cancelled",
        /// It is sold.
        AlreadySold = "already_sold",
        /// It was released.
        AlreadyReleased = "already_released",
        /// It failed.
        AlreadyFailed = "already_failed",
        /// It was refunded.
        AlreadyRefunded = "already_refunded",
        /// It holds nothing.
        NotHeld = "not_held",
        /// It is not sold.
        NotSold = "not_sold",
        /// The hold has ended.
        HoldExpired = "hold_expired",
        /// A person decides.
        InReview = "in_review",
        /// More than was sold.
        RefundExceedsSold = "refund_exceeds_sold",
        /// The stock is held or sold.
        StockInUse = "stock_in_use",
        /// It does not fit what is there.
        Conflict = "conflict",
    }
}

impl From<&Refusal> for Code {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::OrderMismatch(_) => Self::OrderMismatch,
            Refusal::KeyMismatch(_) => Self::KeyMismatch,
            Refusal::UnknownCampaign
            | Refusal::UnknownOrder
            | Refusal::UnknownPool
            | Refusal::UnknownCase
            | Refusal::UnknownApproval => Self::NotFound,
            Refusal::SamePerson => Self::Forbidden,
            Refusal::UnknownSku { .. } => Self::UnknownSku,
            Refusal::InvalidValue { .. } => Self::InvalidValue,
            Refusal::Rows(faults) => faults.first().map_or(Self::Conflict, |fault| of_row(&fault.why)),
            Refusal::CampaignClosed => Self::CampaignClosed,
            Refusal::Halted | Refusal::Frozen | Refusal::LineFrozen { .. } => Self::Frozen,
            Refusal::CampaignPaused => Self::CampaignPaused,
            Refusal::CampaignNotOpen => Self::CampaignNotOpen,
            Refusal::AccountOpenHolds { .. } => Self::AccountOpenHolds,
            Refusal::AccountLimit(_) => Self::AccountLimit,
            Refusal::KeyLimit(..) | Refusal::KeyOpenHolds(..) => Self::KeyLimit,
            Refusal::SoldOut(_) => Self::SoldOut,
            Refusal::QueueFull { .. } => Self::QueueFull,
            Refusal::QueueTimeout => Self::QueueTimeout,
            Refusal::AdmissionLost => Self::AdmissionLost,
            Refusal::Cancelled => Self::Cancelled,
            Refusal::AlreadySold => Self::AlreadySold,
            Refusal::AlreadyReleased => Self::AlreadyReleased,
            Refusal::AlreadyFailed => Self::AlreadyFailed,
            Refusal::AlreadyRefunded => Self::AlreadyRefunded,
            Refusal::NotHeld => Self::NotHeld,
            Refusal::NotSold => Self::NotSold,
            Refusal::HoldExpired => Self::HoldExpired,
            Refusal::InReview => Self::InReview,
            Refusal::RefundExceedsSold(_) => Self::RefundExceedsSold,
            Refusal::StockInUse(_) => Self::StockInUse,
            Refusal::Conflict(_) => Self::Conflict,
        }
    }
}

/// The code of the first row of a stock file that cannot be applied.
const fn of_row(why: &RowRefusal) -> Code {
    match why {
        RowRefusal::UnknownSku => Code::UnknownSku,
        RowRefusal::StockInUse(_) => Code::StockInUse,
        RowRefusal::Frozen => Code::Frozen,
        RowRefusal::OpenedOtherwise { .. }
        | RowRefusal::Bundle
        | RowRefusal::TooMuch
        | RowRefusal::CorrectedSince(_)
        | RowRefusal::NeedsApproval { .. } => Code::Conflict,
        RowRefusal::CountedInFuture
        | RowRefusal::CountedBeforeOpening
        | RowRefusal::ShippedMoreThanSold { .. } => Code::InvalidValue,
    }
}

crate::label! {
    /// How a hold ended.
    End as "end" {
        /// It was paid.
        Confirmed = "confirmed",
        /// It was paid late, and stock was taken again.
        Retaken = "retaken",
        /// An operator confirmed it.
        ConfirmedByOperator = "confirmed_by_operator",
        /// It was not paid in time.
        Expired = "expired",
        /// The review was not decided in time.
        ReviewEnded = "review_ended",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// The payment failed.
        PaymentFailed = "payment_failed",
        /// An operator released it.
        ReleasedByOperator = "released_by_operator",
    }
}

crate::label! {
    /// What became of an order that the scan or the timer sent to its end.
    Expiry as "result" {
        /// It changed: released, or sent to review.
        Changed = "changed",
        /// There was nothing to do.
        Unchanged = "unchanged",
        /// It failed and is set aside.
        Failed = "failed",
    }
}

impl Label for Invariant {
    const NAME: &'static str = "invariant";
    const VALUES: &'static [Self] = &Self::ALL;

    fn text(self) -> &'static str {
        self.code()
    }
}

impl Label for State {
    const NAME: &'static str = "state";
    const VALUES: &'static [Self] = Self::ALL;

    fn text(self) -> &'static str {
        self.as_str()
    }
}

impl Label for Disposition {
    const NAME: &'static str = "disposition";
    const VALUES: &'static [Self] = Self::ALL;

    fn text(self) -> &'static str {
        self.as_str()
    }
}

/// The code of an outcome that is a refusal.
pub(crate) fn code_of(outcome: &Outcome) -> Option<Code> {
    match outcome {
        Outcome::Refused { refusal, .. } => Some(refusal.into()),
        Outcome::Order { .. }
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
        | Outcome::NotDue(_) => None,
    }
}
