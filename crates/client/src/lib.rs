#![doc = include_str!("../README.md")]

mod approvals;
mod download;
mod error;
mod events;
mod evidence;
mod keys;
mod options;
mod query;
mod reconciliations;
mod retry;
mod routes;
mod sinks;
mod sse;
#[cfg(test)]
mod tests;
mod transport;

pub use download::Download;
pub use error::Error;
pub use events::{OrderEvent, OrderEvents};
pub use options::Options;
pub use query::{
    ApprovalsQuery, CasesQuery, DiscrepanciesQuery, ExplainPoolQuery, ImportQuery, LedgerQuery, OrdersQuery,
    PageQuery, PoolSwitch, PoolsQuery, Switch,
};
pub use retry::RetryPolicy;
pub use transport::{Answer, Client};
