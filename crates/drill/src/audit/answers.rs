//! What buyers were told, held against what is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdfast_core::invariant::Invariant;
use holdfast_core::order::{Disposition, State};
use holdfast_wire::Code;
use uuid::Uuid;

use super::Case;
use super::facts::OrderFact;
use super::findings::{Check, Findings};
use super::ledger::Life;
use super::orders::words;
use crate::history::{Answered, Ask, Exchange, Told};
use crate::load::LOOK_SECONDS;

/// The longest that an answer may take: the server's own deadline of requests, and a moment for a busy machine. A look
/// that waits may take as much longer as it waits.
const ANSWER_NS_MAX: u64 = 22_000_000_000;

/// Everything about one order.
struct Story<'a> {
    subject: String,
    told: Vec<&'a Exchange>,
    row: Option<&'a OrderFact>,
    life: Option<&'a Life>,
    /// Whether its pool has a cache.
    is_cached: bool,
}

/// Judges all answers.
pub(super) fn judge(
    case: &Case<'_>,
    rows: &HashMap<u64, &OrderFact>,
    lives: &HashMap<Uuid, Life>,
    findings: &mut Findings,
) {
    findings.looks_at(&[
        Check::Law(Invariant::NothingLost),
        Check::True,
        Check::Expected,
        Check::InTime,
        Check::Fresh,
        Check::AtRest,
    ]);
    let mut order: Vec<&Exchange> = case.history.iter().collect();
    order.sort_unstable_by_key(|exchange| (exchange.buyer, exchange.sent_ns, exchange.ended_ns));
    let mut asked = BTreeSet::new();
    for told in order.chunk_by(|one, next| one.buyer == next.buyer) {
        let Some(first) = told.first() else { continue };
        let buyer = first.buyer;
        asked.insert(buyer);
        for exchange in told {
            judge_form(case, exchange, findings);
        }
        let row = rows.get(&buyer).copied();
        let life = row.and_then(|row| lives.get(&row.id));
        let good = case.sale.goods.get(case.sale.intent(buyer).good);
        let is_cached = good.is_some_and(|good| good.path == "cached");
        let subject = case.sale.order_no(buyer);
        Story { subject, told: told.to_vec(), row, life, is_cached }.judge(case, buyer, findings);
    }
    for (buyer, row) in rows.iter().filter(|(buyer, _)| !asked.contains(*buyer)) {
        findings.breach(
            Check::True,
            case.sale.order_no(*buyer),
            "only orders that somebody placed",
            format!("order {}", row.id),
        );
    }
}

/// What can be said of an answer by itself.
fn judge_form(case: &Case<'_>, exchange: &Exchange, findings: &mut Findings) {
    let subject = || case.sale.order_no(exchange.buyer);
    let label = exchange.label();
    if !case.scenario.expects(&label) {
        let actual = match &exchange.answered {
            Answered::Nonsense { what, .. } => format!("{label}: {what}"),
            Answered::Order(_) | Answered::Refused { .. } | Answered::Lost { .. } | Answered::HungUp => label,
        };
        findings.breach(Check::Expected, subject(), "an answer that the scenario expects", actual);
    }
    let busy = match &exchange.answered {
        Answered::Order(told) => Some((told.status, told.retry_after)),
        Answered::Refused { status, retry_after, .. } => Some((*status, *retry_after)),
        Answered::Lost { .. } | Answered::HungUp | Answered::Nonsense { .. } => None,
    };
    if let Some((status, false)) = busy
        && (status == 429 || status >= 500)
    {
        findings.breach(Check::Expected, subject(), "Retry-After", format!("{status} without it"));
    }
    if let Some(told) = exchange.told()
        && !fits(exchange.ask, told)
    {
        let actual = format!("{}, {}", exchange.label(), told.state.as_str());
        findings.breach(Check::True, subject(), "a status that fits the order's state", actual);
    }
    let waits = if exchange.ask == Ask::Look { LOOK_SECONDS.saturating_mul(1_000_000_000) } else { 0 };
    let took = exchange.ended_ns.saturating_sub(exchange.sent_ns);
    // A server that was made to stand still cannot answer; what it says afterwards is true or false all the same.
    let was_broken = case.windows.iter().any(|window| {
        let seconds = |ns: u64| std::time::Duration::from_nanos(ns).as_secs_f64();
        window.from <= seconds(exchange.ended_ns) && seconds(exchange.sent_ns) <= window.to
    });
    let is_answer = busy.is_some();
    if is_answer && took > ANSWER_NS_MAX.saturating_add(waits) && !was_broken {
        findings.breach(
            Check::InTime,
            subject(),
            format!("{} ms", ANSWER_NS_MAX / 1_000_000),
            format!("{} ms", took / 1_000_000),
        );
    }
}

/// Whether a status, or a code, says the same as the order that it carries.
fn fits(ask: Ask, told: &Told) -> bool {
    use State::{Failed, Held, InReview, Queued, Refunded, Released, Sold};
    match (ask, told.status, told.code) {
        (Ask::Place, 201, None) => matches!(told.state, Held | Sold),
        (Ask::Place, 202, None) => told.state == Queued,
        (Ask::Place, 200, None) => matches!(told.state, Held | InReview | Sold),
        (Ask::Cancel, 200, None) => matches!(told.state, Released | Failed),
        (_, 409, Some(Code::AlreadyReleased)) => told.state == Released,
        (_, 409, Some(Code::AlreadySold)) => told.state == Sold,
        (_, 409, Some(Code::AlreadyRefunded)) => told.state == Refunded,
        (_, 409, Some(Code::InReview)) => told.state == InReview,
        (
            Ask::Place,
            409,
            Some(
                Code::SoldOut
                | Code::AccountLimit
                | Code::QueueTimeout
                | Code::Cancelled
                | Code::AlreadyFailed,
            ),
        ) => told.state == Failed,
        (Ask::Pay, 200, None) => match told.disposition {
            Some(Disposition::Applied | Disposition::Retaken) => told.state == Sold,
            Some(_) => true,
            None => false,
        },
        _ => true,
    }
}

impl Story<'_> {
    fn judge(&self, case: &Case<'_>, buyer: u64, findings: &mut Findings) {
        let may_exist = self.told.iter().any(|exchange| may_make(exchange));
        match self.row {
            Some(row) if !may_exist => {
                let actual = format!("order {}, {}", row.id, row.state.as_str());
                findings.breach(
                    Check::True,
                    &self.subject,
                    "no order: every answer said that none is recorded",
                    actual,
                );
            }
            None if self.told.iter().any(|exchange| said_recorded(exchange)) => {
                findings.breach(
                    Check::Law(Invariant::NothingLost),
                    &self.subject,
                    "the refusal that was called recorded",
                    "no such order",
                );
            }
            Some(_) | None => {}
        }
        self.judge_told(findings);
        self.judge_order_of_time(findings);
        self.judge_payments(case, buyer, findings);
        if let Some(row) = self.row
            && matches!(row.state, State::Queued | State::Held | State::InReview)
        {
            findings.breach(Check::AtRest, &self.subject, "the end of the order", row.state.as_str());
        }
    }

    /// Each state that was told is in the ledger, of the one order that there is.
    fn judge_told(&self, findings: &mut Findings) {
        let mut of_others: BTreeMap<Uuid, &Told> = BTreeMap::new();
        for told in self.told.iter().filter_map(|exchange| exchange.told()) {
            match self.row.filter(|row| row.id == told.id) {
                Some(row) => self.judge_state(row, told, findings),
                // What a cache accepted is an order when it has landed; another may have come before it.
                None if self.is_cached && told.ticketed && told.state == State::Queued => {
                    of_others.insert(told.id, told);
                }
                None => {
                    let actual = self
                        .row
                        .map_or_else(|| "no such order".to_owned(), |row| format!("order {}", row.id));
                    let check =
                        if self.row.is_some() { Invariant::OneOutcome } else { Invariant::NothingLost };
                    findings.breach(
                        Check::Law(check),
                        &self.subject,
                        format!("order {}, told {}", told.id, told.state.as_str()),
                        actual,
                    );
                }
            }
        }
        for id in of_others.into_keys().filter(|id| !self.has_end(*id)) {
            findings.breach(
                Check::AtRest,
                &self.subject,
                format!("what became of {id}"),
                "accepted, and nothing more",
            );
        }
    }

    fn judge_state(&self, row: &OrderFact, told: &Told, findings: &mut Findings) {
        // The authority may have decided on it before its entry came to land: then it was never queued there.
        if self.is_cached && told.ticketed && told.state == State::Queued {
            return;
        }
        let written = match self.life {
            Some(life) if !life.states.is_empty() => {
                told.version.checked_sub(1).and_then(|at| life.states.get(usize::try_from(at).ok()?).copied())
            }
            // Refused as it came: it has never been anything else.
            Some(_) | None => Some(row.state).filter(|_| (1..=row.version).contains(&told.version)),
        };
        if written != Some(told.state) {
            let expected =
                self.life.map_or_else(|| row.state.as_str().to_owned(), |life| words(&life.states));
            let actual = format!("told {} at version {}", told.state.as_str(), told.version);
            findings.breach(Check::Law(Invariant::NothingLost), &self.subject, expected, actual);
        }
    }

    /// Whether the buyer heard what became of what a cache had accepted: it was lost, or it is the order that is there.
    fn has_end(&self, id: Uuid) -> bool {
        self.told.iter().filter(|exchange| exchange.about == Some(id)).any(|exchange| {
            exchange.code() == Some(Code::AdmissionLost)
                || exchange.told().is_some_and(|told| self.row.is_some_and(|row| row.id == told.id))
        })
    }

    /// What was asked after an answer is not older than that.
    fn judge_order_of_time(&self, findings: &mut Findings) {
        let told: Vec<(&Exchange, &Told)> =
            self.told.iter().filter_map(|exchange| Some((*exchange, exchange.told()?))).collect();
        for (exchange, later) in &told {
            // A cache of a new epoch has not heard of orders that have landed before it, and may accept them again.
            if self.is_cached && later.ticketed && exchange.ask == Ask::Place {
                continue;
            }
            let newest = told
                .iter()
                .filter(|(before, earlier)| before.ended_ns <= exchange.sent_ns && earlier.id == later.id)
                .map(|(_, earlier)| earlier.version)
                .max();
            if let Some(newest) = newest.filter(|newest| *newest > later.version) {
                let actual = format!("{} at version {}", exchange.label(), later.version);
                findings.breach(Check::Fresh, &self.subject, format!("at least version {newest}"), actual);
            }
        }
    }

    /// Each payment that was acknowledged is on the order, and what was said to have become of it is.
    fn judge_payments(&self, case: &Case<'_>, buyer: u64, findings: &mut Findings) {
        let Some(row) = self.row else { return };
        let ours = [false, true].map(|second| case.sale.payment(buyer, second));
        for payment in
            row.payments.iter().filter(|payment| !ours.iter().any(|our| **our == *payment.payment_id))
        {
            findings.breach(
                Check::Law(Invariant::PaymentsAccounted),
                &self.subject,
                "payments of this buyer",
                payment.payment_id.as_ref(),
            );
        }
        let said: BTreeSet<&str> = self
            .told
            .iter()
            .filter(|exchange| exchange.ask == Ask::Pay)
            .filter_map(|exchange| exchange.told()?.disposition)
            .filter(|said| !matches!(said, Disposition::Duplicate | Disposition::Parked))
            .map(Disposition::as_str)
            .collect();
        let kept: BTreeSet<&str> = row
            .payments
            .iter()
            .filter(|payment| payment.succeeded)
            .map(|payment| payment.disposition.as_str())
            .collect();
        let was_heard =
            self.told.iter().any(|exchange| exchange.ask == Ask::Pay && exchange.told().is_some());
        if !said.is_subset(&kept) || (was_heard && kept.is_empty()) {
            let (expected, actual) = (format!("payments {said:?}"), format!("payments {kept:?}"));
            findings.breach(Check::Law(Invariant::PaymentsAccounted), &self.subject, expected, actual);
        }
    }
}

/// Whether the order may be there because of this exchange.
const fn may_make(exchange: &Exchange) -> bool {
    if !matches!(exchange.ask, Ask::Place | Ask::Alter) {
        return false;
    }
    match &exchange.answered {
        Answered::Refused { recorded: Some(false), .. } | Answered::Lost { never_sent: true } => false,
        Answered::Order(_)
        | Answered::Refused { .. }
        | Answered::Lost { .. }
        | Answered::HungUp
        | Answered::Nonsense { .. } => true,
    }
}

const fn said_recorded(exchange: &Exchange) -> bool {
    matches!((exchange.ask, &exchange.answered), (Ask::Place, Answered::Refused { recorded: Some(true), .. }))
}
