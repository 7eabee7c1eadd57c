//! The decision table: payment against expiry, refund and cancel in each order of arrival, played on the core.

mod book;
mod text;

use anyhow::{Context, Result, bail, ensure};
use holdfast_core::campaign::{DeadlineBasis, LatePayment, Policy};
use holdfast_core::command::{How, Inquiry, OrderAction, Outcome};
use holdfast_core::id::{AttemptId, EventId, PaymentId, Provider, RefundId};
use holdfast_core::order::{Notice, PaymentOutcome, Refund, RefundLine, State};
use holdfast_core::table::{Rule, Then, Trigger, rules};
use holdfast_core::time::Timestamp;

use book::Book;
use text::Tongue;

/// What arrives at our order, or happens around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Payment,
    PaymentMadeInTime,
    OtherPayment,
    FailedPayment,
    Attempt,
    Expiry,
    Cancel,
    Refund,
    End,
    Grace,
    SoldToAnother,
    Freeze,
}

/// Those that meet in every order.
const MEETING: [Step; 4] = [Step::Payment, Step::Expiry, Step::Cancel, Step::Refund];

/// What a payment finds that comes after the end of the hold, and what comes on top of a sale.
const LATE: &[&[Step]] = &[
    &[Step::End, Step::Payment, Step::Expiry],
    &[Step::End, Step::PaymentMadeInTime, Step::Expiry],
    &[Step::Grace, Step::Payment, Step::Expiry],
    &[Step::Grace, Step::PaymentMadeInTime, Step::Expiry],
    &[Step::End, Step::Payment, Step::Cancel],
    &[Step::End, Step::Cancel, Step::Payment],
    &[Step::Expiry, Step::PaymentMadeInTime],
    &[Step::Expiry, Step::SoldToAnother, Step::Payment],
    &[Step::Expiry, Step::Freeze, Step::Payment],
    &[Step::Expiry, Step::Payment, Step::OtherPayment],
    &[Step::Cancel, Step::SoldToAnother, Step::Payment],
    &[Step::Cancel, Step::Freeze, Step::Payment],
    &[Step::Payment, Step::OtherPayment, Step::Refund],
    &[Step::Payment, Step::Refund, Step::OtherPayment],
    &[Step::Attempt, Step::Expiry, Step::Payment],
    &[Step::Attempt, Step::Expiry, Step::FailedPayment],
    &[Step::Attempt, Step::Expiry, Step::Cancel, Step::Payment],
    &[Step::Attempt, Step::Expiry, Step::Expiry, Step::Payment],
    &[Step::Attempt, Step::FailedPayment, Step::Expiry, Step::Payment],
    &[Step::Attempt, Step::Cancel, Step::Payment],
];

/// What one arrival was answered, and where the order stood then.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    answer: Answer,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Disposition(&'static str),
    Done,
    Again,
    NotDue,
    Refused(&'static str),
}

/// What became of a row under one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ending {
    told: Vec<Told>,
    refund_due: bool,
    /// Available, held, sold.
    stock: (u64, u64, u64),
}

/// The page in English and in Chinese.
pub(crate) fn pages() -> Result<[(&'static str, String); 2]> {
    Ok([("docs/decisions.md", page(&text::ENGLISH)?), ("docs/zh/decisions.md", page(&text::CHINESE)?)])
}

fn page(tongue: &Tongue) -> Result<String> {
    let mut text = tongue.begin.to_owned();
    text.push_str(&table(tongue, &orders_of(2))?);
    text.push_str(tongue.all);
    text.push_str(&table(tongue, &orders_of(MEETING.len()))?);
    text.push_str(tongue.late);
    text.push_str(&table(tongue, &LATE.iter().map(|row| row.to_vec()).collect::<Vec<_>>())?);
    Ok(text)
}

/// Every order in which so many of those that meet may arrive.
fn orders_of(length: usize) -> Vec<Vec<Step>> {
    if length == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders_of(length - 1);
    let longer = |row: Vec<Step>| {
        let rest = MEETING.into_iter().filter(|step| !row.contains(step)).collect::<Vec<_>>();
        rest.into_iter().map(move |step| row.iter().copied().chain([step]).collect())
    };
    shorter.into_iter().flat_map(longer).collect()
}

fn table(tongue: &Tongue, rows: &[Vec<Step>]) -> Result<String> {
    let mut text = tongue.head.to_owned();
    for row in rows {
        for (policies, ending) in endings(row)? {
            let any = policies.len() == LatePayment::ALL.len();
            let policies: Vec<_> = policies.iter().map(|policy| format!("`{}`", policy.as_str())).collect();
            let policy = if any { tongue.any.to_owned() } else { policies.join(", ") };
            text.push_str(&tongue.row(row, &policy, &ending));
        }
    }
    Ok(text)
}

/// What becomes of a row, with the policies under which it does.
fn endings(row: &[Step]) -> Result<Vec<(Vec<LatePayment>, Ending)>> {
    let mut endings: Vec<(Vec<LatePayment>, Ending)> = Vec::new();
    for policy in LatePayment::ALL {
        let ending = play(row, *policy)?;
        match endings.iter_mut().find(|(_, known)| *known == ending) {
            Some((policies, _)) => policies.push(*policy),
            None => endings.push((vec![*policy], ending)),
        }
    }
    Ok(endings)
}

fn play(row: &[Step], late_payment: LatePayment) -> Result<Ending> {
    let by_provider = row.contains(&Step::PaymentMadeInTime);
    let deadline_basis = if by_provider { DeadlineBasis::ProviderPaidAt } else { DeadlineBasis::ReceivedAt };
    let policy = Policy { late_payment, deadline_basis, ..Policy::default() };
    let mut book = Book::new(policy.clone())?;
    let end = book.order()?.hold_ends_at.unwrap_or(book.clock);
    let grace = policy.release_at(end);
    let mut told = Vec::new();
    for step in row {
        happen(*step, &mut book, end, grace)?;
        if let Some(action) = action(*step, end)? {
            told.push(tell(&mut book, &action)?);
        }
    }
    let bucket = book.bucket()?;
    Ok(Ending {
        stock: (bucket.available, bucket.held, bucket.sold),
        refund_due: book.order()?.refund_due.is_some(),
        told,
    })
}

/// What a step is besides a command on our order: time that passes, and what others do.
fn happen(step: Step, book: &mut Book, end: Timestamp, grace: Timestamp) -> Result<()> {
    match step {
        Step::End => book.clock = book.clock.max(end),
        Step::Grace => book.clock = book.clock.max(grace),
        Step::Expiry => book.clock = book.clock.max(book.order()?.due_at.unwrap_or(grace)),
        Step::SoldToAnother => book.sell_to_another()?,
        Step::Freeze => book.freeze(),
        Step::Payment
        | Step::PaymentMadeInTime
        | Step::OtherPayment
        | Step::FailedPayment
        | Step::Attempt
        | Step::Cancel
        | Step::Refund => {}
    }
    Ok(())
}

/// Sends a command, then once more: nothing may move.
fn tell(book: &mut Book, action: &OrderAction) -> Result<Told> {
    let before = book.order()?.state;
    let outcome = book.send(action.clone())?;
    let told =
        Told { answer: answer(&outcome, before, action.trigger())?, state: book.order()?.state.as_str() };
    let (order, bucket) = (book.order()?.clone(), *book.bucket()?);
    book.send(action.clone())?;
    ensure!(*book.order()? == order && *book.bucket()? == bucket, "{action:?} doubled moved something");
    Ok(told)
}

/// The command on our order that a step is.
fn action(step: Step, end: Timestamp) -> Result<Option<OrderAction>> {
    let provider = || Provider::new("bank");
    let notice = |payment: &str, outcome, paid_at| -> Result<OrderAction> {
        Ok(OrderAction::Notice(Notice {
            provider: provider()?,
            event_id: EventId::new(payment)?,
            payment_id: PaymentId::new(payment)?,
            attempt_id: None,
            outcome,
            paid_at,
            amount_minor: None,
            currency: None,
        }))
    };
    Ok(Some(match step {
        Step::Payment => notice("paid", PaymentOutcome::Succeeded, None)?,
        Step::PaymentMadeInTime => {
            notice("paid", PaymentOutcome::Succeeded, Some(Timestamp(end.0.saturating_sub(1))))?
        }
        Step::OtherPayment => notice("paid-again", PaymentOutcome::Succeeded, None)?,
        Step::FailedPayment => notice("declined", PaymentOutcome::Failed, None)?,
        Step::Attempt => OrderAction::Attempt(AttemptId::new("attempt")?, provider()?),
        Step::Cancel => OrderAction::Cancel,
        Step::Refund => OrderAction::Refund(Refund {
            refund_id: RefundId::new("refund")?,
            lines: vec![RefundLine { line: 1, quantity: 1 }],
            restock: Some(true),
            reason: "".into(),
        }),
        Step::Expiry => OrderAction::Expire(Inquiry::Done),
        Step::End | Step::Grace | Step::SoldToAnother | Step::Freeze => return Ok(None),
    }))
}

fn answer(outcome: &Outcome, before: State, on: Trigger) -> Result<Answer> {
    Ok(match outcome {
        Outcome::Order { disposition: Some(disposition), .. } => Answer::Disposition(disposition.as_str()),
        Outcome::Order { how: How::Repeated, .. } => Answer::Again,
        Outcome::Order { .. } => Answer::Done,
        Outcome::NotDue(_) => Answer::NotDue,
        Outcome::Refused { .. } => Answer::Refused(refusal(before, on)?),
        Outcome::Pool { .. }
        | Outcome::Adjusted { .. }
        | Outcome::Transferred { .. }
        | Outcome::Imported { .. }
        | Outcome::Epoch { .. }
        | Outcome::Repaired { .. }
        | Outcome::Proposed { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated => bail!("no answer to an order: {outcome:?}"),
    })
}

/// The code with which the table refuses; no arrival meets two in one state.
fn refusal(state: State, on: Trigger) -> Result<&'static str> {
    let refuses = |rule: Rule| if let Then::Refuse(code) = rule.then { Some(code.text()) } else { None };
    rules(state, on).into_iter().find_map(refuses).context("a row that refuses")
}
