//! Campaigns: a sale with a window, switches and an explicit, stored policy.

use std::collections::BTreeMap;

use crate::assortment::Assortment;
use crate::id::{CampaignId, LimitName, PoolId};
use crate::limit::{Ceilings, Limits};
use crate::time::Timestamp;

/// What a place does with stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Hold first, sell when the payment is confirmed.
    Hold,
    /// Sell at once.
    Immediate,
}

/// Whose time decides whether a payment came before the end of the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineBasis {
    /// The authority's clock when the notice is applied.
    ReceivedAt,
    /// The time that the provider says the payment was made.
    ProviderPaidAt,
}

/// What a payment after the end of the hold does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatePayment {
    /// Take stock again if there is any, else refund.
    RetakeElseRefund,
    /// Refund.
    Refund,
    /// A person decides.
    Review,
}

/// What a failed payment does to a held order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentFailed {
    /// The hold goes on.
    Keep,
    /// The hold is released when no other attempt is open.
    Release,
}

/// What happens when the review time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewEnd {
    /// The stock goes back.
    Release,
    /// The order waits for a person.
    Person,
}

/// What a campaign means. Hold times are fixed when an order is placed; all else is read at the
/// moment of the decision, so a change concerns running orders too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How long a hold lasts, in seconds.
    pub hold_seconds: u32,
    /// How long a hold may last at most, extensions included, in seconds.
    pub hold_seconds_max: u32,
    /// By how much a begun payment extends the hold, once, in seconds.
    pub payment_extension_seconds: u32,
    /// Skew allowed after the end of a hold before its release, in milliseconds.
    pub release_grace_ms: u32,
    /// With [`DeadlineBasis::ProviderPaidAt`]: how long a notice may travel, in seconds.
    pub notice_grace_seconds: u32,
    /// Hold first, or sell at once.
    pub capture: Capture,
    /// Whose time decides.
    pub deadline_basis: DeadlineBasis,
    /// What a late payment does.
    pub late_payment: LatePayment,
    /// What a failed payment does.
    pub payment_failed: PaymentFailed,
    /// How long an order in review waits, in seconds.
    pub review_seconds: u32,
    /// What happens then.
    pub review_end: ReviewEnd,
    /// Whether a refund puts stock back when the request does not say.
    pub restock_on_refund: bool,
    /// Most units an account may hold and buy.
    pub account_limit: Option<u64>,
    /// Most orders an account may hold open.
    pub account_open_holds: Option<u64>,
    /// Most orders that may wait in the queue of one pool.
    pub queue_limit: u64,
    /// How long an order may wait in the queue, in milliseconds. Fixed when the order is taken in.
    pub queue_wait_ms: u32,
    /// What a key of each name that orders carry may have; each limits something.
    pub key_limits: BTreeMap<LimitName, Limits>,
    /// Most orders of an account that a node lets in a second.
    pub order_rate_per_account: Option<u32>,
    /// Most orders that a node lets in a second.
    pub order_rate: Option<u32>,
    /// Work of operators on more units than this wants a second person.
    pub approval_threshold: Option<u64>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            hold_seconds: 900,
            hold_seconds_max: 3_600,
            payment_extension_seconds: 0,
            release_grace_ms: 2_000,
            notice_grace_seconds: 60,
            capture: Capture::Hold,
            deadline_basis: DeadlineBasis::ReceivedAt,
            late_payment: LatePayment::RetakeElseRefund,
            payment_failed: PaymentFailed::Keep,
            review_seconds: 900,
            review_end: ReviewEnd::Release,
            restock_on_refund: false,
            account_limit: None,
            account_open_holds: None,
            queue_limit: 100_000,
            queue_wait_ms: 30_000,
            key_limits: BTreeMap::new(),
            order_rate_per_account: None,
            order_rate: None,
            approval_threshold: None,
        }
    }
}

impl Policy {
    /// What an account may have.
    pub const fn account_limits(&self) -> Limits {
        Limits { units: self.account_limit, open_holds: self.account_open_holds }
    }

    /// Whether anything is counted at all. Only for what is limited are usage rows kept.
    pub fn limits_anything(&self) -> bool {
        self.account_limits().any() || !self.key_limits.is_empty()
    }

    /// When a hold that ends at `end` may be released: not before the grace is over.
    pub const fn release_at(&self, end: Timestamp) -> Timestamp {
        match self.deadline_basis {
            DeadlineBasis::ReceivedAt => end.plus_millis(self.release_grace_ms),
            DeadlineBasis::ProviderPaidAt => end.plus_seconds(self.notice_grace_seconds),
        }
    }
}

/// What the operator has switched. The shown state is derived from these and the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// `open` was posted: the campaign is no draft.
    pub opened: bool,
    /// No new orders for now.
    pub paused: bool,
    /// No stock moves out.
    pub frozen: bool,
    /// Over for good.
    pub closed: bool,
}

/// A campaign as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    /// Its id.
    pub id: CampaignId,
    /// Its name, for people.
    pub name: String,
    /// When it begins; none = at once.
    pub starts_at: Option<Timestamp>,
    /// When it ends; none = never.
    pub ends_at: Option<Timestamp>,
    /// What it means.
    pub policy: Policy,
    /// What the operator has switched.
    pub switches: Switches,
    /// The most that its limits ever allowed.
    pub ceilings: Ceilings,
    /// What it offers besides its pools.
    pub assortment: Assortment,
    /// Where stock goes that is not sold when it is closed, or comes back later.
    pub unsold_to: Option<PoolId>,
    /// When it was last asked that nodes warm up for it.
    pub warm_asked_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The shown state: closed > frozen > paused > draft / scheduled > open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignStatus {
    /// Made, not opened.
    Draft,
    /// Opened, its time has not come.
    Scheduled,
    /// Sells.
    Open,
    /// Paused by the operator.
    Paused,
    /// Frozen by the operator or by reconciliation.
    Frozen,
    /// Over.
    Closed,
}

impl CampaignStatus {
    /// The spelling in JSON, SQL and labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Scheduled => "scheduled",
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Frozen => "frozen",
            Self::Closed => "closed",
        }
    }
}

impl Campaign {
    /// The shown state at `now`.
    pub fn status(&self, now: Timestamp) -> CampaignStatus {
        if self.switches.closed || self.ends_at.is_some_and(|end| now >= end) {
            CampaignStatus::Closed
        } else if self.switches.frozen {
            CampaignStatus::Frozen
        } else if self.switches.paused {
            CampaignStatus::Paused
        } else if !self.switches.opened {
            CampaignStatus::Draft
        } else if self.starts_at.is_some_and(|start| now < start) {
            CampaignStatus::Scheduled
        } else {
            CampaignStatus::Open
        }
    }
}

macro_rules! spelled {
    ($($name:ident { $($variant:ident = $text:literal),* $(,)? })*) => {$(
        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The spelling in JSON, SQL and labels.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The value with this spelling.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    )*};
}
pub(crate) use spelled;

spelled! {
    Capture { Hold = "hold", Immediate = "immediate" }
    DeadlineBasis { ReceivedAt = "received_at", ProviderPaidAt = "provider_paid_at" }
    LatePayment { RetakeElseRefund = "retake_else_refund", Refund = "refund", Review = "review" }
    PaymentFailed { Keep = "keep", Release = "release" }
    ReviewEnd { Release = "release", Person = "person" }
}

/// A switch that an operator sets on a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Let it sell in its window.
    Open,
    /// No new orders for now.
    Pause,
    /// Sell again.
    Resume,
    /// No stock moves out.
    Freeze,
    /// Undo the freeze.
    Unfreeze,
    /// Over for good.
    Close,
    /// Nodes make ready for it. Changes nothing that it sells by.
    Warm,
}

spelled! {
    Switch {
        Open = "open", Pause = "pause", Resume = "resume",
        Freeze = "freeze", Unfreeze = "unfreeze", Close = "close", Warm = "warm",
    }
}

impl Switches {
    /// The switches after one more was set; none: a closed campaign is neither opened, paused nor resumed any more.
    #[must_use]
    pub const fn after(self, switch: Switch) -> Option<Self> {
        let mut next = self;
        match switch {
            Switch::Open => next.opened = true,
            Switch::Pause => next.paused = true,
            Switch::Resume => next.paused = false,
            Switch::Freeze => next.frozen = true,
            Switch::Unfreeze => next.frozen = false,
            Switch::Close => next.closed = true,
            Switch::Warm => {}
        }
        // A freeze is a stop-loss: it must work on a closed campaign too, where retakes go on.
        let allowed = !self.closed || matches!(switch, Switch::Freeze | Switch::Unfreeze | Switch::Close);
        if allowed { Some(next) } else { None }
    }
}
