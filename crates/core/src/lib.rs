//! The rules of Holdfast: what stock is, what an order is, and what may happen to them.
//!
//! **Architecture invariant:** this crate is pure. It has no async, IO, clock, randomness or serde;
//! `now` is an argument, ids are made elsewhere. Every store and the model in the tests share
//! [`decide::decide`], so there is one place where stock can change.

pub mod approval;
pub mod assortment;
pub mod audit;
pub mod cache;
pub mod campaign;
pub mod case;
pub mod command;
pub mod decide;
pub mod event;
pub mod id;
pub mod import;
pub mod invariant;
pub mod ledger;
pub mod limit;
pub mod order;
pub mod reconcile;
pub mod refusal;
pub mod snapshot;
pub mod stock;
pub mod table;
pub mod time;

/// The library's own words in one import.
pub mod prelude {
    pub use crate::campaign::{Campaign, CampaignStatus, Policy};
    pub use crate::command::{Command, Outcome};
    pub use crate::id::*;
    pub use crate::ledger::{Action, Entry};
    pub use crate::order::{Order, State};
    pub use crate::refusal::Refusal;
    pub use crate::stock::{Bucket, BucketKey, Pool};
    pub use crate::time::Timestamp;
}
