//! The embedded store: SQLite with one writer thread, a write-ahead log that is flushed at every commit,
//! strict tables and constraints that make a negative balance or a doubled key impossible.

mod apply;
mod audit;
mod campaign;
mod codec;
mod detail;
mod error;
mod failpoint;
mod load;
mod lock;
mod migrate;
mod query;
mod reader;
mod store;
mod writer;

pub use failpoint::Failpoints;
pub use store::{ExplainOrder, Explained, Options, SqliteStore, audit_file, explain_file};
