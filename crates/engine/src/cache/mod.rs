//! The cache path: a cache takes first, the authority lands it.

mod contract;

pub use contract::{Accept, Answer, Applied, Cache, CacheError, Credit, Delivery, Position, Seed};
