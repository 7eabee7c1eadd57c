//! Rows of imported stock files.

use holdfast_core::command::Signed;
use holdfast_core::id::{CampaignId, ImportId};
use holdfast_core::import::{ImportCounts, ImportMode, Imported, Since};
use holdfast_core::stock::Delta;

use super::codec::{id, missing, number, optional_time, text, time, word};
use super::{Row, corrupt};
use crate::error::Error;

/// Reads a stock file that was imported.
pub fn imported(row: &dyn Row) -> Result<Imported, Error> {
    let digest = row.bytes("digest")?.ok_or_else(|| missing("digest"))?;
    Ok(Imported {
        id: id(row, "id", ImportId::new)?,
        campaign: id(row, "campaign_id", CampaignId::new)?,
        mode: word(row, "mode", ImportMode::parse)?,
        digest: digest.try_into().map_err(|_| corrupt("the digest of a stock file"))?,
        counts: ImportCounts {
            rows: number(row, "row_count")?,
            units: number(row, "units")?,
            opened: number(row, "opened")?,
            unchanged: number(row, "unchanged")?,
            adjusted: number(row, "adjusted")?,
        },
        at: time(row, "at")?,
        signed: Signed::new(text(row, "actor")?, text(row, "reason")?),
    })
}

/// Reads what happened to a pool after a moment.
pub fn since(row: &dyn Row) -> Result<Since, Error> {
    Ok(Since {
        was_open: row.flag("was_open")?,
        change: Delta {
            available: number(row, "available")?,
            held: number(row, "held")?,
            sold: number(row, "sold")?,
        },
        corrected_at: optional_time(row, "corrected_at")?,
    })
}
