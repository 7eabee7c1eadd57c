//! The cache on real servers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod fitness;
mod forms;
mod landing;
mod loss;
mod network;
mod scripts;
mod support;
