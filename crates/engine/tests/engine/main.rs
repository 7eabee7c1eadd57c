//! The engine on the model store, with a clock that the tests move and commits that fail on request.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod closing;
mod expiry;
mod lanes;
mod limits;
mod measuring;
mod placing;
mod pools;
mod queue;
mod support;
mod watching;
