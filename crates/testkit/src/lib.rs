//! Real servers for tests: private, quick to have, and gone when the test run is gone.
//!
//! - [`Postgres::start`] is a PostgreSQL of the test's own, to be killed, paused, restarted, cut off, made read-only,
//!   given a synchronous standby that is promoted.
//! - [`Database::shared`] is an empty database of the test's own, on one server that all tests of a run share.
//! - [`PgBouncer`], [`Redis`] and [`Nats`] likewise; [`Sentinel`] and [`RedisCluster`] put several Redis together.
//! - [`FaultProxy`] stands between a program and its server: latency, silence, cuts, refusals, and the answer to a
//!   COMMIT lost after the commit.
//! - [`Folder`] and [`Port`] are what a program of the caller's own needs to live like these servers; [`Disk`] is a
//!   disk that can be full, [`Shim`] a clock that jumps and flushes that are late.
//!
//! What a test needs and the machine does not have is an error that says what to install; nothing is ever skipped.
//! Every server runs in a folder under the temporary directory. A guard process watches the test run and, when it
//! ends in whatever way, kills what still runs there and removes the folder.

mod command;
mod daemon;
mod disk;
mod folder;
mod nats;
mod port;
mod postgres;
mod processes;
mod proxy;
mod redis;
mod scratch;
mod shim;

pub use disk::Disk;
pub use folder::Folder;
pub use nats::Nats;
pub use port::Port;
pub use postgres::{Database, PgBouncer, PoolMode, Postgres, PostgresOptions, psql};
pub use proxy::{FaultProxy, Way};
pub use redis::{Redis, RedisCluster, RedisOptions, Sentinel, Snapshot};
pub use shim::Shim;
