//! The audit: reads every row of an authority once and checks the invariants. It shares no arithmetic
//! with [`crate::decide`]; what a commit did is judged from the rows alone.
//!
//! Rows are fed in this order: campaigns, pools, caches, then each bucket followed by its entries in sequence,
//! then each order with its own entries in (bucket, sequence) order, then usage and payments.

mod cache;
mod covers;
mod order;

use covers::{Moved, TransferKey};
pub(crate) use order::stock_said;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::cache::CacheBucket;
use crate::campaign::{Campaign, Policy};
use crate::id::{CampaignId, Location, OrderId, PoolId, Sku};
use crate::invariant::{Breach, Invariant};
use crate::ledger::{Action, Covers, Entry};
use crate::limit::{Ceilings, Limited, Limits, limited_of};
use crate::order::{Order, PaymentOutcome, Usage};
use crate::snapshot::{PaymentClaim, PaymentRow, UsageKey};
use crate::stock::{Bucket, BucketKey, Pool};
use crate::time::Timestamp;

/// Most breaches that a report names; all are counted.
pub const BREACHES_MAX: usize = 1_000;

/// The figures of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolFigures {
    /// The pool.
    pub id: PoolId,
    /// Its campaign.
    pub campaign: CampaignId,
    /// What is sold.
    pub sku: Sku,
    /// Where it is.
    pub location: Location,
    /// All units by the ledger.
    pub supply: i64,
    /// Units that can be taken.
    pub available: u64,
    /// Units held.
    pub held: u64,
    /// Units sold.
    pub sold: u64,
    /// Ledger entries read.
    pub entries: u64,
    /// Breaches found in this pool.
    pub breaches: u64,
}

/// What an audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The time as of which the ledger was judged, without what stands only for now; none: everything, as it stands.
    pub as_of: Option<Timestamp>,
    /// One a pool.
    pub pools: Vec<PoolFigures>,
    /// Orders read, by state.
    pub orders: BTreeMap<&'static str, u64>,
    /// Entries read.
    pub entries: u64,
    /// Payment notices read.
    pub payments: u64,
    /// Repairs read: entries by which a difference was mended. They show for ever.
    pub repairs: u64,
    /// The first of them, at most [`BREACHES_MAX`].
    pub repaired: Vec<Entry>,
    /// The first breaches, at most [`BREACHES_MAX`].
    pub breaches: Vec<Breach>,
    /// How many breaches there are of each invariant.
    pub counts: BTreeMap<Invariant, u64>,
}

impl Report {
    /// Whether every invariant that the rows can show holds.
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Running balances of a bucket, from its entries.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    available: i64,
    held: i64,
    sold: i64,
    supply: i64,
    seq: u64,
}

/// Reads rows and keeps what the invariants need.
#[derive(Debug, Default)]
pub struct Auditor {
    report: Report,
    limiting: BTreeMap<CampaignId, (Policy, Ceilings)>,
    pools: BTreeMap<PoolId, usize>,
    current: Option<(Bucket, Sums)>,
    allocated: BTreeMap<BucketKey, (i64, i64)>,
    balances: BTreeMap<BucketKey, (i64, i64)>,
    keys: BTreeSet<u64>,
    usage: BTreeMap<UsageKey, Usage>,
    events: BTreeMap<OrderId, i64>,
    /// Payments that succeeded: those of which no claim was read yet, and on which orders.
    unclaimed: BTreeSet<u64>,
    succeeded: BTreeSet<u64>,
    transfers: BTreeMap<TransferKey, Moved>,
    /// What repairs cover, and the numbers of the bucket at hand that are missing and not covered yet.
    covered: BTreeMap<BucketKey, Vec<Covers>>,
    gaps: Vec<Covers>,
    /// Repairs that stand for entries of no order: perhaps a half of a transfer.
    mended: Vec<Entry>,
    caches: BTreeMap<BucketKey, CacheBucket>,
    settled: cache::Settled,
    is_part: bool,
}

impl Auditor {
    /// An audit that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// An audit of the ledger as of a time, if one is named: pools, buckets and the entries up to then are read, and
    /// nothing else. Balances are what they add up to.
    pub fn as_of(at: Option<Timestamp>) -> Self {
        Self { report: Report { as_of: at, ..Report::default() }, ..Self::default() }
    }

    /// An audit of one campaign apart from its authority: what others have the other half of is not judged, which are
    /// transfers and the claims of payments.
    #[must_use]
    pub fn of_part(self) -> Self {
        Self { is_part: true, ..self }
    }

    /// Whether an entry is one of those that are judged. Entries of a bucket are in the order of their times, so none
    /// after one that is not.
    pub fn reaches(&self, entry: &Entry) -> bool {
        self.report.as_of.is_none_or(|at| entry.at <= at)
    }

    fn breach(
        &mut self,
        invariant: Invariant,
        subject: impl ToString,
        expected: impl ToString,
        actual: impl ToString,
    ) {
        step(self.report.counts.entry(invariant).or_default());
        if self.report.breaches.len() < BREACHES_MAX {
            self.report.breaches.push(Breach {
                invariant,
                subject: subject.to_string(),
                expected: expected.to_string(),
                actual: actual.to_string(),
            });
        }
    }

    fn bucket_breach(
        &mut self,
        key: BucketKey,
        invariant: Invariant,
        expected: impl ToString,
        actual: impl ToString,
    ) {
        if let Some(figures) = self.pools.get(&key.pool).and_then(|at| self.report.pools.get_mut(*at)) {
            step(&mut figures.breaches);
        }
        self.breach(invariant, format!("bucket {}/{}", key.pool, key.number), expected, actual);
    }

    /// Reads a campaign.
    pub fn campaign(&mut self, campaign: &Campaign) {
        if campaign.policy.limits_anything() {
            let limits = (campaign.policy.clone(), campaign.ceilings.clone());
            self.limiting.insert(campaign.id.clone(), limits);
        }
    }

    /// Reads a pool.
    pub fn pool(&mut self, pool: &Pool) {
        self.pools.insert(pool.id, self.report.pools.len());
        self.report.pools.push(PoolFigures {
            id: pool.id,
            campaign: pool.campaign.clone(),
            sku: pool.sku.clone(),
            location: pool.location.clone(),
            supply: 0,
            available: 0,
            held: 0,
            sold: 0,
            entries: 0,
            breaches: 0,
        });
    }

    /// Reads a bucket; its entries follow.
    pub fn bucket(&mut self, bucket: &Bucket) {
        self.end_bucket();
        self.current = Some((*bucket, Sums::default()));
    }

    /// Reads the next entry of the bucket read last.
    pub fn entry(&mut self, entry: &Entry) {
        step(&mut self.report.entries);
        let Some((bucket, mut sums)) = self.current.take() else {
            self.breach(
                Invariant::LedgerIsBalance,
                format!("entry {:?}/{}", entry.bucket, entry.seq),
                "a bucket row",
                "none",
            );
            return;
        };
        let next = sums.seq.saturating_add(1);
        if entry.bucket == bucket.key && entry.seq > next {
            // A repair further on may cover it.
            self.gaps.push(Covers { first: next, last: entry.seq.saturating_sub(1) });
        } else if entry.bucket != bucket.key || entry.seq != next {
            self.missing(bucket.key, next, entry.seq);
        }
        if entry.action == Action::Repair {
            self.repair(entry);
        }
        if (entry.seq == 1) != (entry.action == Action::Opening) {
            self.bucket_breach(
                bucket.key,
                Invariant::Conservation,
                "opening as the first entry and only there",
                format!("{} at {}", entry.action.as_str(), entry.seq),
            );
        }
        sums.seq = entry.seq;
        add(&mut sums.available, entry.delta.available);
        add(&mut sums.held, entry.delta.held);
        add(&mut sums.sold, entry.delta.sold);
        add(&mut sums.supply, entry.delta.supply_change());
        if !entry.action.changes_supply() && entry.delta.supply_change() != 0 {
            self.bucket_breach(
                bucket.key,
                Invariant::Conservation,
                "no change of supply",
                format!("{} changes it by {}", entry.action.as_str(), entry.delta.supply_change()),
            );
        }
        if sums.available < 0 || sums.held < 0 || sums.sold < 0 {
            self.bucket_breach(
                bucket.key,
                Invariant::NoOversell,
                "no negative balance",
                format!("{}/{}/{} after entry {}", sums.available, sums.held, sums.sold, entry.seq),
            );
        }
        if matches!(entry.action, Action::TransferOut | Action::TransferIn) {
            let key = (Arc::clone(&entry.source), Arc::clone(&entry.business_no), entry.at);
            self.transfers.entry(key).or_default().add(entry);
        }
        if self.report.as_of.is_none() {
            self.settles(entry, sums.available);
        }
        self.current = Some((bucket, sums));
    }

    fn end_bucket(&mut self) {
        let Some((mut bucket, sums)) = self.current.take() else { return };
        for gap in std::mem::take(&mut self.gaps) {
            self.missing(bucket.key, gap.first, gap.last.saturating_add(1));
        }
        if self.report.as_of.is_some() {
            // A negative sum is a breach that was told; the row says nothing of then.
            let units = |sum: i64| u64::try_from(sum).unwrap_or(0);
            (bucket.available, bucket.held, bucket.sold) =
                (units(sums.available), units(sums.held), units(sums.sold));
            bucket.ledger_seq = sums.seq;
        }
        let row = (signed(bucket.available), signed(bucket.held), signed(bucket.sold));
        let by_ledger = (sums.available, sums.held, sums.sold);
        if row != by_ledger || bucket.ledger_seq != sums.seq {
            self.bucket_breach(
                bucket.key,
                Invariant::LedgerIsBalance,
                format!("{by_ledger:?} after entry {}", sums.seq),
                format!("{row:?} after entry {}", bucket.ledger_seq),
            );
        }
        let units = row.0.saturating_add(row.1).saturating_add(row.2);
        if sums.supply != units {
            self.bucket_breach(bucket.key, Invariant::Conservation, sums.supply, units);
        }
        if self.report.as_of.is_none() {
            self.end_settled(bucket.key);
            self.balances.insert(bucket.key, (row.1, row.2));
        }
        match self.pools.get(&bucket.key.pool).and_then(|at| self.report.pools.get_mut(*at)) {
            Some(figures) => {
                add(&mut figures.supply, sums.supply);
                count(&mut figures.available, bucket.available);
                count(&mut figures.held, bucket.held);
                count(&mut figures.sold, bucket.sold);
                count(&mut figures.entries, sums.seq);
            }
            None => {
                self.breach(Invariant::Conservation, format!("bucket {:?}", bucket.key), "a pool", "none")
            }
        }
    }

    /// Reads an order with its own entries.
    pub fn order(&mut self, order: &Order, entries: &[Entry]) {
        self.end_bucket();
        step(self.report.orders.entry(order.state.as_str()).or_default());
        if !self.keys.insert(hash(&order.key)) {
            self.breach(
                Invariant::OneOutcome,
                format!("order {}", order.id),
                "one order a key",
                &order.key.order_no,
            );
        }
        self.order_stock(order, entries);
        self.order_events(order, entries);
        self.order_payments(order);
        self.order_usage(order);
    }

    /// INV11: what the order counts for, by the limits in force.
    fn order_usage(&mut self, order: &Order) {
        let own = order.usage();
        let Some((policy, _)) = self.limiting.get(&order.key.campaign) else { return };
        if own == Usage::default() {
            return;
        }
        for (limited, _) in limited_of(policy, &order.account, &order.limit_keys) {
            let key = UsageKey { campaign: order.key.campaign.clone(), limited };
            let sum = self.usage.entry(key).or_default();
            count(&mut sum.units, own.units);
            count(&mut sum.open_holds, own.open_holds);
        }
    }

    /// Reads a usage row.
    pub fn usage(&mut self, key: &UsageKey, usage: Usage) {
        self.end_bucket();
        let counted = self.usage.remove(key).unwrap_or_default();
        if counted != usage {
            let (expected, actual) = (format!("{counted:?}"), format!("{usage:?}"));
            self.breach(Invariant::UsageIsOrders, name_of(key), expected, actual);
        }
        let ceiling =
            self.limiting.get(&key.campaign).map_or(Limits::default(), |(_, most)| most.of(&key.limited));
        if ceiling.exceeded_by(usage) {
            let expected = format!("at most {ceiling:?}");
            self.breach(Invariant::LimitsHold, name_of(key), expected, format!("{usage:?}"));
        }
    }

    /// Reads a payment row.
    pub fn payment(&mut self, row: &PaymentRow) {
        self.end_bucket();
        step(&mut self.report.payments);
        let difference = self.events.entry(row.order).or_default();
        add(difference, -1);
        if *difference == 0 {
            self.events.remove(&row.order);
        }
        if row.outcome == PaymentOutcome::Succeeded {
            self.unclaimed.insert(hash(&(&row.provider, &row.payment_id)));
            self.succeeded.insert(hash(&(&row.provider, &row.payment_id, row.order)));
        }
    }

    /// Reads a claim, after all payment rows. Its key lets no payment have two.
    pub fn claim(&mut self, claim: &PaymentClaim) {
        let PaymentClaim { provider, payment_id, order } = claim;
        self.unclaimed.remove(&hash(&(provider, payment_id)));
        if !self.succeeded.contains(&hash(&(provider, payment_id, *order))) {
            self.breach(
                Invariant::PaymentsAccounted,
                format!("payment {payment_id} of {provider}"),
                format!("a success on order {order}"),
                "none",
            );
        }
    }

    fn end_claims(&mut self) {
        if !self.unclaimed.is_empty() && !self.is_part {
            let without = format!("{} without", self.unclaimed.len());
            let subject = "payments that succeeded";
            self.breach(Invariant::PaymentsAccounted, subject, "an order that each is for", without);
        }
    }

    /// What was found.
    pub fn finish(mut self) -> Report {
        self.end_bucket();
        self.end_caches();
        let left = std::mem::take(&mut self.usage);
        for (key, usage) in left.into_iter().filter(|(_, usage)| *usage != Usage::default()) {
            self.breach(Invariant::UsageIsOrders, name_of(&key), format!("{usage:?}"), "no row");
        }
        let balances = std::mem::take(&mut self.balances);
        let mut allocated = std::mem::take(&mut self.allocated);
        for (key, row) in balances {
            let sum = allocated.remove(&key).unwrap_or_default();
            if sum != row {
                self.bucket_breach(
                    key,
                    Invariant::AllocationsAreBalance,
                    format!("held and sold {row:?}"),
                    format!("allocated {sum:?}"),
                );
            }
        }
        for (key, sum) in allocated {
            self.bucket_breach(
                key,
                Invariant::AllocationsAreBalance,
                "a bucket row",
                format!("allocated {sum:?}"),
            );
        }
        for (order, difference) in std::mem::take(&mut self.events) {
            if difference != 0 {
                self.breach(
                    Invariant::PaymentsAccounted,
                    format!("order {order}"),
                    "one row a notice",
                    difference,
                );
            }
        }
        self.end_claims();
        for repair in std::mem::take(&mut self.mended) {
            let of_number =
                self.transfers.iter_mut().find(|((_, number, _), _)| *number == repair.business_no);
            if let Some((_, moved)) = of_number {
                moved.mend(&repair);
            }
        }
        let covered = std::mem::take(&mut self.covered);
        for ((source, business_no, at), moved) in std::mem::take(&mut self.transfers) {
            if let Some(actual) = moved.breach(&covered).filter(|_| !self.is_part) {
                let subject = format!("{source} {business_no} at {at}");
                self.breach(
                    Invariant::TransfersPair,
                    subject,
                    "an in for every out, in one transaction",
                    actual,
                );
            }
        }
        self.report
    }
}

/// Whose usage a row counts.
pub(crate) fn name_of(key: &UsageKey) -> String {
    match &key.limited {
        Limited::Account(account) => format!("{} account {account}", key.campaign),
        Limited::Key(name, hashed) => format!("{} {name} {hashed}", key.campaign),
    }
}

/// Balances are bounded far below the end of an `i64`; one beyond it is a breach that shows as such.
fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// Rows are not trusted: a sum that leaves its range stays at the end of it, and shows as a breach.
fn add(sum: &mut i64, change: i64) {
    *sum = sum.saturating_add(change);
}

fn count(sum: &mut u64, units: u64) {
    *sum = sum.saturating_add(units);
}

fn step(sum: &mut u64) {
    count(sum, 1);
}

fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
