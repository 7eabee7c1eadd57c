//! What reconciliation reads and keeps. It reads in short statements, each bounded, and locks nothing that is hot; what it
//! keeps is its own: runs, differences, and up to where a bucket was proved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::id::{CampaignId, DiscrepancyId, EventId, OrderId, Provider, RunId};
use holdfast_core::ledger::Entry;
use holdfast_core::limit::Limited;
use holdfast_core::order::{Order, Usage};
use holdfast_core::reconcile::{
    Class, Discrepancy, DiscrepancyState, Disposition, Finding, LedgerSums, OrderFacts, PoolFacts, Range,
    RunScope, RunState, UsageFacts,
};
use holdfast_core::snapshot::{PaymentRow, UsageKey};
use holdfast_core::stock::{Bucket, BucketKey};
use holdfast_core::time::Timestamp;

use crate::error::Error;
use crate::read::Page;

/// Most runs that wait or are under way.
pub const RUNS_UNFINISHED_MAX: u64 = 16;
/// Most ledger entries that one statement sums.
pub const SUMMED_ENTRIES_MAX: u64 = 20_000;
/// Most rows of a kind that are told of one bucket: missing ranges, repairs, doubled entries.
pub const ODD_ROWS_MAX: usize = 1_000;
/// How many finished runs are kept besides those that found something.
pub const RUNS_KEPT: u64 = 10_000;

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// How much it looks at.
    pub scope: RunScope,
    /// How it stands.
    pub state: RunState,
    /// Who asked for it; the node itself on schedule.
    pub asked_by: Arc<str>,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Buckets compared so far.
    pub buckets_read: u64,
    /// Ledger entries read so far.
    pub entries_read: u64,
    /// Orders compared so far.
    pub orders_read: u64,
    /// What it found, by class.
    pub found: BTreeMap<Class, u64>,
    /// Why it failed.
    pub failure: Option<Arc<str>>,
    /// How often a node began it.
    pub attempts: u32,
}

impl Run {
    /// A run that nobody has begun.
    pub const fn asked(id: RunId, scope: RunScope, asked_by: Arc<str>, at: Timestamp) -> Self {
        Self {
            id,
            scope,
            state: RunState::Running,
            asked_by,
            started_at: at,
            finished_at: None,
            buckets_read: 0,
            entries_read: 0,
            orders_read: 0,
            found: BTreeMap::new(),
            failure: None,
            attempts: 0,
        }
    }
}

/// Up to where a bucket was proved, and what it had there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The bucket.
    pub bucket: BucketKey,
    /// The sums of its entries up to there, which were its balance.
    pub sums: LedgerSums,
}

/// A bucket as it begins to be compared: all of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketHead {
    /// Its row.
    pub row: Bucket,
    /// The last number in its ledger.
    pub last_seq: u64,
    /// Whether its pool is frozen.
    pub frozen: bool,
    /// Up to where it was proved.
    pub proved: Option<Checkpoint>,
}

/// Which orders are compared with their entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrdersOf {
    /// In order of their ids.
    Page(Page<OrderId>),
    /// These.
    Ids(Vec<OrderId>),
}

/// What is asked of orders.
#[derive(Debug, Clone)]
pub struct OrdersAsked {
    /// Which.
    pub of: OrdersOf,
    /// A hold that should have ended before this time is left over.
    pub overdue_before: Timestamp,
    /// Campaigns that limit something: their orders are counted.
    pub counted: Arc<BTreeSet<CampaignId>>,
}

/// Orders that may be wrong, each read with its entries in one view. A store may tell of one that is right; whoever
/// asks judges.
#[derive(Debug, Clone, Default)]
pub struct Suspects {
    /// They.
    pub suspects: Vec<OrderFacts>,
    /// Orders of the campaigns that are counted.
    pub counted: Vec<Arc<Order>>,
    /// The last id that was looked at; none: there is none further on.
    pub last: Option<OrderId>,
    /// Orders that were compared.
    pub orders: u64,
    /// Their entries.
    pub entries: u64,
}

/// Payments that succeeded, and of which their orders may know nothing.
#[derive(Debug, Clone, Default)]
pub struct Unapplied {
    /// Each with its order as it is in the same view.
    pub suspects: Vec<(PaymentRow, Option<Arc<Order>>)>,
    /// The last event that was looked at; none: there is none further on.
    pub last: Option<(Provider, EventId)>,
}

/// Where a page of usage rows begins: those of accounts come first, then those of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageAfter<'k> {
    /// After which account of which campaign; none: no account is left.
    pub account: Option<(&'k str, &'k str)>,
    /// After which key of which campaign.
    pub key: (&'k str, &'k str, u128),
}

impl<'k> UsageAfter<'k> {
    /// Behind the last row of the page before.
    pub fn of(last: Option<&'k UsageKey>) -> Self {
        let first_key = ("", "", 0);
        match last {
            None => Self { account: Some(("", "")), key: first_key },
            Some(UsageKey { campaign, limited: Limited::Account(account) }) => {
                Self { account: Some((campaign.as_str(), account.as_str())), key: first_key }
            }
            Some(UsageKey { campaign, limited: Limited::Key(name, hashed) }) => {
                Self { account: None, key: (campaign.as_str(), name.as_str(), hashed.0) }
            }
        }
    }
}

/// Which differences a list shows, in order of their ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiscrepancyFilter {
    /// In this state.
    pub state: Option<DiscrepancyState>,
    /// Of this class.
    pub class: Option<Class>,
}

impl DiscrepancyFilter {
    /// Judges one; the model store uses it.
    pub fn shows(&self, discrepancy: &Discrepancy) -> bool {
        self.state.is_none_or(|state| state == discrepancy.state)
            && self.class.is_none_or(|class| class == discrepancy.found.class)
    }
}

/// What changes of a difference besides by a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispose {
    /// Which.
    pub id: DiscrepancyId,
    /// Whether it is still there.
    pub state: DiscrepancyState,
    /// What is done about it from now on.
    pub disposition: Disposition,
}

/// The part of a store that reconciliation uses.
#[async_trait]
pub trait ReconcileStore: Send + Sync + 'static {
    /// Keeps a run that is asked for; false where [`RUNS_UNFINISHED_MAX`] are not finished.
    async fn ask_run(&self, run: Run) -> Result<bool, Error>;

    /// Keeps how a run stands, and of those that found nothing the last [`RUNS_KEPT`].
    async fn save_run(&self, run: Run) -> Result<(), Error>;

    /// A run.
    async fn run(&self, id: RunId) -> Result<Option<Run>, Error>;

    /// Runs, the latest first.
    async fn runs(&self, page: Page<RunId>) -> Result<(Vec<Run>, bool), Error>;

    /// The run that has waited longest, if one is not finished.
    async fn unfinished_run(&self) -> Result<Option<Run>, Error>;

    /// When the last run of a scope was asked for.
    async fn last_run_at(&self, scope: RunScope) -> Result<Option<Timestamp>, Error>;

    /// Buckets, ascending: a row and the end of its ledger in one statement.
    async fn bucket_heads(&self, page: Page<BucketKey>) -> Result<Vec<BucketHead>, Error>;

    /// Pools that have not as many buckets as they say, at most so many.
    async fn odd_pools(&self, most: usize) -> Result<Vec<PoolFacts>, Error>;

    /// Sums a bucket's entries after a number, up to another, at most [`SUMMED_ENTRIES_MAX`] numbers further.
    async fn sum_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<LedgerSums, Error>;

    /// Numbers after one, up to another, that are missing: the first [`ODD_ROWS_MAX`] ranges.
    async fn missing_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Range>, Error>;

    /// The repairs in a bucket's ledger, the first [`ODD_ROWS_MAX`].
    async fn repairs(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error>;

    /// Entries that tell of an inbound or a correction that another entry of the bucket tells of before.
    async fn doubled_supplies(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error>;

    /// Entries of transfers after a number, up to another.
    async fn moves(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Entry>, Error>;

    /// All entries of the transfer that an entry is part of, in one statement, with the repairs that stand for some.
    async fn halves(&self, of: Entry) -> Result<Vec<Entry>, Error>;

    /// The orders that a bucket's entries after a number, up to another, are about.
    async fn orders_in(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<OrderId>, Error>;

    /// Orders that may differ from their entries.
    async fn suspects(&self, asked: OrdersAsked) -> Result<Suspects, Error>;

    /// Payments that succeeded and may not have been applied, in order of (provider, event).
    async fn unapplied(&self, page: Page<(Provider, EventId)>) -> Result<Unapplied, Error>;

    /// Usage rows, in order of their keys.
    async fn usage_rows(&self, page: Page<UsageKey>) -> Result<(Vec<(UsageKey, Usage)>, bool), Error>;

    /// A usage row, and its orders counted, in one view.
    async fn count_usage(&self, key: UsageKey) -> Result<UsageFacts, Error>;

    /// Keeps up to where buckets were proved.
    async fn save_checkpoints(&self, checkpoints: Vec<Checkpoint>) -> Result<(), Error>;

    /// Keeps what a run found: what is known and open has been there once more, what is new or came again is new. As
    /// they are kept then, in the same order.
    async fn note_findings(&self, run: RunId, findings: Vec<Finding>) -> Result<Vec<Discrepancy>, Error>;

    /// Keeps what becomes of differences.
    async fn dispose(&self, dispose: Vec<Dispose>) -> Result<(), Error>;

    /// A difference.
    async fn discrepancy(&self, id: DiscrepancyId) -> Result<Option<Discrepancy>, Error>;

    /// Differences in order of their ids.
    async fn discrepancies(
        &self,
        filter: DiscrepancyFilter,
        page: Page<DiscrepancyId>,
    ) -> Result<(Vec<Discrepancy>, bool), Error>;

    /// How many differences are open, by class.
    async fn open_discrepancies(&self) -> Result<BTreeMap<Class, u64>, Error>;
}

/// A finding on a difference that is open: it has been there once more, and what is known of it now holds.
pub fn found_again(known: Discrepancy, found: Finding, is_new_run: bool, at: Timestamp) -> Discrepancy {
    Discrepancy {
        found,
        last_seen_at: at,
        cycles: known.cycles.saturating_add(u32::from(is_new_run)),
        ..known
    }
}
