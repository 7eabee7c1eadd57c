//! Orders against their entries, payments against their orders, usage against the orders of its key.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::campaign::Policy;
use holdfast_core::id::{CampaignId, OrderId};
use holdfast_core::limit::{Limited, limited_of};
use holdfast_core::order::{Order, Usage};
use holdfast_core::reconcile::{FINDINGS_MAX, OrderFault, Proof, UsageFacts, judge};
use holdfast_core::snapshot::UsageKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{OrdersAsked, OrdersOf, Page, Scope, Suspects};

use super::buckets::PIECE;
use super::pass::Pass;
use crate::error::Error;

/// Orders that one statement compares.
const PAGE: usize = 5_000;
/// The same where they are counted for usage, and come over whole.
const COUNTED_PAGE: usize = 2_000;
/// Orders that are named one by one in a statement.
const NAMED: usize = 1_000;
/// Payments that one statement looks at.
const PAYMENTS_PAGE: usize = 2_000;
/// Campaigns, and usage rows, that are read at a time.
const ROWS_PAGE: usize = 1_000;
/// Most keys whose usage is counted in one run; where there are more, each run takes a part.
const USAGE_KEYS_MAX: usize = 1_000_000;
/// Most usage rows that are kept because they look wrong.
const DOUBTFUL_MAX: usize = 10_000;
/// Most usage rows that are counted again one by one in a run.
const RECOUNTS_MAX: usize = 50;

/// Usage counted from orders, by the hash of its key: so many keys fit in memory.
pub(super) struct Counts {
    hasher: RandomState,
    /// What it comes to, and when one of its orders last changed.
    sums: HashMap<u64, (Usage, Timestamp)>,
    /// Which part of the keys is counted: those whose hashes end so.
    mask: u64,
    turn: u64,
    policies: BTreeMap<CampaignId, Policy>,
}

impl Counts {
    fn new(turn: u64, policies: BTreeMap<CampaignId, Policy>) -> Self {
        Self { hasher: RandomState::new(), sums: HashMap::new(), mask: 0, turn, policies }
    }

    fn hash(&self, key: &UsageKey) -> Option<u64> {
        let name = match &key.limited {
            Limited::Account(account) => (key.campaign.as_str(), "", account.as_str().to_owned()),
            Limited::Key(name, hashed) => (key.campaign.as_str(), name.as_str(), hashed.to_string()),
        };
        let hash = self.hasher.hash_one(name);
        (hash & self.mask == self.turn & self.mask).then_some(hash)
    }

    fn add(&mut self, order: &Order) {
        let Some(policy) = self.policies.get(&order.key.campaign) else { return };
        let own = order.usage();
        let limited: Vec<Limited> =
            limited_of(policy, &order.account, &order.limit_keys).map(|(limited, _)| limited).collect();
        for limited in limited.into_iter().filter(|_| own != Usage::default()) {
            let key = UsageKey { campaign: order.key.campaign.clone(), limited };
            let Some(hash) = self.hash(&key) else { continue };
            let (sum, changed_at) = self.sums.entry(hash).or_insert((Usage::default(), order.updated_at));
            *sum = sum.and(own);
            *changed_at = order.updated_at.max(*changed_at);
        }
        if self.sums.len() > USAGE_KEYS_MAX {
            self.mask = self.mask << 1 | 1;
            let (mask, turn) = (self.mask, self.turn);
            self.sums.retain(|hash, _| hash & mask == turn & mask);
        }
    }
}

impl Pass<'_> {
    fn overdue_before(&self) -> Timestamp {
        self.engine.store().now().minus(self.engine.shared.config.hold_overdue)
    }

    pub(super) async fn compare_orders(&mut self) -> Result<bool, Error> {
        // A gap may be the only entry of an order that no new entry names.
        let is_lost = self.facts.buckets.iter().any(|bucket| !bucket.gaps.is_empty());
        if self.is_full() || is_lost {
            self.compare_all_orders().await
        } else {
            self.compare_new_orders().await
        }
    }

    async fn compare_all_orders(&mut self) -> Result<bool, Error> {
        let policies = self.limiting().await?;
        let counted: Arc<BTreeSet<CampaignId>> = Arc::new(policies.keys().cloned().collect());
        let limit = if counted.is_empty() { PAGE } else { COUNTED_PAGE };
        let turn = u64::try_from(self.run.id.0 & u128::from(u64::MAX)).unwrap_or(0);
        let mut counts = Counts::new(turn, policies);
        let mut after: Option<OrderId> = None;
        loop {
            let begun = Instant::now();
            let of = OrdersOf::Page(Page { after, limit });
            let asked =
                OrdersAsked { of, overdue_before: self.overdue_before(), counted: Arc::clone(&counted) };
            let found = self.engine.store().suspects(asked).await?;
            found.counted.iter().for_each(|order| counts.add(order));
            after = found.last;
            self.judge(found);
            if !self.step(begun).await? {
                return Ok(false);
            }
            if after.is_none() {
                break;
            }
        }
        self.compare_counts(&counts).await
    }

    /// Orders that new entries name, that are in doubt, or whose holds are left over.
    async fn compare_new_orders(&mut self) -> Result<bool, Error> {
        let mut orders = self.doubtful_orders();
        let page = Page { after: None, limit: NAMED };
        let due = self.engine.store().due(self.overdue_before(), page).await?;
        orders.extend(due.iter().map(|due| due.id));
        for since in std::mem::take(&mut self.since) {
            let mut after = since.after;
            while after < since.to {
                let begun = Instant::now();
                let to = since.to.min(after.saturating_add(PIECE / 10));
                orders.extend(self.engine.store().orders_in(since.bucket, after, to).await?);
                after = to;
                if !self.step(begun).await? || !self.compare_named(&mut orders, NAMED).await? {
                    return Ok(false);
                }
            }
        }
        self.compare_named(&mut orders, 1).await
    }

    /// Compares what was gathered, as soon as it is enough.
    async fn compare_named(&mut self, orders: &mut BTreeSet<OrderId>, enough: usize) -> Result<bool, Error> {
        if orders.len() < enough {
            return Ok(true);
        }
        let ids: Vec<OrderId> = std::mem::take(orders).into_iter().collect();
        for ids in ids.chunks(NAMED) {
            let begun = Instant::now();
            let (of, counted) = (OrdersOf::Ids(ids.to_vec()), Arc::default());
            let asked = OrdersAsked { of, overdue_before: self.overdue_before(), counted };
            let found = self.engine.store().suspects(asked).await?;
            self.judge(found);
            if !self.step(begun).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn judge(&mut self, found: Suspects) {
        self.run.orders_read = self.run.orders_read.saturating_add(found.orders);
        let before = self.overdue_before();
        for facts in found.suspects {
            let Some(fault) = judge(&facts, before) else { continue };
            // What the scan is about to end is not left over: it may only be many.
            if fault != OrderFault::Overdue || self.facts.orders.len() < FINDINGS_MAX / 2 {
                self.facts.orders.push((facts, fault));
            }
        }
        self.facts.orders.truncate(FINDINGS_MAX);
    }

    pub(super) async fn compare_payments(&mut self) -> Result<bool, Error> {
        if !self.is_full() {
            return Ok(true);
        }
        let mut after = None;
        loop {
            let begun = Instant::now();
            let page = Page { after, limit: PAYMENTS_PAGE };
            let found = self.engine.store().unapplied(page).await?;
            for (row, order) in found.suspects {
                let state = order.as_ref().map_or("absent", |order| order.state.as_str());
                if self.facts.unapplied.len() < FINDINGS_MAX {
                    self.facts.unapplied.push((row, state));
                }
            }
            after = found.last;
            if !self.step(begun).await? {
                return Ok(false);
            }
            if after.is_none() {
                return Ok(true);
            }
        }
    }

    /// Campaigns that limit something.
    async fn limiting(&self) -> Result<BTreeMap<CampaignId, Policy>, Error> {
        let (mut limiting, mut after) = (BTreeMap::new(), None);
        loop {
            let page = Page { after, limit: ROWS_PAGE };
            let (found, more) = self.engine.store().campaigns(Scope::All, page).await?;
            after = found.last().map(|totals| totals.campaign.id.clone());
            let limits = found.into_iter().filter(|totals| totals.campaign.policy.limits_anything());
            limiting.extend(limits.map(|t| (t.campaign.id.clone(), t.campaign.policy.clone())));
            if !more {
                return Ok(limiting);
            }
        }
    }

    /// Orders were read one page after the other, so a usage that looks wrong may only have moved: it is counted again
    /// in one view.
    async fn compare_counts(&mut self, counts: &Counts) -> Result<bool, Error> {
        let (mut after, mut doubtful): (Option<UsageKey>, Vec<(Timestamp, UsageKey)>) = (None, Vec::new());
        loop {
            let begun = Instant::now();
            let page = Page { after, limit: ROWS_PAGE };
            let (found, more) = self.engine.store().usage_rows(page).await?;
            after = found.last().map(|(key, _)| key.clone());
            for (key, row) in found {
                let Some(hash) = counts.hash(&key) else { continue };
                let none = (Usage::default(), Timestamp(i64::MIN));
                let (counted, changed_at) = counts.sums.get(&hash).copied().unwrap_or(none);
                if counted != row && doubtful.len() < DOUBTFUL_MAX {
                    doubtful.push((changed_at, key));
                }
            }
            if !self.step(begun).await? {
                return Ok(false);
            }
            if !more {
                break;
            }
        }
        // Those first whose orders are at rest: the others are likely to have moved only.
        doubtful.sort();
        self.recount(doubtful.into_iter().take(RECOUNTS_MAX).map(|(_, key)| key).collect()).await
    }

    /// What was open is counted again in every run.
    pub(super) async fn compare_usage(&mut self) -> Result<bool, Error> {
        let open: Vec<UsageKey> = self
            .open
            .iter()
            .filter_map(|open| match &open.found.proof {
                Proof::Usage { key, .. } => Some(key.clone()),
                Proof::Balance { .. }
                | Proof::Entries { .. }
                | Proof::Alone { .. }
                | Proof::Order { .. }
                | Proof::Seen => None,
            })
            .collect();
        self.recount(open).await
    }

    async fn recount(&mut self, keys: Vec<UsageKey>) -> Result<bool, Error> {
        for key in keys {
            if self.facts.usage.iter().any(|known| known.key == key) {
                continue;
            }
            let begun = Instant::now();
            let facts: UsageFacts = self.engine.store().count_usage(key).await?;
            if facts.row != facts.counted {
                self.facts.usage.push(facts);
            }
            if !self.step(begun).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
