//! Changing an order: read it unlocked to know its buckets, lock those, decide; if it moved meanwhile, once
//! more.

use std::sync::Arc;

use holdfast_core::approval::{ApprovalKey, DecideApproval, Proposal, Verdict};
use holdfast_core::command::{Command, How, OrderAction, OrderCommand, Outcome, Signed};
use holdfast_core::id::OrderId;
use holdfast_core::order::{Order, PaymentOutcome, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_metrics::Overload;

use crate::engine::Engine;
use crate::error::Error;
use crate::lanes::{Class, LaneKey};
use crate::pools::locks_of_transfer;
use crate::reconcile::locks_of_repair;

/// How often an order may move between the unlocked read and the lock.
const ROUNDS_MAX: usize = 5;

impl Engine {
    /// Changes an order: cancel, payment attempt, payment notice, refund, expiry.
    pub async fn change(
        &self,
        order: OrderId,
        action: OrderAction,
        signed: Signed,
    ) -> Result<Outcome, Error> {
        self.check_running()?;
        let changed = self.change_unchecked(order, action, signed).await;
        self.counted(changed)
    }

    /// The same for work of an operator, for which the policy may want a second person.
    pub async fn change_with_second(
        &self,
        order: OrderId,
        action: OrderAction,
        signed: Signed,
        second: ApprovalKey,
    ) -> Result<Outcome, Error> {
        self.check_running()?;
        let command = OrderCommand { order, action, signed, second: Some(second) };
        let changed = self.change_under(command, LockSet::default()).await;
        self.counted(changed)
    }

    /// A second person decides on work that waits; the same locks are taken that the work itself needs.
    pub async fn decide_approval(
        &self,
        key: ApprovalKey,
        verdict: Verdict,
        signed: Signed,
    ) -> Result<Outcome, Error> {
        self.check_running()?;
        let Some(approval) = self.store().approval(key.clone()).await? else {
            return self.counted(Ok(Outcome::refused(Refusal::UnknownApproval)));
        };
        let work = approval.proposal.command();
        let decide = |work| Command::Decide(Arc::new(DecideApproval { key, work, verdict, signed }));
        match &approval.proposal {
            Proposal::Adjust(adjust) => {
                let pool = adjust.pool;
                self.settle(LaneKey::Pool(pool), decide(work), LockSet::pool(pool)).await
            }
            Proposal::Transfer(transfer) => {
                let locks = locks_of_transfer(transfer);
                self.settle(lane_of(&locks), decide(work), locks).await
            }
            Proposal::Repair(repair) => {
                let Some(known) = self.store().discrepancy(repair.id).await? else {
                    return self.counted(Ok(Outcome::refused(Refusal::UnknownCase)));
                };
                let locks = locks_of_repair(&known);
                self.settle(lane_of(&locks), decide(work), locks).await
            }
            Proposal::Order(change) => {
                let changed = self.run_under(change, &decide(work), LockSet::default()).await;
                self.counted(changed)
            }
        }
    }

    /// As [`Engine::change`], also while draining.
    pub(crate) async fn change_unchecked(
        &self,
        id: OrderId,
        action: OrderAction,
        signed: Signed,
    ) -> Result<Outcome, Error> {
        self.change_under(OrderCommand::new(id, action, signed), LockSet::default()).await
    }

    /// The same, with more locks than the order itself needs.
    pub(crate) async fn change_under(&self, change: OrderCommand, more: LockSet) -> Result<Outcome, Error> {
        self.run_under(&change, &Command::Order(change.clone()), more).await
    }

    /// Sends a command that makes a change of an order under the locks that the change needs.
    async fn run_under(
        &self,
        change: &OrderCommand,
        command: &Command,
        mut more: LockSet,
    ) -> Result<Outcome, Error> {
        for _ in 0..ROUNDS_MAX {
            let Some(order) = self.store().order(change.order).await? else {
                if let Some(refusal) = self.refused_before_landing(change.order).await? {
                    return Ok(Outcome::refused(refusal));
                }
                continue;
            };
            let mut locks = locks_of(&order, &change.action);
            locks.extend(&more);
            let lane = lane_of(&locks);
            let outcome = self.shared.lanes.run(lane, Class::Settling, command.clone(), locks).await?;
            if let Outcome::Elsewhere(pools) | Outcome::Miss(pools) = outcome {
                more.pools.extend(pools);
                continue;
            }
            self.after_change(&outcome);
            return Ok(outcome);
        }
        self.shared.metrics.overloads.of(Overload::Rounds).inc();
        Err(Error::Overloaded)
    }

    pub(crate) fn after_change(&self, outcome: &Outcome) {
        // An order that stays as it was ends when it did before; one that waits for an answer of its provider is overdue,
        // and a timer that remembered it would find it again at once.
        if let Outcome::Order { order, how: How::Changed | How::Created, .. } = outcome {
            self.shared.verdicts.forget(order);
            self.shared.timer.remember(order);
        }
    }
}

/// The lock set of a command: the home bucket and every bucket whose balance may change. A released order
/// may take stock again, from anywhere in its pools.
fn locks_of(order: &Arc<Order>, action: &OrderAction) -> LockSet {
    let mut locks = LockSet::default();
    locks.buckets.extend(order.buckets());
    let may_retake = order.state == State::Released
        && match action {
            OrderAction::Notice(notice) => notice.outcome == PaymentOutcome::Succeeded,
            OrderAction::Confirm => true,
            OrderAction::Land
            | OrderAction::Cancel
            | OrderAction::Reduce(_)
            | OrderAction::Attempt(..)
            | OrderAction::Refund(_)
            | OrderAction::Release
            | OrderAction::Extend(_)
            | OrderAction::MarkRefunded(_)
            | OrderAction::Expire(_) => false,
        };
    if may_retake {
        locks.pools.extend(order.pools());
    }
    locks
}

/// One bucket: its lane. Several of one pool: the pool's wide lane. Else the node's.
pub(crate) fn lane_of(locks: &LockSet) -> LaneKey {
    let mut pools: Vec<_> =
        locks.buckets.iter().map(|key| key.pool).chain(locks.pools.iter().copied()).collect();
    pools.sort_unstable();
    pools.dedup();
    let first = locks.buckets.first();
    match (pools.as_slice(), first) {
        ([_], Some(bucket)) if locks.buckets.len() == 1 && locks.pools.is_empty() => LaneKey::Bucket(*bucket),
        ([pool], _) => LaneKey::Pool(*pool),
        _ => LaneKey::Node,
    }
}
