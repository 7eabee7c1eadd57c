//! The cache path over HTTP, with a real Redis: on a file, and on PostgreSQL with two nodes. Every buyer keeps what
//! he was told; in the end each of them must have had one true answer, and every unit must be somewhere.

mod closing;
mod differences;
mod faults;
mod paths;
mod shop;
mod tickets;
