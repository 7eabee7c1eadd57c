//! Rows of sums over the ledger.

use holdfast_core::id::OrderId;
use holdfast_core::ledger::Action;
use holdfast_core::stock::Delta;

use super::Row;
use super::codec::{number, number_id, text, word};
use crate::error::Error;
use crate::evidence::{ActionSum, Owner};

/// Reads what entries of one action did together.
pub fn action_sum(row: &dyn Row) -> Result<(Action, ActionSum), Error> {
    let delta = Delta {
        available: number(row, "available")?,
        held: number(row, "held")?,
        sold: number(row, "sold")?,
    };
    Ok((word(row, "action", Action::parse)?, ActionSum { entries: number(row, "entries")?, delta }))
}

/// Reads what an order has of a bucket.
pub fn owner(row: &dyn Row) -> Result<Owner, Error> {
    Ok(Owner {
        order: OrderId(number_id(row, "order_id")?),
        order_no: text(row, "order_no")?.into(),
        held: number(row, "held")?,
        sold: number(row, "sold")?,
    })
}

/// Reads how far a bucket had come.
pub fn position_at(row: &dyn Row) -> Result<(u32, u64), Error> {
    Ok((number(row, "number")?, number(row, "seq")?))
}
