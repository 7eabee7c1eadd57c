//! The model store passes the suite that every store passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use std::sync::Arc;

use holdfast_store::model::ModelStore;
use holdfast_store::{ManualClock, Store};

async fn open(clock: Arc<ManualClock>) -> (Arc<dyn Store>, ()) {
    (Arc::new(ModelStore::new(clock)), ())
}

holdfast_store::conformance_suite!(open);
