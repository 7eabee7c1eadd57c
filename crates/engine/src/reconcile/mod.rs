//! Reconciliation (对账): runs on schedule and on demand, beside the sales. One node at a time runs, by lease; a run reads
//! in short statements, at a pace, and judges by [`holdfast_core::reconcile`]; what it finds it mends by commands, or
//! freezes the pool and opens a case.

mod buckets;
mod dispose;
mod orders;
mod pace;
mod pass;
mod sinks;

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::case::{Case, CaseAction};
use holdfast_core::command::{Accept, Command, Outcome, Repair, Signed};
use holdfast_core::id::{DiscrepancyId, RunId};
use holdfast_core::reconcile::{Discrepancy, DiscrepancyState, Proof, RunScope, RunState};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_metrics::ReconcileMetrics;
use holdfast_store::{ResolveCase, Run};
use tokio::sync::Notify;

use crate::change::lane_of;
use crate::engine::Engine;
use crate::error::Error;
use pass::Pass;

/// Who reconciles, in the ledger and in the trail.
pub(crate) const WHO: &str = "reconciliation";
/// The lease of the node that runs.
const LEASE: &str = "reconciliation";
/// How often a run is begun, each time because its node went away.
const ATTEMPTS_MAX: u32 = 3;

/// What the node keeps of its part.
#[derive(Default)]
pub(crate) struct Reconciling {
    wake: Notify,
    pub(crate) metrics: Arc<ReconcileMetrics>,
}

impl Reconciling {
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    async fn woken_within(&self, length: Duration) {
        // Both lead to the same look.
        let _ = tokio::time::timeout(length, self.wake.notified()).await;
    }
}

/// What came of a decision on a case.
#[derive(Debug)]
pub enum Decided {
    /// The case, decided.
    Case(Box<Case>),
    /// A second person is asked.
    Outcome(Outcome),
}

/// What is locked to mend a difference.
pub(crate) fn locks_of_repair(known: &Discrepancy) -> LockSet {
    let mut locks = LockSet::default();
    match &known.found.proof {
        Proof::Balance { bucket, .. } | Proof::Entries { bucket, .. } => locks.pools.extend([bucket.pool]),
        Proof::Alone { deltas, .. } => locks.pools.extend(deltas.iter().map(|(bucket, _)| bucket.pool)),
        Proof::Order { .. } => locks.pools.extend(known.found.pool),
        // A usage row is locked by every batch that changes it.
        Proof::Usage { .. } | Proof::Seen => {}
    }
    locks
}

impl Engine {
    /// Asks for a run; none: too many wait. A worker of any node takes it.
    pub async fn ask_run(&self, scope: RunScope, asked_by: Arc<str>) -> Result<Option<Run>, Error> {
        self.check_running()?;
        let run = Run::asked(RunId(self.shared.ids.next()), scope, asked_by, self.store().now());
        let is_kept = self.store().ask_run(run.clone()).await?;
        self.shared.reconciling.wake();
        Ok(is_kept.then_some(run))
    }

    /// The worker.
    pub(crate) async fn run_reconciling(&self) {
        while !self.is_draining() {
            if self.has_lease(LEASE.to_owned()).await {
                if let Err(error) = self.reconcile_next().await {
                    tracing::warn!(%error, "reconciliation could not go on; trying again");
                }
            } else {
                // Whoever has the lease shows what is open.
                self.shared.reconciling.metrics.forget();
            }
            self.shared.reconciling.woken_within(self.shared.config.reconcile_poll).await;
        }
    }

    /// Runs what is asked for or due, until there is nothing.
    async fn reconcile_next(&self) -> Result<(), Error> {
        while !self.is_draining() {
            let Some(run) = self.next_run().await? else { return Ok(()) };
            self.reconcile(run).await?;
        }
        Ok(())
    }

    async fn next_run(&self) -> Result<Option<Run>, Error> {
        if let Some(run) = self.store().unfinished_run().await? {
            return Ok(Some(run));
        }
        let now = self.store().now();
        let full_at = self.store().last_run_at(RunScope::Full).await?;
        let last_at = self.store().last_run_at(RunScope::Incremental).await?.max(full_at);
        let config = &self.shared.config;
        let is_due = |at: Option<_>, every: Option<Duration>| {
            every.is_some_and(|every| {
                at.is_none_or(|at: holdfast_core::time::Timestamp| now >= at.plus(every))
            })
        };
        let scope = if is_due(full_at, config.reconcile_full_interval) {
            RunScope::Full
        } else if is_due(last_at, config.reconcile_interval) {
            RunScope::Incremental
        } else {
            return Ok(None);
        };
        self.ask_run(scope, WHO.into()).await
    }

    /// One run, from its beginning to its end. One that its node did not bring to an end is begun again.
    async fn reconcile(&self, mut run: Run) -> Result<(), Error> {
        run.attempts = run.attempts.saturating_add(1);
        (run.buckets_read, run.entries_read, run.orders_read) = (0, 0, 0);
        self.store().save_run(run.clone()).await?;
        let begun = std::time::Instant::now();
        let mut pass = Pass::new(self, run);
        let ended = pass.go().await;
        let mut run = pass.into_run();
        match ended {
            Ok(true) => run.state = RunState::Done,
            // The node goes down, or another one has the lease: it is begun again there.
            Ok(false) => return Ok(()),
            Err(error) if run.attempts >= ATTEMPTS_MAX => {
                run.state = RunState::Failed;
                run.failure = Some(error.to_string().into());
            }
            Err(error) => return Err(error),
        }
        run.finished_at = Some(self.store().now());
        let metrics = &self.shared.reconciling.metrics;
        metrics.finished(run.scope, run.state, begun.elapsed());
        metrics.show_open(&self.store().open_discrepancies().await?);
        if run.state == RunState::Done && run.found.is_empty() {
            metrics.clean_at.set(usize::try_from(self.store().now().0 / 1_000_000).unwrap_or(0));
        }
        tracing::info!(
            scope = run.scope.as_str(),
            state = run.state.as_str(),
            entries = run.entries_read,
            orders = run.orders_read,
            found = run.found.values().sum::<u64>(),
            "a reconciliation has ended"
        );
        self.store().save_run(run).await?;
        Ok(())
    }

    /// Mends a difference.
    pub(crate) async fn repair(
        &self,
        known: &Discrepancy,
        accept: Accept,
        decides: Option<CaseAction>,
        signed: Signed,
    ) -> Result<Outcome, Error> {
        let (order, usage) = match &known.found.proof {
            Proof::Order { order, .. } => (Some(*order), None),
            Proof::Usage { key, .. } => (None, Some(key.clone())),
            Proof::Entries { event, .. } => (event.map(|event| event.order), None),
            Proof::Balance { .. } | Proof::Alone { .. } | Proof::Seen => (None, None),
        };
        let repair = Repair { id: known.id, accept, decides, pool: known.found.pool, order, usage, signed };
        let locks = locks_of_repair(known);
        self.settle(lane_of(&locks), Command::Repair(Arc::new(repair)), locks).await
    }

    /// A person decides on a case. What mends a difference goes through its command, and a freeze is looked at once
    /// more at once.
    pub async fn decide_case(&self, resolve: ResolveCase) -> Result<Result<Decided, Refusal>, Error> {
        self.check_running()?;
        let known = self.store().discrepancy(DiscrepancyId(resolve.id.0)).await?;
        let (Some(known), Some(accept)) = (&known, resolve.action.accepts()) else {
            return self.acknowledge(resolve, known.as_ref()).await;
        };
        let kind = known.found.class.case_kind();
        if !kind.allows(resolve.action) {
            let (pointer, why) = ("/action".into(), "does not fit this kind of case");
            return Ok(Err(Refusal::InvalidValue { pointer, why }));
        }
        let signed = Signed {
            actor: resolve.operator.as_str().into(),
            reason: Arc::clone(&resolve.reason),
            via: resolve.via.clone(),
        };
        match self.repair(known, accept, Some(resolve.action), signed).await? {
            Outcome::Repaired { case: Some(case), .. } => {
                self.compare_soon().await;
                Ok(Ok(Decided::Case(Box::new(Case::clone(&case)))))
            }
            Outcome::Refused { refusal: Refusal::InvalidValue { pointer, why }, .. }
                if pointer.is_empty() =>
            {
                Ok(Err(Refusal::InvalidValue { pointer: "/action".into(), why }))
            }
            Outcome::Refused { refusal, .. } => Ok(Err(refusal)),
            outcome @ (Outcome::Order { .. }
            | Outcome::Pool { .. }
            | Outcome::Adjusted { .. }
            | Outcome::Transferred { .. }
            | Outcome::Imported { .. }
            | Outcome::Epoch { .. }
            | Outcome::Repaired { .. }
            | Outcome::Proposed { .. }
            | Outcome::Miss(_)
            | Outcome::Elsewhere(_)
            | Outcome::Outdated
            | Outcome::NotDue(_)) => Ok(Ok(Decided::Outcome(outcome))),
        }
    }

    /// Who only acknowledges mends nothing: as long as a difference is there that can be mended, that must be decided.
    async fn acknowledge(
        &self,
        resolve: ResolveCase,
        known: Option<&Discrepancy>,
    ) -> Result<Result<Decided, Refusal>, Error> {
        let is_open = known.is_some_and(|known| {
            known.state == DiscrepancyState::Open
                && known.found.class.case_kind().suggested() != CaseAction::Acknowledge
        });
        if is_open && resolve.action == CaseAction::Acknowledge {
            let why = "the difference is still there: decide which side holds, or mend it and compare again";
            return Ok(Err(Refusal::Conflict(why)));
        }
        let case = self.resolve_case(resolve).await?;
        Ok(case.map(|case| Decided::Case(Box::new(case))))
    }

    /// Something was mended: a short run lifts the freeze as soon as it finds nothing.
    async fn compare_soon(&self) {
        if let Err(error) = self.ask_run(RunScope::Incremental, WHO.into()).await {
            tracing::warn!(%error, "what was mended is compared with the next run");
        }
    }
}
