//! Reads: rows and pages. A page is keyset, so that it is stable under ties and inserts.

use std::sync::Arc;

use holdfast_core::campaign::{Campaign, CampaignStatus};
use holdfast_core::id::{Account, CampaignId, Location, OrderId, OrderNo, PoolId, Sku};
use holdfast_core::ledger::Entry;
use holdfast_core::order::{Order, State};
use holdfast_core::stock::{Bucket, BucketKey, Pool};
use holdfast_core::time::Timestamp;

use crate::keys::Scope;

/// One page of a list: at most `limit` items after the key `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<K> {
    /// The key of the last item of the page before.
    pub after: Option<K>,
    /// Most items.
    pub limit: usize,
}

/// Most lines of all orders of one page: an order may have 1,000, and an answer is bounded. A page has at least
/// one order.
pub const ORDER_PAGE_LINES_MAX: usize = 5_000;

/// A page of orders, cut by their lines too, and whether there are more. Takes no more orders than it needs.
pub fn page_of_orders<E>(
    orders: impl IntoIterator<Item = Result<Arc<Order>, E>>,
    limit: usize,
) -> Result<(Vec<Arc<Order>>, bool), E> {
    let (mut page, mut lines) = (Vec::new(), 0_usize);
    for order in orders {
        let order = order?;
        lines = lines.saturating_add(order.lines.len());
        if page.len() >= limit || (!page.is_empty() && lines > ORDER_PAGE_LINES_MAX) {
            return Ok((page, true));
        }
        page.push(order);
    }
    Ok((page, false))
}

/// A page's items, and whether there are more.
pub fn page_of<T>(mut items: Vec<T>, limit: usize) -> (Vec<T>, bool) {
    let more = items.len() > limit;
    items.truncate(limit);
    (items, more)
}

/// Which pools a list shows, in order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolFilter {
    /// Of this campaign.
    pub campaign: Option<CampaignId>,
    /// Of this SKU.
    pub sku: Option<Sku>,
    /// At this location.
    pub location: Option<Location>,
    /// Of campaigns in this scope.
    pub scope: Scope,
}

/// A pool with its buckets, read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRow {
    /// The pool.
    pub pool: Pool,
    /// Its buckets, ascending.
    pub buckets: Vec<Bucket>,
}

/// Most buckets that are told of at a time when their ledgers are ahead.
pub const LEDGERS_AHEAD_MAX: usize = 100;

/// A bucket in whose ledger an entry stands beyond the bucket's own sequence. The next entry would meet it: nothing can
/// be written there until a person has looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerAhead {
    /// The bucket, as its row says.
    pub bucket: Bucket,
    /// The first entry beyond it.
    pub first: Entry,
    /// The number of the last one.
    pub last_seq: u64,
}

/// How far the ends of open orders may be away, in seconds: the steps of [`OpenEnds`].
pub const ENDS_WITHIN_SECONDS: [u32; 5] = [0, 60, 300, 900, 3_600];

/// How many orders have an end (held, in review, queued), by how far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenEnds {
    /// All of them, or as many as were to be counted, those that end first.
    pub all: u64,
    /// Those that end within each of [`ENDS_WITHIN_SECONDS`]; the first are overdue.
    pub within: [u64; 5],
    /// The earliest end.
    pub earliest: Option<Timestamp>,
}

/// Which orders a list shows, in order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderFilter {
    /// Of this campaign.
    pub campaign: Option<CampaignId>,
    /// With this number.
    pub order_no: Option<OrderNo>,
    /// In this state.
    pub state: Option<State>,
    /// Of this account.
    pub account: Option<Account>,
    /// Whose home is this pool.
    pub pool: Option<PoolId>,
    /// With or without money that must go back.
    pub refund_due: Option<bool>,
    /// Of campaigns in this scope.
    pub scope: Scope,
}

/// Which entries a list shows, in order of (bucket, sequence).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerFilter {
    /// Of this pool.
    pub pool: Option<PoolId>,
    /// Of this order.
    pub order: Option<OrderId>,
    /// Of campaigns in this scope.
    pub scope: Scope,
}

/// Where an entry stands.
pub type LedgerPosition = (BucketKey, u64);

/// An order whose time is over, and where its lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueOrder {
    /// The order.
    pub id: OrderId,
    /// Its home bucket.
    pub home: BucketKey,
    /// Since when.
    pub due_at: Timestamp,
}

/// A campaign with the sums of its pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignTotals {
    /// The campaign.
    pub campaign: Arc<Campaign>,
    /// How many pools it has.
    pub pools: u64,
    /// Units that can be taken.
    pub available: u64,
    /// Units held.
    pub held: u64,
    /// Units sold.
    pub sold: u64,
    /// Whether an open case stops all sales of the authority.
    pub halted: bool,
}

impl CampaignTotals {
    /// The shown state at `now`: closed > frozen (by a switch or by a case) > paused > the rest. A campaign
    /// that cannot sell is not shown as open.
    pub fn status(&self, now: Timestamp) -> CampaignStatus {
        let status = self.campaign.status(now);
        if self.halted && status != CampaignStatus::Closed { CampaignStatus::Frozen } else { status }
    }
}

/// Whether an order is one that a filter shows.
impl OrderFilter {
    /// Judges one order; the model store and the tests use it.
    pub fn shows(&self, order: &Order) -> bool {
        self.scope.allows(&order.key.campaign)
            && self.campaign.as_ref().is_none_or(|c| *c == order.key.campaign)
            && self.order_no.as_ref().is_none_or(|n| *n == order.key.order_no)
            && self.state.is_none_or(|s| s == order.state)
            && self.account.as_ref().is_none_or(|a| *a == order.account)
            && self.pool.is_none_or(|p| order.home.is_some_and(|home| home.pool == p))
            && self.refund_due.is_none_or(|due| due == order.refund_due.is_some())
    }
}
