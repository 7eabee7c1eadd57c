//! Signatures after Standard Webhooks: `HMAC-SHA256(secret, "{id}.{timestamp}.{body}")` in base64, behind `v1,`; one for
//! each secret, so that a receiver can change to a new one when it likes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How a secret begins.
const PREFIX: &str = "whsec_";
/// Least and most bytes of a secret, as the specification has them.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

fn key_of(text: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
    SECRET_BYTES.contains(&bytes.len()).then_some(bytes)
}

/// The header for a body.
pub(crate) fn signatures<'s>(
    secrets: impl Iterator<Item = &'s str>,
    id: &str,
    seconds: i64,
    body: &[u8],
) -> String {
    let seconds = seconds.to_string();
    let signed = |secret: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key_of(secret)?).ok()?;
        for part in [id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
            mac.update(part);
        }
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    };
    secrets.filter_map(signed).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own libraries.
    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let header = signatures(
            std::iter::once(secret),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(header, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let both = signatures([secret, "whsec_bad", secret].into_iter(), "id", 1, b"{}");
        assert_eq!(both.split(' ').count(), 2);
    }
}
