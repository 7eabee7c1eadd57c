//! The model store passes the suite that every store passes.

use std::sync::Arc;

use holdfast_store::model::ModelStore;
use holdfast_store::{ManualClock, Store};

async fn open(clock: Arc<ManualClock>) -> (Arc<dyn Store>, ()) {
    (Arc::new(ModelStore::new(clock)), ())
}

holdfast_store::conformance_suite!(open);
