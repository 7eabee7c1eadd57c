//! Payment notices.

use holdfast_core::id::{OrderId, OrderKey, Provider};
use holdfast_core::order::{Notice, PaymentOutcome};
use holdfast_wire::Code;

use super::field::{AMOUNT, Currency, OrderIdField, id, integer, word};
use super::reader::Object;
use super::time::instant;

/// How a notice names its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderName {
    /// By our id.
    Id(OrderId),
    /// By the client's number.
    Key(OrderKey),
}

/// A notice and the order that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoticeInput {
    pub(crate) order: OrderName,
    pub(crate) notice: Notice,
}

/// Reads a notice.
pub(crate) fn read_notice(provider: Provider, body: &mut Object<'_, '_>) -> Option<NoticeInput> {
    let event_id = body.required("event_id", id());
    let payment_id = body.required("payment_id", id());
    let order = read_order_name(body);
    let attempt_id = body.optional("attempt_id", id());
    let outcome = body.required("outcome", word(PaymentOutcome::parse));
    let paid_at = body.optional("paid_at", instant());
    let amount_minor = body.optional("amount_minor", integer(AMOUNT));
    let currency = body.optional("currency", Currency);
    let notice = Notice {
        provider,
        event_id: event_id?,
        payment_id: payment_id?,
        attempt_id: attempt_id?,
        outcome: outcome?,
        paid_at: paid_at?,
        amount_minor: amount_minor?,
        currency: currency?,
    };
    Some(NoticeInput { order: order?, notice })
}

/// Exactly one of `order_id` and (`campaign_id`, `order_no`).
fn read_order_name(body: &mut Object<'_, '_>) -> Option<OrderName> {
    let has_key = body.has("campaign_id") || body.has("order_no");
    let by_id = body.optional("order_id", OrderIdField);
    if !has_key {
        body.optional("campaign_id", id::<holdfast_core::id::CampaignId>());
        body.optional("order_no", id::<holdfast_core::id::OrderNo>());
        let by_id = by_id?;
        if by_id.is_none() {
            let detail = "name the order by order_id, or by campaign_id and order_no";
            body.refuse("order_id", Code::InvalidValue, detail);
        }
        return by_id.map(OrderName::Id);
    }
    let campaign = body.required("campaign_id", id());
    let order_no = body.required("order_no", id());
    if by_id?.is_some() {
        let detail = "name the order by order_id or by campaign_id and order_no, not both";
        body.refuse("order_id", Code::InvalidValue, detail);
        return None;
    }
    Some(OrderName::Key(OrderKey { campaign: campaign?, order_no: order_no? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::read;

    const ID: &str = "01937a5e-0000-7000-8000-0000000000ff";

    fn notice(fields: &str) -> Result<NoticeInput, Vec<(String, String)>> {
        let body = format!(r#"{{"event_id":"e","payment_id":"p","outcome":"succeeded"{fields}}}"#);
        let provider = Provider::new("stub").expect("an id");
        read(body.as_bytes(), |body| read_notice(provider, body)).map_err(|problem| problem.pointers())
    }

    #[test]
    fn a_notice_names_its_order_in_exactly_one_form() {
        assert!(notice(&format!(r#","order_id":"{ID}""#)).is_ok());
        assert!(notice(&format!(r#","order_id":"{ID}","campaign_id":null"#)).is_ok());
        assert!(notice(r#","campaign_id":"c","order_no":"o""#).is_ok());
        let refused = |pointer: &str, code: &str| Err(vec![(pointer.to_owned(), code.to_owned())]);
        assert_eq!(notice(""), refused("/order_id", "invalid_value"));
        assert_eq!(notice(r#","order_id":"17""#), refused("/order_id", "invalid_identifier"));
        assert_eq!(notice(r#","campaign_id":"c""#), refused("/order_no", "invalid_identifier"));
        let both = format!(r#","order_id":"{ID}","campaign_id":"c","order_no":"o""#);
        assert_eq!(notice(&both), refused("/order_id", "invalid_value"));
    }

    #[test]
    fn times_and_amounts_are_strict() {
        let on = |fields: &str| notice(&format!(r#","order_id":"{ID}",{fields}"#));
        assert!(on(r#""paid_at":"2026-01-01T00:00:00.5Z","amount_minor":0,"currency":"EUR""#).is_ok());
        for (fields, pointer, code) in [
            (r#""paid_at":"2026-01-01""#, "/paid_at", "invalid_time"),
            (r#""amount_minor":1.5"#, "/amount_minor", "invalid_value"),
            (r#""currency":"eur""#, "/currency", "invalid_value"),
            (r#""paid":true"#, "/paid", "unknown_field"),
        ] {
            assert_eq!(on(fields), Err(vec![(pointer.to_owned(), code.to_owned())]), "{fields}");
        }
    }
}
