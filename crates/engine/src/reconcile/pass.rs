//! One run: it looks at everything in its scope, tells what it found, and sees to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use holdfast_core::id::{DiscrepancyId, OrderId};
use holdfast_core::ledger::Entry;
use holdfast_core::reconcile::{Discrepancy, DiscrepancyState, FINDINGS_MAX, Facts, RunScope, classify};
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{Checkpoint, DiscrepancyFilter, Page, Run};

use super::LEASE;
use super::pace::Pace;
use crate::engine::Engine;
use crate::error::Error;

/// How often it is written down how far a run has come.
const PROGRESS_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// Differences that are read at a time.
const PAGE: usize = 500;

/// Entries that came to a bucket since it was proved.
pub(super) struct Since {
    pub(super) bucket: BucketKey,
    pub(super) after: u64,
    pub(super) to: u64,
}

/// A run under way.
pub(super) struct Pass<'e> {
    pub(super) engine: &'e Engine,
    pub(super) run: Run,
    pub(super) pace: Pace,
    pub(super) facts: Facts,
    /// What was open when it began: all of it is looked at again.
    pub(super) open: Vec<Discrepancy>,
    pub(super) since: Vec<Since>,
    pub(super) checkpoints: Vec<Checkpoint>,
    /// Halves of transfers whose other halves were not read yet.
    pub(super) halves: BTreeMap<(std::sync::Arc<str>, std::sync::Arc<str>, Timestamp), Vec<Entry>>,
    /// Pools that are frozen.
    pub(super) frozen: BTreeSet<holdfast_core::id::PoolId>,
    saved_at: Instant,
}

impl<'e> Pass<'e> {
    pub(super) fn new(engine: &'e Engine, run: Run) -> Self {
        Self {
            pace: Pace::new(engine.shared.config.reconcile_share_percent),
            engine,
            run,
            facts: Facts::default(),
            open: Vec::new(),
            since: Vec::new(),
            checkpoints: Vec::new(),
            halves: BTreeMap::new(),
            frozen: BTreeSet::new(),
            saved_at: Instant::now(),
        }
    }

    pub(super) fn into_run(self) -> Run {
        self.run
    }

    pub(super) fn is_full(&self) -> bool {
        self.run.scope == RunScope::Full
    }

    /// Whether it came to its end: not where the node goes down or has lost its lease.
    pub(super) async fn go(&mut self) -> Result<bool, Error> {
        self.read_open().await?;
        self.facts.pools = self.engine.store().odd_pools(FINDINGS_MAX).await?;
        let looked = self.compare_buckets().await?
            && self.pair_halves().await?
            && self.compare_orders().await?
            && self.compare_payments().await?
            && self.compare_usage().await?
            && self.look_at_sinks().await?;
        if !looked {
            return Ok(false);
        }
        let findings = classify(&self.facts);
        for finding in &findings {
            let found = self.run.found.entry(finding.class).or_default();
            *found = found.saturating_add(1);
        }
        let kept = self.engine.store().note_findings(self.run.id, findings).await?;
        self.dispose(kept).await?;
        Ok(true)
    }

    async fn read_open(&mut self) -> Result<(), Error> {
        let filter = DiscrepancyFilter { state: Some(DiscrepancyState::Open), class: None };
        let mut after: Option<DiscrepancyId> = None;
        loop {
            let (found, more) =
                self.engine.store().discrepancies(filter, Page { after, limit: PAGE }).await?;
            after = found.last().map(|last| last.id);
            self.open.extend(found);
            if !more {
                return Ok(());
            }
        }
    }

    /// Whether something is open of this bucket: then it is summed from its beginning.
    pub(super) fn is_doubtful(&self, bucket: BucketKey) -> bool {
        self.open.iter().any(|open| open.found.bucket == Some(bucket))
    }

    /// Orders of which something is open.
    pub(super) fn doubtful_orders(&self) -> BTreeSet<OrderId> {
        self.open.iter().filter_map(|open| open.found.order).collect()
    }

    /// Between two statements: rests, writes down how far it is, and says whether it may go on.
    pub(super) async fn step(&mut self, begun: Instant) -> Result<bool, Error> {
        self.pace.rest_for(begun).await;
        if self.saved_at.elapsed() >= PROGRESS_EVERY {
            self.engine.store().save_run(self.run.clone()).await?;
            self.saved_at = Instant::now();
        }
        Ok(!self.engine.is_draining() && self.engine.has_lease(LEASE.to_owned()).await)
    }
}
