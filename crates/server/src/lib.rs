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
mod extract;
mod input;
mod problem;
mod router;
mod routes;
mod serve;
mod signature;
#[cfg(test)]
mod tests;
mod view;

pub use config::{Auth, Config, ConfigError, Limits, Secret};
pub use router::router;
pub use serve::serve;
pub use view::{entry as ledger_entry_view, order as order_view};
