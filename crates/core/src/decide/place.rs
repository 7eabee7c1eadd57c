//! Placing an order: the key first, then whether the campaign sells, then limits, then stock.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::campaign::{Campaign, Capture, Policy};
use crate::case::Case;
use crate::command::{How, Outcome, Place, PlaceLine};
use crate::id::MAIN_LOCATION;
use crate::ledger::Action;
use crate::limit::LimitKeys;
use crate::order::{Line, Order, State};
use crate::refusal::Refusal;
use crate::stock::{BucketKey, Delta};
use crate::time::Timestamp;

use super::allocate::reason_of;
use super::serve::{Asker, Unserved};
use super::{Deltas, Note, Working, blocked};

impl Working {
    pub(super) fn place(&mut self, place: &Arc<Place>) -> Outcome {
        if let Some(known) = self.rows.order_keys.get(&place.key).and_then(|id| self.order(*id)) {
            let outcome = repeated(place, known, self.campaign(&place.key.campaign).map(|c| &**c));
            self.mind_mismatch(&outcome);
            return outcome;
        }
        let Some(campaign) = self.campaign(&place.key.campaign).cloned() else {
            return Outcome::refused(Refusal::UnknownCampaign);
        };
        if place.assortment.is_some_and(|version| version != campaign.assortment.version) {
            return Outcome::Outdated;
        }
        let hold_seconds = place.hold_seconds.unwrap_or(campaign.policy.hold_seconds);
        let mut order = new_order(place, hold_seconds, self.now);
        if let Err(refusal) = self.check_known(&order.lines) {
            return Outcome::refused(refusal);
        }
        if hold_seconds > campaign.policy.hold_seconds_max {
            return Outcome::refused(Refusal::InvalidValue {
                pointer: "/hold_seconds".into(),
                why: "must not exceed the campaign's hold_seconds_max",
            });
        }
        if let Err(refusal) = self.check_open(&campaign, &order.lines) {
            return Outcome::refused(refusal);
        }
        if let Some(intake) = place.intake {
            return self.take_in(order, intake, &campaign.policy);
        }
        if let Err(refusal) = self.check_limits(&campaign, &order, opens_hold(&campaign.policy)) {
            return self.refuse(place, order, refusal);
        }
        match self.allocate(&mut order.lines, place.route, Asker::Anew) {
            Err(Unserved::Miss(pools)) => return Outcome::Miss(pools),
            Err(Unserved::SoldOut(shortage)) => return self.refuse(place, order, Refusal::SoldOut(shortage)),
            Err(Unserved::Frozen) => return Outcome::refused(Refusal::Frozen),
            Ok(()) => {}
        }
        let deltas = self.take_stock(&mut order, &campaign.policy);
        let note = Note {
            action: Action::Place,
            source: Arc::from("place"),
            actor: Arc::from("buyer"),
            reason: Arc::from(""),
            settles: None,
        };
        match self.store_event(None, order, deltas, &note) {
            Ok(order) => created(order),
            Err(why) => blocked(why),
        }
    }

    /// Takes an order into the queue of the bucket that will be its home. The row is new and nothing else is
    /// written, so no bucket needs to be locked: the key's uniqueness stands in the way of a second one.
    fn take_in(&mut self, mut order: Order, intake: BucketKey, policy: &Policy) -> Outcome {
        if self.rows.pools.get(&intake.pool).is_none_or(|pool| intake.number >= pool.buckets) {
            return Outcome::Elsewhere(vec![intake.pool]);
        }
        let length = self.rows.queue_lengths.entry(intake.pool).or_default();
        if *length >= policy.queue_limit {
            return Outcome::refused(Refusal::QueueFull { limit: policy.queue_limit });
        }
        *length = length.saturating_add(1);
        order.home = Some(intake);
        order.state = State::Queued;
        order.due_at = Some(self.now.plus_millis(policy.queue_wait_ms));
        created(self.store_row(None, order))
    }

    /// A number that comes again with other content while its order has stock is a case: two purchases may
    /// go by one number.
    pub(super) fn mind_mismatch(&mut self, outcome: &Outcome) {
        if let Outcome::Refused { refusal: Refusal::OrderMismatch(fields), order: Some(order), .. } = outcome
            && order.has_stock()
        {
            self.open_case(Case::order_mismatch(order, fields, self.now));
        }
    }

    /// Makes an allocated order held or sold, and works out what its buckets give.
    pub(super) fn take_stock(&self, order: &mut Order, policy: &Policy) -> Deltas {
        if order.home.is_none() {
            order.home = order.allocations().map(|a| a.bucket).min();
        }
        let step = match policy.capture {
            Capture::Hold => {
                let end = self.now.plus_seconds(order.hold_seconds);
                order.state = State::Held;
                order.hold_ends_at = Some(end);
                order.due_at = Some(policy.release_at(end));
                Delta::hold as fn(u64) -> Delta
            }
            Capture::Immediate => {
                order.state = State::Sold;
                order.due_at = None;
                Delta::sell
            }
        };
        let mut deltas = Deltas::new();
        for allocation in order.allocations() {
            let delta = deltas.entry(allocation.bucket).or_default();
            *delta = delta.and(step(allocation.quantity));
        }
        deltas
    }

    /// Refuses, and records it where the kind is recorded and writes are left. A failed order has no
    /// allocation and no ledger entry.
    fn refuse(&mut self, place: &Place, mut order: Order, refusal: Refusal) -> Outcome {
        if !(refusal.is_recorded() && place.record_refusals) {
            return Outcome::refused(refusal);
        }
        let (reason, shortage) = reason_of(&refusal);
        order.state = State::Failed;
        order.reason = Some(reason);
        order.shortage = shortage;
        let order = self.store_row(None, order);
        Outcome::Refused { refusal, recorded: true, repeated: false, order: Some(order) }
    }
}

/// Whether an order that takes stock now becomes an open hold.
pub(super) fn opens_hold(policy: &Policy) -> bool {
    policy.capture == Capture::Hold
}

pub(super) fn created(order: Arc<Order>) -> Outcome {
    Outcome::Order { order, how: How::Created, disposition: None }
}

pub(super) fn new_order(place: &Place, hold_seconds: u32, now: Timestamp) -> Order {
    Order {
        id: place.id,
        key: place.key.clone(),
        account: place.account.clone(),
        state: State::Failed,
        reason: None,
        version: 1,
        home: None,
        lines: place
            .lines
            .iter()
            .map(|line| Line {
                sku: line.sku.clone(),
                location: line.location.clone(),
                pool: line.pool,
                made_of: line.made_of.clone(),
                placed_quantity: line.quantity,
                quantity: line.quantity,
                refunded: 0,
                allocations: Vec::new(),
            })
            .collect(),
        hold_seconds,
        hold_seconds_sent: place.hold_seconds,
        hold_ends_at: None,
        due_at: None,
        extended: false,
        amount_due: place.amount_due.clone(),
        refund_due: None,
        attempts: Vec::new(),
        payments: Vec::new(),
        refunds: Vec::new(),
        shortage: None,
        limit_keys: place.limit_keys.clone(),
        metadata: place.metadata.clone(),
        created_at: now,
        updated_at: now,
    }
}

/// A place of a key that is known: the same order as it stands now, or a mismatch that names the fields.
pub fn repeated(place: &Place, order: Arc<Order>, campaign: Option<&Campaign>) -> Outcome {
    let fields = mismatch(place, &order, campaign);
    if !fields.is_empty() {
        return Outcome::refused_on(Refusal::OrderMismatch(fields), order);
    }
    match Refusal::of_repeated_place(&order) {
        None => Outcome::Order { order, how: How::Repeated, disposition: None },
        Some(refusal) => {
            let recorded = order.is_recorded_refusal();
            Outcome::Refused { refusal, recorded, repeated: true, order: Some(order) }
        }
    }
}

/// The fields of a place that differ from the order of the same key. Every field but `metadata` is
/// bound to the key, judged on what was sent, an absent field being its default; line order and the
/// split into lines count.
fn mismatch(place: &Place, order: &Order, campaign: Option<&Campaign>) -> Vec<String> {
    let hold_seconds = || campaign.map_or(Policy::default().hold_seconds, |known| known.policy.hold_seconds);
    let mut fields = Vec::new();
    if place.account != order.account {
        fields.push("/account".to_owned());
    }
    if place.hold_seconds != order.hold_seconds_sent
        && place.hold_seconds.unwrap_or_else(hold_seconds) != order.hold_seconds
    {
        fields.push("/hold_seconds".to_owned());
    }
    if place.amount_due != order.amount_due {
        fields.push("/amount_due".to_owned());
    }
    fields.extend(differing_keys(&place.limit_keys, &order.limit_keys));
    if place.lines.len() != order.lines.len() {
        fields.push("/lines".to_owned());
        return fields;
    }
    for (index, (sent, kept)) in place.lines.iter().zip(&order.lines).enumerate() {
        if sent.sku != kept.sku {
            fields.push(format!("/lines/{index}/sku"));
        }
        if !is_same_place(sent, kept, campaign) {
            fields.push(format!("/lines/{index}/location"));
        }
        if sent.quantity != kept.placed_quantity {
            fields.push(format!("/lines/{index}/quantity"));
        }
    }
    fields
}

/// Whether two lines name the same place, none being the campaign's location order: that of then, as the line was
/// made up by it, and that of now.
fn is_same_place(sent: &PlaceLine, kept: &Line, campaign: Option<&Campaign>) -> bool {
    match (&sent.location, &kept.location) {
        (Some(sent), Some(kept)) => sent == kept,
        (None, None) => true,
        (Some(sent), None) => match &kept.made_of {
            Some(made_of) => made_of.is_only_at(sent),
            None => sent.as_str() == MAIN_LOCATION,
        },
        (None, Some(kept)) => match campaign {
            Some(campaign) => campaign.assortment.is_only(kept),
            None => kept.as_str() == MAIN_LOCATION,
        },
    }
}

/// Pointers to the keys that only one of them has, or that are not the same.
fn differing_keys(sent: &LimitKeys, kept: &LimitKeys) -> Vec<String> {
    let names: BTreeSet<_> = sent.keys().chain(kept.keys()).collect();
    let differing = names.into_iter().filter(|name| sent.get(*name) != kept.get(*name));
    differing
        .map(|name| format!("/limit_keys/{}", name.as_str().replace('~', "~0").replace('/', "~1")))
        .collect()
}
