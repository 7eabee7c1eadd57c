//! What becomes of what was found: it is mended at once, or its pool is frozen and a person asked. What is gone is closed,
//! and a freeze of ours ends when nothing is left that it was for.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::command::{Accept, How, OrderAction, Outcome, Signed};
use holdfast_core::id::{DiscrepancyId, Operator, OrderId, PoolId};
use holdfast_core::order::{Notice, PaymentOutcome};
use holdfast_core::reconcile::{Class, Discrepancy, DiscrepancyState, Disposition};
use holdfast_core::snapshot::PaymentRow;
use holdfast_core::stock::{BucketKey, PoolSwitch};
use holdfast_store::{About, ActFilter, Dispose, DueOrder, Page, SwitchPool};

use super::WHO;
use super::pass::Pass;
use crate::error::Error;

/// Who freezes a pool besides, when an entry meets one that is there.
const NODE: &str = "holdfast";
/// From how many runs on a difference that is not mended by itself needs a person.
const CYCLES_MAX: u32 = 3;

impl Pass<'_> {
    pub(super) async fn dispose(&mut self, found: Vec<Discrepancy>) -> Result<(), Error> {
        let notices = self.notices();
        let mut repaired: BTreeSet<DiscrepancyId> = BTreeSet::new();
        for known in &found {
            let is_mended = match known.disposition {
                Disposition::Freeze => {
                    self.freeze_for(known).await?;
                    false
                }
                Disposition::Repair => self.mend(known, &notices).await,
                Disposition::Watch => false,
            };
            if is_mended {
                repaired.insert(known.id);
            } else if known.disposition != Disposition::Freeze && known.cycles >= CYCLES_MAX {
                self.engine.store().open_case(known.case(self.engine.store().now())).await?;
            }
        }
        let mut changed: Vec<Dispose> = repaired
            .iter()
            .map(|id| Dispose {
                id: *id,
                state: DiscrepancyState::Repaired,
                disposition: Disposition::Repair,
            })
            .collect();
        changed.extend(self.gone(&found).await?);
        self.engine.store().dispose(changed.clone()).await?;
        self.engine.shared.reconciling.metrics.show_lasting(
            found.iter().filter(|known| known.cycles >= CYCLES_MAX && !repaired.contains(&known.id)).count(),
        );
        self.lift_freezes(&found).await
    }

    /// Notices that orders know nothing of, as far as their rows tell.
    fn notices(&self) -> BTreeMap<OrderId, PaymentRow> {
        self.facts.unapplied.iter().map(|(row, _)| (row.order, row.clone())).collect()
    }

    /// The pool lets nothing out, and a person has a case: in this order, so that a freeze is never without one.
    async fn freeze_for(&mut self, known: &Discrepancy) -> Result<(), Error> {
        let store = self.engine.store();
        store.open_case(known.case(store.now())).await?;
        let Some(pool) = known.found.pool.filter(|pool| !self.frozen.contains(pool)) else { return Ok(()) };
        // Who froze it before keeps it frozen.
        if store.pool(pool).await?.is_some_and(|row| row.pool.frozen) {
            self.frozen.insert(pool);
            return Ok(());
        }
        let reason = format!("{}: case {}", known.found.class.as_str(), known.case_id());
        self.switch(pool, PoolSwitch::Freeze, reason).await?;
        tracing::error!(%pool, class = known.found.class.as_str(), case = %known.case_id(), "a pool is frozen");
        self.frozen.insert(pool);
        Ok(())
    }

    async fn switch(&self, id: PoolId, switch: PoolSwitch, reason: String) -> Result<(), Error> {
        let operator = Operator::new(WHO).map_err(|error| holdfast_store::Error::Data(error.to_string()))?;
        let set = SwitchPool { id, switch, operator, reason, via: None };
        if let Err(refusal) = self.engine.store().switch_pool(set).await? {
            tracing::error!(pool = %id, ?refusal, "a difference has no pool to freeze");
        }
        self.engine.catalog_changed().await;
        Ok(())
    }

    /// Mends what is safe to mend; whether it is done. What fails is found again.
    async fn mend(&self, known: &Discrepancy, notices: &BTreeMap<OrderId, PaymentRow>) -> bool {
        let done = match known.found.class {
            Class::HoldOverdue => self.expire(known).await,
            Class::PaidNotApplied => self.apply(known, notices).await,
            Class::UsageDrift => self.recount_usage(known).await,
            // Their keepers do it.
            Class::CacheAhead | Class::CacheBehind | Class::EntryUnlanded => Ok(false),
            Class::EntryMissing
            | Class::EntryDuplicate
            | Class::BalanceDrift
            | Class::BucketSumOff
            | Class::TransferUnpaired
            | Class::OrderWithoutStock
            | Class::StockWithoutOrder
            | Class::AllocationDrift
            | Class::EventStuck => Ok(false),
        };
        done.unwrap_or_else(|error| {
            tracing::warn!(%error, class = known.found.class.as_str(), "a difference could not be mended yet");
            false
        })
    }

    async fn expire(&self, known: &Discrepancy) -> Result<bool, Error> {
        let Some(id) = known.found.order else { return Ok(false) };
        let Some(order) = self.engine.store().order(id).await? else { return Ok(false) };
        let (Some(home), Some(due_at)) = (order.home, order.due_at.or(order.hold_ends_at)) else {
            return Ok(false);
        };
        let expired = self.engine.expire(DueOrder { id, home, due_at }).await?;
        Ok(matches!(expired, Outcome::Order { how: How::Changed, .. }))
    }

    /// Tells the order of its payment as the provider would. An order that has it on record is confirmed by it.
    async fn apply(
        &self,
        known: &Discrepancy,
        notices: &BTreeMap<OrderId, PaymentRow>,
    ) -> Result<bool, Error> {
        let Some(order) = known.found.order else { return Ok(false) };
        let signed = Signed::new(WHO, format!("difference {}", known.id));
        let action = match notices.get(&order) {
            Some(row) => OrderAction::Notice(Notice {
                provider: row.provider.clone(),
                event_id: row.event_id.clone(),
                payment_id: row.payment_id.clone(),
                attempt_id: None,
                outcome: PaymentOutcome::Succeeded,
                paid_at: None,
                amount_minor: None,
                currency: None,
            }),
            None => OrderAction::Confirm,
        };
        let applied = self.engine.change_unchecked(order, action, signed).await?;
        Ok(matches!(applied, Outcome::Order { how: How::Changed, .. }))
    }

    async fn recount_usage(&self, known: &Discrepancy) -> Result<bool, Error> {
        let signed = Signed::new(WHO, "a usage row is the sum of its orders");
        let mended = self.engine.repair(known, Accept::Ledger, None, signed).await?;
        Ok(matches!(mended, Outcome::Repaired { .. }))
    }

    /// What was open and was looked for again in vain.
    async fn gone(&self, found: &[Discrepancy]) -> Result<Vec<Dispose>, Error> {
        let seen: BTreeSet<DiscrepancyId> = found.iter().map(|known| known.id).collect();
        let mut gone = Vec::new();
        for open in self.open.iter().filter(|open| !seen.contains(&open.id)) {
            let state = match open.found.class {
                // A new epoch has begun from the authority's balance.
                Class::CacheAhead | Class::CacheBehind | Class::EntryUnlanded => {
                    if !self.is_turned(open.found.bucket, open.found.position).await? {
                        continue;
                    }
                    DiscrepancyState::Repaired
                }
                // Only a full run reads all payments.
                Class::PaidNotApplied if !self.is_full() => continue,
                Class::EntryMissing
                | Class::EntryDuplicate
                | Class::BalanceDrift
                | Class::BucketSumOff
                | Class::TransferUnpaired
                | Class::OrderWithoutStock
                | Class::StockWithoutOrder
                | Class::AllocationDrift
                | Class::PaidNotApplied
                | Class::HoldOverdue
                | Class::UsageDrift
                | Class::EventStuck => DiscrepancyState::Resolved,
            };
            gone.push(Dispose { id: open.id, state, disposition: open.disposition });
        }
        Ok(gone)
    }

    async fn is_turned(&self, bucket: Option<BucketKey>, epoch: u64) -> Result<bool, Error> {
        let Some(bucket) = bucket else { return Ok(true) };
        let row = self.engine.store().cache_bucket(bucket).await?;
        Ok(row.is_none_or(|row| row.epoch.0 > epoch || row.state == holdfast_core::cache::EpochState::Closed))
    }

    /// Ends freezes of pools in which nothing is left to freeze for; those that a person set stay.
    async fn lift_freezes(&self, found: &[Discrepancy]) -> Result<(), Error> {
        let held: BTreeSet<PoolId> = found
            .iter()
            .filter(|known| known.disposition == Disposition::Freeze)
            .filter_map(|known| known.found.pool)
            .collect();
        for pool in self.frozen.difference(&held) {
            let filter = ActFilter { subject: Some(About::Pool(*pool).subject()), ..ActFilter::default() };
            let (acts, _) = self.engine.store().acts(filter, Page { after: None, limit: 20 }).await?;
            let last = acts.iter().find(|act| act.action == PoolSwitch::Freeze.as_str());
            let by = last.and_then(|act| act.operator.as_ref()).map(Operator::as_str);
            if matches!(by, Some(WHO | NODE)) {
                self.switch(*pool, PoolSwitch::Unfreeze, "the comparison is clean".to_owned()).await?;
                tracing::info!(%pool, "a freeze is lifted: the comparison is clean");
            }
        }
        Ok(())
    }
}
