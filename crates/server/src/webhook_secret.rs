//! Secrets that deliveries are signed with: made here, or given; shown once.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// How a secret begins.
const PREFIX: &str = "whsec_";
/// Least and most bytes of a secret, as Standard Webhooks has them.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// What a secret that can sign looks like.
pub(crate) const RULE: &str = "must be `whsec_` and 24 to 64 bytes in base64";

/// Whether a text is a secret that can sign.
pub(crate) fn is_secret(text: &str) -> bool {
    let bytes = text.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok());
    bytes.is_some_and(|bytes| SECRET_BYTES.contains(&bytes.len()))
}

/// A secret nobody can guess; an error if the system has no randomness.
pub(crate) fn random() -> Result<Arc<str>, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", STANDARD.encode(bytes)).into())
}

/// An id for a secret, which says nothing of it.
pub(crate) fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_one_form() {
        let made = random().expect("randomness");
        assert!(is_secret(&made) && *made != *random().expect("randomness"));
        for bad in
            ["", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_ä", "whsec_!!!!"]
        {
            assert!(!is_secret(bad), "{bad}");
        }
    }
}
