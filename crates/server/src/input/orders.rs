//! Requests about orders.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::command::{Keep, OrderAction};
use holdfast_core::id::{Account, CampaignId, DecisionId, Operator, OrderId, OrderKey, PaymentId, PoolId};
use holdfast_core::limit::LIMIT_KEYS_MAX;
use holdfast_core::order::{LINES_MAX, Money, ORDER_RECORDS_MAX, Refund, RefundLine, State};
use holdfast_core::stock::QUANTITY_MAX;
use holdfast_engine::{PlaceRequest, RequestedLine};
use holdfast_wire::Code;

use super::campaigns::{SECONDS, SwitchInput, read_switch};
use super::field::{
    AMOUNT, Currency, Flag, OrderIdField, PoolIdField, TEXT_CHARS_MAX, id, integer, quantity, quantity_in,
    text, word,
};
use super::reader::Object;
use super::time::instant;
use crate::problem::Problem;

/// Most orders of a page of cancels, and how many if the client does not say.
const CANCELS_MAX: u32 = 500;
const CANCELS: u32 = 100;
/// Most orders of a batch.
const BATCH_MAX: usize = 500;

/// Reads an order to place.
pub(crate) fn read_place(body: &mut Object<'_, '_>) -> Option<PlaceRequest> {
    let campaign = body.required("campaign_id", id());
    let order_no = body.required("order_no", id());
    let account = body.required("account", id());
    let lines = body.array("lines", 1..=LINES_MAX, |item| item.object(read_line));
    let hold_seconds = body.optional("hold_seconds", integer(SECONDS));
    let amount_due = body.object("amount_due", read_money);
    let limit_keys = body.map("limit_keys", LIMIT_KEYS_MAX, |item| item.field(id()));
    let metadata = body.metadata();
    Some(PlaceRequest {
        key: OrderKey { campaign: campaign?, order_no: order_no? },
        account: account?,
        lines: lines?,
        hold_seconds: hold_seconds?,
        amount_due: amount_due?,
        limit_keys: limit_keys?,
        metadata: metadata?,
    })
}

fn read_line(body: &mut Object<'_, '_>) -> Option<RequestedLine> {
    let sku = body.required("sku", id());
    let location = body.optional("location", id());
    let quantity = body.required("quantity", quantity());
    Some(RequestedLine { sku: sku?, location: location?, quantity: quantity? })
}

fn read_money(body: &mut Object<'_, '_>) -> Option<Money> {
    let amount_minor = body.required("amount_minor", integer(AMOUNT));
    let currency = body.required("currency", Currency);
    Some(Money { amount_minor: amount_minor?, currency: currency? })
}

/// Reads a batch: one wrong order does not spoil the others.
pub(crate) fn read_batch(body: &mut Object<'_, '_>) -> Option<Vec<Result<PlaceRequest, Problem>>> {
    body.array("orders", 1..=BATCH_MAX, |item| Some(item.alone(read_place)))
}

/// A cancel with its reason.
pub(crate) struct CancelInput {
    pub(crate) action: OrderAction,
    pub(crate) reason: Arc<str>,
}

/// Reads a cancel: the whole order, or lines reduced.
pub(crate) fn read_cancel(body: &mut Object<'_, '_>) -> Option<CancelInput> {
    let reason = body.defaulted("reason", text(TEXT_CHARS_MAX), Arc::from(""));
    let lines = body.optional_array("lines", 1..=LINES_MAX, |item| item.object(read_keep))?;
    let action = match lines {
        None => OrderAction::Cancel,
        Some(lines) => {
            refuse_repeated_lines(&lines, body);
            OrderAction::Reduce(lines)
        }
    };
    Some(CancelInput { action, reason: reason? })
}

fn read_keep(body: &mut Object<'_, '_>) -> Option<Keep> {
    let line = body.required("line", line_number());
    let keep = body.required("keep", quantity_in(0..=QUANTITY_MAX));
    Some(Keep { line: line?, keep: keep? })
}

/// Which orders to cancel, by whom and why.
pub(crate) struct CancellationsInput {
    pub(crate) campaign: CampaignId,
    pub(crate) state: State,
    pub(crate) account: Option<Account>,
    pub(crate) pool: Option<PoolId>,
    pub(crate) after: Option<OrderId>,
    pub(crate) limit: usize,
    pub(crate) operator: Operator,
    pub(crate) reason: Arc<str>,
}

/// Reads a page of cancels.
pub(crate) fn read_cancellations(body: &mut Object<'_, '_>) -> Option<CancellationsInput> {
    let campaign = body.required("campaign_id", id());
    let state = body.defaulted("state", word(cancelled_state), State::Held);
    let account = body.optional("account", id());
    let pool = body.optional("pool_id", PoolIdField);
    let after = body.optional("after", OrderIdField);
    let limit = body.defaulted("limit", integer(1..=CANCELS_MAX), CANCELS);
    let SwitchInput { operator, reason } = read_switch(body)?;
    Some(CancellationsInput {
        campaign: campaign?,
        state: state?,
        account: account?,
        pool: pool?,
        after: after?,
        limit: usize::try_from(limit?).ok()?,
        operator,
        reason,
    })
}

/// What of the states can be cancelled.
fn cancelled_state(text: &str) -> Option<State> {
    State::parse(text).filter(|state| matches!(state, State::Held | State::Queued))
}

/// Two targets for one line contradict each other, or the second is noise: a client's mistake either way.
fn refuse_repeated_lines(lines: &[Keep], body: &mut Object<'_, '_>) {
    let mut seen = BTreeSet::new();
    for (index, keep) in lines.iter().enumerate() {
        if !seen.insert(keep.line) {
            body.refuse_below(&format!("/lines/{index}/line"), Code::InvalidValue, "the line stands twice");
        }
    }
}

fn line_number() -> super::field::Integer<u32> {
    integer(1..=LINES_MAX as u32)
}

/// Reads a payment attempt.
pub(crate) fn read_attempt(body: &mut Object<'_, '_>) -> Option<OrderAction> {
    let attempt_id = body.required("attempt_id", id());
    let provider = body.required("provider", id());
    Some(OrderAction::Attempt(attempt_id?, provider?))
}

/// Reads a refund.
pub(crate) fn read_refund(body: &mut Object<'_, '_>) -> Option<Refund> {
    let refund_id = body.required("refund_id", id());
    let lines = body.array("lines", 1..=LINES_MAX, |item| item.object(read_refund_line));
    let restock = body.optional("restock", Flag);
    let reason = body.required("reason", text(TEXT_CHARS_MAX));
    Some(Refund { refund_id: refund_id?, lines: lines?, restock: restock?, reason: reason? })
}

fn read_refund_line(body: &mut Object<'_, '_>) -> Option<RefundLine> {
    let line = body.required("line", line_number());
    let quantity = body.required("quantity", quantity());
    Some(RefundLine { line: line?, quantity: quantity? })
}

/// What an operator may decide on an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Confirm,
    Release,
    Extend,
    Reduce,
    Refunded,
}

impl Decision {
    /// Every one, as the contract spells it.
    pub(crate) const WORDS: [(&'static str, Self); 5] = [
        ("confirm", Self::Confirm),
        ("release", Self::Release),
        ("extend", Self::Extend),
        ("reduce", Self::Reduce),
        ("refunded", Self::Refunded),
    ];

    fn parse(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, decision)| *decision)
    }
}

/// A decision with who made it and why.
pub(crate) struct DecisionInput {
    pub(crate) action: OrderAction,
    /// What it is called where a second person is asked, and under which key; none: nobody is.
    pub(crate) work: Option<(&'static str, DecisionId)>,
    pub(crate) signed: SwitchInput,
}

/// The key of a decision on an order, where the client names none.
const DECISION_ID: &str = "1";

/// Reads an operator's decision. What belongs to another decision is refused.
pub(crate) fn read_decision(body: &mut Object<'_, '_>) -> Option<DecisionInput> {
    let decision = body.required("action", word(Decision::parse));
    let until = body.optional("until", instant());
    let payments =
        body.optional_array("payment_ids", 1..=ORDER_RECORDS_MAX, |item| item.field(id::<PaymentId>()));
    let lines = body.optional_array("lines", 1..=LINES_MAX, |item| item.object(read_keep));
    let decision_id: Option<Option<DecisionId>> = body.optional("decision_id", id());
    let signed = read_switch(body);
    let (decision, until, payments, lines) = (decision?, until?, payments?, lines?);
    if until.is_some() != (decision == Decision::Extend) {
        body.refuse("until", Code::InvalidTime, "belongs to extend, which needs it");
        return None;
    }
    if payments.is_some() && decision != Decision::Refunded {
        body.refuse("payment_ids", Code::InvalidValue, "belongs to refunded");
        return None;
    }
    if lines.is_some() != (decision == Decision::Reduce) {
        body.refuse("lines", Code::InvalidValue, "belongs to reduce, which needs it");
        return None;
    }
    let decision_id = match decision_id? {
        Some(decision_id) => decision_id,
        None => DecisionId::new(DECISION_ID).ok()?,
    };
    let (action, word) = match decision {
        Decision::Confirm => (OrderAction::Confirm, Some("confirm")),
        Decision::Release => (OrderAction::Release, Some("release")),
        Decision::Extend => (OrderAction::Extend(until?), Some("extend")),
        Decision::Reduce => {
            let lines = lines.unwrap_or_default();
            refuse_repeated_lines(&lines, body);
            (OrderAction::Reduce(lines), Some("reduce"))
        }
        Decision::Refunded => (OrderAction::MarkRefunded(payments.unwrap_or_default()), None),
    };
    Some(DecisionInput { action, work: word.map(|word| (word, decision_id)), signed: signed? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::read;

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned())).collect()
    }

    fn place(text: &str) -> Result<PlaceRequest, Vec<(String, String)>> {
        read(text.as_bytes(), read_place).map_err(|problem| problem.pointers())
    }

    fn with(fields: &str) -> String {
        format!(
            r#"{{"campaign_id":"c","order_no":"o","account":"a","lines":[{{"sku":"s","quantity":1}}]{fields}}}"#
        )
    }

    #[test]
    fn an_order_is_read_as_sent() {
        let order = place(&with(r#","metadata": { "a" : 1.0 },"hold_seconds":null"#)).expect("read");
        assert_eq!(order.metadata.as_deref(), Some(r#"{ "a" : 1.0 }"#));
        assert_eq!(order.lines[0].location, None);
        assert_eq!(order.hold_seconds, None);
        assert_eq!(place(&with(r#","metadata":null,"limit_keys":{}"#)).expect("read").metadata, None);
        let order = place(&with(r#","limit_keys":{"device":"d-1","address":"Hill 7"}"#)).expect("read");
        let keys: Vec<_> = order.limit_keys.iter().map(|(name, key)| (name.as_str(), key.as_str())).collect();
        assert_eq!(keys, [("address", "Hill 7"), ("device", "d-1")]);
    }

    #[test]
    fn every_error_is_told_with_its_place() {
        let body = r#"{"campaign_id":" c","order_no":7,"lines":[{"sku":"s","quantity":1.0},{"quantity":0,"x":1}],
            "hold_seconds":0,"amount_due":{"amount_minor":-1,"currency":"eur"},"limit_keys":{"d":"1","e":1},
            "metadata":{"a":"\u0000"},"nonsense":{}}"#;
        let expected = pairs(&[
            ("/campaign_id", "invalid_identifier"),
            ("/order_no", "invalid_identifier"),
            ("/account", "invalid_identifier"),
            ("/lines/0/quantity", "invalid_quantity"),
            ("/lines/1/sku", "invalid_identifier"),
            ("/lines/1/quantity", "invalid_quantity"),
            ("/lines/1/x", "unknown_field"),
            ("/hold_seconds", "invalid_value"),
            ("/amount_due/amount_minor", "invalid_value"),
            ("/amount_due/currency", "invalid_value"),
            ("/limit_keys/e", "invalid_identifier"),
            ("/metadata/a", "invalid_value"),
            ("/nonsense", "unknown_field"),
        ]);
        assert_eq!(place(body), Err(expected));
    }

    #[test]
    fn lines_are_bounded() {
        let body = |count: usize| {
            let lines = vec![r#"{"sku":"s","quantity":1}"#; count].join(",");
            format!(r#"{{"campaign_id":"c","order_no":"o","account":"a","lines":[{lines}]}}"#)
        };
        assert!(place(&body(1_000)).is_ok());
        for count in [0, 1_001] {
            assert_eq!(place(&body(count)), Err(pairs(&[("/lines", "invalid_value")])));
        }
        assert_eq!(place("[]"), Err(pairs(&[("", "invalid_value")])));
        let flat = r#"{"campaign_id":"c","order_no":"o","account":"a","lines":{"sku":"s"}}"#;
        assert_eq!(place(flat), Err(pairs(&[("/lines", "invalid_value")])));
    }

    #[test]
    fn in_a_batch_each_order_is_read_on_its_own() {
        let body = format!(r#"{{"orders":[{},{},7]}}"#, with(r#","metadata":{}"#), with(r#","x":1"#));
        let orders = read(body.as_bytes(), read_batch).expect("an envelope");
        assert!(orders[0].as_ref().is_ok_and(|order| order.metadata.as_deref() == Some("{}")));
        let errors = |index: usize| orders[index].as_ref().expect_err("refused").pointers();
        assert_eq!(errors(1), pairs(&[("/orders/1/x", "unknown_field")]));
        assert_eq!(errors(2), pairs(&[("/orders/2", "invalid_value")]));
        for bad in [r#"{"orders":[]}"#, "{}", r#"{"orders":{}}"#] {
            let errors = read(bad.as_bytes(), read_batch).expect_err("refused").pointers();
            assert_eq!(errors, pairs(&[("/orders", "invalid_value")]), "{bad}");
        }
    }

    #[test]
    fn a_cancel_names_each_line_once() {
        let cancel = |text: &str| {
            read(text.as_bytes(), read_cancel).map(|c| c.action).map_err(|problem| problem.pointers())
        };
        assert_eq!(cancel("{}"), Ok(OrderAction::Cancel));
        assert_eq!(
            cancel(r#"{"lines":[{"line":2,"keep":0}]}"#),
            Ok(OrderAction::Reduce(vec![Keep { line: 2, keep: 0 }]))
        );
        assert_eq!(
            cancel(r#"{"lines":[{"line":2,"keep":0},{"line":2,"keep":0}]}"#),
            Err(pairs(&[("/lines/1/line", "invalid_value")]))
        );
        assert_eq!(cancel(r#"{"lines":[]}"#), Err(pairs(&[("/lines", "invalid_value")])));
        assert_eq!(
            cancel(r#"{"lines":[{"line":0,"keep":-1}]}"#),
            Err(pairs(&[("/lines/0/line", "invalid_value"), ("/lines/0/keep", "invalid_quantity")]))
        );
    }

    #[test]
    fn a_refund_may_name_a_line_twice() {
        let body =
            r#"{"refund_id":"r","reason":"x","lines":[{"line":1,"quantity":1},{"line":1,"quantity":2}]}"#;
        let refund = read(body.as_bytes(), read_refund).expect("read");
        assert_eq!((refund.lines.len(), refund.restock), (2, None));
    }
}
