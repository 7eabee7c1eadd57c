//! Real servers for tests: private, quick to have, and gone when the test run is gone.
//!
//! - [`Postgres::start`] is a PostgreSQL of the test's own, to be killed, paused and restarted at will.
//! - [`Database::shared`] is an empty database of the test's own, on one server that all tests of a run share.
//!
//! What a test needs and the machine does not have is an error that says what to install; nothing is ever skipped.
//! Every server runs in a folder under the temporary directory. A guard process watches the test run and, when it
//! ends in whatever way, kills what still runs there and removes the folder.

mod command;
mod port;
mod postgres;
mod processes;
mod scratch;

pub use postgres::{Database, Postgres, PostgresOptions};
