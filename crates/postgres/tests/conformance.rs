//! The suite that every store passes, each case on a database of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

use std::sync::Arc;

use holdfast_postgres::{Address, Options, PostgresStore};
use holdfast_store::{Clock, Store};
use holdfast_testkit::Database;

async fn open(clock: Arc<dyn Clock>) -> (Arc<dyn Store>, Database) {
    let database = Database::shared().await.expect("a private PostgreSQL");
    let address = Address::parse(&format!("{}?connections=6", database.url())).expect("a good URL");
    let options = Options { clock: Some(clock), incarnation: 7, ..Options::default() };
    let store = PostgresStore::open(&address, options).await.expect("open");
    (Arc::new(store), database)
}

holdfast_store::conformance_suite!(open);
