//! The store contract: what an authority must do, the errors it may give, a model of one in memory, and
//! the conformance suite that every store passes.
//!
//! **Architecture invariant:** correctness lives in [`Store::commit`]. Take away lanes, hints and
//! batches and everything is slower, never wrong.

mod acts;
mod approvals;
mod assortment;
mod authority;
mod bare;
mod cache;
mod catalog;
mod clock;
#[cfg(feature = "conformance")]
#[expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "the suite is a test"
)]
pub mod conformance;
mod contract;
mod error;
mod evidence;
mod failpoint;
mod keys;
pub mod model;
mod queue;
mod read;
mod reconcile;
pub mod rows;
mod schema;
mod settlement;
mod sinks;
mod switch;
mod transit;
mod watch;

pub use acts::{About, Act, ActFilter, ActId, ActRow};
pub use approvals::ApprovalFilter;
pub use assortment::PutAssortment;
pub use authority::{Authority, CaseFilter, NewIncarnation, ResolveCase};
pub use bare::{BareHold, Fill};
pub use cache::Credits;
pub use catalog::{CATALOG_PAGE_MAX, CatalogChanges};
pub use clock::{Clock, ManualClock, SystemClock};
pub use contract::{Balance, Batch, Committed, PutCampaign, Store, SwitchCampaign, SwitchPool};
pub use error::Error;
pub use evidence::{
    ActionSum, BucketSums, EVIDENCE_ENTRIES_MAX, EVIDENCE_RECORDS_MAX, EVIDENCE_SUMMED_MAX, Evidence,
    ExplainOrder, ExplainPool, OrderEvidence, Owner, PoolEvidence, PoolSum, Told, approvals_of, events_of,
};
pub use failpoint::Failpoints;
pub use keys::{
    CreateKey, KEY_ID_CHARS, KeyId, KeyRefusal, KeyRow, LIVE_KEYS_MAX, RevokeKey, Role, SCOPE_CAMPAIGNS_MAX,
    Scope,
};
pub use queue::{Lease, QueuePlace};
pub use read::{
    CampaignTotals, DueOrder, ENDS_WITHIN_SECONDS, LEDGERS_AHEAD_MAX, LedgerAhead, LedgerFilter,
    LedgerPosition, ORDER_PAGE_LINES_MAX, OpenEnds, OrderFilter, Page, PoolFilter, PoolRow, page_of,
    page_of_orders,
};
pub use reconcile::{
    BucketHead, Checkpoint, DiscrepancyFilter, Dispose, ODD_ROWS_MAX, OrdersAsked, OrdersOf, RUNS_KEPT,
    RUNS_UNFINISHED_MAX, ReconcileStore, Run, SUMMED_ENTRIES_MAX, Suspects, Unapplied, UsageAfter,
    found_again,
};
pub use schema::{Schema, version_of};
pub use settlement::{PoolSettlement, SETTLEMENT_POOLS_MAX, Settlement, SettlementSum, SettlementUnits};
pub use sinks::{
    ATTEMPTS_MAX, AdvanceSink, BACKLOG_BUCKETS_MAX, BATCH_MAX, BEGINNING, Backlog, Bisection, BucketEntries,
    ChangeSink, DISABLE_AFTER_SECONDS_MAX, DISABLE_AFTER_SECONDS_MIN, DeadLetter, DeadLetterState,
    DeliveryOf, DeliveryState, Lag, PARKED_MAX, Park, PutSink, RETRIES_MAX, RETRY_SECONDS_MAX, SECRETS_MAX,
    SINK_NAME_CHARS_MAX, SINKS_MAX, SinkChange, SinkEffect, SinkHealth, SinkKind, SinkName, SinkPosition,
    SinkRefusal, SinkRow, SinkSecret, SinkSettings, SinkState, SinkStore, TIMEOUT_MS_MAX, TIMEOUT_MS_MIN,
};
pub use transit::{CAMPAIGN_TABLES, Cell, Digest, OWN_TABLES};
pub use watch::AuditWatch;
