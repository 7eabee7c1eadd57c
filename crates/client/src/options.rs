//! How a client reaches its server.

use std::fmt;
use std::sync::Once;

use reqwest::{Certificate, ClientBuilder};

use crate::error::Error;
use crate::retry::RetryPolicy;

/// How a client reaches its server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The key, where the server wants one.
    pub key: Option<String>,
    /// Bounds of the attempts.
    pub retry: RetryPolicy,
    /// The certificates, in PEM form, that a server behind `https://` may be vouched for by; absent: those
    /// that the system trusts.
    pub ca_pem: Option<Vec<u8>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref().map(|_| "(hidden)");
        f.debug_struct("Options").field("key", &key).field("retry", &self.retry).finish_non_exhaustive()
    }
}

/// Whom to trust.
pub(crate) fn with_trust(
    builder: ClientBuilder,
    is_tls: bool,
    ca_pem: Option<&[u8]>,
) -> Result<ClientBuilder, Error> {
    provide_cryptography();
    if !is_tls {
        // Nobody vouches for anybody here, and a system without certificates must do.
        return Ok(builder.tls_certs_only(std::iter::empty::<Certificate>()));
    }
    let Some(pem) = ca_pem else { return Ok(builder) };
    let wrong = || Error::Configuration("the file of trusted certificates holds none in PEM form".into());
    let certificates = Certificate::from_pem_bundle(pem).map_err(|_| wrong())?;
    if certificates.is_empty() {
        return Err(wrong());
    }
    Ok(builder.tls_certs_only(certificates))
}

/// The library below wants its cryptography chosen by the process. One that was chosen before stays.
fn provide_cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error says that there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
