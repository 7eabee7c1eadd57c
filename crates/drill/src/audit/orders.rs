//! Every order's row, held against the ledger and against what its buyer wanted.

use std::collections::{BTreeMap, HashMap};

use holdfast_core::invariant::Invariant;
use holdfast_core::order::{Disposition, State};
use uuid::Uuid;

use super::Case;
use super::facts::{Bucket, OrderFact, Units};
use super::findings::{Check, Findings};
use super::ledger::Life;
use crate::sale::Sale;

/// Judges the rows; by buyer.
pub(super) fn judge<'a>(
    case: &Case<'a>,
    lives: &HashMap<Uuid, Life>,
    findings: &mut Findings,
) -> HashMap<u64, &'a OrderFact> {
    findings.looks_at(
        &[Invariant::AllocationsAreBalance, Invariant::OneOutcome, Invariant::PaymentsAccounted]
            .map(Check::Law),
    );
    let mut rows = HashMap::with_capacity(case.facts.orders.len());
    let mut ids = HashMap::with_capacity(case.facts.orders.len());
    for row in &case.facts.orders {
        ids.insert(row.id, ());
        judge_life(row, lives.get(&row.id), findings);
        judge_payments(row, findings);
        let Some(buyer) = case.sale.buyer_of(&row.order_no) else {
            findings.breach(
                Check::True,
                row.order_no.as_ref(),
                "only orders that somebody placed",
                format!("order {}", row.id),
            );
            continue;
        };
        judge_content(case.sale, buyer, row, findings);
        if let Some(other) = rows.insert(buyer, row) {
            let actual = format!("{} and {}", other.id, row.id);
            findings.breach(Check::Law(Invariant::OneOutcome), row.order_no.as_ref(), "one order", actual);
        }
    }
    for order in lives.keys().filter(|order| !ids.contains_key(*order)) {
        findings.breach(
            Check::Law(Invariant::NothingLost),
            order.to_string(),
            "a row",
            "entries of an order that is not there",
        );
    }
    rows
}

fn judge_life(row: &OrderFact, life: Option<&Life>, findings: &mut Findings) {
    let subject = || format!("{} ({})", row.order_no, row.id);
    let Some(life) = life.filter(|life| !life.states.is_empty()) else {
        // An order that was refused as it came has no entries, and one that nobody has landed yet has none.
        if !matches!(row.state, State::Failed | State::Queued) {
            findings.breach(
                Check::Law(Invariant::LedgerIsBalance),
                subject(),
                "entries",
                format!("{} without any", row.state.as_str()),
            );
        }
        return;
    };
    let versions = u32::try_from(life.states.len()).unwrap_or(u32::MAX);
    if versions != row.version || life.states.last() != Some(&row.state) {
        let expected = format!("{versions} events: {}", words(&life.states));
        let actual = format!("version {}, {}", row.version, row.state.as_str());
        findings.breach(Check::Law(Invariant::FinalIsFinal), subject(), expected, actual);
    }
    let holds = standing(row);
    let moved: BTreeMap<Bucket, Units> = life
        .moved
        .iter()
        .map(|(bucket, units)| (*bucket, Units { available: 0, ..*units }))
        .filter(|(_, units)| *units != Units::default())
        .collect();
    if holds != moved {
        let (expected, actual) = (format!("{moved:?} by its entries"), format!("{holds:?} by its row"));
        findings.breach(Check::Law(Invariant::AllocationsAreBalance), subject(), expected, actual);
    }
}

/// What an order stands for by its row, bucket by bucket.
fn standing(row: &OrderFact) -> BTreeMap<Bucket, Units> {
    let mut sums: BTreeMap<Bucket, Units> = BTreeMap::new();
    for (bucket, units) in row.allocations.iter().filter(|(_, units)| *units > 0) {
        let change = match row.state {
            State::Held | State::InReview => Units { held: *units, ..Units::default() },
            State::Sold | State::Refunded => Units { sold: *units, ..Units::default() },
            State::Queued | State::Released | State::Failed => continue,
        };
        let sum = sums.entry(*bucket).or_default();
        *sum = sum.plus(change);
    }
    sums
}

/// An order says what its buyer wanted, and has as much as that.
fn judge_content(sale: &Sale, buyer: u64, row: &OrderFact, findings: &mut Findings) {
    let intent = sale.intent(buyer);
    let sku = sale.goods.get(intent.good).map_or("", |good| good.sku.as_str());
    let account = Sale::account(intent.account);
    let lines: Vec<(&str, u32)> = row.lines.iter().map(|(sku, quantity)| (sku.as_ref(), *quantity)).collect();
    if *row.account != *account || lines != [(sku, intent.quantity)] {
        let expected = format!("{account}, {} of {sku}", intent.quantity);
        findings.breach(Check::True, row.order_no.as_ref(), expected, format!("{}, {lines:?}", row.account));
    }
    let has = standing(row).into_values().fold(Units::default(), Units::plus).supply();
    let should = match row.state {
        State::Held | State::InReview | State::Sold | State::Refunded => i64::from(intent.quantity),
        State::Queued | State::Released | State::Failed => 0,
    };
    if has != should {
        let actual = format!("{has}, {}", row.state.as_str());
        findings.breach(
            Check::Law(Invariant::AllocationsAreBalance),
            row.order_no.as_ref(),
            format!("{should} units"),
            actual,
        );
    }
}

/// A sold order was paid, once; what else came is accounted for.
fn judge_payments(row: &OrderFact, findings: &mut Findings) {
    let took = |wanted: &[Disposition]| {
        row.payments.iter().filter(|p| p.succeeded && wanted.contains(&p.disposition)).count()
    };
    let paid = took(&[Disposition::Applied, Disposition::Retaken]);
    let should = usize::from(row.state == State::Sold);
    if paid != should {
        let actual = format!("{paid}, {}", row.state.as_str());
        findings.breach(
            Check::Law(Invariant::PaymentsAccounted),
            row.order_no.as_ref(),
            format!("{should} payments that bought it"),
            actual,
        );
    }
    for (at, payment) in row.payments.iter().enumerate().filter(|(_, payment)| payment.succeeded) {
        let before = row.payments.iter().take(at);
        if before.into_iter().any(|other| other.succeeded && other.payment_id == payment.payment_id) {
            findings.breach(
                Check::Law(Invariant::PaymentsAccounted),
                row.order_no.as_ref(),
                "each payment once",
                payment.payment_id.as_ref(),
            );
        }
    }
}

/// States in words.
pub(super) fn words(states: &[State]) -> String {
    let words: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
    words.join(", ")
}
