//! The ledger by itself: it is gap-free, adds up to the balances, and tells every order's life.

use std::collections::{BTreeMap, HashMap};

use holdfast_core::invariant::Invariant;
use holdfast_core::ledger::Action;
use holdfast_core::order::State;
use uuid::Uuid;

use super::facts::{Bucket, EntryFact, Facts, Units};
use super::findings::{Check, Findings};

/// An order's life as the ledger has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Life {
    /// Its states, one a version. A queued order begins without an entry.
    pub(super) states: Vec<State>,
    /// What its entries changed in each bucket.
    pub(super) moved: BTreeMap<Bucket, Units>,
    /// The bucket that carries its events.
    home: Option<Bucket>,
    /// When its first entry was written.
    pub(super) first_at_ms: Option<i64>,
    landings: BTreeMap<Bucket, u32>,
}

/// Judges the ledger, and tells every order's life.
pub(super) fn judge(facts: &Facts, may_turn: bool, findings: &mut Findings) -> HashMap<Uuid, Life> {
    findings.looks_at(
        &[
            Invariant::NoOversell,
            Invariant::Conservation,
            Invariant::LedgerIsBalance,
            Invariant::FinalIsFinal,
            Invariant::TransfersPair,
        ]
        .map(Check::Law),
    );
    let mut lives: HashMap<Uuid, Life> = HashMap::with_capacity(facts.orders.len());
    let mut sums: BTreeMap<Bucket, (u64, Units)> = BTreeMap::new();
    let mut transferred = 0_i64;
    for entry in &facts.entries {
        let (last, sum) = sums.entry(entry.bucket).or_default();
        if entry.seq != last.saturating_add(1) {
            let expected = format!("entry {}", last.saturating_add(1));
            findings.breach(
                Check::Law(Invariant::LedgerIsBalance),
                name(facts, entry.bucket),
                expected,
                format!("entry {}", entry.seq),
            );
        }
        *last = entry.seq;
        *sum = sum.plus(entry.change);
        if !sum.are_there() {
            let at = format!("{sum:?} after entry {}", entry.seq);
            findings.breach(
                Check::Law(Invariant::NoOversell),
                name(facts, entry.bucket),
                "no balance below 0",
                at,
            );
        }
        judge_supply(facts, entry, findings);
        if matches!(entry.action, Action::TransferIn | Action::TransferOut) {
            transferred = transferred.saturating_add(entry.change.supply());
        }
        if let Some(order) = entry.order {
            lives.entry(order).or_default().take(order, entry, facts, findings);
        }
    }
    if transferred != 0 {
        findings.breach(
            Check::Law(Invariant::TransfersPair),
            "the campaign",
            "transfers that sum to 0",
            transferred.to_string(),
        );
    }
    judge_balances(facts, &sums, findings);
    if !may_turn {
        judge_landings(facts, &lives, findings);
    }
    lives
}

/// What a bucket's cache took is settled once. Two buckets may have accepted the same order, and so may two epochs of
/// one: an epoch is not in the entry, so this can be said only where none had a reason to turn.
fn judge_landings(facts: &Facts, lives: &HashMap<Uuid, Life>, findings: &mut Findings) {
    findings.looks_at(&[Check::Law(Invariant::LandingsSettleOnce)]);
    for (order, life) in lives {
        for (bucket, landings) in life.landings.iter().filter(|(_, landings)| **landings > 1) {
            let subject = format!("{order}, {}", name(facts, *bucket));
            let expected = "one landing that settles";
            findings.breach(
                Check::Law(Invariant::LandingsSettleOnce),
                subject,
                expected,
                landings.to_string(),
            );
        }
    }
}

/// Units come and go only by entries that say so.
fn judge_supply(facts: &Facts, entry: &EntryFact, findings: &mut Findings) {
    if !entry.action.changes_supply() && entry.change.supply() != 0 {
        let subject = format!("{}, entry {}", name(facts, entry.bucket), entry.seq);
        let actual = format!("{} changed the supply by {}", entry.action.as_str(), entry.change.supply());
        findings.breach(Check::Law(Invariant::Conservation), subject, "units that only move", actual);
    }
}

fn judge_balances(facts: &Facts, sums: &BTreeMap<Bucket, (u64, Units)>, findings: &mut Findings) {
    let mut all = Units::default();
    for (pool, fact) in (0_u16..).zip(&facts.pools) {
        let mut of_pool = Units::default();
        for (number, bucket) in (0_u16..).zip(&fact.buckets) {
            let key = Bucket { pool, number };
            let (seq, sum) = sums.get(&key).copied().unwrap_or_default();
            if (seq, sum) != (bucket.ledger_seq, bucket.units) {
                let expected = format!("{sum:?} as of entry {seq}");
                let actual = format!("{:?} as of entry {}", bucket.units, bucket.ledger_seq);
                findings.breach(Check::Law(Invariant::LedgerIsBalance), name(facts, key), expected, actual);
            }
            if !bucket.units.are_there() {
                findings.breach(
                    Check::Law(Invariant::NoOversell),
                    name(facts, key),
                    "no balance below 0",
                    format!("{:?}", bucket.units),
                );
            }
            of_pool = of_pool.plus(bucket.units);
        }
        if of_pool != fact.units || fact.supply != of_pool.supply() {
            let actual = format!("{:?}, supply {}", fact.units, fact.supply);
            findings.breach(
                Check::Law(Invariant::Conservation),
                &fact.sku,
                format!("{of_pool:?}, the sum of its buckets"),
                actual,
            );
        }
        all = all.plus(of_pool);
    }
    if let Some(settled) = facts.settled.filter(|settled| *settled != all) {
        let expected = format!("{all:?}, the sum of the pools");
        findings.breach(
            Check::Law(Invariant::Conservation),
            "the settlement",
            expected,
            format!("{settled:?}"),
        );
    }
}

impl Life {
    fn take(&mut self, order: Uuid, entry: &EntryFact, facts: &Facts, findings: &mut Findings) {
        self.first_at_ms.get_or_insert(entry.at_ms);
        let moved = self.moved.entry(entry.bucket).or_default();
        *moved = moved.plus(entry.change);
        if entry.settled > 0 {
            let landings = self.landings.entry(entry.bucket).or_default();
            *landings = landings.saturating_add(1);
        }
        let Some(to) = entry.to else { return };
        if self.states.is_empty() && entry.from == Some(State::Queued) {
            self.states.push(State::Queued);
        }
        let from = self.states.last().copied();
        let home = *self.home.get_or_insert(entry.bucket);
        let is_retake = entry.action == Action::Retake;
        if entry.from != from || home != entry.bucket || !is_legal(from, to, is_retake) {
            let expected = format!("what may follow {} at {}", word(from), name(facts, home));
            let actual = format!(
                "{} from {} to {} at {}",
                entry.action.as_str(),
                word(entry.from),
                to.as_str(),
                name(facts, entry.bucket)
            );
            findings.breach(Check::Law(Invariant::FinalIsFinal), order.to_string(), expected, actual);
        }
        self.states.push(to);
    }
}

/// Written from the contract's table, not from the code that decides.
const fn is_legal(from: Option<State>, to: State, is_retake: bool) -> bool {
    match from {
        None => matches!(to, State::Held | State::Sold),
        Some(State::Queued) => matches!(to, State::Held | State::Sold | State::InReview | State::Failed),
        Some(State::Held | State::InReview) => {
            matches!(to, State::Held | State::InReview | State::Sold | State::Released)
        }
        Some(State::Sold) => matches!(to, State::Sold | State::Refunded),
        Some(State::Refunded) => matches!(to, State::Refunded),
        Some(State::Released) => matches!(to, State::Released) || (is_retake && matches!(to, State::Sold)),
        Some(State::Failed) => matches!(to, State::Failed),
    }
}

fn word(state: Option<State>) -> &'static str {
    state.map_or("nothing", State::as_str)
}

/// A bucket in words.
pub(super) fn name(facts: &Facts, bucket: Bucket) -> String {
    let pool = facts.pools.get(usize::from(bucket.pool)).map_or("?", |pool| pool.sku.as_str());
    format!("{pool} bucket {}", bucket.number)
}
