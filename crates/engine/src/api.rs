//! What the server may ask of the engine.

use std::sync::Arc;

use holdfast_core::command::{Adjust, OpenPool, OrderAction, Outcome, Signed};
use holdfast_core::id::{Account, CampaignId, Location, OrderId, OrderKey, PoolId, Sku};
use holdfast_core::campaign::Campaign;
use holdfast_core::order::Money;
use holdfast_core::refusal::Refusal;
use holdfast_core::time::Timestamp;
use holdfast_store::{PoolFreeze, PoolRow, PutCampaign, Store, SwitchCampaign};

/// One line of an order, as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLine {
    /// What is bought.
    pub sku: Sku,
    /// Where from; `main` if the client named none.
    pub location: Location,
    /// How many units.
    pub quantity: u32,
}

/// An order to place, as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceRequest {
    /// The business key.
    pub key: OrderKey,
    /// Whose it is.
    pub account: Account,
    /// What it buys.
    pub lines: Vec<RequestedLine>,
    /// How long to hold, if not by policy.
    pub hold_seconds: Option<u32>,
    /// What must be paid.
    pub amount_due: Option<Money>,
    /// Kept as sent.
    pub metadata: Option<Arc<str>>,
}

/// Why the engine did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A queue is full or too old. Nothing was done; try again later with the same key.
    #[error("overloaded")]
    Overloaded,
    /// The server is going down. Nothing was done.
    #[error("shutting down")]
    ShuttingDown,
    /// The deadline passed before the answer; whether it was done is unknown.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] holdfast_store::Error),
}

/// A pool's stock for display: fast, and with its age stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Availability {
    /// Units that could be taken.
    pub available: u64,
    /// When that was read.
    pub as_of: Timestamp,
    /// How old it is.
    pub age_ms: u64,
    /// Where it comes from: `node` (this node's last commits) or `authority`.
    pub source: &'static str,
}

/// The engine. A cheap handle.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
}

impl Engine {
    /// Reads: lists, single rows, the ledger. They never change anything.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Places an order. A repeat of the key answers with the order as it stands now.
    pub async fn place(&self, _request: PlaceRequest) -> Result<Outcome, Error> {
        Err(Error::ShuttingDown)
    }

    /// Changes an order: cancel, payment attempt, payment notice, refund, expiry.
    pub async fn change(&self, _order: OrderId, _action: OrderAction, _signed: Signed) -> Result<Outcome, Error> {
        Err(Error::ShuttingDown)
    }

    /// Opens a pool; the engine sets its id. The same again is a repeat.
    pub async fn open_pool(&self, _open: OpenPool) -> Result<Outcome, Error> {
        Err(Error::ShuttingDown)
    }

    /// Changes a pool's supply.
    pub async fn adjust(&self, _adjust: Adjust) -> Result<Outcome, Error> {
        Err(Error::ShuttingDown)
    }

    /// Creates or changes a campaign; whether it is new.
    pub async fn put_campaign(&self, _put: PutCampaign) -> Result<(Arc<Campaign>, bool), Error> {
        Err(Error::ShuttingDown)
    }

    /// Sets a switch on a campaign.
    pub async fn switch_campaign(&self, _switch: SwitchCampaign) -> Result<Result<Arc<Campaign>, Refusal>, Error> {
        Err(Error::ShuttingDown)
    }

    /// Freezes or unfreezes a pool.
    pub async fn freeze_pool(&self, _freeze: PoolFreeze) -> Result<Result<PoolRow, Refusal>, Error> {
        Err(Error::ShuttingDown)
    }

    /// A pool's stock for display; `None` if there is no such pool. Never touches hot rows per request.
    pub async fn availability(&self, _pool: PoolId) -> Result<Option<Availability>, Error> {
        Err(Error::ShuttingDown)
    }

    /// Whether the node takes new work now; else why not, in words.
    pub fn readiness(&self) -> Result<(), &'static str> {
        Err("not started")
    }

    /// Stops taking new work, lets the lanes finish. Returns when they have, or at the deadline.
    pub async fn drain(&self, _deadline: std::time::Duration) -> Result<(), Error> {
        Ok(())
    }
}

/// Campaign ids are needed by the server's own lookups.
#[expect(dead_code, reason = "placeholder until the engine is written")]
fn _unused(_: CampaignId) {}
