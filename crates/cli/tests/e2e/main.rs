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

mod ahead;
mod approvals;
mod backup;
mod bad_input;
mod bench;
mod cache;
mod cancellations;
mod care;
mod command_line;
mod crash;
mod demo;
mod diagnosing;
mod disk;
mod drill;
mod edges;
mod follow;
mod fuzz;
mod history;
mod import_crash;
mod imports;
mod keys;
mod metrics;
mod migrate;
mod nodes;
mod odd_hold;
mod openapi;
mod planning;
mod postgres;
mod pressure;
mod queue;
mod race;
mod reconcile;
mod sale;
mod scenarios;
mod sinks;
mod stage;
mod status;
mod support;
mod tls;
