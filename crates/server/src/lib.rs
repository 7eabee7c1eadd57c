//! The HTTP server of Holdfast: routes, the one status map, authentication, limits, start and drain.
//!
//! **Architecture invariant:** handlers parse, call one use case of the engine, and shape the answer.
//! Whatever changes stock or an order goes through the engine; the server itself only reads.

mod accept;
mod answer;
mod app;
mod auth;
mod config;
mod edge;
mod endure;
mod events;
#[cfg(test)]
mod events_page;
mod explain;
mod extract;
mod guidance;
mod input;
mod keyring;
mod metrics;
mod openapi;
mod pages;
mod problem;
mod retryable;
mod roles;
mod router;
mod routes;
mod scope;
mod serve;
mod signature;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod unparsed;
mod view;
mod webhook_secret;

pub use config::{Auth, Config, ConfigError, Limits, Secret};
pub use events::{order_event, test_event};
pub use explain::{order as order_explanation, pool as pool_explanation};
pub use input::time::read_time;
pub use keyring::NewKey;
pub use router::router;
pub use serve::{serve, serve_tls};
pub use tls::{Tls, TlsError};
pub use view::{policy as policy_view, time as time_text};
