//! What the authority says: a few bounded reads.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use holdfast_core::id::OrderId;
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{LedgerFilter, Page, SinkRow, SinkState};

use crate::engine::Engine;
use crate::error::Error;

/// Busiest pools whose ledgers are looked at.
const POOLS_MAX: usize = 4;
/// Buckets of each.
const BUCKETS_MAX: usize = 4;
/// Last entries of each.
const ENTRIES_MAX: usize = 500;
/// Queues whose first order is looked at.
const QUEUES_MAX: usize = 64;
/// Ends of orders that are counted.
const ENDS_MAX: u64 = 1_000;

/// The same act of an order twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doubled {
    /// The bucket.
    pub(super) bucket: BucketKey,
    /// The order.
    pub(super) order: OrderId,
    /// What was done twice.
    pub(super) action: Action,
    /// Its entries.
    pub(super) seqs: [u64; 2],
    /// When the second one was written.
    pub(super) at: Timestamp,
}

impl Display for Doubled {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { bucket, order, action, seqs: [first, second], at: _ } = self;
        write!(f, "{} of order {order} in entries {first} and {second} of ", action.as_str())?;
        write!(f, "bucket {} of pool {}", bucket.number, bucket.pool)
    }
}

/// A sink, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SinkFact {
    /// Its name.
    pub(super) name: String,
    /// Whether anything is delivered.
    pub(super) state: SinkState,
    /// When that changed at last.
    pub(super) changed_at: Timestamp,
    /// Since when its receiver takes nothing.
    pub(super) failing_since: Option<Timestamp>,
    /// Attempts since then.
    pub(super) failures: u32,
    /// Events that it does not take.
    pub(super) parked: u64,
}

impl SinkFact {
    fn of(row: &SinkRow) -> Self {
        Self {
            name: row.name.as_str().to_owned(),
            state: row.state,
            changed_at: row.updated_at,
            failing_since: row.health.failing_since,
            failures: row.health.failures,
            parked: row.parked,
        }
    }

    /// Whether events do not reach it though they should.
    pub(super) fn is_behind(&self) -> bool {
        self.state == SinkState::Disabled || self.failing_since.is_some() || self.parked > 0
    }
}

impl Display for SinkFact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.name, self.state.as_str())?;
        if let Some(since) = self.failing_since {
            write!(f, ", takes nothing since {since} in {} attempts", self.failures)?;
        }
        if self.parked > 0 {
            write!(f, ", has {} parked events", self.parked)?;
        }
        Ok(())
    }
}

/// What the authority says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its clock.
    pub(super) now: Timestamp,
    /// Whether other nodes write to it.
    pub(super) is_shared: bool,
    /// Since when the oldest queued order waits.
    pub(super) queued_since: Option<Timestamp>,
    /// When the longest overdue order should have ended.
    pub(super) overdue: Option<Timestamp>,
    /// Acts that the ledger has twice.
    pub(super) doubled: Vec<Doubled>,
    /// Ledger entries that were looked at for them.
    pub(super) entries: u64,
    /// The sinks.
    pub(super) sinks: Vec<SinkFact>,
}

impl Engine {
    /// Reads them.
    pub(super) async fn facts(&self) -> Result<Facts, Error> {
        let store = self.store();
        let now = store.now();
        let ends = store.open_ends(now, ENDS_MAX).await?;
        let mut facts = Facts {
            now,
            is_shared: store.is_shared(),
            overdue: ends.earliest.filter(|earliest| *earliest < now),
            sinks: store.sinks().await?.iter().map(SinkFact::of).collect(),
            ..Facts::default()
        };
        for bucket in store.queues(Page { after: None, limit: QUEUES_MAX }).await? {
            let first = store.queued(bucket, Page { after: None, limit: 1 }).await?;
            let taken_in = first.first().map(|(taken_in, _)| *taken_in);
            facts.queued_since = facts.queued_since.into_iter().chain(taken_in).min();
        }
        for busy in self.shared.measures.busiest.most(POOLS_MAX, now) {
            let Some(row) = store.pool(busy.pool).await? else { continue };
            for bucket in row.buckets.iter().take(BUCKETS_MAX) {
                let from = bucket.ledger_seq.saturating_sub(ENTRIES_MAX as u64);
                let filter = LedgerFilter { pool: Some(busy.pool), ..LedgerFilter::default() };
                let page = Page { after: Some((bucket.key, from)), limit: ENTRIES_MAX };
                let (mut entries, _) = store.ledger(filter, page).await?;
                entries.retain(|entry| entry.bucket == bucket.key);
                facts.entries = facts.entries.saturating_add(entries.len() as u64);
                facts.doubled.extend(doubled(&entries));
            }
        }
        Ok(facts)
    }
}

/// Acts that may take units for an order once in a bucket, and did so twice. What gives units back in between lets it
/// take them again by other acts, which are not of these.
pub(super) fn doubled(entries: &[Entry]) -> Vec<Doubled> {
    let mut seen: BTreeMap<(OrderId, Action), u64> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in entries {
        let takes = entry.delta.held > 0 || entry.delta.sold > 0;
        let Some(order) = entry.order_id.filter(|_| takes && is_done_once(entry.action)) else { continue };
        if let Some(first) = seen.insert((order, entry.action), entry.seq) {
            let (bucket, action, at) = (entry.bucket, entry.action, entry.at);
            found.push(Doubled { bucket, order, action, seqs: [first, entry.seq], at });
        }
    }
    found
}

/// Whether an order takes units of a bucket by this act once in its life.
const fn is_done_once(action: Action) -> bool {
    match action {
        Action::Place | Action::Land | Action::Confirm => true,
        Action::Opening
        | Action::Release
        | Action::Refund
        | Action::Reduce
        | Action::Inbound
        | Action::Adjust
        | Action::TransferOut
        | Action::TransferIn
        | Action::Retake
        | Action::OrderEvent
        | Action::Repair => false,
    }
}
