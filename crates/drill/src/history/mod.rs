//! What was asked and what was told, with times.

mod file;
mod kept;
mod word;

use holdfast_core::order::{Disposition, State};
use holdfast_wire::Code;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use file::{Asked, read, write};
pub(crate) use file::{read_exchanges, write_exchanges};
pub(crate) use kept::History;

/// Most exchanges that a history holds. With [`EXCHANGE_BYTES_MAX`] each, that is the memory that a drill may take.
pub const EXCHANGES_MAX: usize = 12_000_000;

/// The most that an exchange takes in memory, apart from the words of an answer that is none of this server's.
pub const EXCHANGE_BYTES_MAX: usize = 96;

/// What a buyer, or a provider for a buyer, asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Places the order, or repeats that.
    Place,
    /// Places it with other content than before, which must be refused.
    Alter,
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

impl Ask {
    /// Its name in the outcome.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Alter => "alter",
            Self::Look => "look",
            Self::Pay => "pay",
            Self::Fail => "fail",
            Self::Cancel => "cancel",
            Self::Refund => "refund",
        }
    }
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
    /// Of which order, where the request named one by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Uuid>,
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
        #[serde(with = "word::code")]
        code: Code,
        /// What the problem says of whether it was recorded.
        recorded: Option<bool>,
        /// Whether `Retry-After` came with it.
        retry_after: bool,
    },
    /// No answer: whether something was done is unknown.
    Lost {
        /// Whether the request never left, so that nothing can have been done.
        never_sent: bool,
    },
    /// The buyer hung up on purpose.
    HungUp,
    /// Something that is no answer of this server: not JSON, cut short, an unknown shape.
    Nonsense {
        /// The HTTP status, 0 if there was none.
        status: u16,
        /// What it was, shortened.
        what: Box<str>,
    },
}

/// What an answer said of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The HTTP status.
    pub status: u16,
    /// The code, if it was a problem that carries the order.
    #[serde(default, with = "word::some_code", skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The order's id.
    pub id: Uuid,
    /// Its state.
    #[serde(with = "word::state")]
    pub state: State,
    /// Its version.
    pub version: u32,
    /// What was said to have become of a notice.
    #[serde(default, with = "word::some_disposition", skip_serializing_if = "Option::is_none")]
    pub disposition: Option<Disposition>,
    /// Whether it came with a ticket: a cache accepted the order, and no row may be there.
    #[serde(default)]
    pub ticketed: bool,
    /// Whether `Retry-After` came with it.
    #[serde(default)]
    pub retry_after: bool,
    /// Whether the server said that it had answered this before.
    #[serde(default)]
    pub replayed: bool,
}

impl Exchange {
    /// What was told of an order, if anything was.
    pub const fn told(&self) -> Option<&Told> {
        match &self.answered {
            Answered::Order(told) => Some(told),
            Answered::Refused { .. }
            | Answered::Lost { .. }
            | Answered::HungUp
            | Answered::Nonsense { .. } => None,
        }
    }

    /// The problem's code, if it was one.
    pub const fn code(&self) -> Option<Code> {
        match &self.answered {
            Answered::Order(told) => told.code,
            Answered::Refused { code, .. } => Some(*code),
            Answered::Lost { .. } | Answered::HungUp | Answered::Nonsense { .. } => None,
        }
    }

    /// The answer as the outcome counts it, such as `place 201` or `place 409 sold_out`.
    pub fn label(&self) -> String {
        let ask = self.ask.name();
        match &self.answered {
            Answered::Order(Told { status, code: Some(code), .. })
            | Answered::Refused { status, code, .. } => {
                format!("{ask} {status} {}", code.as_str())
            }
            Answered::Order(Told { status, disposition: Some(disposition), .. }) => {
                format!("{ask} {status} {}", disposition.as_str())
            }
            Answered::Order(told) => format!("{ask} {}", told.status),
            Answered::Lost { never_sent: true } => format!("{ask} not sent"),
            Answered::Lost { never_sent: false } => format!("{ask} lost"),
            Answered::HungUp => format!("{ask} hung up"),
            Answered::Nonsense { status, .. } => format!("{ask} nonsense {status}"),
        }
    }

    /// The class of the answer in the seconds of the outcome.
    pub fn class(&self) -> &'static str {
        match &self.answered {
            Answered::Order(told) if told.code.is_none() => match told.state {
                State::Queued => "queued",
                State::Held | State::InReview => "held",
                State::Sold | State::Refunded => "sold",
                State::Released => "released",
                State::Failed => "refused",
            },
            Answered::Order(told) => class_of(told.status),
            Answered::Refused { status, .. } => class_of(*status),
            Answered::Lost { .. } | Answered::HungUp => "lost",
            Answered::Nonsense { .. } => "nonsense",
        }
    }
}

const fn class_of(status: u16) -> &'static str {
    if status >= 500 || status == 429 { "outage" } else { "refused" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_takes_no_more_than_is_said() {
        let bytes = size_of::<Exchange>();
        assert!(bytes <= EXCHANGE_BYTES_MAX, "{bytes}");
    }
}
