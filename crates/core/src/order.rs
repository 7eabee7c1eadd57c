//! Orders: one purchase intent, all or nothing, named by the client's own number.

use std::sync::Arc;

use crate::assortment::MakeUp;
use crate::campaign::spelled;
use crate::id::{
    Account, AttemptId, EventId, Location, OrderId, OrderKey, PaymentId, PoolId, Provider, RefundId, Sku,
};
use crate::limit::LimitKeys;
use crate::stock::BucketKey;
use crate::time::Timestamp;

/// Most lines of an order.
pub const LINES_MAX: usize = 1_000;
/// Most payment notices, attempts and refunds kept with an order, each.
pub const ORDER_RECORDS_MAX: usize = 100;

/// The state of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Accepted for processing, nothing held.
    Queued,
    /// Its units are held for it.
    Held,
    /// Its units are held and a person or the provider must decide.
    InReview,
    /// Its units are sold.
    Sold,
    /// Everything was refunded.
    Refunded,
    /// Its units went back.
    Released,
    /// It never held anything.
    Failed,
}

spelled! {
    State {
        Queued = "queued", Held = "held", InReview = "in_review", Sold = "sold",
        Refunded = "refunded", Released = "released", Failed = "failed",
    }
}

/// Why an order is in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Cancelled by the client.
    Cancelled,
    /// Released by an operator.
    Operator,
    /// The hold was not paid in time.
    Expired,
    /// The payment failed.
    PaymentFailed,
    /// The review was not decided in time.
    ReviewEnded,
    /// There was too little stock.
    SoldOut,
    /// The account may not have as much.
    AccountLimit,
    /// The account has too many open holds (a queued order's refusal).
    AccountOpenHolds,
    /// A key that it carries may not have as much.
    KeyLimit,
    /// A key that it carries has too many open holds (a queued order's refusal).
    KeyOpenHolds,
    /// It waited too long in the queue.
    QueueTimeout,
    /// The campaign was not selling (a queued order's refusal).
    CampaignClosed,
    /// A late payment took stock again.
    Retaken,
    /// Confirmed by hand.
    Confirmed,
    /// The payment is in doubt.
    PaymentDoubtful,
    /// A payment was begun and its outcome is not known.
    PaymentUnknown,
    /// A payment came too late and policy wants a person.
    PaymentLate,
}

spelled! {
    Reason {
        Cancelled = "cancelled", Operator = "operator", Expired = "expired",
        PaymentFailed = "payment_failed", ReviewEnded = "review_ended", SoldOut = "sold_out",
        AccountLimit = "account_limit", AccountOpenHolds = "account_open_holds",
        KeyLimit = "key_limit", KeyOpenHolds = "key_open_holds",
        QueueTimeout = "queue_timeout", CampaignClosed = "campaign_closed", Retaken = "retaken",
        Confirmed = "confirmed", PaymentDoubtful = "payment_doubtful",
        PaymentUnknown = "payment_unknown", PaymentLate = "payment_late",
    }
}

/// An amount of money that somebody else moves; Holdfast only compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Money {
    /// In the currency's minor unit.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: Arc<str>,
}

/// Which stock a line holds or bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// The bucket.
    pub bucket: BucketKey,
    /// Units taken from it.
    pub quantity: u64,
    /// Units given back to it by refunds.
    pub restocked: u64,
}

impl Allocation {
    /// Units of the bucket that this allocation still stands for.
    pub const fn standing(&self) -> u64 {
        self.quantity.saturating_sub(self.restocked)
    }
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What is bought.
    pub sku: Sku,
    /// Where from, if the client said so.
    pub location: Option<Location>,
    /// The pool that (campaign, SKU, location) names; of a line that is made up, the first of its pools.
    pub pool: PoolId,
    /// What it is made of, if it is a bundle or may take from other places than `main` or the one that was sent.
    pub made_of: Option<Arc<MakeUp>>,
    /// Units asked for when the order was placed: part of the content bound to the key.
    pub placed_quantity: u32,
    /// Units now, after reductions.
    pub quantity: u32,
    /// Units refunded.
    pub refunded: u32,
    /// Which stock it holds or bought.
    pub allocations: Vec<Allocation>,
}

impl Line {
    /// Every pool that it may take from.
    pub fn pools(&self) -> impl Iterator<Item = PoolId> {
        let own = self.made_of.is_none().then_some(self.pool);
        own.into_iter().chain(self.made_of.iter().flat_map(|made_of| made_of.pools()))
    }

    /// Units of stock that it stands for: those of its bundles, one by one, less what was refunded.
    pub fn units(&self) -> u64 {
        let each = self.made_of.as_ref().map_or(1, |made_of| made_of.units());
        u64::from(self.quantity.saturating_sub(self.refunded)).saturating_mul(each)
    }
}

/// A payment that the client has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The client's id of it.
    pub attempt_id: AttemptId,
    /// With whom.
    pub provider: Provider,
    /// When the authority learnt of it.
    pub started_at: Timestamp,
    /// Whether its outcome is still open.
    pub open: bool,
}

/// What became of a payment notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It did what it says.
    Applied,
    /// It was known.
    Duplicate,
    /// It came late and took stock again.
    Retaken,
    /// It waits for the order to land.
    Parked,
    /// The money must go back.
    RefundDue,
    /// A person must look.
    Review,
    /// It is recorded and changes nothing.
    Ignored,
}

spelled! {
    Disposition {
        Applied = "applied", Duplicate = "duplicate", Retaken = "retaken", Parked = "parked",
        RefundDue = "refund_due", Review = "review", Ignored = "ignored",
    }
}

/// What a notice says about the payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentOutcome {
    /// The money came.
    Succeeded,
    /// It did not.
    Failed,
}

spelled! { PaymentOutcome { Succeeded = "succeeded", Failed = "failed" } }

/// What a provider says of a payment: the content that is bound to its event id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Who says it.
    pub provider: Provider,
    /// The provider's event.
    pub event_id: EventId,
    /// The provider's payment.
    pub payment_id: PaymentId,
    /// The attempt concerned; none = the only open one.
    pub attempt_id: Option<AttemptId>,
    /// What happened.
    pub outcome: PaymentOutcome,
    /// When the payment was made, by the provider.
    pub paid_at: Option<Timestamp>,
    /// How much was paid.
    pub amount_minor: Option<i64>,
    /// In which currency.
    pub currency: Option<Arc<str>>,
}

/// A notice kept as evidence, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// What the provider said.
    pub notice: Notice,
    /// When the authority decided on it.
    pub received_at: Timestamp,
    /// The order's version that it met.
    pub order_version: u32,
    /// What became of it.
    pub disposition: Disposition,
    /// Whether the payment had succeeded on another order before: it is no money of this one.
    pub elsewhere: bool,
}

impl Payment {
    /// Whether it says that money came.
    pub fn succeeded(&self) -> bool {
        self.notice.outcome == PaymentOutcome::Succeeded
    }

    /// Whether it says so, and a person must judge.
    pub fn is_under_review(&self) -> bool {
        self.succeeded() && self.disposition == Disposition::Review
    }
}

/// Units refunded of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundLine {
    /// The line, from 1.
    pub line: u32,
    /// How many units.
    pub quantity: u32,
}

/// A refund as it was asked for: the content that is bound to its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// The client's id of it.
    pub refund_id: RefundId,
    /// What is refunded.
    pub lines: Vec<RefundLine>,
    /// Whether stock comes back; none = by policy.
    pub restock: Option<bool>,
    /// Why.
    pub reason: Arc<str>,
}

/// A refund that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundMade {
    /// As it was asked for.
    pub asked: Refund,
    /// Whether stock came back: asked for, or the policy's at that time.
    pub restocked: bool,
}

/// Money that must go back to the buyer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundDue {
    /// Since when.
    pub since: Timestamp,
    /// Which payments, by provider and payment id.
    pub payments: Vec<(Provider, PaymentId)>,
}

/// What was missing when an order was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// The line, from 1; where a key's limit was reached, the key's place among the order's keys.
    pub line: u32,
    /// Units, or open holds, that the order asks for.
    pub requested: u64,
    /// How many there were.
    pub available: u64,
}

/// An order as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// Its idempotency key.
    pub key: OrderKey,
    /// Whose it is.
    pub account: Account,
    /// Where it stands.
    pub state: State,
    /// Why it stands there.
    pub reason: Option<Reason>,
    /// How often it changed; 1 when new.
    pub version: u32,
    /// The bucket whose lock is the order's lock and whose ledger carries its events.
    pub home: Option<BucketKey>,
    /// What it buys.
    pub lines: Vec<Line>,
    /// How long it holds, in seconds: asked for, or the policy's when it was placed.
    pub hold_seconds: u32,
    /// The hold time that the client asked for.
    pub hold_seconds_sent: Option<u32>,
    /// When the hold ends (held), or the review (in review).
    pub hold_ends_at: Option<Timestamp>,
    /// When something is due: release, end of review. What the scan looks for.
    pub due_at: Option<Timestamp>,
    /// A begun payment has extended the hold.
    pub extended: bool,
    /// What must be paid, where the client said so.
    pub amount_due: Option<Money>,
    /// Money that must go back.
    pub refund_due: Option<RefundDue>,
    /// Payments begun.
    pub attempts: Vec<Attempt>,
    /// Payments noticed.
    pub payments: Vec<Payment>,
    /// Refunds made.
    pub refunds: Vec<RefundMade>,
    /// What was missing, on a recorded refusal.
    pub shortage: Option<Shortage>,
    /// Keys besides the account that limits may be on.
    pub limit_keys: LimitKeys,
    /// The client's own JSON object, kept as sent.
    pub metadata: Option<Arc<str>>,
    /// When it was placed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What an order counts for against limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Units of stock held, in review or sold and not refunded: a bundle counts as all that it is made of.
    pub units: u64,
    /// Orders held or in review.
    pub open_holds: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            units: self.units.saturating_add(other.units),
            open_holds: self.open_holds.saturating_add(other.open_holds),
        }
    }
}

impl Order {
    /// Every allocation of every line.
    pub fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        self.lines.iter().flat_map(|line| &line.allocations)
    }

    /// Every pool that its lines may take from.
    pub fn pools(&self) -> impl Iterator<Item = PoolId> {
        self.lines.iter().flat_map(Line::pools)
    }

    /// The buckets that a transition of this order may touch: home and allocations, ascending.
    pub fn buckets(&self) -> Vec<BucketKey> {
        let mut keys: Vec<_> = self.home.into_iter().chain(self.allocations().map(|a| a.bucket)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// What the order counts for against limits. Refunded and released units count no more.
    pub fn usage(&self) -> Usage {
        let units = || self.lines.iter().map(Line::units).sum();
        match self.state {
            State::Held | State::InReview => Usage { units: units(), open_holds: 1 },
            State::Sold => Usage { units: units(), open_holds: 0 },
            State::Queued | State::Refunded | State::Released | State::Failed => Usage::default(),
        }
    }

    /// Whether it holds or bought stock that has not come back.
    pub fn has_stock(&self) -> bool {
        matches!(self.state, State::Held | State::InReview | State::Sold)
    }

    /// Whether a success of this payment is recorded.
    pub fn has_success_of(&self, provider: &Provider, payment: &PaymentId) -> bool {
        self.successes().any(|p| p.notice.provider == *provider && p.notice.payment_id == *payment)
    }

    /// Whether any success is recorded.
    pub fn has_success(&self) -> bool {
        self.successes().next().is_some()
    }

    /// Whether a success paid for it. What is under review or goes back did not.
    pub fn is_paid(&self) -> bool {
        let pays = |payment: &Payment| match payment.disposition {
            Disposition::Applied | Disposition::Retaken => true,
            Disposition::Duplicate
            | Disposition::Parked
            | Disposition::RefundDue
            | Disposition::Review
            | Disposition::Ignored => false,
        };
        self.successes().any(pays)
    }

    /// The successes that are not repeats of another one: at landing the parked one is taken out and
    /// applied, and its repeats must not stand in its way.
    fn successes(&self) -> impl Iterator<Item = &Payment> {
        self.payments.iter().filter(|p| p.succeeded() && p.disposition != Disposition::Duplicate)
    }

    /// Whether a payment is begun and its outcome open.
    pub fn has_open_attempt(&self) -> bool {
        self.attempts.iter().any(|a| a.open)
    }

    /// Whether the answer to a place of this order is a refusal that is kept for the key.
    pub const fn is_recorded_refusal(&self) -> bool {
        matches!(self.state, State::Failed)
    }
}
