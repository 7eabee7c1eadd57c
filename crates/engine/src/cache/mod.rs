//! The cache path: a cache takes first, the authority lands it.
//!
//! [`admit`] asks the cache for units and answers *queued*; [`keeper`] keeps each bucket's cache: one node has
//! its lease, [`steer`]s its epochs, lands what was accepted and credits what comes back; [`find`] says what
//! became of an accepted order. Only the authority decides, and never overselling rests on none of this.

mod admit;
mod contract;
mod doubts;
mod find;
mod keeper;
mod landing;
mod report;
mod shown;
mod steer;
mod ticket;
mod view;
mod waiting;

pub(crate) use admit::{Admission, Wish};
pub use contract::{Accept, Answer, Applied, Cache, CacheError, Credit, Delivery, Position, Seed};
pub use find::Found;
pub(crate) use keeper::Kept;
pub use report::CacheReport;
pub use ticket::Ticket;
pub(crate) use view::Caches;
