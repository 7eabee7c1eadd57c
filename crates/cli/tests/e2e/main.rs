//! The real binary, over HTTP, as its users meet it. Every test that changes stock ends with the audit of
//! its database.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod command_line;
mod crash;
mod disk;
mod race;
mod sale;
mod support;
