//! Use cases: admission, routing, lanes, and the workers. Everything that changes stock goes from here
//! through a lane to [`holdfast_store::Store::commit`].

mod api;

pub use api::{Availability, Engine, Error, PlaceRequest, RequestedLine};
