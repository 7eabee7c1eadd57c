//! Expiry: two channels doing the same idempotent release. The timer is prompt and may be lost with the
//! process; the scan finds what it missed. Both only trigger: the order's state decides, under its lock.

use std::time::Duration;

use holdfast_core::case::Case;
use holdfast_core::command::{Command, How, Inquiry, OrderAction, OrderCommand, Outcome, Signed};
use holdfast_core::id::OrderId;
use holdfast_core::snapshot::LockSet;
use holdfast_core::time::Timestamp;
use holdfast_metrics::Expiry;
use holdfast_store::{DueOrder, Error as StoreError, Page};
use tokio::task::JoinSet;

use crate::ahead;
use crate::asking::Doubt;
use crate::engine::Engine;
use crate::error::Error;
use crate::lanes::{Class, LaneKey};

/// When an order comes again about which nobody could be asked because too many are.
const LATER: Duration = Duration::from_secs(1);

/// What one expiry pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpiryPass {
    /// Orders that changed: released, or sent to review.
    pub changed: usize,
    /// Orders for which there was nothing to do.
    pub unchanged: usize,
    /// Orders that failed and are set aside.
    pub failed: usize,
    /// Whether there may be more.
    pub more: bool,
}

impl Engine {
    /// Starts the workers: expiry, landing, unsold stock, the catalog, samples and looks at the authority, which end when the
    /// engine drains, and the reading of the stored keys.
    pub fn start_workers(&self) {
        if self.shared.config.is_worker {
            let engine = self.clone();
            tokio::spawn(async move { engine.run_expiry().await });
            let engine = self.clone();
            tokio::spawn(async move { engine.run_landing().await });
            let engine = self.clone();
            tokio::spawn(async move { engine.run_unsold().await });
            let engine = self.clone();
            tokio::spawn(async move { engine.run_reconciling().await });
            let engine = self.clone();
            tokio::spawn(async move { engine.run_sinks().await });
        }
        let engine = self.clone();
        tokio::spawn(async move { engine.run_caches().await });
        let engine = self.clone();
        tokio::spawn(async move { engine.run_catalog().await });
        let engine = self.clone();
        tokio::spawn(async move { engine.run_sampling().await });
        let engine = self.clone();
        tokio::spawn(async move { engine.run_looking().await });
        let engine = self.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.learn_keys().await {
                tracing::warn!(%error, "the stored keys could not be read; refused keys are looked up instead");
            }
        });
    }

    /// The worker: wakes on its timer and on signal, takes no input.
    async fn run_expiry(&self) {
        let mut scan_at = self.store().now();
        while !self.is_draining() {
            let now = self.store().now();
            let mut pass = self.expire_due(now).await;
            if now >= scan_at && !pass.more {
                pass = self.scan_overdue(now).await;
                if !pass.more {
                    scan_at = now.plus(self.shared.config.scan_interval);
                }
            }
            if pass.failed > 0 {
                tracing::warn!(failed = pass.failed, "orders could not be expired and are set aside");
            }
            if !pass.more {
                let next = self.shared.timer.next_due().map_or(scan_at, |due| due.min(scan_at));
                let micros = u64::try_from(next.0.saturating_sub(self.store().now().0)).unwrap_or(0);
                // Both lead to the same pass.
                self.shared.timer.woken(Duration::from_micros(micros.max(1_000))).await;
            }
        }
    }

    /// Expires what the timer says is due, at most one pass.
    pub async fn expire_due(&self, now: Timestamp) -> ExpiryPass {
        let most = self.shared.config.expiry_pass_max;
        let due = self.shared.timer.take_due(now, most);
        let more = due.len() == most;
        ExpiryPass { more, ..self.expire_all(due, now).await }
    }

    /// Expires what the scan finds overdue, at most one pass. Orders that were set aside are stepped over,
    /// so that one that cannot be expired never stops the others.
    pub async fn scan_overdue(&self, now: Timestamp) -> ExpiryPass {
        let most = self.shared.config.expiry_pass_max;
        let mut after = None;
        loop {
            let page = match self.store().due(now, Page { after, limit: most }).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "overdue orders could not be read");
                    return ExpiryPass::default();
                }
            };
            let full = page.len() == most;
            after = page.last().map(|last| (last.due_at, last.id));
            let due: Vec<_> =
                page.into_iter().filter(|due| !self.shared.timer.is_aside(due.id, now)).collect();
            if !due.is_empty() || !full {
                self.shared.metrics.scan_found.set(due.len());
                return ExpiryPass { more: full, ..self.expire_all(due, now).await };
            }
        }
    }

    async fn expire_all(&self, due: Vec<DueOrder>, now: Timestamp) -> ExpiryPass {
        let mut tasks = JoinSet::new();
        for order in due {
            let engine = self.clone();
            tasks.spawn(async move { (order, engine.expire(order).await) });
        }
        let mut pass = ExpiryPass::default();
        while let Some(done) = tasks.join_next().await {
            let Ok((order, result)) = done else {
                pass.failed += 1;
                continue;
            };
            self.measure_expiry(order.due_at, &result);
            match result {
                Ok(Outcome::Order { .. }) => pass.changed += 1,
                Ok(Outcome::NotDue(due_at)) => {
                    pass.unchanged += 1;
                    if let Some(due_at) = due_at.filter(|due_at| *due_at > now) {
                        self.shared.timer.remember_at(due_at, order.id, order.home);
                    }
                    // If its row says that it is overdue and it is not, the scan must not spin on it.
                    self.set_aside(order.id, now);
                }
                failed => {
                    pass.failed += 1;
                    self.set_aside(order.id, now);
                    self.tell_of(order, &failed).await;
                }
            }
        }
        let expiries = &self.shared.metrics.expiries;
        for (result, count) in [
            (Expiry::Changed, pass.changed),
            (Expiry::Unchanged, pass.unchanged),
            (Expiry::Failed, pass.failed),
        ] {
            expiries.of(result).add(u64::try_from(count).unwrap_or(u64::MAX));
        }
        pass
    }

    /// How late an order was taken back.
    fn measure_expiry(&self, due_at: Timestamp, result: &Result<Outcome, Error>) {
        if let Ok(Outcome::Order { how: How::Changed, .. }) = result {
            let late = u64::try_from(self.store().now().0.saturating_sub(due_at.0)).unwrap_or(0);
            self.shared.metrics.expiry_lag.observe(Duration::from_micros(late));
        }
    }

    /// An order that cannot be ended becomes a case: a person must look. What only could not be done now does not.
    async fn tell_of(&self, order: DueOrder, failed: &Result<Outcome, Error>) {
        let why = match failed {
            Ok(outcome) => format!("{outcome:?}"),
            Err(Error::Store(error @ (StoreError::Data(_) | StoreError::Corrupt(_)))) => {
                // Where it is the bucket, that has a case of its own for all its holds.
                if ahead::is_found(self.store(), order.home.pool).await {
                    return;
                }
                error.to_string()
            }
            Err(
                Error::Store(
                    StoreError::Conflict(_)
                    | StoreError::Unavailable(_)
                    | StoreError::StorageFull
                    | StoreError::Timeout
                    | StoreError::OutcomeUnknown(_),
                )
                | Error::Overloaded
                | Error::RateLimited { .. }
                | Error::CacheNotReady
                | Error::ShuttingDown
                | Error::OutcomeUnknown,
            ) => return,
        };
        let case = Case::hold_overdue(order.id, order.home.pool, order.due_at, &why, self.store().now());
        if let Err(error) = self.store().open_case(case).await {
            tracing::warn!(%error, order = %order.id, "an order that cannot be ended has no case yet");
        }
    }

    fn set_aside(&self, order: OrderId, now: Timestamp) {
        self.shared.timer.set_aside(order, now.plus(self.shared.config.set_aside));
    }

    /// Expires one order, unless a provider must be asked first: then that goes on beside the pass.
    pub(crate) async fn expire(&self, order: DueOrder) -> Result<Outcome, Error> {
        if !self.asks_providers() {
            return self.expire_now(order, Inquiry::Done).await;
        }
        let outcome = self.expire_now(order, Inquiry::Open).await?;
        let Outcome::Order { order: stays, how: How::Repeated, .. } = outcome else { return Ok(outcome) };
        match self.doubt_of(order, &stays) {
            Doubt::None => self.expire_now(order, Inquiry::Done).await,
            Doubt::Later => Ok(Outcome::NotDue(Some(self.store().now().plus(LATER)))),
            Doubt::Ask(asking) => {
                let engine = self.clone();
                tokio::spawn(async move {
                    let ended = engine.ask_then_expire(asking).await;
                    engine.measure_expiry(order.due_at, &ended);
                    if let Err(error) = &ended {
                        tracing::warn!(%error, order = %order.id, "an order could not be ended after its provider was asked");
                    }
                });
                Ok(Outcome::NotDue(None))
            }
        }
    }

    /// Expires one order: under the lock of its home bucket, which is all that most orders need.
    pub(crate) async fn expire_now(&self, order: DueOrder, inquiry: Inquiry) -> Result<Outcome, Error> {
        let (signed, action) = (Signed::new("expiry", ""), OrderAction::Expire(inquiry));
        let command = OrderCommand::new(order.id, action.clone(), signed.clone());
        let (lane, locks) = (LaneKey::Bucket(order.home), LockSet::bucket(order.home));
        let outcome = self.shared.lanes.run(lane, Class::Settling, Command::Order(command), locks).await?;
        if let Outcome::Elsewhere(_) = outcome {
            return self.change_unchecked(order.id, action, signed).await;
        }
        self.after_change(&outcome);
        Ok(outcome)
    }
}
