//! What an answer says, read from its bytes.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::order::{Disposition, State};
use holdfast_wire::Code;
use serde::Deserialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::history::{Answered, Ask, Told};

/// How much of an answer that makes no sense is kept.
const WHAT_BYTES_MAX: usize = 120;

/// An answer as it came.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) status: u16,
    pub(super) body: Bytes,
    /// `Retry-After`, in seconds.
    pub(super) retry_after: Option<u64>,
    pub(super) replayed: bool,
}

/// An answer, understood.
#[derive(Debug)]
pub(super) struct Heard {
    /// What is kept of it.
    pub(super) answered: Answered,
    /// The ticket, if it came with one.
    pub(super) ticket: Option<Box<str>>,
    /// Whether money must go back.
    pub(super) refund_due: bool,
    /// When to ask again, if it says so.
    pub(super) again_after: Option<Duration>,
}

#[derive(Deserialize)]
struct OrderPart<'a> {
    id: Uuid,
    #[serde(borrow)]
    state: Cow<'a, str>,
    version: u32,
    #[serde(borrow, default)]
    ticket: Option<Cow<'a, str>>,
    #[serde(default)]
    refund_due: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct NoticePart<'a> {
    #[serde(borrow)]
    disposition: Cow<'a, str>,
    #[serde(borrow)]
    order: OrderPart<'a>,
}

#[derive(Deserialize)]
struct ProblemPart<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
    recorded: Option<bool>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(borrow, default)]
    order: Option<OrderPart<'a>>,
}

impl Heard {
    /// No answer, or none that was waited for.
    pub(super) const fn nothing(answered: Answered) -> Self {
        Self { answered, ticket: None, refund_due: false, again_after: None }
    }

    /// Whether it says nothing for good: another answer may come to the same question.
    pub(super) const fn is_open(&self) -> bool {
        match &self.answered {
            Answered::Order(told) => told.status == 429 || told.status >= 500,
            Answered::Refused { status, .. } => *status == 429 || *status >= 500,
            Answered::Lost { .. } | Answered::HungUp | Answered::Nonsense { .. } => true,
        }
    }

    /// What it says of an order.
    pub(super) const fn told(&self) -> Option<&Told> {
        match &self.answered {
            Answered::Order(told) => Some(told),
            Answered::Refused { .. }
            | Answered::Lost { .. }
            | Answered::HungUp
            | Answered::Nonsense { .. } => None,
        }
    }
}

/// Reads an answer.
pub(super) fn read(ask: Ask, raw: &Raw) -> Heard {
    let heard = match (raw.status, ask) {
        (200..=202, Ask::Pay | Ask::Fail) => of_notice(raw),
        (200..=202, Ask::Place | Ask::Alter | Ask::Look | Ask::Cancel | Ask::Refund) => of_order(raw),
        (400.., _) => of_problem(raw),
        _ => None,
    };
    heard.unwrap_or_else(|| {
        let shown = raw.body.get(..WHAT_BYTES_MAX).unwrap_or(&raw.body);
        let what = String::from_utf8_lossy(shown).into();
        Heard::nothing(Answered::Nonsense { status: raw.status, what })
    })
}

fn of_order(raw: &Raw) -> Option<Heard> {
    let order: OrderPart<'_> = serde_json::from_slice(&raw.body).ok()?;
    heard_of(raw, &order, None, None)
}

fn of_notice(raw: &Raw) -> Option<Heard> {
    let notice: NoticePart<'_> = serde_json::from_slice(&raw.body).ok()?;
    let disposition = Disposition::parse(&notice.disposition)?;
    heard_of(raw, &notice.order, None, Some(disposition))
}

fn of_problem(raw: &Raw) -> Option<Heard> {
    let problem: ProblemPart<'_> = serde_json::from_slice(&raw.body).ok()?;
    let code = Code::parse(&problem.code)?;
    let again_after =
        problem.retry_after_ms.map(Duration::from_millis).or(raw.retry_after.map(Duration::from_secs));
    let heard = match &problem.order {
        Some(order) => heard_of(raw, order, Some(code), None)?,
        None => Heard::nothing(Answered::Refused {
            status: raw.status,
            code,
            recorded: problem.recorded,
            retry_after: raw.retry_after.is_some(),
        }),
    };
    Some(Heard { again_after, ..heard })
}

fn heard_of(
    raw: &Raw,
    order: &OrderPart<'_>,
    code: Option<Code>,
    disposition: Option<Disposition>,
) -> Option<Heard> {
    let told = Told {
        status: raw.status,
        code,
        id: order.id,
        state: State::parse(&order.state)?,
        version: order.version,
        disposition,
        ticketed: order.ticket.is_some(),
        retry_after: raw.retry_after.is_some(),
        replayed: raw.replayed,
    };
    let ticket = order.ticket.as_deref().map(Into::into);
    let refund_due = order.refund_due.is_some();
    Some(Heard { answered: Answered::Order(told), ticket, refund_due, again_after: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(ask: Ask, status: u16, body: &str) -> Heard {
        let body = Bytes::from(body.to_owned());
        read(ask, &Raw { status, body, retry_after: (status == 503).then_some(1), replayed: false })
    }

    const ORDER: &str = r#"{"id":"019ad0c4-7a5e-7000-8000-000000000001","state":"held","version":3,
        "lines":[{"line":1,"note":"ö\n"}],"refund_due":null,"ticket":null,"new":{"deep":[1,2]}}"#;

    #[test]
    fn orders_notices_and_problems_are_read() {
        let order = heard(Ask::Place, 201, ORDER);
        let told = order.told().unwrap();
        assert_eq!((told.state, told.version, told.ticketed), (State::Held, 3, false));
        assert!(!order.refund_due && !order.is_open());
        let notice = heard(Ask::Pay, 200, &format!(r#"{{"disposition":"refund_due","order":{ORDER}}}"#));
        assert_eq!(notice.told().unwrap().disposition, Some(Disposition::RefundDue));
        let refused = heard(Ask::Place, 409, r#"{"code":"sold_out","recorded":false}"#);
        let expected =
            Answered::Refused { status: 409, code: Code::SoldOut, recorded: Some(false), retry_after: false };
        assert_eq!(refused.answered, expected);
        let with =
            heard(Ask::Cancel, 409, &format!(r#"{{"code":"already_sold","recorded":null,"order":{ORDER}}}"#));
        assert_eq!(with.told().unwrap().code, Some(Code::AlreadySold));
        let unknown =
            heard(Ask::Place, 503, r#"{"code":"outcome_unknown","recorded":null,"retry_after_ms":250}"#);
        assert!(unknown.is_open());
        assert_eq!(unknown.again_after, Some(Duration::from_millis(250)));
    }

    #[test]
    fn what_is_no_answer_of_a_server_is_nonsense() {
        for (status, body) in [
            (200, "<html>"),
            (200, r#"{"id":"7","state":"held","version":1}"#),
            (201, r#"{"id":"019ad0c4-7a5e-7000-8000-000000000001","state":"gone","version":1}"#),
            (409, r#"{"code":"no_such_code","recorded":null}"#),
            (
                502,
                "bad gateway, for so long a reason that nobody wants to keep all of it, whatever the reason may be: it is long and longer",
            ),
            (302, ""),
        ] {
            let heard = heard(Ask::Place, status, body);
            let Answered::Nonsense { status: found, what } = &heard.answered else { panic!("{heard:?}") };
            assert_eq!(*found, status);
            assert!(what.len() <= WHAT_BYTES_MAX && heard.is_open());
        }
    }
}
