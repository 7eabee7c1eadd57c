//! The embedded store passes the suite that every store passes, each case on a file of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use std::sync::Arc;

use holdfast_sqlite::{Options, SqliteStore};
use holdfast_store::{ManualClock, Store};
use tempfile::TempDir;

async fn open(clock: Arc<ManualClock>) -> (Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let options = Options { clock, ..Options::default() };
    let store = SqliteStore::open(&directory.path().join("test.db"), options).expect("a store");
    (Arc::new(store), directory)
}

holdfast_store::conformance_suite!(open);
