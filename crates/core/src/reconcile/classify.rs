//! From facts to findings: one cause, one finding, the deepest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::id::{OrderId, PoolId};
use crate::ledger::{Action, Covers, Entry};
use crate::limit::Limited;
use crate::order::{Order, Usage};
use crate::snapshot::{PaymentRow, UsageKey};
use crate::stock::{BucketKey, Delta};
use crate::time::Timestamp;

use super::buckets::{BucketFacts, Range, less, opposite, signed};
use super::json::{self, Object, units_of};
use super::orders::{OrderFacts, OrderFault};
use super::{Class, FINDINGS_MAX, Finding, LostEvent, Proof};

/// A pool and its buckets, counted in one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolFacts {
    /// The pool.
    pub pool: PoolId,
    /// How many buckets it says that it has.
    pub buckets: u32,
    /// How many rows there are.
    pub rows: u32,
}

/// A usage row and the orders of its key, counted in one view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFacts {
    /// Whose.
    pub key: UsageKey,
    /// What the row says.
    pub row: Usage,
    /// What the orders come to.
    pub counted: Usage,
}

impl UsageFacts {
    /// Counts those of some orders that are of the key.
    pub fn counted<'o>(key: &UsageKey, row: Usage, orders: impl IntoIterator<Item = &'o Order>) -> Self {
        let is_of = |order: &&Order| match &key.limited {
            Limited::Account(account) => order.account == *account,
            Limited::Key(name, hashed) => order.limit_keys.get(name) == Some(hashed),
        };
        let counted = orders.into_iter().filter(is_of).map(Order::usage).fold(Usage::default(), Usage::and);
        Self { key: key.clone(), row, counted }
    }
}

/// An event of which sinks should have been told long ago: the first that each has not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckFacts {
    /// The bucket.
    pub bucket: BucketKey,
    /// Its entry there.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// The names of the sinks.
    pub sinks: Vec<String>,
}

/// What a run saw that is not as it should be. What is in order need not be in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Buckets.
    pub buckets: Vec<BucketFacts>,
    /// Orders, each with what is wrong with it.
    pub orders: Vec<(OrderFacts, OrderFault)>,
    /// Entries of transfers that have no counterpart.
    pub unpaired: Vec<Entry>,
    /// Pools.
    pub pools: Vec<PoolFacts>,
    /// Successes that their orders know nothing of, with the state of each order.
    pub unapplied: Vec<(PaymentRow, &'static str)>,
    /// Usage.
    pub usage: Vec<UsageFacts>,
    /// Events that sinks stand before.
    pub stuck: Vec<StuckFacts>,
}

/// The findings, at most [`FINDINGS_MAX`].
pub fn classify(facts: &Facts) -> Vec<Finding> {
    let mut sorted = Sorted::default();
    let by_bucket: BTreeMap<BucketKey, &BucketFacts> =
        facts.buckets.iter().map(|bucket| (bucket.row.key, bucket)).collect();
    let mut explained: BTreeSet<OrderId> = BTreeSet::new();
    // What an order shows of a bucket's gap is that gap, and so is the half of a transfer that is missing there.
    let mut alone: Vec<&Entry> = facts.unpaired.iter().collect();
    for bucket in by_bucket.values() {
        sorted.bucket(bucket, facts, &mut explained, &mut alone);
    }
    for pool in &facts.pools {
        sorted.pool(*pool);
    }
    alone.into_iter().for_each(|entry| sorted.transfer(entry));
    for (order, fault) in &facts.orders {
        if !explained.contains(&order.id) {
            sorted.order(order, fault);
        }
    }
    let known: BTreeSet<OrderId> = sorted.findings.iter().filter_map(|finding| finding.order).collect();
    for (row, state) in &facts.unapplied {
        if !known.contains(&row.order) {
            sorted.payment(row, state);
        }
    }
    facts.usage.iter().for_each(|usage| sorted.usage(usage));
    facts.stuck.iter().for_each(|stuck| sorted.stuck(stuck));
    sorted.findings.sort_by_key(|finding| finding.class);
    sorted.findings.truncate(FINDINGS_MAX);
    sorted.findings
}

#[derive(Default)]
struct Sorted {
    findings: Vec<Finding>,
}

impl Sorted {
    fn add(&mut self, class: Class, place: Place, proof: Proof, told: Told) {
        self.findings.push(Finding {
            class,
            pool: place.bucket.map(|bucket| bucket.pool).or(place.pool),
            bucket: place.bucket,
            order: place.order,
            position: place.position,
            proof,
            expected: told.expected.into(),
            actual: told.actual.into(),
            evidence: told.evidence.into(),
        });
    }

    /// Gaps and doubles first; what they do not explain of the balance is drift.
    fn bucket(
        &mut self,
        facts: &BucketFacts,
        all: &Facts,
        explained: &mut BTreeSet<OrderId>,
        alone: &mut Vec<&Entry>,
    ) {
        let mut rest = facts.surplus();
        let bucket = facts.row.key;
        let twins = all.orders.iter().filter_map(|(order, fault)| {
            let OrderFault::Doubled(entry) = fault else { return None };
            (entry.bucket == bucket).then_some((Some(order.id), entry))
        });
        let acts = facts.doubled.iter().map(|doubled| (None, &doubled.0));
        let mut is_found = false;
        for (order, entry) in twins.chain(acts) {
            rest = rest.and(entry.delta);
            explained.extend(order);
            self.doubled(entry, order);
            is_found = true;
        }
        let mut gaps: VecDeque<Range> = facts.gaps.iter().copied().collect();
        for (order, event, delta) in lost_at(bucket, all) {
            let Some(seq) = take_first(&mut gaps) else { break };
            rest = less(rest, delta);
            explained.insert(order);
            self.missing(facts, Covers { first: seq, last: seq }, delta, Some(event), None);
            is_found = true;
        }
        // Numbers of which nothing is known account together for what is left.
        for covers in gaps {
            let delta = std::mem::take(&mut rest);
            let is_half = |entry: &&Entry| entry.delta == opposite(delta) && entry.bucket != bucket;
            let half = alone.iter().position(is_half).map(|at| alone.swap_remove(at));
            self.missing(facts, covers, delta, None, half);
            is_found = true;
        }
        let is_ahead = facts.last_seq != facts.row.ledger_seq && !is_found;
        if rest != Delta::default() || is_ahead {
            self.drift(facts, rest);
        } else if facts.sums.unowned != (0, 0) && !is_found {
            self.unowned(facts);
        }
    }

    fn missing(
        &mut self,
        facts: &BucketFacts,
        covers: Covers,
        delta: Delta,
        event: Option<LostEvent>,
        half: Option<&Entry>,
    ) {
        let bucket = facts.row.key;
        let mut evidence = Object::new()
            .raw("bucket", bucket.number)
            .raw("missing", format_args!("[{},{}]", covers.first, covers.last))
            .raw("ledger_seq", facts.row.ledger_seq)
            .units("lacking", delta);
        if let Some(event) = event {
            let state =
                |state: Option<crate::order::State>| state.map_or("none", crate::order::State::as_str);
            evidence = evidence
                .text("order_id", event.order)
                .raw("version", event.version.unwrap_or(0))
                .text("from_state", state(event.from))
                .text("to_state", state(event.to));
        }
        if let Some(half) = half {
            evidence = evidence.raw("other_half", json::entry(half));
        }
        let half_of = half.map(|half| Arc::clone(&half.business_no));
        let told = Told {
            expected: format!("entries {} to {}", covers.first, covers.last),
            actual: "none".to_owned(),
            evidence: evidence.finish(),
        };
        let place =
            Place { bucket: Some(bucket), order: event.map(|e| e.order), position: covers.first, pool: None };
        self.add(Class::EntryMissing, place, Proof::Entries { bucket, covers, delta, event, half_of }, told);
    }

    fn doubled(&mut self, entry: &Entry, order: Option<OrderId>) {
        let (bucket, seq) = (entry.bucket, entry.seq);
        let told = Told {
            expected: "each act once".to_owned(),
            actual: format!("again at {seq}"),
            evidence: Object::new().raw("entry", json::entry(entry)).finish(),
        };
        let event = order.map(|order| LostEvent { order, version: None, from: None, to: None });
        let (covers, delta) = (Covers { first: seq, last: seq }, opposite(entry.delta));
        let place = Place { bucket: Some(bucket), order, position: seq, pool: None };
        self.add(
            Class::EntryDuplicate,
            place,
            Proof::Entries { bucket, covers, delta, event, half_of: None },
            told,
        );
    }

    fn drift(&mut self, facts: &BucketFacts, surplus: Delta) {
        let bucket = facts.row.key;
        let should = less(facts.balance(), surplus);
        let told = Told {
            expected: units_of(should),
            actual: units_of(facts.balance()),
            evidence: Object::new()
                .raw("bucket", bucket.number)
                .raw("ledger_seq", facts.row.ledger_seq)
                .raw("last_entry", facts.last_seq)
                .raw("entries", facts.sums.entries)
                .units("ledger", should)
                .units("balance", facts.balance())
                .units("surplus", surplus)
                .finish(),
        };
        let place = Place { bucket: Some(bucket), order: None, position: facts.repaired_seq, pool: None };
        let proof = Proof::Balance { bucket, difference: opposite(surplus) };
        self.add(Class::BalanceDrift, place, proof, told);
    }

    fn unowned(&mut self, facts: &BucketFacts) {
        let (held, sold) = facts.sums.unowned;
        let told = Told {
            expected: "held and sold units of orders".to_owned(),
            actual: format!("held {held:+} and sold {sold:+} of none"),
            evidence: Object::new()
                .raw("bucket", facts.row.key.number)
                .raw("held", held)
                .raw("sold", sold)
                .finish(),
        };
        let place =
            Place { bucket: Some(facts.row.key), order: None, position: facts.repaired_seq, pool: None };
        self.add(Class::AllocationDrift, place, Proof::Seen, told);
    }

    fn pool(&mut self, pool: PoolFacts) {
        let told = Told {
            expected: format!("{} buckets", pool.buckets),
            actual: format!("{} rows", pool.rows),
            evidence: Object::new().raw("buckets", pool.buckets).raw("rows", pool.rows).finish(),
        };
        let place = Place { pool: Some(pool.pool), position: u64::from(pool.rows), ..Place::default() };
        self.add(Class::BucketSumOff, place, Proof::Seen, told);
    }

    fn transfer(&mut self, entry: &Entry) {
        let other = if entry.action == Action::TransferOut { "transfer_in" } else { "transfer_out" };
        let told = Told {
            expected: format!("{other} of {} units", entry.delta.available.unsigned_abs()),
            actual: "none".to_owned(),
            evidence: Object::new().raw("entry", json::entry(entry)).finish(),
        };
        let (bucket, seq) = (entry.bucket, entry.seq);
        let proof = Proof::Alone {
            deltas: vec![(bucket, opposite(entry.delta))],
            covers: Some(Covers { first: seq, last: seq }),
            order: None,
        };
        let place = Place { bucket: Some(bucket), order: None, position: seq, pool: None };
        self.add(Class::TransferUnpaired, place, proof, told);
    }

    fn order(&mut self, facts: &OrderFacts, fault: &OrderFault) {
        let row = facts.order.as_deref();
        let home = row.and_then(|order| order.home).or(facts.entries.first().map(|entry| entry.bucket));
        let pool = home.map(|home| home.pool).or(row.and_then(|order| order.pools().next()));
        let mut place = Place { pool, bucket: None, order: Some(facts.id), position: 0 };
        let seen = row.map_or(0, |order| order.version);
        let says = row.map_or_else(
            || "no order".to_owned(),
            |order| format!("{} at version {}", order.state.as_str(), order.version),
        );
        let mut evidence = Object::new().text("order_id", facts.id).raw("entries", facts.entries.len());
        if let Some(order) = row {
            evidence = evidence
                .text("campaign_id", &order.key.campaign)
                .text("order_no", &order.key.order_no)
                .text("state", order.state.as_str())
                .raw("version", order.version);
        }
        if let Some(last) = facts.entries.last() {
            evidence = evidence.raw("last_entry", json::entry(last));
        }
        let order = facts.id;
        let (class, expected, proof) = match fault {
            OrderFault::Unreadable => {
                (Class::AllocationDrift, "a row that can be read".to_owned(), Proof::Seen)
            }
            OrderFault::Absent { back } => {
                place.bucket = home;
                // Where nothing stands the entry moves nothing, and says that somebody has seen it.
                let seen = home.filter(|_| back.is_empty()).map(|home| (home, Delta::default()));
                let deltas = back.iter().copied().chain(seen).collect();
                let proof = Proof::Alone { deltas, covers: None, order: Some(order) };
                (Class::StockWithoutOrder, "an order".to_owned(), proof)
            }
            OrderFault::Unknown { .. } => {
                (Class::OrderWithoutStock, "entries".to_owned(), Proof::Order { order, seen, stands: None })
            }
            // No number is missing anywhere that could be the event's: the row says what never happened.
            OrderFault::Lost(lost) => {
                let version = lost.event.version.unwrap_or(0);
                let proof = Proof::Order { order, seen, stands: lost.stands.clone() };
                (Class::AllocationDrift, format!("an event of version {version}"), proof)
            }
            OrderFault::Doubled(entry) => return self.doubled(entry, Some(order)),
            OrderFault::Row { stands, .. } => {
                let expected = format!("{} at version {}", stands.state.as_str(), stands.version);
                let expected =
                    format!("{expected}, {} units", stands.units.iter().map(|(_, u)| u).sum::<u64>());
                (Class::AllocationDrift, expected, Proof::Order { order, seen, stands: Some(stands.clone()) })
            }
            OrderFault::Paid => {
                place.position = u64::from(seen);
                let proof = Proof::Order { order, seen, stands: None };
                (Class::PaidNotApplied, "sold".to_owned(), proof)
            }
            OrderFault::Overdue => {
                place.position = u64::from(seen);
                let proof = Proof::Order { order, seen, stands: None };
                (Class::HoldOverdue, "released".to_owned(), proof)
            }
        };
        self.add(class, place, proof, Told { expected, actual: says, evidence: evidence.finish() });
    }

    fn payment(&mut self, row: &PaymentRow, state: &str) {
        let told = Told {
            expected: "applied, or recorded with what became of it".to_owned(),
            actual: format!("an order that is {state} and knows nothing of it"),
            evidence: Object::new()
                .text("provider", &row.provider)
                .text("event_id", &row.event_id)
                .text("payment_id", &row.payment_id)
                .text("state", state)
                .finish(),
        };
        let position = hashed(&[row.provider.as_str(), row.event_id.as_str()]);
        let place = Place { pool: None, bucket: None, order: Some(row.order), position };
        let proof = Proof::Order { order: row.order, seen: 0, stands: None };
        self.add(Class::PaidNotApplied, place, proof, told);
    }

    fn usage(&mut self, facts: &UsageFacts) {
        let whose = crate::audit::name_of(&facts.key);
        let of = |usage: Usage| {
            Object::new().raw("units", usage.units).raw("open_holds", usage.open_holds).finish()
        };
        let told = Told {
            expected: of(facts.counted),
            actual: of(facts.row),
            evidence: Object::new()
                .text("whose", &whose)
                .raw("orders", of(facts.counted))
                .raw("row", of(facts.row))
                .finish(),
        };
        let by = |counted: u64, row: u64| signed(counted).saturating_sub(signed(row));
        let proof = Proof::Usage {
            key: facts.key.clone(),
            units: by(facts.counted.units, facts.row.units),
            open_holds: by(facts.counted.open_holds, facts.row.open_holds),
        };
        let place = Place { position: hashed(&[&whose]), ..Place::default() };
        self.add(Class::UsageDrift, place, proof, told);
    }

    /// A sink that stands before another event the next time is slow, and that is another difference.
    fn stuck(&mut self, facts: &StuckFacts) {
        let StuckFacts { bucket, seq, at, sinks } = facts;
        let told = Told {
            expected: "delivered".to_owned(),
            actual: format!("since {at} not by {}", sinks.join(", ")),
            evidence: Object::new()
                .raw("bucket", bucket.number)
                .raw("seq", seq)
                .text("at", at)
                .texts("sinks", sinks)
                .finish(),
        };
        let place = Place { bucket: Some(*bucket), order: None, position: *seq, pool: None };
        self.add(Class::EventStuck, place, Proof::Seen, told);
    }
}

/// Where a difference is.
#[derive(Default)]
struct Place {
    pool: Option<PoolId>,
    bucket: Option<BucketKey>,
    order: Option<OrderId>,
    position: u64,
}

/// What is told of it.
struct Told {
    expected: String,
    actual: String,
    evidence: String,
}

/// Orders of which an entry may be missing in this bucket, in order of their ids, with what it would have told and
/// changed.
fn lost_at(bucket: BucketKey, facts: &Facts) -> Vec<(OrderId, LostEvent, Delta)> {
    let mut found: Vec<_> = facts
        .orders
        .iter()
        .filter_map(|(order, fault)| match fault {
            OrderFault::Lost(lost) | OrderFault::Unknown { lost } => {
                let (_, delta) = lost.places.iter().find(|(place, _)| *place == bucket)?;
                Some((order.id, lost.event, *delta))
            }
            // An entry beside the one that carried the event.
            OrderFault::Row { surplus, .. } => {
                let (held, sold) = *surplus.get(&bucket)?;
                let available = held.saturating_add(sold).saturating_neg();
                let event = LostEvent { order: order.id, version: None, from: None, to: None };
                Some((order.id, event, Delta { available, held, sold }))
            }
            OrderFault::Unreadable
            | OrderFault::Absent { .. }
            | OrderFault::Doubled(_)
            | OrderFault::Paid
            | OrderFault::Overdue => None,
        })
        .collect();
    found.sort_unstable_by_key(|(order, ..)| *order);
    found
}

/// Takes the first number.
fn take_first(gaps: &mut VecDeque<Range>) -> Option<u64> {
    let front = gaps.front_mut()?;
    let seq = front.first;
    if front.first == front.last {
        gaps.pop_front();
    } else {
        front.first = front.first.saturating_add(1);
    }
    Some(seq)
}

/// A number for a name (FNV-1a, which will not change).
fn hashed(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        & (u64::MAX >> 1)
}
