#![doc = include_str!("../README.md")]

pub mod boundary;
mod deployment;
mod fault;
mod history;
mod outcome;
pub mod report;
mod scenario;

pub use deployment::{Deployment, Kind};
pub use fault::Fault;
pub use history::{Answered, Ask, Exchange, Told};
pub use outcome::{
    Breach, BucketFigures, Environment, Generator, InvariantVerdict, Outcome, Parameters, Second, Window,
};
pub use scenario::{Scenario, Step};
