//! The embedded store: SQLite with one writer thread, a write-ahead log that is flushed at every commit,
//! strict tables and constraints that make a negative balance or a doubled key impossible.

mod acts;
mod ahead;
mod apply;
mod approvals;
mod archive;
mod audit;
mod backup;
mod bare;
mod cache;
mod campaign;
mod cases;
mod catalog;
mod checkpoint;
mod codec;
mod error;
mod evidence;
mod examine;
mod files;
mod fill;
mod keys;
mod load;
mod lock;
mod migrate;
mod query;
mod queue;
mod reader;
mod reconcile;
mod settlement;
mod sinks;
mod store;
mod transit;
mod writer;

pub use archive::{Archive, Archived, ArchivedTable, archive_file};
pub use backup::{Check, Contents, Copied, Restore, backup_file, restore_file};
pub use bare::BareTables;
pub use evidence::{explain_order_file, explain_pool_file};
pub use examine::{Examined, examine_file, files_of, sqlite_version};
pub use fill::fill_file;
pub use store::{Options, SqliteStore, audit_file, audit_file_as_of};
pub use transit::{Source, View};

/// The version of the SQLite library inside.
pub fn version() -> &'static str {
    rusqlite::version()
}
