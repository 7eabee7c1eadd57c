//! Drills of a double: a server that speaks like Holdfast, decides like many shops do, and can be given a fault.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that panics has failed; the double's faults are races, which it makes wide by waiting"
)]

mod double;
mod faults;
