//! The public JSON of Holdfast: requests, views, problems and their codes; what an SDK needs and nothing
//! else.
//!
//! **Architecture invariant:** this crate knows no rule. It does not know the core, and only the server
//! converts between the two. Requests are written by clients and read by the server's own strict reader;
//! views are written by the server, and a client must ignore fields that it does not know.

use std::borrow::Cow;

mod approval;
mod assortment;
mod campaign;
mod case;
mod cell;
mod code;
mod diagnosis;
mod event;
mod explain;
mod import;
mod key;
mod kind;
mod lines;
mod order_work;
mod pool;
mod problem;
mod reconciliation;
mod request;
mod settlement;
mod sink;
mod view;
#[cfg(feature = "openapi")]
mod words;

pub use approval::{ApprovalView, DecisionView};
pub use assortment::{
    AssortmentView, BundleComponent, BundleView, ComponentView, LocationsView, MadeOfView, PutBundleRequest,
    PutLocationsRequest,
};
pub use campaign::{CampaignView, CloseRequest, PolicyView, TotalsView, WarmView};
pub use case::{CaseView, ResolutionView, ResolveCaseRequest};
pub use cell::{neutral_cell, plain_cell};
pub use code::{Code, ParseCodeError};
pub use diagnosis::{DiagnosisView, FigureView, FindingView, OnsetView};
pub use event::{AckRequest, AckView, EventDataView, EventView, EventsView};
pub use explain::{
    ActionSumView, BucketExplanationView, DeliveryView, OrderExplanationView, OrderUnitsView, OwnerView,
    PoolExplanationView, PositionView, StepView,
};
pub use import::{ImportLineView, ImportView};
pub use key::{ActView, CreateKeyRequest, CreatedKeyView, KeyView};
pub use kind::{BilingualView, ProblemKindView};
pub use lines::{LineStarts, without_mark};
pub use order_work::{CancelOrdersRequest, CancellationsView, RefusedCancelView, ResolveOrderRequest};
pub use pool::{
    AdjustmentView, AvailabilityView, BucketCacheView, BucketView, CacheView, PoolView, TransferView,
};
pub use problem::{PROBLEM_CONTENT_TYPE, Problem, ProblemItem};
pub use reconciliation::{DiscrepancyView, ReconcileRequest, ReconciliationView};
pub use request::{
    AdjustPoolRequest, CancelLine, CancelRequest, ChangePoolRequest, KeyLimits, Money, OpenPoolRequest,
    PaymentAttemptRequest, PaymentNotification, PlaceBatchRequest, PlaceLine, PlaceOrderRequest,
    PolicyRequest, PutCampaignRequest, RefundLine, RefundRequest, SweepRequest, SwitchRequest, TransferEnd,
    TransferRequest,
};
pub use settlement::{BucketPositionView, PoolSettlementView, SettlementUnitsView, SettlementView};
pub use sink::{
    AddSecretRequest, BacklogView, ChangeSinkRequest, CreatedSinkView, DeadLetterView, PutSinkRequest,
    ReplaySinkRequest, SinkSecretView, SinkTestView, SinkView, SinksView,
};
pub use view::{
    AllocationView, BatchResult, BatchView, HealthView, LedgerEntryView, LineView, NotificationView,
    OrderView, Page, PaymentView, QueueView, RefundDuePaymentView, RefundDueView,
};

/// A word of a closed vocabulary (a state, a reason, an action) as spelled in JSON. Text, not an enum:
/// a later server may know more words than this client.
pub type Word = Cow<'static, str>;

/// A JSON value kept exactly as it was sent.
pub type RawJson = Box<serde_json::value::RawValue>;
