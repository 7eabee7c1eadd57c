//! Use cases: admission, routing, lanes, and the workers.
//!
//! **Architecture invariant:** everything that changes stock goes from here through a lane to
//! [`holdfast_store::Store::commit`]; nothing here decides. What the node remembers (catalog, shelf, keys
//! in flight) may refuse early or choose a bucket; only the authority says yes.

mod ahead;
mod asking;
mod cache;
mod catalog;
mod change;
mod config;
mod diagnose;
mod engine;
mod error;
mod expiry;
mod hashing;
mod ids;
mod inflight;
mod keys;
mod landing;
mod lanes;
mod measure;
mod offers;
mod place;
mod pools;
mod queue;
mod rates;
mod reconcile;
mod refusals;
mod request;
mod routing;
mod shelf;
mod sinks;
mod timer;
mod unsold;
mod verdicts;
mod wanted;
mod warm;
mod watch;

pub use asking::{PaymentStatus, StatusQuestion, StatusSource};
pub use cache::{
    Accept, Answer, Applied, Cache, CacheError, CacheReport, Credit, Delivery, Found, Position, Seed, Ticket,
};
pub use config::Config;
pub use diagnose::{Diagnosis, Figure, Finding, Kind};
pub use engine::Engine;
pub use error::Error;
pub use expiry::ExpiryPass;
/// So that a cache can be told to die at its own points.
pub use holdfast_store::Failpoints;
pub use ids::{IdSource, UuidV7};
pub use landing::LandingPass;
pub use measure::{Counts, Sample, Times};
pub use queue::Standing;
pub use reconcile::Decided;
pub use request::{Availability, PlaceRequest, RequestedLine};
pub use sinks::{
    Blame, Delivered, Failure, OutEvent, PullError, Pulled, PulledEvents, Sink, SinkTest, Sinks,
};
pub use unsold::UnsoldPasses;
pub use warm::Warmth;
pub use watch::Watcher;
