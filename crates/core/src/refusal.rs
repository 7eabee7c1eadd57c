//! Refusals: business answers with stable codes, ordered by precedence. They are outcomes, not errors.

use crate::id::LimitName;
use crate::import::RowFault;
use crate::order::{Order, Reason, Shortage, State};

/// A field of a request that differs from what its key is bound to, as a JSON pointer.
pub type Field = String;

/// Why a command was refused. In the order of precedence: what stands higher is judged first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The same order number with other content.
    OrderMismatch(Vec<Field>),
    /// The same refund, adjustment, event or attempt id with other content.
    KeyMismatch(Vec<Field>),
    /// There is no such campaign.
    UnknownCampaign,
    /// There is no such order.
    UnknownOrder,
    /// There is no such pool.
    UnknownPool,
    /// There is no such case.
    UnknownCase,
    /// Nobody is asked for such a thing.
    UnknownApproval,
    /// Who asked is no second person.
    SamePerson,
    /// The campaign has no pool of this SKU and location.
    UnknownSku {
        /// The line, from 1.
        line: u32,
    },
    /// Rows of a stock file cannot be applied, so none was.
    Rows(Vec<RowFault>),
    /// A value is not allowed here.
    InvalidValue {
        /// Where, as a JSON pointer.
        pointer: Field,
        /// Why.
        why: &'static str,
    },
    /// The campaign is over.
    CampaignClosed,
    /// A case stops all sales of this authority.
    Halted,
    /// The campaign or a pool is frozen.
    Frozen,
    /// What a line wants stands in frozen pools only.
    LineFrozen {
        /// The line, from 1.
        line: u32,
    },
    /// The campaign is paused.
    CampaignPaused,
    /// The campaign is a draft, or its time has not come.
    CampaignNotOpen,
    /// The account has too many open holds.
    AccountOpenHolds {
        /// How many it may have.
        limit: u64,
    },
    /// The account may not have as many units.
    AccountLimit(Shortage),
    /// As many orders wait in the queue as may.
    QueueFull {
        /// How many may.
        limit: u64,
    },
    /// A key that the order carries has too many open holds. The shortage's line is the key's place among
    /// the order's keys.
    KeyOpenHolds(LimitName, Shortage),
    /// A key that the order carries may not have as many units. The shortage's line is the key's place
    /// among the order's keys.
    KeyLimit(LimitName, Shortage),
    /// There is too little stock.
    SoldOut(Shortage),
    /// The order waited too long in the queue.
    QueueTimeout,
    /// A cache accepted the order in an epoch that is over, and it never landed: nothing was held.
    AdmissionLost,
    /// The order was cancelled.
    Cancelled,
    /// The order is sold.
    AlreadySold,
    /// The order was released.
    AlreadyReleased,
    /// The order failed.
    AlreadyFailed,
    /// The order was refunded.
    AlreadyRefunded,
    /// The order holds nothing yet.
    NotHeld,
    /// The order is not sold.
    NotSold,
    /// The hold has ended.
    HoldExpired,
    /// A person or the provider must decide first.
    InReview,
    /// More units than the line still has.
    RefundExceedsSold(Shortage),
    /// The stock is held or sold.
    StockInUse(Shortage),
    /// The request does not fit what is there.
    Conflict(&'static str),
}

impl Refusal {
    /// Whether the authority keeps this answer for the order number.
    pub const fn is_recorded(&self) -> bool {
        matches!(self, Self::SoldOut(_) | Self::AccountLimit(_) | Self::Cancelled | Self::QueueTimeout)
    }

    /// The refusal that a failed order repeats to every place of its key.
    pub fn of_failed(order: &Order) -> Self {
        let shortage = order.shortage.unwrap_or(Shortage { line: 1, requested: 0, available: 0 });
        match order.reason {
            Some(Reason::SoldOut) => Self::SoldOut(shortage),
            Some(Reason::AccountLimit) => Self::AccountLimit(shortage),
            Some(Reason::AccountOpenHolds) => Self::AccountOpenHolds { limit: shortage.available },
            Some(Reason::KeyOpenHolds) => of_key(order, shortage, Self::KeyOpenHolds),
            Some(Reason::KeyLimit) => of_key(order, shortage, Self::KeyLimit),
            Some(Reason::QueueTimeout) => Self::QueueTimeout,
            Some(Reason::CampaignClosed) => Self::CampaignClosed,
            Some(Reason::Cancelled) => Self::Cancelled,
            Some(
                Reason::Operator
                | Reason::Expired
                | Reason::PaymentFailed
                | Reason::ReviewEnded
                | Reason::Retaken
                | Reason::Confirmed
                | Reason::PaymentDoubtful
                | Reason::PaymentUnknown
                | Reason::PaymentLate,
            )
            | None => Self::AlreadyFailed,
        }
    }

    /// How a repeated place is answered from an order's state: a refusal, or the order itself.
    pub fn of_repeated_place(order: &Order) -> Option<Self> {
        match order.state {
            State::Queued | State::Held | State::InReview | State::Sold => None,
            State::Refunded => Some(Self::AlreadyRefunded),
            State::Released => Some(Self::AlreadyReleased),
            State::Failed => Some(Self::of_failed(order)),
        }
    }
}

/// A refusal that names the key which stands in the shortage's place among the order's keys.
fn of_key(order: &Order, shortage: Shortage, refusal: fn(LimitName, Shortage) -> Refusal) -> Refusal {
    let place = usize::try_from(shortage.line).unwrap_or(usize::MAX).saturating_sub(1);
    order.limit_keys.keys().nth(place).map_or(Refusal::AlreadyFailed, |name| refusal(name.clone(), shortage))
}
