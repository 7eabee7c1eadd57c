#![doc = include_str!("../README.md")]

mod audit;
pub mod boundary;
pub mod capacity;
mod deployment;
mod fault;
mod history;
mod load;
mod outcome;
pub mod report;
mod run;
mod sale;
mod scenario;

pub use deployment::{Deployment, Kind};
pub use fault::Fault;
pub use history::{
    Answered, Ask, Asked, EXCHANGE_BYTES_MAX, EXCHANGES_MAX, Exchange, Told, read as read_history,
    write as write_history,
};
pub use load::{Offer, Offered, help};
pub use outcome::{
    Breach, BucketFigures, Environment, Generator, InvariantVerdict, Outcome, Parameters, Second, Window,
};
pub use run::{Drilled, Plan, cannot, check, run};
pub use scenario::{Buyers, Fates, Path, Pool, Scenario, Shop, Step, Tide};
