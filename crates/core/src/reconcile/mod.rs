//! Reconciliation (对账): facts that were read of the authority's rows, and what is wrong with them. It shares no
//! arithmetic with [`crate::decide`]; one cause is one finding, and of several that one cause shows as, the deepest.

mod buckets;
mod classify;
mod json;
mod orders;
mod rules;

pub use buckets::{BucketFacts, Doubled, LedgerSums, Range};
pub use classify::{Facts, PoolFacts, StuckFacts, UsageFacts, classify};
pub use orders::{Lost, OrderFacts, OrderFault, judge, knows};
pub use rules::{RULES, Rule, rule_of};

use std::sync::Arc;

use crate::cache::CacheBucket;
use crate::campaign::spelled;
use crate::case::{Case, CaseKind};
use crate::id::{CaseId, DiscrepancyId, OrderId, PoolId};
use crate::ledger::Covers;
use crate::order::{Order, State};
use crate::snapshot::UsageKey;
use crate::stock::{BucketKey, Delta};
use crate::time::Timestamp;

/// Most findings of one run: with more than that, what is wrong is not single rows.
pub const FINDINGS_MAX: usize = 1_000;

/// What kind of difference it is. The order is that of depth: an earlier one may be what a later one shows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A number is missing in a bucket's ledger, or an order's event.
    EntryMissing,
    /// The ledger tells the same twice.
    EntryDuplicate,
    /// A balance is not the sum of its ledger.
    BalanceDrift,
    /// A pool has not the buckets that it says.
    BucketSumOff,
    /// Stock left one bucket and came to none, or came from none.
    TransferUnpaired,
    /// An order says that it has stock of which the ledger knows nothing.
    OrderWithoutStock,
    /// The ledger tells of an order that is not there.
    StockWithoutOrder,
    /// An order's row is not what its entries say.
    AllocationDrift,
    /// A payment that succeeded did not make its order sold.
    PaidNotApplied,
    /// A hold is still there long after its end.
    HoldOverdue,
    /// A usage row is not the sum of its orders.
    UsageDrift,
    /// A cache had more than the ledger lets it have.
    CacheAhead,
    /// A cache had less than the ledger lets it have.
    CacheBehind,
    /// An order that a cache accepted has no entry to land from.
    EntryUnlanded,
    /// An event has not reached a sink for too long.
    EventStuck,
}

/// What is done about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It is mended at once, by a command that does it only once.
    Repair,
    /// New holds in the pool stop, and a person decides.
    Freeze,
    /// It may be under way: it must be gone at the next look.
    Watch,
}

/// Whether something is left to do about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscrepancyState {
    /// It is there.
    Open,
    /// A command mended it.
    Repaired,
    /// It was gone when it was looked for again.
    Resolved,
}

/// How much a run looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunScope {
    /// Every entry and every order.
    Full,
    /// Every balance, and the entries and orders since it was last proved.
    Incremental,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// It waits, or is under way.
    Running,
    /// It came to its end.
    Done,
    /// It could not.
    Failed,
}

spelled! {
    RunScope { Full = "full", Incremental = "incremental" }
    RunState { Running = "running", Done = "done", Failed = "failed" }
    Class {
        EntryMissing = "entry_missing", EntryDuplicate = "entry_duplicate", BalanceDrift = "balance_drift",
        BucketSumOff = "bucket_sum_off", TransferUnpaired = "transfer_unpaired",
        OrderWithoutStock = "order_without_stock", StockWithoutOrder = "stock_without_order",
        AllocationDrift = "allocation_drift", PaidNotApplied = "paid_not_applied", HoldOverdue = "hold_overdue",
        UsageDrift = "usage_drift", CacheAhead = "cache_ahead", CacheBehind = "cache_behind",
        EntryUnlanded = "entry_unlanded", EventStuck = "event_stuck",
    }
    Disposition { Repair = "repair", Freeze = "freeze", Watch = "watch" }
    DiscrepancyState { Open = "open", Repaired = "repaired", Resolved = "resolved" }
}

impl Class {
    /// What a case of it is called.
    pub const fn case_kind(self) -> CaseKind {
        match self {
            Self::EntryMissing => CaseKind::EntryMissing,
            Self::EntryDuplicate => CaseKind::EntryDuplicate,
            Self::BalanceDrift => CaseKind::BalanceDrift,
            Self::BucketSumOff => CaseKind::BucketSumOff,
            Self::TransferUnpaired => CaseKind::TransferUnpaired,
            Self::OrderWithoutStock => CaseKind::OrderWithoutStock,
            Self::StockWithoutOrder => CaseKind::StockWithoutOrder,
            Self::AllocationDrift => CaseKind::AllocationDrift,
            Self::PaidNotApplied => CaseKind::PaidNotApplied,
            Self::HoldOverdue => CaseKind::HoldOverdue,
            Self::UsageDrift => CaseKind::UsageDrift,
            Self::CacheAhead => CaseKind::CacheAhead,
            Self::CacheBehind => CaseKind::CacheBehind,
            Self::EntryUnlanded => CaseKind::EntryUnlanded,
            Self::EventStuck => CaseKind::EventStuck,
        }
    }
}

/// An order's event that is not in the ledger, worked out from those before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostEvent {
    /// The order.
    pub order: OrderId,
    /// The version that it led to; none: the entry carried no event.
    pub version: Option<u32>,
    /// The state before.
    pub from: Option<State>,
    /// The state after.
    pub to: Option<State>,
}

/// What the ledger says of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stands {
    /// Its state after its last event.
    pub state: State,
    /// The version of that event.
    pub version: u32,
    /// Units that its entries gave it and did not take back, by bucket.
    pub units: Vec<(BucketKey, u64)>,
}

/// What was proved, in numbers: from it alone follows what a repair does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// By how much the ledger's sum is more than the balance.
    Balance {
        /// The bucket.
        bucket: BucketKey,
        /// The difference; both sides change alike, so it stays what it is while stock is sold.
        difference: Delta,
    },
    /// Entries that are not there, or are there twice.
    Entries {
        /// The bucket.
        bucket: BucketKey,
        /// Which numbers.
        covers: Covers,
        /// What an entry must say so that the sum is the balance again.
        delta: Delta,
        /// The order that they are about, if that is known.
        event: Option<LostEvent>,
        /// The number of the transfer whose other half is there.
        half_of: Option<Arc<str>>,
    },
    /// One half of a pair, or entries of an order that is not there: what moves it back.
    Alone {
        /// What each bucket gets back.
        deltas: Vec<(BucketKey, Delta)>,
        /// The entry that stands alone; none: all of the order's.
        covers: Option<Covers>,
        /// The order that is not there.
        order: Option<OrderId>,
    },
    /// An order's row, and what the ledger says of it; nothing: the ledger does not know it.
    Order {
        /// The order.
        order: OrderId,
        /// The version that its row had.
        seen: u32,
        /// What the ledger says.
        stands: Option<Stands>,
    },
    /// By how much the orders are more than the usage row.
    Usage {
        /// Whose.
        key: UsageKey,
        /// Units.
        units: i64,
        /// Open holds.
        open_holds: i64,
    },
    /// Nothing from which a repair would follow.
    Seen,
}

impl Proof {
    /// How many units a repair would move or account for.
    pub fn units(&self) -> u64 {
        let of = |delta: &Delta| {
            [delta.available, delta.held, delta.sold].map(i64::unsigned_abs).into_iter().max().unwrap_or(0)
        };
        match self {
            Self::Balance { difference, .. } => of(difference),
            Self::Entries { delta, .. } => of(delta),
            Self::Alone { deltas, .. } => deltas.iter().map(|(_, delta)| of(delta)).sum(),
            Self::Order { stands, .. } => stands.iter().flat_map(|s| &s.units).map(|(_, units)| units).sum(),
            Self::Usage { units, .. } => units.unsigned_abs(),
            Self::Seen => 0,
        }
    }
}

/// What a cache said of itself, and what the law says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheSeen {
    /// What it may have.
    pub lawful: Option<i64>,
    /// What it has.
    pub available: Option<i64>,
    /// Orders that it accepted in the epoch.
    pub accepted: u64,
    /// Of these, settled.
    pub settled: u64,
    /// Of these, waiting.
    pub backlog: u64,
}

/// A difference that a run found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its class.
    pub class: Class,
    /// The pool concerned.
    pub pool: Option<PoolId>,
    /// The bucket concerned.
    pub bucket: Option<BucketKey>,
    /// The order concerned.
    pub order: Option<OrderId>,
    /// What tells it from others of its class there: a ledger position, or a hash of a name.
    pub position: u64,
    /// What was proved.
    pub proof: Proof,
    /// What should be.
    pub expected: Arc<str>,
    /// What is.
    pub actual: Arc<str>,
    /// What was seen, as a JSON object.
    pub evidence: Arc<str>,
}

impl Finding {
    /// What the keeper of a bucket's cache saw before it drained the epoch.
    pub fn of_cache(class: Class, row: &CacheBucket, seen: CacheSeen) -> Self {
        let CacheSeen { lawful, available, accepted, settled, backlog } = seen;
        let told =
            |units: Option<i64>| units.map_or_else(|| "nothing".to_owned(), |units| format!("{units} units"));
        let (expected, actual) = if class == Class::EntryUnlanded {
            (format!("{accepted} entries"), format!("{settled} settled and {backlog} waiting"))
        } else {
            (told(lawful), told(available))
        };
        let evidence = json::Object::new()
            .raw("bucket", row.key.number)
            .raw("epoch", row.epoch)
            .text("identity", &row.identity)
            .text("expected", &expected)
            .text("actual", &actual)
            .finish();
        Self {
            class,
            pool: Some(row.key.pool),
            bucket: Some(row.key),
            order: None,
            position: row.epoch.0,
            proof: Proof::Seen,
            expected: expected.into(),
            actual: actual.into(),
            evidence: evidence.into(),
        }
    }

    /// The same for the same difference, whoever finds it and however often.
    pub fn identity(&self) -> DiscrepancyId {
        self.id(0)
    }

    /// Its id when the same difference has been there so many times before and was mended.
    pub fn id(&self, round: u32) -> DiscrepancyId {
        let pool = self.pool.or(self.bucket.map(|bucket| bucket.pool));
        let order = match self.class {
            // The place in the ledger tells which it is, also where its order was learnt later.
            Class::EntryMissing | Class::EntryDuplicate => 0,
            Class::BalanceDrift
            | Class::BucketSumOff
            | Class::TransferUnpaired
            | Class::OrderWithoutStock
            | Class::StockWithoutOrder
            | Class::AllocationDrift
            | Class::PaidNotApplied
            | Class::HoldOverdue
            | Class::UsageDrift
            | Class::CacheAhead
            | Class::CacheBehind
            | Class::EntryUnlanded
            | Class::EventStuck => self.order.map_or(0, |order| order.0),
        };
        let named = [
            u128::from(self.class as u8),
            pool.map_or(0, |pool| pool.0),
            self.bucket.map_or(u128::MAX, |bucket| u128::from(bucket.number)),
            order,
            u128::from(self.position),
            u128::from(round),
        ];
        // A time in front, as in every id: that of what it is about.
        let about = pool.map(|pool| pool.0).or(self.order.map(|order| order.0)).unwrap_or(0);
        DiscrepancyId(crate::case::hashed_id(about >> crate::case::TIME_SHIFT, &named))
    }
}

/// A difference as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discrepancy {
    /// Its id.
    pub id: DiscrepancyId,
    /// What was found first.
    pub found: Finding,
    /// When it was found first.
    pub first_seen_at: Timestamp,
    /// When it was found last.
    pub last_seen_at: Timestamp,
    /// How many runs found it.
    pub cycles: u32,
    /// What is done about it.
    pub disposition: Disposition,
    /// Whether it is still there.
    pub state: DiscrepancyState,
}

impl Discrepancy {
    /// A difference that was found for the first time.
    pub fn new(found: Finding, round: u32, at: Timestamp) -> Self {
        Self {
            id: found.id(round),
            disposition: rule_of(found.class).disposition,
            found,
            first_seen_at: at,
            last_seen_at: at,
            cycles: 1,
            state: DiscrepancyState::Open,
        }
    }

    /// Its case has the same number.
    pub const fn case_id(&self) -> CaseId {
        CaseId(self.id.0)
    }

    /// The case in which a person decides about it.
    pub fn case(&self, at: Timestamp) -> Case {
        let found = &self.found;
        let evidence = json::with_outline(self);
        let open = Case::open(self.case_id(), found.class.case_kind(), evidence.into(), at);
        Case { pool: found.pool, order: found.order, ..open }
    }
}

/// What an order's row says that it has of each bucket: (held, sold).
fn says(order: &Order) -> std::collections::BTreeMap<BucketKey, (i64, i64)> {
    let mut says = crate::audit::stock_said(order);
    says.retain(|_, at| *at != (0, 0));
    says
}
