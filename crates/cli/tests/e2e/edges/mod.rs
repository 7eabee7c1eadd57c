//! The edges of HTTP: what holds whatever a request is about, and what only a real connection shows.

mod connections;
mod headers;
mod ledger_csv;
mod routing;
mod signatures;
mod slow;
