//! What lists can be asked for.

/// Which page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// Items on a page, 1–500; absent: the server's default.
    pub limit: Option<u32>,
    /// Where the page begins; absent: the first.
    pub cursor: Option<String>,
}

/// Which pools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolsQuery {
    /// Of this campaign.
    pub campaign_id: Option<String>,
    /// Of this SKU.
    pub sku: Option<String>,
    /// At this location.
    pub location: Option<String>,
}

/// Which orders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrdersQuery {
    /// Of this campaign.
    pub campaign_id: Option<String>,
    /// In this state.
    pub state: Option<String>,
    /// Of this account.
    pub account: Option<String>,
    /// With stock of this pool.
    pub pool_id: Option<String>,
    /// With money that must go back, or without.
    pub refund_due: Option<bool>,
}

/// Which ledger entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerQuery {
    /// Of this pool.
    pub pool_id: Option<String>,
    /// Of this order.
    pub order_id: Option<String>,
}

/// Which part of a pool is explained, and as of when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainPoolQuery {
    /// Only this bucket.
    pub bucket: Option<u32>,
    /// Only entries from this number on.
    pub from_seq: Option<u64>,
    /// As of this entry of each bucket.
    pub to_seq: Option<u64>,
    /// As of this time, with its offset.
    pub at: Option<String>,
}

/// Which requests for a second person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalsQuery {
    /// In this state.
    pub state: Option<String>,
    /// Of this campaign.
    pub campaign_id: Option<String>,
}

/// Which cases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CasesQuery {
    /// In this state.
    pub state: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
}

/// Which differences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscrepanciesQuery {
    /// In this state.
    pub state: Option<String>,
    /// Of this class.
    pub class: Option<String>,
}

/// How a stock file is imported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportQuery {
    /// The campaign.
    pub campaign_id: String,
    /// What its quantities mean; absent: pools open with them.
    pub mode: Option<String>,
    /// Only judge it.
    pub dry_run: bool,
    /// The key of the file; absent: a hash of what it says.
    pub import_id: Option<String>,
    /// Who imports it; absent: the key.
    pub operator: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// A query parameter with its value, if it is asked for.
pub(crate) type Parameter<'a> = (&'static str, Option<&'a str>);

impl PoolsQuery {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![
            ("campaign_id", self.campaign_id.as_deref()),
            ("sku", self.sku.as_deref()),
            ("location", self.location.as_deref()),
        ]
    }
}

impl ApprovalsQuery {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![("state", self.state.as_deref()), ("campaign_id", self.campaign_id.as_deref())]
    }
}

impl CasesQuery {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![("state", self.state.as_deref()), ("kind", self.kind.as_deref())]
    }
}

impl DiscrepanciesQuery {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![("state", self.state.as_deref()), ("class", self.class.as_deref())]
    }
}

impl ImportQuery {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![
            ("campaign_id", Some(&self.campaign_id)),
            ("mode", self.mode.as_deref()),
            ("dry_run", self.dry_run.then_some("true")),
            ("import_id", self.import_id.as_deref()),
            ("operator", self.operator.as_deref()),
            ("reason", self.reason.as_deref()),
        ]
    }
}

impl OrdersQuery {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![
            ("campaign_id", self.campaign_id.as_deref()),
            ("state", self.state.as_deref()),
            ("account", self.account.as_deref()),
            ("pool_id", self.pool_id.as_deref()),
            ("refund_due", self.refund_due.map(|due| if due { "true" } else { "false" })),
        ]
    }
}

impl LedgerQuery {
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        vec![("pool_id", self.pool_id.as_deref()), ("order_id", self.order_id.as_deref())]
    }
}

/// A switch of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Let it sell in its window.
    Open,
    /// No new orders for now.
    Pause,
    /// Sell again.
    Resume,
    /// No stock moves out.
    Freeze,
    /// Undo the freeze.
    Unfreeze,
    /// Over for good.
    Close,
}

impl Switch {
    /// The last part of the route.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Freeze => "freeze",
            Self::Unfreeze => "unfreeze",
            Self::Close => "close",
        }
    }
}

/// A switch of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolSwitch {
    /// No stock moves out.
    Freeze,
    /// Undo the freeze.
    Unfreeze,
    /// Nothing is sold from it any more, for good.
    Retire,
}

impl PoolSwitch {
    /// The last part of the route.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Unfreeze => "unfreeze",
            Self::Retire => "retire",
        }
    }
}
