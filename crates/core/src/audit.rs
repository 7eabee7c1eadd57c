//! The audit: reads every row of an authority once and checks the invariants. It shares no arithmetic
//! with [`crate::decide`]; what a commit did is judged from the rows alone.
//!
//! Rows are fed in this order: campaigns, pools, then each bucket followed by its entries in sequence,
//! then each order with its own entries in (bucket, sequence) order, then usage and payments.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::campaign::Campaign;
use crate::id::{CampaignId, Location, OrderId, PoolId, Sku};
use crate::invariant::{Breach, Invariant};
use crate::ledger::{Action, Entry};
use crate::order::{Disposition, Order, State, Usage};
use crate::snapshot::{PaymentRow, UsageKey};
use crate::stock::{Bucket, BucketKey, Pool};
use crate::table::{TABLE, Then};

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
    /// One a pool.
    pub pools: Vec<PoolFigures>,
    /// Orders read, by state.
    pub orders: BTreeMap<&'static str, u64>,
    /// Entries read.
    pub entries: u64,
    /// Payment notices read.
    pub payments: u64,
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
    campaigns: BTreeMap<CampaignId, Option<u64>>,
    limited: BTreeSet<CampaignId>,
    pools: BTreeMap<PoolId, usize>,
    current: Option<(Bucket, Sums)>,
    allocated: BTreeMap<BucketKey, (i64, i64)>,
    balances: BTreeMap<BucketKey, (i64, i64)>,
    keys: BTreeSet<u64>,
    usage: BTreeMap<UsageKey, Usage>,
    events: BTreeMap<OrderId, i64>,
    transfers: BTreeMap<String, i64>,
}

impl Auditor {
    /// An audit that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn breach(
        &mut self,
        invariant: Invariant,
        subject: impl ToString,
        expected: impl ToString,
        actual: impl ToString,
    ) {
        *self.report.counts.entry(invariant).or_default() += 1;
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
            figures.breaches += 1;
        }
        self.breach(invariant, format!("bucket {}/{}", key.pool, key.number), expected, actual);
    }

    /// Reads a campaign.
    pub fn campaign(&mut self, campaign: &Campaign) {
        self.campaigns.insert(campaign.id.clone(), campaign.account_limit_ceiling);
        if campaign.policy.limits_accounts() {
            self.limited.insert(campaign.id.clone());
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
        self.report.entries += 1;
        let Some((bucket, mut sums)) = self.current.take() else {
            self.breach(
                Invariant::LedgerIsBalance,
                format!("entry {:?}/{}", entry.bucket, entry.seq),
                "a bucket row",
                "none",
            );
            return;
        };
        if entry.bucket != bucket.key || entry.seq != sums.seq + 1 {
            self.bucket_breach(
                bucket.key,
                Invariant::LedgerIsBalance,
                format!("entry {}", sums.seq + 1),
                format!("entry {}", entry.seq),
            );
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
        sums.available += entry.delta.available;
        sums.held += entry.delta.held;
        sums.sold += entry.delta.sold;
        sums.supply += entry.delta.supply_change();
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
            *self.transfers.entry(entry.business_no.to_string()).or_default() += entry.delta.supply_change();
        }
        self.current = Some((bucket, sums));
    }

    fn end_bucket(&mut self) {
        let Some((bucket, sums)) = self.current.take() else { return };
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
        if sums.supply != row.0 + row.1 + row.2 {
            self.bucket_breach(bucket.key, Invariant::Conservation, sums.supply, row.0 + row.1 + row.2);
        }
        self.balances.insert(bucket.key, (row.1, row.2));
        match self.pools.get(&bucket.key.pool).and_then(|at| self.report.pools.get_mut(*at)) {
            Some(figures) => {
                figures.supply += sums.supply;
                figures.available += bucket.available;
                figures.held += bucket.held;
                figures.sold += bucket.sold;
                figures.entries += sums.seq;
            }
            None => {
                self.breach(Invariant::Conservation, format!("bucket {:?}", bucket.key), "a pool", "none")
            }
        }
    }

    /// Reads an order with its own entries.
    pub fn order(&mut self, order: &Order, entries: &[Entry]) {
        self.end_bucket();
        *self.report.orders.entry(order.state.as_str()).or_default() += 1;
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
        if self.limited.contains(&order.key.campaign) {
            let key = UsageKey { campaign: order.key.campaign.clone(), account: order.account.clone() };
            let (own, sum) = (order.usage(), self.usage.entry(key).or_default());
            sum.units += own.units;
            sum.open_holds += own.open_holds;
        }
    }

    /// INV4: what the order says it has is what its entries gave it.
    fn order_stock(&mut self, order: &Order, entries: &[Entry]) {
        let mut says: BTreeMap<BucketKey, (i64, i64)> = BTreeMap::new();
        for allocation in order.allocations() {
            let at = says.entry(allocation.bucket).or_default();
            match order.state {
                State::Held | State::InReview => at.0 += signed(allocation.standing()),
                State::Sold | State::Refunded => at.1 += signed(allocation.standing()),
                State::Queued | State::Released | State::Failed => {
                    at.0 += signed(allocation.standing());
                    at.1 += signed(allocation.standing());
                }
            }
        }
        let mut moved: BTreeMap<BucketKey, (i64, i64)> = BTreeMap::new();
        for entry in entries {
            let at = moved.entry(entry.bucket).or_default();
            at.0 += entry.delta.held;
            at.1 += entry.delta.sold;
        }
        moved.retain(|_, at| *at != (0, 0));
        says.retain(|_, at| *at != (0, 0));
        if says != moved {
            self.breach(
                Invariant::AllocationsAreBalance,
                format!("order {}", order.id),
                format!("{moved:?}"),
                format!("{says:?}"),
            );
        }
        for line in &order.lines {
            let has: u64 = line.allocations.iter().map(|a| a.quantity).sum();
            let should = match order.state {
                State::Held | State::InReview | State::Sold | State::Refunded => u64::from(line.quantity),
                State::Queued | State::Released | State::Failed => 0,
            };
            if has != should || line.refunded > line.quantity {
                self.breach(
                    Invariant::AllocationsAreBalance,
                    format!("order {} line of {}", order.id, line.sku),
                    should,
                    has,
                );
            }
        }
        for (bucket, (held, sold)) in says {
            let at = self.allocated.entry(bucket).or_default();
            at.0 += held;
            at.1 += sold;
        }
    }

    /// INV6: one event a version, each from where the last one led, each by a row of the table.
    fn order_events(&mut self, order: &Order, entries: &[Entry]) {
        let Some(home) = order.home else {
            if !entries.is_empty() || order.state != State::Failed {
                self.breach(Invariant::FinalIsFinal, format!("order {}", order.id), "a home bucket", "none");
            }
            return;
        };
        let mut state = None;
        let mut version = 0;
        for entry in entries.iter().filter(|e| e.order_version.is_some()) {
            // The intake of a queued order touches no hot row and has no event.
            if version == 0 && entry.from_state == Some(State::Queued) {
                (state, version) = (Some(State::Queued), 1);
            }
            let legal = is_legal(entry.from_state, entry.to_state, entry.action);
            let follows = entry.from_state == state && entry.order_version == Some(version + 1);
            if !legal || !follows || entry.bucket != home {
                self.breach(
                    Invariant::FinalIsFinal,
                    format!("order {} version {:?}", order.id, entry.order_version),
                    format!("an event from {state:?} at its home"),
                    format!(
                        "{:?} to {:?} by {} in {:?}",
                        entry.from_state,
                        entry.to_state,
                        entry.action.as_str(),
                        entry.bucket
                    ),
                );
            }
            state = entry.to_state;
            version = entry.order_version.unwrap_or(version);
        }
        let queued = order.state == State::Queued && version == 0 && order.version == 1;
        if !queued && (state != Some(order.state) || version != order.version) {
            self.breach(
                Invariant::FinalIsFinal,
                format!("order {}", order.id),
                format!("{:?} at version {}", state, version),
                format!("{:?} at version {}", order.state, order.version),
            );
        }
    }

    /// INV12: every success has one disposition that is one for a success, at most one pays for the order.
    fn order_payments(&mut self, order: &Order) {
        let mut paying = 0;
        for payment in &order.payments {
            *self.events.entry(order.id).or_default() += 1;
            let known = payment.succeeded();
            let fits = match payment.disposition {
                Disposition::Applied => {
                    paying += i32::from(known);
                    true
                }
                Disposition::Retaken => {
                    paying += 1;
                    known
                }
                Disposition::Duplicate | Disposition::RefundDue | Disposition::Review => known,
                Disposition::Parked => known && order.state == State::Queued,
                Disposition::Ignored => !known,
            };
            if !fits {
                self.breach(
                    Invariant::PaymentsAccounted,
                    format!("order {} event {}", order.id, payment.notice.event_id),
                    "a disposition that fits the outcome",
                    payment.disposition.as_str(),
                );
            }
        }
        if paying > 1 {
            self.breach(
                Invariant::PaymentsAccounted,
                format!("order {}", order.id),
                "at most one payment applied",
                paying,
            );
        }
    }

    /// Reads a usage row.
    pub fn usage(&mut self, key: &UsageKey, usage: Usage) {
        self.end_bucket();
        let counted = self.usage.remove(key).unwrap_or_default();
        if counted != usage {
            self.breach(
                Invariant::UsageIsOrders,
                format!("{} {}", key.campaign, key.account),
                format!("{counted:?}"),
                format!("{usage:?}"),
            );
        }
        if let Some(Some(ceiling)) = self.campaigns.get(&key.campaign).copied()
            && usage.units > ceiling
        {
            self.breach(
                Invariant::LimitsHold,
                format!("{} {}", key.campaign, key.account),
                format!("at most {ceiling}"),
                usage.units,
            );
        }
    }

    /// Reads a payment row.
    pub fn payment(&mut self, row: &PaymentRow) {
        self.end_bucket();
        self.report.payments += 1;
        *self.events.entry(row.order).or_default() -= 1;
    }

    /// What was found.
    pub fn finish(mut self) -> Report {
        self.end_bucket();
        let left = std::mem::take(&mut self.usage);
        for (key, usage) in left.into_iter().filter(|(_, usage)| *usage != Usage::default()) {
            self.breach(
                Invariant::UsageIsOrders,
                format!("{} {}", key.campaign, key.account),
                format!("{usage:?}"),
                "no row",
            );
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
        for (transfer, sum) in std::mem::take(&mut self.transfers) {
            if sum != 0 {
                self.breach(Invariant::TransfersPair, format!("transfer {transfer}"), 0, sum);
            }
        }
        self.report
    }
}

/// Balances are bounded far below the end of an `i64`; one beyond it is a breach that shows as such.
fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Whether some row of the table leads from one state to the other. A released order is sold again only
/// by a retake.
fn is_legal(from: Option<State>, to: Option<State>, action: Action) -> bool {
    let Some(to) = to else { return false };
    let Some(from) = from else { return matches!(to, State::Held | State::Sold) };
    if from == State::Released && to == State::Sold && action != Action::Retake {
        return false;
    }
    from == to
        || TABLE.iter().any(|rule| {
            rule.from.contains(&from) && matches!(rule.then, Then::Go { to: Some(next), .. } if next == to)
        })
}
