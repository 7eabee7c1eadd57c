//! The decision: a pure function from the rows of a batch and its commands to outcomes and changes.
//!
//! Commands are folded in arrival order over one working copy: a repeated key sees the first, several
//! commands on one order give one row write and consecutive ledger entries. Sequence numbers come from
//! the locked bucket rows.

mod allocate;
mod approval;
mod cache;
mod effects;
mod facts;
mod import;
mod place;
mod pool;
mod repair;
mod serve;
mod stock;
mod transition;
mod unsold;

pub use allocate::refusal_of_status;
pub use cache::accepted_order;
pub use place::repeated;
pub use serve::{Taker, shortage};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::approval::Approval;
use crate::cache::CacheBucket;
use crate::campaign::{Campaign, Policy};
use crate::case::Case;
use crate::command::{Adjust, Command, Outcome, Transfer};
use crate::id::{CampaignId, CaseId, OrderId, PoolId};
use crate::import::Imported;
use crate::ledger::{Action, Entry};
use crate::limit::limited_of;
use crate::order::{Order, State, Usage};
use crate::reconcile::Discrepancy;
use crate::refusal::Refusal;
use crate::snapshot::{
    BucketChange, CacheChange, Changes, OrderChange, PaymentClaim, PaymentRow, Snapshot, UsageKey,
};
use crate::stock::{Bucket, BucketKey, Delta};
use crate::time::Timestamp;

/// Outcomes, one a command in order, and what to write.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// One a command.
    pub outcomes: Vec<Outcome>,
    /// All in one transaction.
    pub changes: Changes,
}

/// Decides a batch. `clock` is the authority's, read after the locks; the decision's time never runs
/// behind the last entry of a locked bucket.
pub fn decide<'a>(
    clock: Timestamp,
    snapshot: Snapshot,
    commands: impl IntoIterator<Item = &'a Command>,
) -> Decision {
    let now = snapshot.buckets.values().map(|b| b.last_at).fold(clock, Timestamp::max);
    let mut working = Working::new(now, snapshot);
    let outcomes = commands.into_iter().map(|command| working.apply(command)).collect();
    Decision { outcomes, changes: working.into_changes() }
}

/// Why a change cannot be made here. Nothing was changed.
#[derive(Debug)]
pub(crate) enum Blocked {
    /// A bucket or pool is needed that the batch did not lock.
    Elsewhere(Vec<PoolId>),
    /// A balance would become impossible.
    Impossible,
}

/// What a ledger entry says besides numbers.
pub(crate) struct Note {
    pub(crate) action: Action,
    pub(crate) source: Arc<str>,
    pub(crate) actor: Arc<str>,
    pub(crate) reason: Arc<str>,
    /// What it settles of a cache, at one of the buckets.
    pub(crate) settles: Option<Settles>,
}

/// Units that a cache took and that one entry accounts for.
#[derive(Clone, Copy)]
pub(crate) struct Settles {
    pub(crate) bucket: BucketKey,
    pub(crate) units: u64,
    /// The order that the entry is about, where it carries no event of it.
    pub(crate) order: Option<OrderId>,
}

pub(crate) type Deltas = BTreeMap<BucketKey, Delta>;

/// The working copy of a batch.
pub(crate) struct Working {
    pub(crate) now: Timestamp,
    pub(crate) rows: Snapshot,
    /// Versions that the order rows had when they were read; none: they did not exist.
    base_orders: BTreeMap<OrderId, Option<u32>>,
    /// Sequences that the bucket rows had when they were read; none: they did not exist.
    base_buckets: BTreeMap<BucketKey, Option<u64>>,
    entries: Vec<Entry>,
    new_pools: BTreeSet<PoolId>,
    changed_pools: BTreeSet<PoolId>,
    changed_weights: BTreeSet<BucketKey>,
    dirty_usage: BTreeSet<UsageKey>,
    new_payments: Vec<PaymentRow>,
    new_claims: BTreeSet<PaymentClaim>,
    new_adjustments: Vec<Adjust>,
    new_cases: BTreeMap<CaseId, Case>,
    new_transfers: Vec<Transfer>,
    new_imports: Vec<Imported>,
    new_approvals: Vec<Arc<Approval>>,
    decided_approvals: Vec<Arc<Approval>>,
    repaired: Vec<Arc<Discrepancy>>,
    resolved_cases: Vec<Arc<Case>>,
    /// Cache rows as they were read; none: they did not exist.
    base_caches: BTreeMap<BucketKey, Option<CacheBucket>>,
}

impl Working {
    fn new(now: Timestamp, rows: Snapshot) -> Self {
        Self {
            now,
            rows,
            base_orders: BTreeMap::new(),
            base_buckets: BTreeMap::new(),
            entries: Vec::new(),
            new_pools: BTreeSet::new(),
            changed_pools: BTreeSet::new(),
            changed_weights: BTreeSet::new(),
            dirty_usage: BTreeSet::new(),
            new_payments: Vec::new(),
            new_claims: BTreeSet::new(),
            new_adjustments: Vec::new(),
            new_cases: BTreeMap::new(),
            new_transfers: Vec::new(),
            new_imports: Vec::new(),
            new_approvals: Vec::new(),
            decided_approvals: Vec::new(),
            repaired: Vec::new(),
            resolved_cases: Vec::new(),
            base_caches: BTreeMap::new(),
        }
    }

    fn apply(&mut self, command: &Command) -> Outcome {
        match self.ask_second(command) {
            Some(asked) => asked,
            None => self.apply_ungated(command),
        }
    }

    /// Does what nobody else need agree to, or somebody has.
    fn apply_ungated(&mut self, command: &Command) -> Outcome {
        match command {
            Command::Place(place) => self.place(place),
            Command::Order(command) => self.change(command),
            Command::OpenPool(open) => self.open_pool(open),
            Command::ChangePool(change) => self.change_pool(change),
            Command::Adjust(adjust) => self.adjust(adjust),
            Command::Transfer(transfer) => self.transfer(transfer),
            Command::Sweep(sweep) => self.sweep(sweep),
            Command::MoveUnsold(unsold) => self.move_unsold(unsold),
            Command::Import(import) => self.import(import),
            Command::Decide(decide) => self.decide_approval(decide),
            Command::Land(landing) => self.land_accepted(landing),
            Command::SetAside(aside) => self.set_aside(aside),
            Command::TurnEpoch(turn) => self.turn_epoch(turn),
            Command::Repair(repair) => self.repair(repair),
        }
    }

    fn into_changes(self) -> Changes {
        let Self { rows, base_orders, base_buckets, base_caches, dirty_usage, new_pools, .. } = self;
        let pools = |ids: BTreeSet<PoolId>| {
            ids.iter().filter_map(|id| rows.pools.get(id).cloned()).collect::<Vec<_>>()
        };
        let was_there = |key: &BucketKey| base_buckets.get(key) != Some(&None);
        let weights = self.changed_weights.into_iter().filter(was_there);
        Changes {
            weights: weights.filter_map(|key| Some((key, rows.buckets.get(&key)?.weight))).collect(),
            changed_pools: pools(self.changed_pools.difference(&new_pools).copied().collect()),
            pools: pools(new_pools),
            orders: base_orders
                .into_iter()
                .filter_map(|(id, base_version)| {
                    rows.orders.get(&id).map(|order| OrderChange { order: Arc::clone(order), base_version })
                })
                .collect(),
            entries: self.entries,
            buckets: base_buckets
                .into_iter()
                .filter_map(|(key, base_seq)| {
                    rows.buckets.get(&key).map(|bucket| BucketChange { bucket: *bucket, base_seq })
                })
                .collect(),
            usage: dirty_usage
                .into_iter()
                .map(|key| {
                    let usage = rows.usage.get(&key).copied().unwrap_or_default();
                    (key, usage)
                })
                .collect(),
            payments: self.new_payments,
            claims: self.new_claims,
            adjustments: self.new_adjustments,
            cases: self.new_cases.into_values().collect(),
            transfers: self.new_transfers,
            imports: self.new_imports,
            approvals: self.new_approvals,
            decided_approvals: self.decided_approvals,
            repaired: self.repaired,
            resolved_cases: self.resolved_cases,
            caches: base_caches
                .into_iter()
                .filter_map(|(key, base)| Some(CacheChange { row: rows.caches.get(&key)?.clone(), base }))
                .collect(),
        }
    }

    pub(crate) fn campaign(&self, id: &CampaignId) -> Option<&Arc<Campaign>> {
        self.rows.campaigns.get(id)
    }

    pub(crate) fn policy_of(&self, campaign: &CampaignId) -> Policy {
        self.campaign(campaign).map_or_else(Policy::default, |c| c.policy.clone())
    }

    /// The buckets of a pool that are locked, ascending.
    pub(crate) fn locked_buckets(&self, pool: PoolId) -> impl DoubleEndedIterator<Item = &Bucket> {
        let from = BucketKey { pool, number: 0 };
        let to = BucketKey { pool, number: u32::MAX };
        self.rows.buckets.range(from..=to).map(|(_, bucket)| bucket)
    }

    /// Whether every bucket that the pool has now is locked. It may have grown while the locks were waited
    /// for; then more of it must be locked before anything is said of all of it.
    pub(crate) fn is_complete(&self, pool: PoolId) -> bool {
        let locked = self.locked_buckets(pool).count();
        let has = self.rows.pools.get(&pool).map(|pool| pool.buckets);
        has.is_some_and(|buckets| usize::try_from(buckets) == Ok(locked))
    }

    pub(crate) fn pool_buckets(&self, pool: PoolId) -> Vec<Bucket> {
        self.locked_buckets(pool).copied().collect()
    }

    /// The balances after some deltas, or why they cannot be. Changes nothing.
    fn balances_after(&self, deltas: &Deltas) -> Result<Vec<Bucket>, Blocked> {
        let mut after = Vec::with_capacity(deltas.len());
        let mut elsewhere = Vec::new();
        for (key, delta) in deltas {
            match self.rows.buckets.get(key) {
                None => elsewhere.push(key.pool),
                Some(bucket) => {
                    after.push(bucket.after(*delta, self.now).map_err(|_| Blocked::Impossible)?);
                }
            }
        }
        if elsewhere.is_empty() { Ok(after) } else { Err(Blocked::Elsewhere(elsewhere)) }
    }

    /// Writes one entry a bucket and the balances that follow from it: the only place where stock moves.
    /// `event` marks the entry of the home bucket that carries the order event.
    fn post(
        &mut self,
        deltas: &Deltas,
        note: &Note,
        business_no: &Arc<str>,
        event: Option<&OrderEvent>,
    ) -> Result<(), Blocked> {
        let after = self.balances_after(deltas)?;
        for (bucket, delta) in after.into_iter().zip(deltas.values()) {
            let carried = event.filter(|event| event.home == bucket.key);
            let settles = note.settles.filter(|settles| settles.bucket == bucket.key);
            let moves = *delta != Delta::default() || settles.is_some();
            let entry = Entry {
                bucket: bucket.key,
                seq: bucket.ledger_seq,
                at: self.now,
                order_id: event.map(|event| event.order).or(settles.and_then(|settles| settles.order)),
                business_no: Arc::clone(business_no),
                action: if event.is_some() && !moves && !told_by_event(note.action) {
                    Action::OrderEvent
                } else {
                    note.action
                },
                delta: *delta,
                settled: settles.map_or(0, |settles| settles.units),
                from_state: carried.and_then(|event| event.from),
                to_state: carried.map(|event| event.to),
                order_version: carried.map(|event| event.version),
                source: Arc::clone(&note.source),
                actor: Arc::clone(&note.actor),
                reason: Arc::clone(&note.reason),
                covers: None,
            };
            self.append(bucket, entry);
        }
        Ok(())
    }

    /// Writes an entry and the bucket after it in one breath: the only place in the product where a balance changes.
    /// What the entry says and what the balance does differ in a repair, and nowhere else.
    fn append(&mut self, after: Bucket, entry: Entry) {
        self.entries.push(entry);
        let before = self.rows.buckets.insert(after.key, after);
        self.base_buckets.entry(after.key).or_insert(before.map(|b| b.ledger_seq));
    }

    /// Stores an order that changed, with its one order event, its stock entries and its usage.
    pub(crate) fn store_event(
        &mut self,
        before: Option<&Arc<Order>>,
        mut after: Order,
        mut deltas: Deltas,
        note: &Note,
    ) -> Result<Arc<Order>, Blocked> {
        after.version = before.map_or(1, |order| order.version.saturating_add(1));
        after.updated_at = self.now;
        if let Some(home) = after.home {
            deltas.entry(home).or_default();
            let event = OrderEvent {
                order: after.id,
                home,
                from: before.map(|order| order.state),
                to: after.state,
                version: after.version,
            };
            let business_no = Arc::from(after.key.order_no.as_str());
            self.post(&deltas, note, &business_no, Some(&event))?;
        }
        self.count_usage(before, &after);
        Ok(self.store_row(before, after))
    }

    /// Stores evidence on an order that did not change: no event, the version stays.
    pub(crate) fn store_silently(&mut self, before: &Arc<Order>, after: Order) -> Arc<Order> {
        self.store_row(Some(before), after)
    }

    fn store_row(&mut self, before: Option<&Arc<Order>>, after: Order) -> Arc<Order> {
        // What a cache accepted was queued there and never stored so.
        let before = before.filter(|order| self.rows.orders.contains_key(&order.id));
        if before.is_some_and(|order| order.state == State::Queued)
            && after.state != State::Queued
            && let Some(length) = after.home.and_then(|home| self.rows.queue_lengths.get_mut(&home.pool))
        {
            *length = length.saturating_sub(1);
        }
        let order = Arc::new(after);
        self.base_orders.entry(order.id).or_insert(before.map(|order| order.version));
        if before.is_none() {
            self.rows.order_keys.insert(order.key.clone(), order.id);
        }
        self.rows.orders.insert(order.id, Arc::clone(&order));
        order
    }

    fn count_usage(&mut self, before: Option<&Arc<Order>>, after: &Order) {
        let was = before.map(|order| order.usage()).unwrap_or_default();
        let is = after.usage();
        let Some(campaign) = self.rows.campaigns.get(&after.key.campaign).filter(|_| was != is) else {
            return;
        };
        let step = |total: u64, was: u64, is: u64| total.saturating_add(is).saturating_sub(was);
        for (limited, _) in limited_of(&campaign.policy, &after.account, &after.limit_keys) {
            let key = UsageKey { campaign: after.key.campaign.clone(), limited };
            let usage = self.rows.usage.entry(key.clone()).or_default();
            *usage = Usage {
                units: step(usage.units, was.units, is.units),
                open_holds: step(usage.open_holds, was.open_holds, is.open_holds),
            };
            self.dirty_usage.insert(key);
        }
    }

    /// Opens a case, unless the batch or the authority has it.
    pub(crate) fn open_case(&mut self, case: Case) {
        self.new_cases.entry(case.id).or_insert(case);
    }

    pub(crate) fn usage(&self, key: &UsageKey) -> Usage {
        self.rows.usage.get(key).copied().unwrap_or_default()
    }

    pub(crate) fn order(&self, id: OrderId) -> Option<Arc<Order>> {
        self.rows.orders.get(&id).cloned()
    }
}

/// The order event that the home bucket's entry carries.
struct OrderEvent {
    order: OrderId,
    home: BucketKey,
    from: Option<State>,
    to: State,
    version: u32,
}

/// Whether the event's entry names the action also where no stock moved at the home bucket: a refund
/// without restock, and a retake from other buckets, without which *released* to *sold* is illegal.
fn told_by_event(action: Action) -> bool {
    matches!(action, Action::Refund | Action::Retake)
}

/// A change that the arithmetic forbids is refused; it cannot happen to stock that was counted right.
pub(crate) fn blocked(blocked: Blocked) -> Outcome {
    match blocked {
        Blocked::Elsewhere(pools) => Outcome::Elsewhere(pools),
        Blocked::Impossible => Outcome::refused(Refusal::Conflict("a balance would become impossible")),
    }
}
