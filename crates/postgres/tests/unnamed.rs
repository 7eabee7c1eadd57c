//! The suite of all stores once more, with every statement parsed anew and the session's settings in each
//! transaction, as a pooler in transaction mode needs it.

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
    let url = format!("{}?connections=4&statements=unnamed", database.url());
    let options = Options { clock: Some(clock), incarnation: 7, ..Options::default() };
    let store = PostgresStore::open(&Address::parse(&url).expect("a good URL"), options).await.expect("open");
    (Arc::new(store), database)
}

holdfast_store::conformance_suite!(open);
