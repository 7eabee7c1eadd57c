//! What this store has beyond the suite of all stores: guards of the database, several nodes, faults of the server
//! and of the way to it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod faults;
mod guards;
mod landings;
mod nodes;
mod portable;
mod support;
mod tls;
