//! Keys: one admin key, compared by its hash in constant time.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use holdfast_wire::Code;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::app::App;
use crate::config::Auth;
use crate::problem::Problem;

/// Lets only those in who have the key.
pub(crate) async fn require_key(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    check_key(app.auth(), request.headers())?;
    Ok(next.run(request).await)
}

/// Whether a request has the key.
pub(crate) fn check_key(auth: &Auth, headers: &HeaderMap) -> Result<(), Problem> {
    let Auth::AdminKey { sha256 } = auth else { return Ok(()) };
    let key = bearer(headers).ok_or_else(|| unauthenticated("a key is needed: Authorization: Bearer KEY"))?;
    let hash = Sha256::digest(key);
    if bool::from(hash.as_slice().ct_eq(sha256)) {
        return Ok(());
    }
    Err(unauthenticated("the key is not known"))
}

/// 401.
pub(crate) fn unauthenticated(detail: &'static str) -> Problem {
    Problem::new(Code::Unauthenticated, detail)
}

/// The bearer token, if there is exactly one.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
    let (scheme, key) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).expect("a value"));
        }
        headers
    }

    #[test]
    fn only_the_key_opens() {
        let auth = Auth::admin_key("secret");
        assert!(check_key(&auth, &headers(&[b"Bearer secret"])).is_ok());
        assert!(check_key(&auth, &headers(&[b"bearer secret"])).is_ok());
        let wrong: [&[&[u8]]; 8] = [
            &[],
            &[b""],
            &[b"Bearer"],
            &[b"Bearer "],
            &[b"Bearer secre"],
            &[b"Basic secret"],
            &[b"Bearer \xff\xfe"],
            &[b"Bearer secret", b"Bearer secret"],
        ];
        for values in wrong {
            let problem = check_key(&auth, &headers(values)).expect_err("refused");
            assert_eq!(problem.code(), Code::Unauthenticated);
        }
        assert!(check_key(&Auth::Off, &headers(&[])).is_ok());
    }
}
