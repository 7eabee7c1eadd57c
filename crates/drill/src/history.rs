//! What was asked and what was told, with times.

use serde::{Deserialize, Serialize};

/// What a buyer, or a provider for a buyer, asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Places the order, or repeats that.
    Place,
    /// Looks the order up, by its id or ticket.
    Look,
    /// A notice that the payment has succeeded.
    Pay,
    /// A notice that the payment has failed.
    Fail,
    /// Cancels the order.
    Cancel,
    /// Says that money that was due back has gone.
    Refund,
}

/// One request and what came of it. Times are nanoseconds since the load began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The buyer, who has one order with a key of its own.
    pub buyer: u64,
    /// The node that was asked.
    pub node: u16,
    /// What was asked.
    pub ask: Ask,
    /// When it should have been sent by the schedule: latencies count from here.
    pub due_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// When the answer was there, or nobody waited for it any more.
    pub ended_ns: u64,
    /// What was told.
    pub answered: Answered,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// An answer about an order, refused or not.
    Order(Told),
    /// A problem without an order.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The problem's code.
        code: String,
        /// What the problem says of whether it was recorded.
        recorded: Option<bool>,
        /// Whether `Retry-After` came with it.
        retry_after: bool,
    },
    /// No answer: whether something was done is unknown.
    Lost {
        /// Whether the connection was never made, so that nothing can have been done.
        never_sent: bool,
    },
    /// The buyer hung up on purpose.
    HungUp,
    /// Something that is no answer of this server: not JSON, cut short, an unknown shape.
    Nonsense {
        /// The HTTP status, 0 if there was none.
        status: u16,
        /// What it was, shortened.
        what: String,
    },
}

/// What an answer said of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The HTTP status.
    pub status: u16,
    /// The code, if it was a problem that carries the order.
    pub code: Option<String>,
    /// The order's id.
    pub id: String,
    /// Its state.
    pub state: String,
    /// Its reason.
    pub reason: Option<String>,
    /// Its version.
    pub version: u64,
    /// What was said to have become of a notice.
    pub disposition: Option<String>,
    /// Whether the server said that it had answered this before.
    pub replayed: bool,
}
