//! What a provider answers.

use holdfast_core::id::PaymentId;
use holdfast_core::time::Timestamp;
use holdfast_engine::PaymentStatus;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The answer as it comes. Fields that are not known are the provider's own.
#[derive(Deserialize)]
struct Answer {
    status: String,
    payment_id: Option<String>,
    paid_at: Option<String>,
    amount_minor: Option<i64>,
    currency: Option<String>,
}

/// Reads an answer; none if it says nothing that can be relied on.
pub(crate) fn read(bytes: &[u8]) -> Option<PaymentStatus> {
    let answer: Answer = serde_json::from_slice(bytes).ok()?;
    let payment_id = match &answer.payment_id {
        Some(text) => Some(PaymentId::new(text).ok()?),
        None => None,
    };
    match answer.status.as_str() {
        "paid" => Some(PaymentStatus::Paid {
            payment_id: payment_id?,
            paid_at: match &answer.paid_at {
                Some(text) => Some(time_of(text)?),
                None => None,
            },
            amount_minor: match answer.amount_minor {
                Some(amount) if amount < 0 => return None,
                amount => amount,
            },
            currency: match answer.currency {
                Some(text) if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()) => {
                    Some(text.into())
                }
                Some(_) => return None,
                None => None,
            },
        }),
        "failed" => Some(PaymentStatus::Failed { payment_id }),
        "unknown" => Some(PaymentStatus::Unknown),
        _ => None,
    }
}

fn time_of(text: &str) -> Option<Timestamp> {
    let nanos = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos();
    i64::try_from(nanos / 1_000).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_relied_on_is_read() {
        let paid =
            read(br#"{"status":"paid","payment_id":"p","paid_at":"2026-03-29T12:00:00.5+02:00","more":1}"#);
        let Some(PaymentStatus::Paid { paid_at, .. }) = paid else { panic!("{paid:?}") };
        assert_eq!(paid_at.map(|at| at.to_string()), Some("2026-03-29T10:00:00.500Z".into()));
        assert_eq!(read(br#"{"status":"unknown"}"#), Some(PaymentStatus::Unknown));
        assert_eq!(read(br#"{"status":"failed"}"#), Some(PaymentStatus::Failed { payment_id: None }));
        for bad in [
            r#"{"status":"paid"}"#,
            r#"{"status":"paid","payment_id":" p"}"#,
            r#"{"status":"paid","payment_id":"p","paid_at":"yesterday"}"#,
            r#"{"status":"paid","payment_id":"p","amount_minor":-1}"#,
            r#"{"status":"paid","payment_id":"p","amount_minor":1.5}"#,
            r#"{"status":"paid","payment_id":"p","currency":"eur"}"#,
            r#"{"status":"PAID","payment_id":"p"}"#,
            r#"{}"#,
            "[]",
            "<html>",
        ] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
    }
}
