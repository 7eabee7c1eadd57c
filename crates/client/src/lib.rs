//! Typed client for the Holdfast HTTP API.
//!
//! Every write carries its own business key (order number, refund id, event id …), so the client may
//! repeat any request: a repeat answers with what already happened. It does so on lost connections, 429
//! and 503, a bounded number of times. It knows no rule of the domain; what an answer means is for the
//! caller.

mod error;
mod query;
mod retry;
mod routes;
#[cfg(test)]
mod tests;
mod transport;

pub use error::Error;
pub use query::{LedgerQuery, OrdersQuery, PageQuery, PoolsQuery, Switch};
pub use retry::RetryPolicy;
pub use transport::{Answer, Client};
