//! Commands: the only way in for a change of stock or of an order, each with a stable key.

use std::sync::Arc;

use crate::approval::{Approval, ApprovalKey, DecideApproval};
use crate::assortment::MakeUp;
use crate::cache::{CacheBucket, Landing, SetAside, TurnEpoch};
use crate::case::{Case, CaseAction};
use crate::id::{
    Account, AdjustmentId, AttemptId, CampaignId, DiscrepancyId, Location, MoveId, OrderId, OrderKey,
    PaymentId, PoolId, Provider, Sku, SweepId, TransferId,
};
use crate::import::{Import, ImportCounts, RowReport};
use crate::limit::LimitKeys;
use crate::order::{Disposition, Money, Notice, Order, Refund};
use crate::reconcile::Discrepancy;
use crate::refusal::Refusal;
use crate::snapshot::UsageKey;
use crate::stock::{Bucket, BucketKey, CacheFallback, Path, Pool, Routing};
use crate::table::Trigger;
use crate::time::Timestamp;

/// A command. Its key makes a repeat harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Place an order. Key: the order number in its campaign.
    Place(Arc<Place>),
    /// Change an order. Key: in the action.
    Order(OrderCommand),
    /// Open a pool. Key: (campaign, SKU, location).
    OpenPool(OpenPool),
    /// Change how orders come to a pool. Every value is absolute, so the same again changes nothing.
    ChangePool(ChangePool),
    /// Change a pool's supply. Key: the adjustment id.
    Adjust(Adjust),
    /// Move stock to another pool or bucket. Key: the transfer id.
    Transfer(Transfer),
    /// Gather a pool's stock in one bucket. The same again finds nothing to gather.
    Sweep(Sweep),
    /// Unsold stock of closed campaigns moves.
    MoveUnsold(MoveUnsold),
    /// Apply a stock file. Key: the import id.
    Import(Arc<Import>),
    /// Say what becomes of work that waits for a second person. Key: the request's.
    Decide(Arc<DecideApproval>),
    /// Land an order that a bucket's cache has accepted. Key: (bucket, epoch, entry). An answer with an order has
    /// landed, whatever became of it; a refusal without one left no trace. While stock is frozen nothing is due.
    Land(Arc<Landing>),
    /// Settle a stream entry that cannot be landed, and tell a person. Key: as a landing's.
    SetAside(SetAside),
    /// Turn the epoch of a bucket's cache. Every turn is absolute, so the same again changes nothing.
    TurnEpoch(TurnEpoch),
    /// Mend a proved difference. Key: the difference's id.
    Repair(Arc<Repair>),
}

/// One line of an order to place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceLine {
    /// What is bought.
    pub sku: Sku,
    /// Where from, if the client said so.
    pub location: Option<Location>,
    /// The pool that (campaign, SKU, location) names; of a line that is made up, the first of its pools.
    pub pool: PoolId,
    /// What it is made of, if it is a bundle or may take from other places than `main` or the one that was sent.
    pub made_of: Option<Arc<MakeUp>>,
    /// How many units.
    pub quantity: u32,
}

/// An order to place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The id that the order gets if it is new.
    pub id: OrderId,
    /// The business key.
    pub key: OrderKey,
    /// Whose it is.
    pub account: Account,
    /// What it buys.
    pub lines: Vec<PlaceLine>,
    /// How long to hold, if not by policy.
    pub hold_seconds: Option<u32>,
    /// What must be paid.
    pub amount_due: Option<Money>,
    /// Keys besides the account that limits may be on.
    pub limit_keys: LimitKeys,
    /// Kept as sent; not part of the content.
    pub metadata: Option<Arc<str>>,
    /// Which bucket of a pool to try first: taken modulo the number of buckets.
    pub route: u64,
    /// Whether a refusal of a kind that is recorded may be recorded (writes are bounded).
    pub record_refusals: bool,
    /// The version of the campaign's assortment by which lines were made up; none if no line depends on it.
    pub assortment: Option<u64>,
    /// The queue of the bucket that takes the order in, which is then its home. None: decide at once.
    pub intake: Option<BucketKey>,
}

/// Who did something and why, for the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Who.
    pub actor: Arc<str>,
    /// Why; may be empty.
    pub reason: Arc<str>,
    /// How it came in, for the trail of operators' acts; none if the node itself acts.
    pub via: Option<Arc<Via>>,
}

impl Signed {
    /// Signed by somebody whose way in is not followed.
    pub fn new(actor: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        Self { actor: actor.into(), reason: reason.into(), via: None }
    }
}

/// The way by which an act came in. It decides nothing; the trail of operators' acts keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Via {
    /// Whose key it was, or `anonymous`.
    pub key: Arc<str>,
    /// The request.
    pub request_id: Arc<str>,
}

/// A change of one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderCommand {
    /// The order.
    pub order: OrderId,
    /// What to do.
    pub action: OrderAction,
    /// By whom.
    pub signed: Signed,
    /// Under which key a second person is asked, where the policy wants one; none: nobody is asked.
    pub second: Option<ApprovalKey>,
}

impl OrderCommand {
    /// A change for which nobody is asked.
    pub const fn new(order: OrderId, action: OrderAction, signed: Signed) -> Self {
        Self { order, action, signed, second: None }
    }
}

/// How far a line is reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The line, from 1.
    pub line: u32,
    /// Units that stay.
    pub keep: u32,
}

/// What may be done to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderAction {
    /// Land a queued order.
    Land,
    /// Give everything back.
    Cancel,
    /// Give a part back. The same again changes nothing.
    Reduce(Vec<Keep>),
    /// A payment has begun. Key: the attempt id.
    Attempt(AttemptId, Provider),
    /// A provider says something about a payment. Key: the event id.
    Notice(Notice),
    /// Units are refunded. Key: the refund id.
    Refund(Refund),
    /// An operator confirms.
    Confirm,
    /// An operator releases.
    Release,
    /// An operator gives more time.
    Extend(Timestamp),
    /// An operator says that money went back.
    MarkRefunded(Vec<PaymentId>),
    /// The time is over: of the hold, the review or the queue.
    Expire(Inquiry),
}

/// Whether those who know what became of payments under way were asked before an order ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inquiry {
    /// Whoever can be asked was asked: the order ends.
    Done,
    /// Nobody was asked yet: an order with a payment under way stays as it is, and is told.
    Open,
}

impl OrderAction {
    /// The row group of the transition table that decides.
    pub fn trigger(&self) -> Trigger {
        match self {
            Self::Land => Trigger::Land,
            Self::Cancel => Trigger::Cancel,
            Self::Reduce(_) => Trigger::Reduce,
            Self::Attempt(..) => Trigger::Attempt,
            Self::Notice(notice) => match notice.outcome {
                crate::order::PaymentOutcome::Succeeded => Trigger::Success,
                crate::order::PaymentOutcome::Failed => Trigger::FailedNotice,
            },
            Self::Refund(_) => Trigger::Refund,
            Self::Confirm => Trigger::Confirm,
            Self::Release => Trigger::Release,
            Self::Extend(_) => Trigger::Extend,
            Self::MarkRefunded(_) => Trigger::MarkRefunded,
            Self::Expire(_) => Trigger::Expire,
        }
    }
}

/// A pool to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPool {
    /// The id that the pool gets if it is new.
    pub id: PoolId,
    /// The campaign.
    pub campaign: CampaignId,
    /// What is sold.
    pub sku: Sku,
    /// Where it is.
    pub location: Location,
    /// Opening stock.
    pub supply: u64,
    /// How many buckets.
    pub buckets: u32,
    /// How an order reaches the authority.
    pub path: Path,
    /// Which bucket it tries first.
    pub routing: Routing,
    /// By whom.
    pub signed: Signed,
}

/// A change of how orders come to a pool. What is none stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePool {
    /// The pool.
    pub pool: PoolId,
    /// How an order reaches the authority.
    pub path: Option<Path>,
    /// Which bucket it tries first.
    pub routing: Option<Routing>,
    /// The weight of every bucket, by its number, after the change.
    pub weights: Option<Vec<u32>>,
    /// How many buckets; a pool only grows.
    pub buckets: Option<u32>,
    /// Most orders that a node places at the same time; the inner none: no limit.
    pub max_concurrency: Option<Option<u32>>,
    /// What is done without the cache.
    pub cache_fallback: Option<CacheFallback>,
    /// By whom.
    pub signed: Signed,
}

/// What kind of supply change an adjustment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdjustmentKind {
    /// New stock came.
    Inbound,
    /// The count was wrong.
    Adjust,
}

crate::campaign::spelled! { AdjustmentKind { Inbound = "inbound", Adjust = "adjust" } }

/// A change of a pool's supply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjust {
    /// The business key, global.
    pub adjustment_id: AdjustmentId,
    /// The pool.
    pub pool: PoolId,
    /// By how much; not 0.
    pub delta: i64,
    /// What kind.
    pub kind: AdjustmentKind,
    /// One bucket, or by rule: a rise goes to the emptiest, a fall takes from the fullest first.
    pub bucket: Option<u32>,
    /// By whom.
    pub signed: Signed,
}

/// One end of a transfer: a pool, or one bucket of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferEnd {
    /// The pool.
    pub pool: PoolId,
    /// One bucket, or by rule.
    pub bucket: Option<u32>,
}

/// Stock that moves to another pool or bucket. Units are counted, not looked at: pools may be of different
/// campaigns, locations and SKUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The business key, global.
    pub transfer_id: TransferId,
    /// Where from; without a bucket from the fullest first.
    pub from: TransferEnd,
    /// Where to; without a bucket to the emptiest.
    pub to: TransferEnd,
    /// How many units.
    pub quantity: u64,
    /// By whom.
    pub signed: Signed,
}

/// Fragments of a pool that are gathered, so that a line of many units finds them together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The business number of its entries.
    pub id: SweepId,
    /// The pool.
    pub pool: PoolId,
    /// Into which bucket; none: the fullest of those that routing chooses.
    pub bucket: Option<u32>,
    /// By whom.
    pub signed: Signed,
}

/// Stock of closed campaigns that goes where it was said when they were closed: all that the buckets have then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveUnsold {
    /// The business number of its entries.
    pub id: MoveId,
    /// What gives. A bucket of a campaign that is not closed into the pool gives nothing.
    pub from: Vec<BucketKey>,
    /// The pool that takes.
    pub to: PoolId,
    /// By whom.
    pub signed: Signed,
}

/// Which of two sides that differ is made to follow the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// What the ledger says holds: a row follows it.
    Ledger,
    /// What the rows say holds: the ledger gets an entry of what it lacks.
    Balance,
    /// What has no other half is moved back.
    Compensate,
}

/// A difference to mend. What is done follows from what was proved of it and is stored: nobody sends numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Which difference.
    pub id: DiscrepancyId,
    /// Which side holds.
    pub accept: Accept,
    /// The decision on its case, which is resolved with it; none: the class is proved and safe.
    pub decides: Option<CaseAction>,
    /// The pool concerned, all of whose buckets are locked.
    pub pool: Option<PoolId>,
    /// The order concerned.
    pub order: Option<OrderId>,
    /// Whose usage is concerned.
    pub usage: Option<UsageKey>,
    /// By whom.
    pub signed: Signed,
}

/// How an answer came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The order or pool is new.
    Created,
    /// The command changed it.
    Changed,
    /// The command was known, or there was nothing to do.
    Repeated,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The order as it stands now.
    Order {
        /// The order.
        order: Arc<Order>,
        /// New, changed or repeated.
        how: How,
        /// What became of the notice, where the command was one.
        disposition: Option<Disposition>,
    },
    /// The command was refused; nothing moved.
    Refused {
        /// Why.
        refusal: Refusal,
        /// Whether the authority keeps this answer for the key.
        recorded: bool,
        /// Whether this answer was given before.
        repeated: bool,
        /// The order concerned, where there is one.
        order: Option<Arc<Order>>,
    },
    /// The pool as it stands now.
    Pool {
        /// The pool.
        pool: Pool,
        /// Its buckets.
        buckets: Vec<Bucket>,
        /// Opened, changed, or as it was.
        how: How,
    },
    /// The adjustment is applied.
    Adjusted {
        /// The pool's buckets after it.
        buckets: Vec<Bucket>,
        /// Whether it was applied before.
        repeated: bool,
    },
    /// The transfer is applied.
    Transferred {
        /// Whether it was applied before.
        repeated: bool,
    },
    /// The file is applied, or would be.
    Imported {
        /// What became of its rows.
        counts: ImportCounts,
        /// Row by row; none if it was applied before.
        rows: Vec<RowReport>,
        /// Whether it was applied before.
        repeated: bool,
    },
    /// The bucket's cache as the authority knows it now.
    Epoch {
        /// Its row.
        row: CacheBucket,
        /// Turned, or as it was.
        how: How,
    },
    /// The difference is mended.
    Repaired {
        /// It, as it is kept now.
        discrepancy: Arc<Discrepancy>,
        /// Its case, decided, where somebody decided.
        case: Option<Arc<Case>>,
        /// Whether it was mended before.
        repeated: bool,
    },
    /// A second person is asked, or has refused. Nothing moved.
    Proposed {
        /// The request.
        approval: Arc<Approval>,
        /// Whether it was there before.
        repeated: bool,
    },
    /// The locked buckets of these pools have too little; other buckets may have more.
    Miss(Vec<PoolId>),
    /// The command needs buckets that the batch did not lock: all of these pools.
    Elsewhere(Vec<PoolId>),
    /// The campaign's assortment is not the one by which the command was made up. Nothing was done.
    Outdated,
    /// There is nothing due before this time; none if nothing will be.
    NotDue(Option<Timestamp>),
}

impl Outcome {
    /// A refusal that leaves no trace.
    pub const fn refused(refusal: Refusal) -> Self {
        Self::Refused { refusal, recorded: false, repeated: false, order: None }
    }

    /// The order that the answer is about, if there is one.
    pub const fn order(&self) -> Option<&Arc<Order>> {
        match self {
            Self::Order { order, .. } | Self::Refused { order: Some(order), .. } => Some(order),
            Self::Refused { order: None, .. }
            | Self::Pool { .. }
            | Self::Adjusted { .. }
            | Self::Transferred { .. }
            | Self::Imported { .. }
            | Self::Epoch { .. }
            | Self::Repaired { .. }
            | Self::Proposed { .. }
            | Self::Miss(_)
            | Self::Elsewhere(_)
            | Self::Outdated
            | Self::NotDue(_) => None,
        }
    }

    /// A refusal that leaves no trace, on an order that exists.
    pub const fn refused_on(refusal: Refusal, order: Arc<Order>) -> Self {
        Self::Refused { refusal, recorded: false, repeated: false, order: Some(order) }
    }
}
