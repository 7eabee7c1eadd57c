//! PostgreSQL as the authority, also for several nodes at once: nothing here rests on being the only writer.
//!
//! A batch takes two flights: begin, the locks, every read and last the clock; then every write with the COMMIT
//! behind them. What is read before the locks is never trusted, and what a lost answer meant is looked up under the
//! same locks. Batches and connections have threads of their own, so that no lock waits for a request's turn.

mod acts;
mod address;
mod ahead;
mod alike;
mod apply;
mod approvals;
mod archive;
mod audit;
mod bare;
mod cache;
mod call;
mod campaign;
mod cases;
mod catalog;
mod clock;
mod commit;
mod connection;
mod error;
mod evidence;
mod examine;
mod files;
mod fill;
mod flight;
mod keys;
mod load;
mod migrate;
mod payments;
mod pools;
mod query;
mod queue;
mod read;
mod reconcile;
mod row;
mod settlement;
mod sinks;
mod statement;
mod store;
mod sweep;
mod threads;
mod tls;
mod transit;
mod unknown;
mod usage;

pub use address::{Address, InvalidAddress, Statements};
pub use archive::{Rows, campaign_rows};
pub use bare::BareTables;
pub use evidence::{explain_order, explain_pool};
pub use examine::{Examined, Setting, examine};
pub use fill::fill;
pub use store::{Options, PostgresStore, audit, audit_as_of};
pub use transit::{Column, Target, line};
