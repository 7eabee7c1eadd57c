//! Stock files: all rows of a file are one command, so that a file is applied whole or not at all, and a repeat of
//! it changes nothing.

use crate::campaign::spelled;
use crate::command::Signed;
use crate::id::{CampaignId, ImportId, Location, PoolId, Sku};
use crate::order::Shortage;
use crate::stock::Delta;
use crate::time::Timestamp;

/// Most rows of one file: all of them are one transaction.
pub const IMPORT_ROWS_MAX: usize = 100_000;

/// What a file's quantities mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportMode {
    /// Pools open with them. A pool that is there is never changed.
    Open,
    /// They come in on top of what is there.
    Inbound,
    /// They were counted; the difference to what the ledger says of that time is an adjustment.
    Count,
}

spelled! { ImportMode { Open = "open", Inbound = "inbound", Count = "count" } }

/// Which units were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Those that are not sold: available and held.
    Unsold,
    /// All that lay there: sold ones too, but for so many that had been shipped by then.
    OnHand {
        /// Sold units that had left.
        shipped: u64,
    },
}

/// When and how a row's quantity was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    /// When.
    pub at: Timestamp,
    /// Which units.
    pub basis: Basis,
}

/// A row of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRow {
    /// Where it stands in the file, the header being line 1.
    pub line: u64,
    /// What.
    pub sku: Sku,
    /// Where.
    pub location: Location,
    /// How many units.
    pub quantity: u64,
    /// How they were counted; in mode `count` only.
    pub counted: Option<Counted>,
    /// The id that the pool gets if it is opened.
    pub new_pool: PoolId,
}

/// A file to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The business key, global.
    pub id: ImportId,
    /// The campaign that the pools belong to.
    pub campaign: CampaignId,
    /// What the quantities mean.
    pub mode: ImportMode,
    /// A hash of what the file says, whatever the order of its rows: the content that the key is bound to.
    pub digest: [u8; 32],
    /// Its rows, at most [`IMPORT_ROWS_MAX`]; no SKU twice at a location.
    pub rows: Vec<ImportRow>,
    /// Only judge it.
    pub dry_run: bool,
    /// By whom.
    pub signed: Signed,
}

/// What became of a file's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportCounts {
    /// How many there were.
    pub rows: u64,
    /// The sum of their quantities.
    pub units: u64,
    /// Pools that are new.
    pub opened: u64,
    /// Rows that changed nothing.
    pub unchanged: u64,
    /// Pools of which the supply changed.
    pub adjusted: u64,
}

/// A file that was imported, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its key.
    pub id: ImportId,
    /// The campaign.
    pub campaign: CampaignId,
    /// What its quantities meant.
    pub mode: ImportMode,
    /// What it said.
    pub digest: [u8; 32],
    /// What became of its rows.
    pub counts: ImportCounts,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub signed: Signed,
}

/// What one row does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowDone {
    /// The pool is new.
    Opened,
    /// Nothing.
    Unchanged,
    /// The supply changed.
    Adjusted,
}

spelled! { RowDone { Opened = "opened", Unchanged = "unchanged", Adjusted = "adjusted" } }

/// The report on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowReport {
    /// The row's line.
    pub line: u64,
    /// The pool.
    pub pool: PoolId,
    /// What it does.
    pub done: RowDone,
    /// By how much the supply changes.
    pub delta: i64,
}

/// Why a row cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowRefusal {
    /// The campaign has no pool of this SKU and location.
    UnknownSku,
    /// The pool is there, and had and has another supply.
    OpenedOtherwise {
        /// Its supply when it was opened.
        opening: u64,
        /// Its supply now.
        supply: u64,
    },
    /// The SKU is a bundle: it has no stock of its own.
    Bundle,
    /// So many units are not there to be taken away.
    StockInUse(Shortage),
    /// The campaign or the pool is frozen, and units would leave.
    Frozen,
    /// So much wants a second person, who approves adjustments and no files.
    NeedsApproval {
        /// How much does not.
        threshold: u64,
    },
    /// The supply would be more than a balance may be.
    TooMuch,
    /// It was counted at a time that has not come.
    CountedInFuture,
    /// It was counted before the pool was opened.
    CountedBeforeOpening,
    /// The supply was corrected after the count, so the count may tell of a difference that is mended already.
    CorrectedSince(Timestamp),
    /// More was shipped than was sold by then.
    ShippedMoreThanSold {
        /// How much was sold.
        sold: u64,
    },
}

/// A row that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The row's line.
    pub line: u64,
    /// Why.
    pub why: RowRefusal,
}

/// What happened to a pool after a moment, from its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Since {
    /// Whether the pool was open then.
    pub was_open: bool,
    /// The sum of all entries after it.
    pub change: Delta,
    /// When its supply was last corrected after it, by an adjustment or a repair.
    pub corrected_at: Option<Timestamp>,
}
