//! Approvals: work of operators to which a second person must agree, where the campaign's policy asks for it.

use std::sync::Arc;

use crate::campaign::spelled;
use crate::command::{Adjust, Command, OrderCommand, Repair, Signed, Transfer};
use crate::id::{AdjustmentId, CampaignId, DiscrepancyId, OrderId, TransferId};
use crate::time::Timestamp;

/// How long a request waits for the second person, in seconds.
pub const APPROVAL_SECONDS: u32 = 86_400;

/// Longest key of a request, in bytes: a word, an order and an identifier of a client.
const KEY_BYTES_MAX: usize = 600;

/// Who uses a server that wants no keys: everybody.
pub const ANONYMOUS: &str = "anonymous";

/// Which request it is: the kind of work and that work's own key, so that the same work asks only once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApprovalKey(Arc<str>);

impl ApprovalKey {
    /// Of an adjustment.
    pub fn of_adjustment(id: &AdjustmentId) -> Self {
        Self(format!("adjustment:{id}").into())
    }

    /// Of a transfer.
    pub fn of_transfer(id: &TransferId) -> Self {
        Self(format!("transfer:{id}").into())
    }

    /// Of a difference that is mended.
    pub fn of_repair(id: DiscrepancyId) -> Self {
        Self(format!("repair:{id}").into())
    }

    /// Of work on an order: what is done, and the request's own key for it.
    pub fn of_order(order: OrderId, work: &str, key: &str) -> Self {
        Self(format!("order:{order}:{work}:{key}").into())
    }

    /// A key as it was shown; none if it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = !text.is_empty() && text.len() <= KEY_BYTES_MAX && !text.chars().any(char::is_control);
        is_key.then(|| Self(text.into()))
    }

    /// The key as it is shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// A change of a pool's supply.
    Adjust(Adjust),
    /// Stock that moves.
    Transfer(Transfer),
    /// A change of an order.
    Order(OrderCommand),
    /// A difference that is mended.
    Repair(Arc<Repair>),
}

impl Proposal {
    /// The command that does it.
    pub fn command(&self) -> Command {
        match self {
            Self::Adjust(adjust) => Command::Adjust(adjust.clone()),
            Self::Transfer(transfer) => Command::Transfer(transfer.clone()),
            Self::Order(change) => Command::Order(change.clone()),
            Self::Repair(repair) => Command::Repair(Arc::clone(repair)),
        }
    }

    /// Who asked.
    pub fn signed(&self) -> &Signed {
        match self {
            Self::Adjust(adjust) => &adjust.signed,
            Self::Transfer(transfer) => &transfer.signed,
            Self::Order(change) => &change.signed,
            Self::Repair(repair) => &repair.signed,
        }
    }
}

/// What the second person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Approve,
    /// It is not done.
    Reject,
}

/// How a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// It waits for a second person.
    Pending,
    /// It was agreed to, and done.
    Approved,
    /// It was refused.
    Rejected,
    /// Nobody decided in time.
    Expired,
}

spelled! {
    Verdict { Approve = "approve", Reject = "reject" }
    ApprovalState {
        Pending = "pending_approval", Approved = "approved", Rejected = "rejected", Expired = "expired",
    }
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What.
    pub verdict: Verdict,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub signed: Signed,
}

/// A request for a second person's agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Which.
    pub key: ApprovalKey,
    /// Whose policy asks for it.
    pub campaign: CampaignId,
    /// What was asked for, and by whom.
    pub proposal: Proposal,
    /// How many units are concerned.
    pub units: u64,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// Until when it may be decided.
    pub expires_at: Timestamp,
    /// What was decided; none while nobody has.
    pub decision: Option<Decided>,
}

impl Approval {
    /// How it stands at a time.
    pub fn state(&self, now: Timestamp) -> ApprovalState {
        match self.decision.as_ref().map(|decision| decision.verdict) {
            Some(Verdict::Approve) => ApprovalState::Approved,
            Some(Verdict::Reject) => ApprovalState::Rejected,
            None if now >= self.expires_at => ApprovalState::Expired,
            None => ApprovalState::Pending,
        }
    }

    /// Whether somebody is the one who asked: by name or, where keys are wanted, by key. Another name is no second
    /// person if it comes with the same key.
    pub fn is_asked_by(&self, by: &Signed) -> bool {
        let asked = self.proposal.signed();
        let key = |signed: &Signed| signed.via.as_ref().map(|via| Arc::clone(&via.key));
        let same_key = key(asked).is_some_and(|asked| &*asked != ANONYMOUS && key(by) == Some(asked));
        asked.actor == by.actor || same_key
    }
}

/// A second person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecideApproval {
    /// Which request.
    pub key: ApprovalKey,
    /// What it asks for, as it was read: what is locked and loaded follows from it.
    pub work: Command,
    /// What is decided.
    pub verdict: Verdict,
    /// By whom.
    pub signed: Signed,
}
