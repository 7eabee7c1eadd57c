//! Signatures of payment notices: Standard Webhooks, or the Stripe form. Judged on the bytes as they
//! came, before anything is parsed.

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use holdfast_core::time::Timestamp;
use sha2::Sha256;

use crate::config::Secret;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const STRIPE_SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

/// How far a signature's time may be from ours, in seconds: bounds how long a stolen notice can be sent
/// again. A notice that is sent again is harmless anyway: its event id is its key.
const TOLERANCE_SECONDS: i64 = 300;
/// Longest header that is looked at.
const HEADER_BYTES_MAX: usize = 4_096;
/// Most signatures of one request that are tried.
const SIGNATURES_MAX: usize = 16;
/// How a secret begins that is base64 with Standard Webhooks.
const SECRET_PREFIX: &str = "whsec_";

/// Whether one of the secrets signed this body lately.
pub(crate) fn verify(secrets: &[Secret], headers: &HeaderMap, body: &[u8], now: Timestamp) -> bool {
    if headers.contains_key(WEBHOOK_SIGNATURE) {
        return verify_standard(secrets, headers, body, now).unwrap_or(false);
    }
    verify_stripe(secrets, headers, body, now).unwrap_or(false)
}

fn verify_standard(secrets: &[Secret], headers: &HeaderMap, body: &[u8], now: Timestamp) -> Option<bool> {
    let id = only(headers, &WEBHOOK_ID)?;
    let timestamp = only(headers, &WEBHOOK_TIMESTAMP)?;
    let sent = only(headers, &WEBHOOK_SIGNATURE)?;
    if !is_recent(timestamp, now) {
        return Some(false);
    }
    let signatures: Vec<Vec<u8>> = sent
        .split(' ')
        .filter_map(|part| part.strip_prefix("v1,"))
        .take(SIGNATURES_MAX)
        .filter_map(|text| STANDARD.decode(text).ok())
        .collect();
    let signed: [&[u8]; 5] = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
    Some(secrets.iter().any(|secret| matches_any(&standard_key(secret), &signed, &signatures)))
}

/// `whsec_` and base64; a secret of another form is taken as it is.
fn standard_key(secret: &Secret) -> Vec<u8> {
    let text = secret.text();
    let decoded = text.strip_prefix(SECRET_PREFIX).and_then(|text| STANDARD.decode(text).ok());
    decoded.filter(|key| !key.is_empty()).unwrap_or_else(|| text.as_bytes().to_vec())
}

fn verify_stripe(secrets: &[Secret], headers: &HeaderMap, body: &[u8], now: Timestamp) -> Option<bool> {
    let sent = only(headers, &STRIPE_SIGNATURE)?;
    let parts = || sent.split(',').filter_map(|part| part.trim().split_once('='));
    let mut timestamps = parts().filter(|(name, _)| *name == "t").map(|(_, value)| value);
    let timestamp = timestamps.next().filter(|_| timestamps.next().is_none())?;
    if !is_recent(timestamp, now) {
        return Some(false);
    }
    let signatures: Vec<Vec<u8>> = parts()
        .filter(|(name, _)| *name == "v1")
        .take(SIGNATURES_MAX)
        .filter_map(|(_, value)| bytes_of_hex(value))
        .collect();
    let signed: [&[u8]; 3] = [timestamp.as_bytes(), b".", body];
    Some(secrets.iter().any(|secret| matches_any(secret.text().as_bytes(), &signed, &signatures)))
}

/// Whether the key signed the text, in constant time for each signature.
fn matches_any(key: &[u8], signed: &[&[u8]], signatures: &[Vec<u8>]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    signed.iter().for_each(|part| mac.update(part));
    signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
}

/// A header's text, if it is there exactly once, is ASCII and is not too long.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok().filter(|text| !text.is_empty() && text.len() <= HEADER_BYTES_MAX)
}

fn is_recent(timestamp: &str, now: Timestamp) -> bool {
    // Digits only: `parse` takes a sign too, and the signed text must have one form.
    let digits = timestamp.bytes().all(|b| b.is_ascii_digit());
    let Some(at) = digits.then(|| timestamp.parse::<i64>().ok()).flatten() else { return false };
    let now = now.0.div_euclid(1_000_000);
    now.checked_sub(at).is_some_and(|age| (-TOLERANCE_SECONDS..=TOLERANCE_SECONDS).contains(&age))
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const BODY: &[u8] = br#"{"event_id":"e"}"#;
    const NOW: Timestamp = Timestamp(1_700_000_000_000_000);
    const WHSEC: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
        mac.update(text);
        mac.finalize().into_bytes().to_vec()
    }

    fn hex_of(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    fn standard(secret: &str, at: &str) -> String {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a prefix")).expect("base64");
        let text = [b"msg_1.".as_slice(), at.as_bytes(), b".", BODY].concat();
        format!("v1,{}", STANDARD.encode(mac(&key, &text)))
    }

    fn stripe(secret: &str, at: &str) -> String {
        hex_of(&mac(secret.as_bytes(), &[at.as_bytes(), b".", BODY].concat()))
    }

    fn headers(values: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        headers
    }

    fn standard_ok(secrets: &[&str], at: &str, signature: &str) -> bool {
        let values = [("webhook-id", "msg_1"), ("webhook-timestamp", at), ("webhook-signature", signature)];
        ok(secrets, &headers(&values), BODY)
    }

    fn ok(secrets: &[&str], headers: &HeaderMap, body: &[u8]) -> bool {
        let secrets: Vec<_> = secrets.iter().map(|text| Secret::new(*text)).collect();
        verify(&secrets, headers, body, NOW)
    }

    #[test]
    fn the_published_example_of_standard_webhooks_verifies() {
        let values = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ];
        let now = Timestamp(1_614_265_330_000_000);
        let body = br#"{"test": 2432232314}"#;
        assert!(verify(&[Secret::new(WHSEC)], &headers(&values), body, now));
        assert!(!verify(&[Secret::new(WHSEC)], &headers(&values), b"{}", now));
    }

    #[test]
    fn secrets_rotate() {
        let (old, new) = (WHSEC, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
        let at = "1700000000";
        assert!(standard_ok(&[old, new], at, &standard(old, at)));
        assert!(standard_ok(&[old, new], at, &standard(new, at)));
        let both = format!("v1a,xyz {} {}", standard(new, at), standard(old, at));
        assert!(standard_ok(&[old], at, &both));
        assert!(!standard_ok(&[new], at, &standard(old, at)));
        assert!(!standard_ok(&[], at, &standard(old, at)));
    }

    #[test]
    fn old_and_future_signatures_are_refused() {
        for (at, expected) in [
            ("1699999700", true),
            ("1699999699", false),
            ("1700000300", true),
            ("1700000301", false),
            ("0", false),
            ("-1700000000", false),
            ("+1700000000", false),
            ("99999999999999999999", false),
            ("1700000000.0", false),
        ] {
            assert_eq!(standard_ok(&[WHSEC], at, &standard(WHSEC, at)), expected, "{at}");
            let header = format!("t={at},v1={}", stripe("s", at));
            assert_eq!(ok(&["s"], &headers(&[("stripe-signature", &header)]), BODY), expected, "{at}");
        }
    }

    #[test]
    fn the_stripe_form_verifies() {
        let at = "1700000000";
        let good = stripe(WHSEC, at);
        let check = |header: &str| ok(&["x", WHSEC], &headers(&[("stripe-signature", header)]), BODY);
        assert!(check(&format!("t={at},v1={good}")));
        assert!(check(&format!("t={at}, v1={}, v1={good}, v0=abc", stripe("z", at))));
        assert!(check(&format!("v1={},t={at}", good.to_uppercase())));
        assert!(!check(&format!("t={at},v0={good}")));
        assert!(!check(&format!("t={at},t={at},v1={good}")));
        assert!(!check(&format!("v1={good}")));
        assert!(!check(&format!("t=1700000001,v1={good}")));
    }

    #[test]
    fn malformed_signatures_are_refused() {
        let at = "1700000000";
        let good = standard(WHSEC, at);
        let huge = format!("{} {good}", "v1,AAAA ".repeat(600));
        for bad in ["", "v1", "v1,", "v1,!!", "v2,AAAA", &good["v1,".len()..], "v1,é", &huge] {
            assert!(!standard_ok(&[WHSEC], at, bad), "{bad}");
        }
        let twice = headers(&[
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", at),
            ("webhook-signature", &good),
            ("webhook-signature", &good),
        ]);
        assert!(!ok(&[WHSEC], &twice, BODY));
        assert!(!ok(&[WHSEC], &headers(&[]), BODY));
        assert!(!ok(&[WHSEC], &headers(&[("webhook-signature", &good)]), BODY));
        for bad in ["t=1700000000,v1=", "t=1700000000,v1=zz", "t=1700000000,v1=abc", "=", ",", "t=,v1=00"] {
            assert!(!ok(&["s"], &headers(&[("stripe-signature", bad)]), BODY), "{bad}");
        }
    }
}
