//! Evidence: what the authority knows of an order or a pool, read in one view, for those who ask how it came to stand
//! where it stands. Every part is bounded, and says so where there is more.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::approval::Approval;
use holdfast_core::cache::CacheBucket;
use holdfast_core::case::Case;
use holdfast_core::command::Transfer;
use holdfast_core::id::{OrderId, OrderKey, PoolId};
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::order::Order;
use holdfast_core::snapshot::PaymentClaim;
use holdfast_core::stock::{BucketKey, Delta};
use holdfast_core::time::Timestamp;

use crate::acts::ActRow;
use crate::error::Error;
use crate::read::{LedgerPosition, PoolRow};
use crate::sinks::DeliveryOf;

/// Most ledger entries that are told, over all buckets concerned.
pub const EVIDENCE_ENTRIES_MAX: usize = 500;
/// Most cases, acts, requests for a second person and owners that are told, each.
pub const EVIDENCE_RECORDS_MAX: usize = 100;
/// Most entries that are summed up to say what a pool's balances were and whose its units: beyond it the audit does
/// that, which streams.
pub const EVIDENCE_SUMMED_MAX: u64 = 250_000;

/// Which order to explain.
#[derive(Debug, Clone)]
pub enum ExplainOrder {
    /// By its id.
    Id(OrderId),
    /// By its key.
    Key(OrderKey),
}

/// Which part of a pool to explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainPool {
    /// The pool.
    pub pool: PoolId,
    /// Only this bucket.
    pub bucket: Option<u32>,
    /// Only entries from this number on.
    pub from_seq: Option<u64>,
    /// As of this entry of each bucket.
    pub to_seq: Option<u64>,
    /// As of this time.
    pub at: Option<Timestamp>,
}

impl ExplainPool {
    /// A pool as it stands.
    pub const fn whole(pool: PoolId) -> Self {
        Self { pool, bucket: None, from_seq: None, to_seq: None, at: None }
    }

    /// Whether the bucket is concerned.
    pub fn covers(&self, number: u32) -> bool {
        self.bucket.is_none_or(|only| only == number)
    }

    /// The last entry that counts of a bucket that has come so far, and had come so far at the time that was asked for.
    pub fn position(&self, ledger_seq: u64, at_time: Option<u64>) -> u64 {
        [self.to_seq, at_time].into_iter().flatten().fold(ledger_seq, u64::min)
    }
}

/// The first items of something, and whether there are more.
pub type Told<T> = (Vec<T>, bool);

/// What is known of an order.
#[derive(Debug, Clone)]
pub struct OrderEvidence {
    /// The order as it stands.
    pub order: Arc<Order>,
    /// Its ledger entries in order of (bucket, sequence).
    pub entries: Told<Entry>,
    /// Which orders its payments are for.
    pub claims: Vec<PaymentClaim>,
    /// The cache of its home bucket.
    pub cache: Option<CacheBucket>,
    /// What became of its events at every sink.
    pub deliveries: Vec<DeliveryOf>,
    /// Cases about it.
    pub cases: Told<Case>,
    /// Work on it that needed a second person.
    pub approvals: Told<Arc<Approval>>,
    /// What operators did to it, the newest first.
    pub acts: Told<ActRow>,
}

/// How far a bucket's ledger counts, and what it adds up to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketSums {
    /// The bucket.
    pub bucket: BucketKey,
    /// Its last entry that counts.
    pub seq: u64,
    /// What its entries up to there add up to; none if they were too many to be summed.
    pub sums: Option<Delta>,
}

/// What entries of one action did, together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActionSum {
    /// How many.
    pub entries: u64,
    /// Their changes.
    pub delta: Delta,
}

/// An order that had units of a pool, by the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The order.
    pub order: OrderId,
    /// Its number.
    pub order_no: Arc<str>,
    /// Units held for it.
    pub held: i64,
    /// Units sold to it.
    pub sold: i64,
}

/// What is known of a pool.
#[derive(Debug, Clone)]
pub struct PoolEvidence {
    /// The pool as it stands.
    pub row: PoolRow,
    /// The buckets concerned.
    pub buckets: Vec<BucketSums>,
    /// What was done, by action; empty if the entries were too many to be summed.
    pub actions: BTreeMap<Action, ActionSum>,
    /// Whose the units were, those with the most first; none if the entries were too many to be summed.
    pub owners: Option<Told<Owner>>,
    /// Ledger entries in order of (bucket, sequence): the last of each bucket, or the first of the range.
    pub entries: Told<Entry>,
    /// The transfers among them.
    pub transfers: Vec<Transfer>,
    /// The caches of the buckets.
    pub caches: Vec<CacheBucket>,
    /// Cases about it.
    pub cases: Told<Case>,
    /// What operators did to it, the newest first.
    pub acts: Told<ActRow>,
}

/// Reads evidence. A part of the contract of its own: every store answers alike.
#[async_trait]
pub trait Evidence: Send + Sync + 'static {
    /// What is known of an order; none if the authority does not have it.
    async fn order_evidence(&self, order: ExplainOrder) -> Result<Option<OrderEvidence>, Error>;

    /// What is known of a pool; none if there is no such pool, or no such bucket of it.
    async fn pool_evidence(&self, of: ExplainPool) -> Result<Option<PoolEvidence>, Error>;
}

/// Adds up what entries say of a pool, bucket by bucket.
#[derive(Debug)]
pub struct PoolSum {
    buckets: Vec<BucketSums>,
    actions: BTreeMap<Action, ActionSum>,
    owners: BTreeMap<OrderId, (Arc<str>, i64, i64)>,
    is_summed: bool,
}

impl PoolSum {
    /// Begins with how far each bucket counts.
    pub fn new(positions: impl IntoIterator<Item = (BucketKey, u64)>) -> Self {
        let buckets: Vec<_> =
            positions.into_iter().map(|(bucket, seq)| BucketSums { bucket, seq, sums: None }).collect();
        let entries = buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.seq));
        let is_summed = entries <= EVIDENCE_SUMMED_MAX;
        Self { buckets, actions: BTreeMap::new(), owners: BTreeMap::new(), is_summed }
    }

    /// The buckets and how far each counts.
    pub fn positions(&self) -> Vec<(BucketKey, u64)> {
        self.buckets.iter().map(|bucket| (bucket.bucket, bucket.seq)).collect()
    }

    /// Whether they are few enough to be summed.
    pub const fn is_summed(&self) -> bool {
        self.is_summed
    }

    /// How many entries of each bucket are told.
    pub fn entries_of_each(&self) -> usize {
        (EVIDENCE_ENTRIES_MAX / self.buckets.len().max(1)).max(1)
    }

    /// Adds entries of one action of a bucket.
    pub fn action(&mut self, bucket: BucketKey, action: Action, sum: ActionSum) {
        let of_action = self.actions.entry(action).or_default();
        of_action.entries = of_action.entries.saturating_add(sum.entries);
        of_action.delta = plus(of_action.delta, sum.delta);
        if let Some(known) = self.buckets.iter_mut().find(|known| known.bucket == bucket) {
            known.sums = Some(plus(known.sums.unwrap_or_default(), sum.delta));
        }
    }

    /// Adds what an order has of a bucket.
    pub fn owner(&mut self, owner: Owner) {
        let Owner { order, order_no, held, sold } = owner;
        let known = self.owners.entry(order).or_insert((order_no, 0, 0));
        known.1 = known.1.saturating_add(held);
        known.2 = known.2.saturating_add(sold);
    }

    /// What it adds up to: by bucket, by action, by owner.
    pub fn finish(self) -> (Vec<BucketSums>, BTreeMap<Action, ActionSum>, Option<Told<Owner>>) {
        let owner = |(order, (order_no, held, sold))| Owner { order, order_no, held, sold };
        let mut owners: Vec<_> = self.owners.into_iter().map(owner).collect();
        owners.retain(|owner| owner.held != 0 || owner.sold != 0);
        owners.sort_by_key(|owner| (Reverse(owner.held), Reverse(owner.sold), owner.order));
        let owners = crate::read::page_of(owners, EVIDENCE_RECORDS_MAX);
        (self.buckets, self.actions, self.is_summed.then_some(owners))
    }
}

fn plus(one: Delta, other: Delta) -> Delta {
    Delta {
        available: one.available.saturating_add(other.available),
        held: one.held.saturating_add(other.held),
        sold: one.sold.saturating_add(other.sold),
    }
}

/// Where the entries stand that carry an order's events: the first [`EVIDENCE_RECORDS_MAX`], since every sink has something to
/// say of each.
pub fn events_of(entries: &[Entry]) -> Vec<LedgerPosition> {
    let events = entries.iter().filter(|entry| entry.order_version.is_some());
    events.map(|entry| (entry.bucket, entry.seq)).take(EVIDENCE_RECORDS_MAX).collect()
}

/// Where the keys of requests for a second person about an order begin and end: the sign after a colon is a semicolon.
pub fn approvals_of(order: OrderId) -> (String, String) {
    (format!("order:{order}:"), format!("order:{order};"))
}
