//! The cache path (缓存预减) on Redis or Valkey, 7.0 and newer: one script takes orders' units and appends their
//! entries, of each order both or neither.
//!
//! Nothing here decides: the authority's conditional take does. What this room answers for is that a call is sent
//! once, has a deadline, is answered for what was asked or fails, and that a server which lost or replaced what it
//! kept is never mistaken for the one that an epoch was opened on.
//!
//! Every connection is our own, one a server for calls and some for reads that wait: the library's clients for
//! Sentinel and Cluster send a call again after a lost connection, and do not say which server answered.

mod accepts;
mod address;
mod cache;
mod caller;
mod codec;
mod connect;
mod entries;
mod fault;
mod finder;
mod keys;
mod link;
mod readers;
mod replies;
mod scripts;
mod server;
mod shards;
mod sink;

pub use address::{Address, InvalidAddress};
pub use cache::{Options, RedisCache};
pub use server::Examined;
pub use sink::check_stream;
