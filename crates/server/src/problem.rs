//! Problems: every answer with a status of 400 or more, and the one map from what the engine says to
//! what a client is told. The body is written at the edge, where the request's id is known.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use holdfast_core::id::LimitName;
use holdfast_core::order::{Order, RefundLine, Shortage};
use holdfast_core::refusal::Refusal;
use holdfast_engine::Error;
use holdfast_wire::{self as wire, Code, ProblemItem};

use crate::input::json::push_key;
use crate::input::report::Located;
use crate::input::stock_file::FileFault;
use crate::retryable::is_retryable;
use crate::view;

/// When to come back after an answer that asks for it and does not know better.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What went wrong, to be told to the client.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<Content>);

#[derive(Debug, Clone)]
struct Content {
    code: Code,
    detail: Cow<'static, str>,
    recorded: Option<bool>,
    retryable: bool,
    repeated: bool,
    retry_after: Duration,
    order: Option<Arc<Order>>,
    errors: Vec<ProblemItem>,
}

/// What a refused command was about: it decides where the pointers of its errors point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// A body that names its campaign (and lines in the order's own order).
    NewInCampaign,
    /// A refund with these lines.
    Refund(&'a [RefundLine]),
    /// Units that a body names as `quantity`.
    Quantity,
    /// Something named by the path.
    Named,
}

impl Problem {
    /// A problem that left no trace.
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Content {
            code,
            detail: detail.into(),
            recorded: Some(false),
            retryable: is_retryable(code),
            repeated: false,
            retry_after: RETRY_AFTER,
            order: None,
            errors: Vec::new(),
        }))
    }

    /// There is no such thing.
    pub(crate) fn not_found(what: &'static str) -> Self {
        Self::new(Code::NotFound, what)
    }

    /// A bug. Whether something was done is not known.
    pub(crate) fn internal(detail: &'static str) -> Self {
        Self::unknown(Code::Internal, detail)
    }

    /// Too much to do; nothing was done.
    pub(crate) fn overloaded() -> Self {
        Self::new(Code::Overloaded, "too much to do; nothing was done")
    }

    /// A problem after which nobody knows whether something was done.
    pub(crate) fn unknown(code: Code, detail: &'static str) -> Self {
        let mut problem = Self::new(code, detail);
        problem.0.recorded = None;
        problem
    }

    /// Input that cannot be taken; the first error names the kind.
    pub(crate) fn invalid(errors: Vec<Located>) -> Self {
        let Some(first) = errors.first() else { return Self::internal("no error where there must be one") };
        let detail = match first.pointer.as_str() {
            "" => first.fault.detail.clone(),
            pointer => format!("{pointer} {}", first.fault.detail),
        };
        let mut problem = Self::new(first.fault.code, detail);
        problem.0.errors = errors.into_iter().map(Located::into_item).collect();
        problem
    }

    /// A single error of the input.
    pub(crate) fn of_fault(located: Located) -> Self {
        Self::invalid(vec![located])
    }

    /// A stock file that cannot be applied; the first fault names the kind.
    pub(crate) fn of_file(faults: Vec<FileFault>) -> Self {
        let Some(first) = faults.first() else { return Self::internal("no fault where there must be one") };
        let (code, count) = (first.code(), faults.len());
        let items: Vec<ProblemItem> = faults.into_iter().map(FileFault::into_item).collect();
        let told = items.first().map_or("", |item| item.detail.as_str());
        let place = items.first().map_or("", |item| item.pointer.as_str());
        let mut problem = Self::new(code, format!("{place}: {told}; faults: {count}; nothing was done"));
        problem.0.errors = items;
        problem
    }

    /// A refusal: a business answer, counted and not logged.
    pub(crate) fn refused(
        refusal: &Refusal,
        recorded: bool,
        repeated: bool,
        order: Option<Arc<Order>>,
        subject: Subject<'_>,
    ) -> Self {
        let code = code_of(refusal);
        let mut problem = Self::new(code, detail_of(refusal));
        problem.0.recorded = Some(recorded);
        problem.0.retryable = is_retryable(code) && !recorded;
        problem.0.repeated = repeated;
        problem.0.order = order;
        problem.0.errors = errors_of(refusal, code, subject);
        problem
    }

    /// Says where the request names what is not there.
    #[must_use]
    pub(crate) fn at(mut self, pointer: &str) -> Self {
        let (code, detail) = (self.0.code, self.0.detail.to_string());
        self.0.errors = vec![Located::new(pointer, code, detail).into_item()];
        self
    }

    /// Moves the pointers of a refusal below `prefix`: the order's place in a batch.
    #[must_use]
    pub(crate) fn below(mut self, prefix: &str) -> Self {
        for error in &mut self.0.errors {
            error.pointer.insert_str(0, prefix);
        }
        self
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        self.0.code.status()
    }

    /// The kind.
    pub(crate) fn code(&self) -> Code {
        self.0.code
    }

    /// Whether this answer was given before.
    pub(crate) fn is_repeated(&self) -> bool {
        self.0.repeated
    }

    /// When to come back: on every 429 and 503.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        // Rounded up: who comes back then is not too early.
        let millis = self.0.retry_after.as_nanos().div_ceil(1_000_000);
        matches!(self.status(), 429 | 503).then(|| u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The body.
    pub(crate) fn to_wire(&self, request_id: &str) -> wire::Problem {
        let content = &*self.0;
        wire::Problem {
            problem_type: content.code.problem_type().into(),
            title: content.code.title().into(),
            status: self.status(),
            code: content.code.as_str().into(),
            detail: content.detail.to_string(),
            request_id: request_id.to_owned(),
            recorded: content.recorded,
            retryable: content.retryable,
            retry_after_ms: self.retry_after_ms(),
            order: content.order.as_deref().map(|order| Box::new(view::order(order))),
            errors: content.errors.clone(),
        }
    }

    /// Where the errors are and of which kind.
    #[cfg(test)]
    pub(crate) fn pointers(&self) -> Vec<(String, String)> {
        self.0.errors.iter().map(|error| (error.pointer.clone(), error.code.to_string())).collect()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The status map's first half: the code of a refusal; [`Code::status`] is the second.
const fn code_of(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::OrderMismatch(_) => Code::OrderMismatch,
        Refusal::KeyMismatch(_) => Code::KeyMismatch,
        Refusal::UnknownCampaign
        | Refusal::UnknownOrder
        | Refusal::UnknownPool
        | Refusal::UnknownCase
        | Refusal::UnknownApproval => Code::NotFound,
        Refusal::SamePerson => Code::Forbidden,
        Refusal::UnknownSku { .. } => Code::UnknownSku,
        Refusal::InvalidValue { .. } => Code::InvalidValue,
        // Told row by row: see `Problem::of_file`.
        Refusal::Rows(_) => Code::Conflict,
        Refusal::CampaignClosed => Code::CampaignClosed,
        Refusal::Halted | Refusal::Frozen | Refusal::LineFrozen { .. } => Code::Frozen,
        Refusal::CampaignPaused => Code::CampaignPaused,
        Refusal::CampaignNotOpen => Code::CampaignNotOpen,
        Refusal::AccountOpenHolds { .. } => Code::AccountOpenHolds,
        Refusal::AccountLimit(_) => Code::AccountLimit,
        Refusal::QueueFull { .. } => Code::QueueFull,
        Refusal::KeyLimit(..) | Refusal::KeyOpenHolds(..) => Code::KeyLimit,
        Refusal::SoldOut(_) => Code::SoldOut,
        Refusal::QueueTimeout => Code::QueueTimeout,
        Refusal::AdmissionLost => Code::AdmissionLost,
        Refusal::Cancelled => Code::Cancelled,
        Refusal::AlreadySold => Code::AlreadySold,
        Refusal::AlreadyReleased => Code::AlreadyReleased,
        Refusal::AlreadyFailed => Code::AlreadyFailed,
        Refusal::AlreadyRefunded => Code::AlreadyRefunded,
        Refusal::NotHeld => Code::NotHeld,
        Refusal::NotSold => Code::NotSold,
        Refusal::HoldExpired => Code::HoldExpired,
        Refusal::InReview => Code::InReview,
        Refusal::RefundExceedsSold(_) => Code::RefundExceedsSold,
        Refusal::StockInUse(_) => Code::StockInUse,
        Refusal::Conflict(_) => Code::Conflict,
    }
}

/// What is said of a lost answer.
const UNKNOWN: &str = "whether it was done is unknown; ask again with the same key";

impl From<Error> for Problem {
    /// The status map of what the engine could not do.
    fn from(error: Error) -> Self {
        match error {
            Error::Overloaded => Self::overloaded(),
            Error::RateLimited { retry_after } => {
                let mut problem =
                    Self::new(Code::RateLimited, "more orders a second than this campaign lets in");
                problem.0.retry_after = retry_after;
                problem
            }
            Error::CacheNotReady => Self::new(Code::CacheNotReady, "ask again with the same key"),
            Error::ShuttingDown => {
                Self::new(Code::ShuttingDown, "the server is going down; nothing was done")
            }
            Error::OutcomeUnknown => Self::unknown(Code::OutcomeUnknown, UNKNOWN),
            Error::Store(error) => error.into(),
        }
    }
}

impl From<holdfast_store::Error> for Problem {
    /// The status map of what the authority could not do. Its own words go to the log, not to the client.
    fn from(error: holdfast_store::Error) -> Self {
        use holdfast_store::Error as Store;
        if matches!(error, Store::Corrupt(_)) {
            tracing::error!(%error, "the authority contradicts itself");
        } else {
            tracing::warn!(%error, "the authority did not answer");
        }
        match error {
            Store::Conflict(_) | Store::Unavailable(_) | Store::Timeout => {
                Self::new(Code::AuthorityUnavailable, "the authority did not answer; nothing was done")
            }
            Store::Corrupt(_) => Self::new(Code::AuthorityUnavailable, "the authority needs a person"),
            Store::Data(_) => Self::new(Code::InvalidValue, "the authority cannot store this"),
            Store::StorageFull => Self::new(Code::StorageFull, "there is no space left; nothing was done"),
            Store::OutcomeUnknown(_) => Self::unknown(Code::OutcomeUnknown, UNKNOWN),
        }
    }
}

fn detail_of(refusal: &Refusal) -> Cow<'static, str> {
    let missing = |shortage: &Shortage, what: &str| {
        let Shortage { line, requested, available } = shortage;
        Cow::Owned(format!("line {line}: {requested} {what}, {available} available"))
    };
    match refusal {
        Refusal::OrderMismatch(fields) | Refusal::KeyMismatch(fields) => {
            Cow::Owned(format!("the key belongs to other content: {}", fields.join(", ")))
        }
        Refusal::UnknownCampaign => "there is no such campaign".into(),
        Refusal::UnknownOrder => "there is no such order".into(),
        Refusal::UnknownPool => "there is no such pool".into(),
        Refusal::UnknownCase => "there is no such case".into(),
        Refusal::UnknownApproval => "nobody is asked for this".into(),
        Refusal::SamePerson => {
            "who asked is no second person: another operator with another key decides".into()
        }
        Refusal::UnknownSku { line } => Cow::Owned(format!("line {line}: the campaign has no such stock")),
        Refusal::LineFrozen { line } => Cow::Owned(format!("line {line}: its stock is frozen")),
        Refusal::InvalidValue { pointer, why } => Cow::Owned(format!("{pointer} {why}")),
        Refusal::AccountOpenHolds { limit } => Cow::Owned(format!("the account may have {limit} open holds")),
        Refusal::QueueFull { limit } => Cow::Owned(format!("{limit} orders wait already")),
        Refusal::AccountLimit(Shortage { line: _, requested, available }) => {
            Cow::Owned(format!("the account may have {available} more units, {requested} requested"))
        }
        Refusal::KeyLimit(name, Shortage { line: _, requested, available }) => {
            Cow::Owned(format!("the {name} may have {available} more units, {requested} requested"))
        }
        Refusal::KeyOpenHolds(name, _) => {
            Cow::Owned(format!("the {name} has as many open holds as it may have"))
        }
        Refusal::SoldOut(shortage) | Refusal::RefundExceedsSold(shortage) => missing(shortage, "requested"),
        Refusal::StockInUse(shortage) => {
            let Shortage { line: _, requested, available } = shortage;
            Cow::Owned(format!("{requested} to be taken away, {available} available"))
        }
        Refusal::Conflict(why) => (*why).into(),
        Refusal::Rows(faults) => {
            Cow::Owned(format!("{} rows cannot be applied; nothing was done", faults.len()))
        }
        Refusal::Halted => "nothing is sold until the open case of kind incarnation is resolved: \
                            GET /v1/cases?state=open"
            .into(),
        Refusal::CampaignClosed
        | Refusal::Frozen
        | Refusal::CampaignPaused
        | Refusal::CampaignNotOpen
        | Refusal::QueueTimeout
        | Refusal::AdmissionLost
        | Refusal::Cancelled
        | Refusal::AlreadySold
        | Refusal::AlreadyReleased
        | Refusal::AlreadyFailed
        | Refusal::AlreadyRefunded
        | Refusal::NotHeld
        | Refusal::NotSold
        | Refusal::HoldExpired
        | Refusal::InReview => code_of(refusal).title().into(),
    }
}

fn errors_of(refusal: &Refusal, code: Code, subject: Subject<'_>) -> Vec<ProblemItem> {
    let item = |pointer: String, detail: &str| Located::new(pointer, code, detail).into_item();
    let short = |pointer: String, shortage: &Shortage, detail: &str| {
        let Shortage { line: _, requested, available } = *shortage;
        vec![ProblemItem { requested: Some(requested), available: Some(available), ..item(pointer, detail) }]
    };
    match refusal {
        Refusal::OrderMismatch(fields) | Refusal::KeyMismatch(fields) => {
            fields.iter().map(|field| item(field.clone(), "differs from what the key is bound to")).collect()
        }
        Refusal::UnknownCampaign => match subject {
            Subject::NewInCampaign => vec![item("/campaign_id".to_owned(), "there is no such campaign")],
            Subject::Refund(_) | Subject::Quantity | Subject::Named => Vec::new(),
        },
        Refusal::UnknownSku { line } => {
            vec![item(pointer_of_line(*line, subject), "the campaign has no stock of this SKU and location")]
        }
        Refusal::LineFrozen { line } => vec![item(pointer_of_line(*line, subject), "its stock is frozen")],
        Refusal::InvalidValue { pointer, why } => vec![item(pointer.clone(), why)],
        Refusal::AccountLimit(shortage) => {
            short(pointer_of_line(shortage.line, subject), shortage, "more than the account may have")
        }
        Refusal::KeyLimit(name, shortage) => {
            short(pointer_of_key(name), shortage, "more units than the key may have")
        }
        Refusal::KeyOpenHolds(name, shortage) => {
            short(pointer_of_key(name), shortage, "one more open hold than the key may have")
        }
        Refusal::SoldOut(shortage) => {
            short(pointer_of_line(shortage.line, subject), shortage, "more than there is")
        }
        Refusal::RefundExceedsSold(shortage) => {
            short(pointer_of_line(shortage.line, subject), shortage, "more than is sold and not refunded")
        }
        Refusal::StockInUse(shortage) => {
            let field = if matches!(subject, Subject::Quantity) { "/quantity" } else { "/delta" };
            short(field.to_owned(), shortage, "more than is neither held nor sold")
        }
        Refusal::UnknownOrder
        | Refusal::UnknownPool
        | Refusal::UnknownCase
        | Refusal::UnknownApproval
        | Refusal::SamePerson
        | Refusal::Rows(_)
        | Refusal::CampaignClosed
        | Refusal::Halted
        | Refusal::Frozen
        | Refusal::CampaignPaused
        | Refusal::CampaignNotOpen
        | Refusal::AccountOpenHolds { .. }
        | Refusal::QueueFull { .. }
        | Refusal::QueueTimeout
        | Refusal::AdmissionLost
        | Refusal::Cancelled
        | Refusal::AlreadySold
        | Refusal::AlreadyReleased
        | Refusal::AlreadyFailed
        | Refusal::AlreadyRefunded
        | Refusal::NotHeld
        | Refusal::NotSold
        | Refusal::HoldExpired
        | Refusal::InReview
        | Refusal::Conflict(_) => Vec::new(),
    }
}

/// Where the request names a key that limits are on.
fn pointer_of_key(name: &LimitName) -> String {
    let mut pointer = "/limit_keys".to_owned();
    push_key(&mut pointer, name.as_str());
    pointer
}

/// Where the request names an order's line: a refund may name some lines only, in any order.
fn pointer_of_line(line: u32, subject: Subject<'_>) -> String {
    match subject {
        Subject::NewInCampaign => format!("/lines/{}", line.saturating_sub(1)),
        Subject::Refund(lines) => match lines.iter().position(|sent| sent.line == line) {
            Some(index) => format!("/lines/{index}"),
            None => "/lines".to_owned(),
        },
        Subject::Quantity | Subject::Named => "/lines".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_store::Error as Store;

    #[test]
    fn what_the_authority_could_not_do_is_mapped() {
        let text = || "words of a driver".to_owned();
        for (error, status, code, recorded) in [
            (Error::Overloaded, 503, "overloaded", Some(false)),
            (Error::ShuttingDown, 503, "shutting_down", Some(false)),
            (Error::OutcomeUnknown, 503, "outcome_unknown", None),
            (Error::Store(Store::OutcomeUnknown(text())), 503, "outcome_unknown", None),
            (Error::Store(Store::Unavailable(text())), 503, "authority_unavailable", Some(false)),
            (Error::Store(Store::Timeout), 503, "authority_unavailable", Some(false)),
            (Error::Store(Store::Conflict(text())), 503, "authority_unavailable", Some(false)),
            (Error::Store(Store::Corrupt(text())), 503, "authority_unavailable", Some(false)),
            (Error::Store(Store::StorageFull), 503, "storage_full", Some(false)),
            (Error::Store(Store::Data(text())), 400, "invalid_value", Some(false)),
        ] {
            let shown = Problem::from(error).to_wire("r");
            assert_eq!((shown.status, &*shown.code, shown.recorded), (status, code, recorded));
            assert_eq!(shown.retryable, status == 503);
            assert_eq!(shown.retry_after_ms.is_some(), status == 503);
            assert!(!shown.detail.contains("driver"), "a driver's words stay inside");
        }
    }

    #[test]
    fn a_recorded_refusal_is_not_worth_another_try() {
        let shortage = Shortage { line: 2, requested: 3, available: 1 };
        for recorded in [true, false] {
            let refusal = Refusal::SoldOut(shortage);
            let problem = Problem::refused(&refusal, recorded, false, None, Subject::NewInCampaign);
            let shown = problem.below("/orders/4").to_wire("r");
            assert_eq!((shown.status, shown.recorded, shown.retryable), (409, Some(recorded), !recorded));
            let error = shown.errors.first().expect("an error");
            assert_eq!(error.pointer, "/orders/4/lines/1");
            assert_eq!((error.requested, error.available), (Some(3), Some(1)));
        }
    }

    #[test]
    fn a_refund_points_at_its_own_lines() {
        let refusal = Refusal::RefundExceedsSold(Shortage { line: 7, requested: 3, available: 1 });
        let lines = [RefundLine { line: 3, quantity: 1 }, RefundLine { line: 7, quantity: 3 }];
        for (subject, pointer) in [
            (Subject::Refund(&lines), "/lines/1"),
            (Subject::Refund(&[]), "/lines"),
            (Subject::Named, "/lines"),
        ] {
            let problem = Problem::refused(&refusal, false, false, None, subject);
            assert_eq!(problem.pointers(), [(pointer.to_owned(), "refund_exceeds_sold".to_owned())]);
        }
    }
}
