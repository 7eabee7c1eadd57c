//! The engine on the model store, with a clock that the tests move and commits that fail on request.

mod expiry;
mod lanes;
mod placing;
mod support;
