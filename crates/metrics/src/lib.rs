//! What a node measures: instruments, the metrics that the rooms fill in, and the text that is scraped.
//!
//! **Architecture invariant:** nothing here is read by a decision. Take the metrics away and every answer
//! stays the same.

mod cache;
mod exposition;
mod instrument;
mod node;
mod process;
mod reconcile;
mod sink;
mod store;
mod words;

pub use cache::{CacheAnswer, CacheMetrics, Drained};
pub use exposition::{
    Description, Exposed, Exposition, Format, Instrument, Kind, Metrics, Rows, Value, Words,
};
pub use instrument::{By, Counter, Gauge, Held, Histogram, Label, Scale, Seen};
pub use node::NodeMetrics;
pub use process::Process;
pub use reconcile::ReconcileMetrics;
pub use sink::SinkAttempt;
pub use store::{Conflict, StoreMetrics, Use};
pub use words::{Class, Code, End, Expiry, Failure, Overload};
