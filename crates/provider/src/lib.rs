//! Payment providers, asked over HTTP what became of an attempt before its hold is let go.
//!
//! **Architecture invariant:** an endpoint is what the operator configured, and nothing else: nothing that a client
//! sent stands in its address, redirects are not followed, and answers are bounded. Whatever goes wrong is *unknown*:
//! only a provider says that something was paid or failed.

mod answer;
mod breaker;
mod endpoint;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::id::Provider;
use holdfast_engine::{PaymentStatus, StatusQuestion, StatusSource};
use reqwest::redirect;

use crate::endpoint::{CONNECT, Endpoint};

/// Why a configuration cannot be used. Keys are never in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A provider that no attempt can name.
    #[error("{0:?} is no name of a payment provider")]
    Provider(String),
    /// No address that may be asked.
    #[error("the address of the payment provider {provider:?} {why}")]
    Address {
        /// Which.
        provider: String,
        /// Why.
        why: &'static str,
    },
    /// A key for a provider without an address, or one that cannot be sent.
    #[error(
        "the key of the payment provider {0:?} belongs to no address, or holds characters that no key has"
    )]
    Key(String),
    /// The library cannot be used.
    #[error("{0}")]
    Client(String),
}

/// The endpoints of providers.
pub struct StatusEndpoints {
    http: reqwest::Client,
    endpoints: BTreeMap<Provider, Arc<Endpoint>>,
}

impl StatusEndpoints {
    /// The endpoints at these addresses, with the keys of those that want one.
    pub fn new(addresses: &[(String, String)], keys: &[(String, String)]) -> Result<Self, ConfigError> {
        let mut endpoints = BTreeMap::new();
        for (name, address) in addresses {
            let provider = Provider::new(name).map_err(|_| ConfigError::Provider(name.clone()))?;
            let key = keys.iter().find(|(of, _)| of == name).map(|(_, key)| key.as_str());
            let endpoint = Endpoint::new(name, address, key)?;
            endpoints.insert(provider, Arc::new(endpoint));
        }
        if let Some((name, _)) = keys.iter().find(|(of, _)| !addresses.iter().any(|(name, _)| name == of)) {
            return Err(ConfigError::Key(name.clone()));
        }
        // The library wants its cryptography chosen by the process; an error says that it is.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let only_loopback = endpoints.values().all(|endpoint| !endpoint.is_tls());
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT);
        if only_loopback {
            // Nobody vouches for anybody here, and a system without certificates must do.
            builder = builder.tls_certs_only(std::iter::empty::<reqwest::Certificate>()).no_proxy();
        }
        let http = builder.build().map_err(|error| ConfigError::Client(error.to_string()))?;
        Ok(Self { http, endpoints })
    }
}

#[async_trait]
impl StatusSource for StatusEndpoints {
    fn knows(&self, provider: &Provider) -> bool {
        self.endpoints.contains_key(provider)
    }

    async fn ask(&self, question: &StatusQuestion) -> PaymentStatus {
        match self.endpoints.get(&question.provider) {
            Some(endpoint) => endpoint.ask(&self.http, question).await,
            None => PaymentStatus::Unknown,
        }
    }
}
