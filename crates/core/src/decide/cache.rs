//! The cache path: epochs of a bucket's cache, and what it accepted, landed. A landing writes one entry at the
//! bucket that accepted, whatever becomes of its order, so the ledger alone says what is settled.

use std::sync::Arc;

use crate::cache::{Accepted, CacheBucket, Epoch, EpochState, Landing, SetAside, Turn, TurnEpoch};
use crate::campaign::Policy;
use crate::case::Case;
use crate::command::{How, OrderAction, OrderCommand, Outcome, Place, Signed};
use crate::id::OrderId;
use crate::ledger::Action;
use crate::order::{Order, State};
use crate::refusal::Refusal;
use crate::stock::{Bucket, BucketKey, Delta};
use crate::table::{Facts, Then, Trigger, rule_for};
use crate::time::Timestamp;

use super::effects::{Step, note, set_due, set_reason};
use super::place::{created, new_order, repeated};
use super::pool::no_such_bucket;
use super::{Blocked, Deltas, Note, Settles, Working, blocked};

/// Who lands what a cache accepted.
const ACTOR: &str = "cache";

impl Working {
    pub(super) fn turn_epoch(&mut self, turn: &TurnEpoch) -> Outcome {
        let Some(bucket) = self.rows.buckets.get(&turn.bucket) else {
            return match self.rows.pools.get(&turn.bucket.pool) {
                None => Outcome::refused(Refusal::UnknownPool),
                Some(pool) if turn.bucket.number >= pool.buckets => {
                    Outcome::refused(no_such_bucket("/bucket"))
                }
                Some(pool) => Outcome::Elsewhere(vec![pool.id]),
            };
        };
        let pool = self.rows.pools.get(&turn.bucket.pool);
        let campaign = pool.and_then(|pool| self.campaign(&pool.campaign));
        // What is closed lets nobody in; its unsold stock may be on its way.
        if matches!(turn.turn, Turn::Open { .. }) && campaign.is_some_and(|known| known.switches.closed) {
            return Outcome::refused(Refusal::CampaignClosed);
        }
        let known = self.rows.caches.get(&turn.bucket);
        match turned(turn, known, bucket, self.now) {
            Err(refusal) => Outcome::refused(refusal),
            Ok((row, How::Repeated)) => Outcome::Epoch { row, how: How::Repeated },
            Ok((row, how @ (How::Created | How::Changed))) => {
                self.store_cache(row.clone());
                Outcome::Epoch { row, how }
            }
        }
    }

    pub(super) fn land_accepted(&mut self, landing: &Landing) -> Outcome {
        let Landing { place, accepted, .. } = landing;
        let known = self.rows.order_keys.get(&place.key).and_then(|id| self.order(*id));
        if let Some(settled) = self.settled(accepted) {
            return match known.filter(|order| settled == Some(order.id)) {
                Some(order) => repeated(place, order, self.campaign(&place.key.campaign).map(|c| &**c)),
                // It was set aside, or a cache that went back has used the entry again, for another order.
                None => Outcome::refused(Refusal::AdmissionLost),
            };
        }
        if let Some(outcome) = self.kept_out(accepted) {
            return outcome;
        }
        if accepted.units == 0 {
            return Outcome::refused(Refusal::Conflict("a landing settles at least one unit"));
        }
        match known {
            Some(order) => self.land_duplicate(landing, order),
            None => self.land_new(landing),
        }
    }

    pub(super) fn set_aside(&mut self, aside: &SetAside) -> Outcome {
        let SetAside { accepted, why } = aside;
        let is_known = self.settled(accepted).is_some();
        if !is_known {
            if let Some(outcome) = self.kept_out(accepted) {
                return outcome;
            }
            self.open_case(Case::poison_entry(accepted, why, self.now));
            let note = settling(accepted, None, why);
            // Where nothing is known to have been taken, nothing is settled.
            if accepted.units > 0
                && let Err(why) = self.settle(accepted, &note, &note.source)
            {
                return blocked(why);
            }
        }
        let how = if is_known { How::Repeated } else { How::Changed };
        match self.rows.caches.get(&accepted.bucket).cloned() {
            Some(row) => Outcome::Epoch { row, how },
            None => Outcome::refused(Refusal::AdmissionLost),
        }
    }

    /// Whether the bucket's cache may accept, or what it accepted may still land.
    pub(super) fn has_unclosed_epoch(&self, bucket: BucketKey) -> bool {
        self.rows.caches.get(&bucket).is_some_and(|row| row.state != EpochState::Closed)
    }

    /// Of which order its entry in the ledger tells; none: there is none. Only under the bucket's lock is absence a
    /// fact.
    fn settled(&self, accepted: &Accepted) -> Option<Option<OrderId>> {
        let landed = self.rows.landed.get(&accepted.key()).copied();
        landed.filter(|_| self.rows.buckets.contains_key(&accepted.bucket))
    }

    /// Why it can land no more, or not here; none while entries of its epoch may.
    fn kept_out(&self, accepted: &Accepted) -> Option<Outcome> {
        let bucket = accepted.bucket;
        let pool = self.rows.pools.get(&bucket.pool).filter(|pool| bucket.number < pool.buckets);
        if let Some(pool) = pool.filter(|_| !self.rows.buckets.contains_key(&bucket)) {
            return Some(Outcome::Elsewhere(vec![pool.id]));
        }
        let is_open = self.rows.caches.get(&accepted.bucket).is_some_and(|row| match row.state {
            EpochState::Open | EpochState::Draining => row.epoch == accepted.epoch,
            EpochState::Closed => false,
        });
        (!is_open).then(|| Outcome::refused(Refusal::AdmissionLost))
    }

    /// The number is known: it holds nothing once more, and what the cache took for it is settled.
    fn land_duplicate(&mut self, landing: &Landing, order: Arc<Order>) -> Outcome {
        let Landing { place, accepted, .. } = landing;
        let note = settling(accepted, Some(order.id), "the order number is known");
        let business_no = Arc::from(place.key.order_no.as_str());
        if let Err(why) = self.settle(accepted, &note, &business_no) {
            return blocked(why);
        }
        let outcome = repeated(place, order, self.campaign(&place.key.campaign).map(|c| &**c));
        self.mind_mismatch(&outcome);
        outcome
    }

    /// Lands an order as if it had been taken into the bucket's queue and landed at once.
    fn land_new(&mut self, landing: &Landing) -> Outcome {
        let Landing { place, accepted, due_at } = landing;
        let Some(campaign) = self.campaign(&place.key.campaign).cloned() else {
            return Outcome::refused(Refusal::UnknownCampaign);
        };
        let policy = &campaign.policy;
        let mut queued = new_order(place, place.hold_seconds.unwrap_or(policy.hold_seconds), self.now);
        let is_gone = |pool| !self.rows.pools.contains_key(&pool);
        if let Some((_, line)) = queued.lines.iter().zip(1_u32..).find(|(line, _)| is_gone(line.pool)) {
            return Outcome::refused(Refusal::UnknownSku { line });
        }
        wait(&mut queued, accepted, *due_at);
        let queued = Arc::new(queued);
        let command = OrderCommand::new(queued.id, OrderAction::Land, Signed::new(ACTOR, ""));
        let facts = match self.facts(&queued, &command, policy) {
            Ok(facts) => facts,
            Err(pools) => return Outcome::Miss(pools),
        };
        match rule_for(State::Queued, Trigger::Land, &facts) {
            Then::Go { to, stock, reason, mark, disposition } => {
                let step = Step { to, stock, reason, mark, disposition };
                match self.store_landed(&queued, accepted, &command, (policy, &facts, &step)) {
                    Ok(order) => created(order),
                    Err(why) => blocked(why),
                }
            }
            // Freeze waits, at most until its time is over.
            Then::Again | Then::Record(_) | Then::NotDue | Then::Refuse(_) | Then::RefuseRefundDue(_) => {
                Outcome::NotDue(Some(*due_at))
            }
        }
    }

    fn store_landed(
        &mut self,
        queued: &Arc<Order>,
        accepted: &Accepted,
        command: &OrderCommand,
        (policy, facts, step): (&Policy, &Facts, &Step),
    ) -> Result<Arc<Order>, Blocked> {
        let mut after = Order::clone(queued);
        let deltas = self.move_stock(&mut after, command, policy, step)?;
        if let Some(to) = step.to {
            after.state = to;
        }
        set_reason(&mut after, queued, facts, step);
        set_due(&mut after, queued, policy, self.now);
        let settles = Settles { bucket: accepted.bucket, units: accepted.units, order: None };
        let source = accepted.key().source();
        let note = Note { source, settles: Some(settles), ..note(command, step) };
        let order = self.store_event(Some(queued), after, deltas, &note)?;
        self.note_landed(accepted, Some(order.id));
        Ok(order)
    }

    /// Writes the one entry of a landing that moves nothing.
    fn settle(&mut self, accepted: &Accepted, note: &Note, business_no: &Arc<str>) -> Result<(), Blocked> {
        self.post(&Deltas::from([(accepted.bucket, Delta::default())]), note, business_no, None)?;
        self.note_landed(accepted, note.settles.as_ref().and_then(|settles| settles.order));
        Ok(())
    }

    fn note_landed(&mut self, accepted: &Accepted, order: Option<OrderId>) {
        self.rows.landed.insert(accepted.key(), order);
        let known = self.rows.caches.get(&accepted.bucket);
        if let Some(row) = known.filter(|row| row.landed < accepted.number).cloned() {
            self.store_cache(CacheBucket { landed: accepted.number, ..row });
        }
    }

    fn store_cache(&mut self, row: CacheBucket) {
        let key = row.key;
        let before = self.rows.caches.insert(key, row);
        self.base_caches.entry(key).or_insert(before);
    }
}

/// An order that a cache has accepted, as it waits to be landed.
pub fn accepted_order(
    place: &Place,
    policy: &Policy,
    accepted: &Accepted,
    due_at: Timestamp,
    now: Timestamp,
) -> Order {
    let mut order = new_order(place, place.hold_seconds.unwrap_or(policy.hold_seconds), now);
    wait(&mut order, accepted, due_at);
    order
}

fn wait(order: &mut Order, accepted: &Accepted, due_at: Timestamp) {
    order.state = State::Queued;
    order.home = Some(accepted.bucket);
    order.due_at = Some(due_at);
}

/// The row after a turn, and whether it is another than before.
fn turned(
    turn: &TurnEpoch,
    known: Option<&CacheBucket>,
    bucket: &Bucket,
    now: Timestamp,
) -> Result<(CacheBucket, How), Refusal> {
    match (&turn.turn, known) {
        (Turn::Open { identity }, Some(row)) if row.epoch == turn.epoch => {
            if row.state == EpochState::Open && row.identity == *identity {
                return Ok((row.clone(), How::Repeated));
            }
            Err(Refusal::Conflict("the epoch was opened on another server, or is over"))
        }
        (Turn::Open { identity }, known) => {
            let last = known.map_or(Epoch::default(), |row| row.epoch);
            if turn.epoch <= last || known.is_some_and(|row| row.state != EpochState::Closed) {
                return Err(Refusal::Conflict("an epoch begins when the one before it is closed"));
            }
            let row = CacheBucket {
                key: turn.bucket,
                epoch: turn.epoch,
                state: EpochState::Open,
                identity: Arc::clone(identity),
                base_seq: bucket.ledger_seq,
                base_available: bucket.available,
                landed: 0,
                changed_at: now,
            };
            Ok((row, if known.is_some() { How::Changed } else { How::Created }))
        }
        (Turn::Drain, Some(row)) if row.epoch == turn.epoch => Ok(match row.state {
            EpochState::Open => moved_on(row, EpochState::Draining, now),
            EpochState::Draining | EpochState::Closed => (row.clone(), How::Repeated),
        }),
        (Turn::Close, Some(row)) if row.epoch == turn.epoch => Ok(match row.state {
            EpochState::Open | EpochState::Draining => moved_on(row, EpochState::Closed, now),
            EpochState::Closed => (row.clone(), How::Repeated),
        }),
        (Turn::Drain | Turn::Close, _) => Err(Refusal::Conflict("the bucket's cache is in another epoch")),
    }
}

fn moved_on(row: &CacheBucket, state: EpochState, now: Timestamp) -> (CacheBucket, How) {
    (CacheBucket { state, changed_at: now, ..row.clone() }, How::Changed)
}

/// What the entry of a landing says that moves nothing.
fn settling(accepted: &Accepted, order: Option<OrderId>, reason: &str) -> Note {
    Note {
        action: Action::Land,
        source: accepted.key().source(),
        actor: ACTOR.into(),
        reason: reason.into(),
        settles: Some(Settles { bucket: accepted.bucket, units: accepted.units, order }),
    }
}
