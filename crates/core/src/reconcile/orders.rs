//! Facts of one order: its row and its own entries, read in one view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::OrderId;
use crate::ledger::{Action, Covers, Entry};
use crate::order::{Order, Payment, State};
use crate::snapshot::PaymentRow;
use crate::stock::{BucketKey, Delta};
use crate::time::Timestamp;

use super::{LostEvent, Stands, says};

/// An order as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderFacts {
    /// Its id.
    pub id: OrderId,
    /// Its row; none: there is none, or it cannot be read.
    pub order: Option<Arc<Order>>,
    /// There is a row, and it says what no order says.
    pub is_unreadable: bool,
    /// Its entries, in order of (bucket, sequence).
    pub entries: Vec<Entry>,
}

/// What is wrong with an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderFault {
    /// Its row cannot be read.
    Unreadable,
    /// Entries, and no order.
    Absent {
        /// Units that still stand for it: what each bucket would get back.
        back: Vec<(BucketKey, Delta)>,
    },
    /// It has stock, and no entry at all.
    Unknown {
        /// What its first event would have been, if it was lost.
        lost: Lost,
    },
    /// One of its entries is not there.
    Lost(Lost),
    /// One of its entries is there twice; the later one.
    Doubled(Entry),
    /// Its row is not what its entries say.
    Row {
        /// What they say.
        stands: Stands,
        /// By how much the row says more of a bucket: (held, sold).
        surplus: BTreeMap<BucketKey, (i64, i64)>,
    },
    /// It was paid, by its own record, and is not sold.
    Paid,
    /// Its hold is over for long.
    Overdue,
}

/// An entry of an order that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// What it told.
    pub event: LostEvent,
    /// The buckets where it may be missing, with what it would have changed there.
    pub places: Vec<(BucketKey, Delta)>,
    /// What the entries that are there say; none: there is none.
    pub stands: Option<Stands>,
}

/// Whether an order has the record of a payment.
pub fn knows(order: &Order, row: &PaymentRow) -> bool {
    let is_it = |kept: &Payment| kept.notice.provider == row.provider && kept.notice.event_id == row.event_id;
    order.payments.iter().any(is_it)
}

/// Judges an order; the first thing that is wrong with it. `overdue_before`: a hold that should have ended before
/// this time is left over.
pub fn judge(facts: &OrderFacts, overdue_before: Timestamp) -> Option<OrderFault> {
    if facts.is_unreadable {
        return Some(OrderFault::Unreadable);
    }
    let Some(order) = facts.order.as_deref() else {
        let back = standing(&facts.entries);
        // What stood for it was moved back, or somebody has seen that nothing did.
        let is_mended = back.is_empty() && facts.entries.iter().any(|entry| entry.action == Action::Repair);
        return (!facts.entries.is_empty() && !is_mended).then_some(OrderFault::Absent { back });
    };
    entries_fault(order, &facts.entries).or_else(|| own_fault(order, overdue_before))
}

fn own_fault(order: &Order, overdue_before: Timestamp) -> Option<OrderFault> {
    let is_unsold = match order.state {
        State::Queued | State::Held | State::InReview => true,
        State::Sold | State::Refunded | State::Released | State::Failed => false,
    };
    if is_unsold && order.is_paid() {
        return Some(OrderFault::Paid);
    }
    let end = order.due_at.or(order.hold_ends_at);
    let is_over = order.state == State::Held && end.is_none_or(|end| end < overdue_before);
    is_over.then_some(OrderFault::Overdue)
}

fn entries_fault(order: &Order, entries: &[Entry]) -> Option<OrderFault> {
    let says = says(order);
    let covered = Covered::of(entries);
    let events = events(entries, &covered);
    let moved = moved(entries);
    if events.is_empty() && moved.is_empty() {
        let claims = order.home.is_some() && order.state != State::Queued;
        if !claims && says.is_empty() {
            return None;
        }
        let places = missing_at(&says, &moved, order.home);
        let lost = Lost { event: first_event(order), places, stands: None };
        return Some(OrderFault::Unknown { lost });
    }
    if let Some(double) = doubled_event(&events) {
        return Some(OrderFault::Doubled(double.clone()));
    }
    let stands = stands(order, &events, &moved);
    if let Some(event) = lost_event(order, &events) {
        let places = missing_at(&says, &moved, order.home);
        return Some(OrderFault::Lost(Lost { event, places, stands: Some(stands) }));
    }
    let is_as_told = (stands.state, stands.version) == (order.state, order.version);
    if is_as_told && says == moved {
        return None;
    }
    let surplus = surplus(&says, &moved);
    if is_as_told && let Some(double) = doubled_move(entries, &covered, &surplus) {
        return Some(OrderFault::Doubled(double.clone()));
    }
    Some(OrderFault::Row { stands, surplus })
}

/// What the entries say. An order of which no event is there has failed.
fn stands(order: &Order, events: &[&Entry], moved: &BTreeMap<BucketKey, (i64, i64)>) -> Stands {
    let last = events.last();
    let units = moved.iter().map(|(bucket, (held, sold))| (*bucket, units(held.saturating_add(*sold))));
    Stands {
        state: last.and_then(|last| last.to_state).unwrap_or(State::Failed),
        version: last.and_then(|last| last.order_version).unwrap_or(order.version),
        units: units.collect(),
    }
}

/// Which entries repairs cover, by what they say.
struct Covered(BTreeSet<(BucketKey, u64, u64)>);

impl Covered {
    fn of(entries: &[Entry]) -> Self {
        let covers = |entry: &Entry| entry.covers.map(|Covers { first, last }| (entry.bucket, first, last));
        Self(entries.iter().filter_map(covers).collect())
    }

    fn has(&self, entry: &Entry) -> bool {
        let within = |(bucket, first, last): &(BucketKey, u64, u64)| {
            *bucket == entry.bucket && (*first..=*last).contains(&entry.seq)
        };
        self.0.iter().any(within)
    }
}

/// The entries that carry its events, by version.
fn events<'e>(entries: &'e [Entry], covered: &Covered) -> Vec<&'e Entry> {
    let mut events: Vec<_> =
        entries.iter().filter(|entry| entry.order_version.is_some() && !covered.has(entry)).collect();
    events.sort_by_key(|entry| (entry.order_version, entry.seq));
    events
}

/// What its entries gave it and did not take back: (held, sold), where that is not nothing.
fn moved(entries: &[Entry]) -> BTreeMap<BucketKey, (i64, i64)> {
    let mut moved: BTreeMap<BucketKey, (i64, i64)> = BTreeMap::new();
    for entry in entries {
        let at = moved.entry(entry.bucket).or_default();
        *at = (at.0.saturating_add(entry.delta.held), at.1.saturating_add(entry.delta.sold));
    }
    moved.retain(|_, at| *at != (0, 0));
    moved
}

/// What each bucket would get back of what stands.
fn standing(entries: &[Entry]) -> Vec<(BucketKey, Delta)> {
    let back = |(bucket, (held, sold)): (BucketKey, (i64, i64))| {
        let available = held.saturating_add(sold);
        (bucket, Delta { available, held: held.saturating_neg(), sold: sold.saturating_neg() })
    };
    moved(entries).into_iter().map(back).collect()
}

fn first_event(order: &Order) -> LostEvent {
    let to = if order.version == 1 { order.state } else { State::Held };
    LostEvent { order: order.id, version: Some(1), from: None, to: Some(to) }
}

fn doubled_event<'e>(events: &[&'e Entry]) -> Option<&'e Entry> {
    events.windows(2).find_map(|pair| match pair {
        [one, two] if one.order_version == two.order_version => Some(*two),
        _ => None,
    })
}

/// The first event that is not there, told from its neighbours. An order that was taken in by a queue begins
/// without one.
fn lost_event(order: &Order, events: &[&Entry]) -> Option<LostEvent> {
    let begins_queued = events.first().is_some_and(|first| first.from_state == Some(State::Queued));
    let mut before: (u32, Option<State>) = if begins_queued { (1, Some(State::Queued)) } else { (0, None) };
    let lost = |version: u32, from, to| Some(LostEvent { order: order.id, version: Some(version), from, to });
    for event in events {
        let version = event.order_version.unwrap_or(0);
        let next = before.0.saturating_add(1);
        if version > next {
            return lost(next, before.1, event.from_state);
        }
        before = (version, event.to_state);
    }
    let next = before.0.saturating_add(1);
    (order.version == next).then(|| lost(next, before.1, Some(order.state))).flatten()
}

/// By how much the row says more of each bucket.
fn surplus(
    says: &BTreeMap<BucketKey, (i64, i64)>,
    moved: &BTreeMap<BucketKey, (i64, i64)>,
) -> BTreeMap<BucketKey, (i64, i64)> {
    let mut surplus = says.clone();
    for (bucket, (held, sold)) in moved {
        let at = surplus.entry(*bucket).or_default();
        *at = (at.0.saturating_sub(*held), at.1.saturating_sub(*sold));
    }
    surplus.retain(|_, at| *at != (0, 0));
    surplus
}

/// Where an entry may be missing, with what it would have changed. An event that moved nothing is missing at home.
fn missing_at(
    says: &BTreeMap<BucketKey, (i64, i64)>,
    moved: &BTreeMap<BucketKey, (i64, i64)>,
    home: Option<BucketKey>,
) -> Vec<(BucketKey, Delta)> {
    let mut places: BTreeMap<BucketKey, Delta> = BTreeMap::new();
    for (bucket, (held, sold)) in surplus(says, moved) {
        let available = held.saturating_add(sold).saturating_neg();
        places.insert(bucket, Delta { available, held, sold });
    }
    if let Some(home) = home {
        places.entry(home).or_default();
    }
    places.into_iter().collect()
}

/// An entry without an event that is there twice, if without it the order's row and its entries agree.
fn doubled_move<'e>(
    entries: &'e [Entry],
    covered: &Covered,
    surplus: &BTreeMap<BucketKey, (i64, i64)>,
) -> Option<&'e Entry> {
    let (mut differing, more) = (surplus.iter(), surplus.len() > 1);
    let (bucket, (held, sold)) = differing.next().filter(|_| !more)?;
    let explains = |entry: &&Entry| {
        entry.bucket == *bucket
            && entry.order_version.is_none()
            && !covered.has(entry)
            && (entry.delta.held, entry.delta.sold) == (held.saturating_neg(), sold.saturating_neg())
    };
    let is_twin = |one: &Entry, two: &Entry| {
        one.seq < two.seq
            && (one.bucket, one.at, one.action, one.delta) == (two.bucket, two.at, two.action, two.delta)
            && one.source == two.source
    };
    entries
        .iter()
        .filter(explains)
        .find(|late| late.action != Action::Repair && entries.iter().any(|early| is_twin(early, late)))
}

/// What stands is never below 0; if it is, nothing stands.
fn units(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or(0)
}
