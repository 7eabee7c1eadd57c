//! What the server must be told.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use holdfast_core::id::Provider;

/// The server's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether it sells: a node that only works in the background answers for its health and nothing else.
    pub api: bool,
    /// Who may ask.
    pub auth: Auth,
    /// The secrets that providers sign their notices with; several while they rotate. A provider without
    /// a secret needs a key.
    pub payment_secrets: BTreeMap<String, Vec<Secret>>,
    /// How much at once, and how long.
    pub limits: Limits,
    /// Whether there is a route that answers with a fixed order, for the benchmark.
    pub constant_answer: bool,
}

/// Who may ask.
#[derive(Debug, Clone)]
pub enum Auth {
    /// Anybody who can connect; only on a loopback address.
    Off,
    /// Whoever has a key of the right role.
    Keys,
}

/// A secret that is shared with a payment provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret as the provider gives it: `whsec_` and base64, or any text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as given.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How much at once, and how long.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most requests that write, at once; more are refused with `overloaded`.
    pub writes_in_flight_max: usize,
    /// Most connections; more are closed at once.
    pub connections_max: usize,
    /// Longest body.
    pub body_bytes_max: usize,
    /// How long a request's headers may take. Also how long a connection may idle.
    pub header_read_timeout: Duration,
    /// How long a connection may take to its first request.
    pub first_request_timeout: Duration,
    /// How long a TLS handshake may take.
    pub tls_handshake_timeout: Duration,
    /// How long a body may take.
    pub body_read_timeout: Duration,
    /// How long a request may take in all.
    pub request_timeout: Duration,
    /// Most payment notices whose signature is not verified yet, at once.
    pub unverified_bodies_max: usize,
    /// How long a client may take nothing of its answer before its connection is cut.
    pub write_stall_timeout: Duration,
    /// Most readers of orders' events, at once; more are refused with `overloaded`.
    pub events_max: usize,
    /// How often a reader of events hears that the connection is alive, and the order is read anew.
    pub events_keep_alive: Duration,
    /// How long a reader of events may stay; it may come back at once.
    pub events_lifetime: Duration,
    /// Most exports at once; more are refused with `overloaded`.
    pub exports_max: usize,
    /// Most imports at once; more are refused with `overloaded`.
    pub imports_max: usize,
    /// Longest file that is imported.
    pub import_bytes_max: usize,
    /// How long a file may take to come, and then to be imported.
    pub import_timeout: Duration,
    /// How long a reader of events or of an export may take nothing before it is given up.
    pub stream_stall_timeout: Duration,
    /// How long requests may go on after the order to stop.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            writes_in_flight_max: 4_096,
            connections_max: 10_000,
            body_bytes_max: 256 * 1_024,
            header_read_timeout: Duration::from_secs(10),
            first_request_timeout: Duration::from_secs(10),
            tls_handshake_timeout: Duration::from_secs(5),
            body_read_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(20),
            unverified_bodies_max: 128,
            write_stall_timeout: Duration::from_secs(30),
            events_max: 1_000,
            events_keep_alive: Duration::from_secs(15),
            events_lifetime: Duration::from_secs(15 * 60),
            exports_max: 8,
            imports_max: 2,
            import_bytes_max: 32 << 20,
            import_timeout: Duration::from_secs(60),
            stream_stall_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(25),
        }
    }
}

/// Why a configuration cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Everybody on the network could sell the stock.
    #[error("authentication may be off only on a loopback address, not on {0}")]
    OpenToTheNetwork(SocketAddr),
    /// A provider that no notice can name.
    #[error("{0:?} is no name of a payment provider")]
    Provider(String),
    /// A secret that everybody knows.
    #[error("a secret of the payment provider {0:?} is empty")]
    EmptySecret(String),
}

impl Config {
    /// Whether this can be served safely.
    pub fn check(&self) -> Result<(), ConfigError> {
        if matches!(self.auth, Auth::Off) && !self.listen.ip().is_loopback() {
            return Err(ConfigError::OpenToTheNetwork(self.listen));
        }
        for (provider, secrets) in &self.payment_secrets {
            if Provider::new(provider).is_err() {
                return Err(ConfigError::Provider(provider.clone()));
            }
            if secrets.iter().any(|secret| matches!(secret.text(), "" | "whsec_")) {
                return Err(ConfigError::EmptySecret(provider.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str, auth: Auth) -> Config {
        Config {
            listen: listen.parse().expect("an address"),
            api: true,
            auth,
            payment_secrets: BTreeMap::new(),
            limits: Limits::default(),
            constant_answer: false,
        }
    }

    #[test]
    fn without_authentication_only_loopback_is_served() {
        assert_eq!(config("127.0.0.1:0", Auth::Off).check(), Ok(()));
        assert_eq!(config("[::1]:0", Auth::Off).check(), Ok(()));
        for open in ["0.0.0.0:80", "[::]:80", "192.168.0.1:80"] {
            assert!(
                matches!(config(open, Auth::Off).check(), Err(ConfigError::OpenToTheNetwork(_))),
                "{open}"
            );
            assert_eq!(config(open, Auth::Keys).check(), Ok(()));
        }
    }

    #[test]
    fn secrets_are_neither_empty_nor_shown() {
        let mut config = config("127.0.0.1:0", Auth::Off);
        config.payment_secrets.insert("stub".into(), vec![Secret::new("hush")]);
        assert_eq!(config.check(), Ok(()));
        assert!(!format!("{config:?}").contains("hush"));
        config.payment_secrets.insert("stub".into(), vec![Secret::new("")]);
        assert_eq!(config.check(), Err(ConfigError::EmptySecret("stub".into())));
        config.payment_secrets = BTreeMap::from([(" stub".into(), Vec::new())]);
        assert_eq!(config.check(), Err(ConfigError::Provider(" stub".into())));
    }
}
