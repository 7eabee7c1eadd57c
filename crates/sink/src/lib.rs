//! Ways to receivers of order events: signed webhooks and NATS JetStream.
//!
//! **Architecture invariant:** a receiver is somebody else's. Where a request goes is judged when the sink is saved and
//! again when it is sent, by the addresses that its name has at that moment; redirects are not followed; an attempt and
//! what is read of its answer are bounded; a secret is in no message and no log.

mod address;
mod nats;
mod resolve;
mod sign;
mod webhook;

pub use address::{PrivateAddresses, check as check_address};
pub use nats::{Nats, check_subject};
pub use webhook::Webhooks;
