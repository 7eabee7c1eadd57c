//! The rows of one campaign, for an archive.

use std::pin::pin;

use futures_util::TryStreamExt;
use holdfast_core::id::{CampaignId, Incarnation};
use holdfast_store::rows::number_id;
use holdfast_store::{CAMPAIGN_TABLES, Cell, Error};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::address::Address;
use crate::call::rows;
use crate::connection::Mode;
use crate::error::{Driver, Fault};
use crate::row::first;
use crate::store::beside;

/// Takes tables with their rows.
pub trait Rows: Send {
    /// Begins with a table; the columns that are wanted.
    fn begin(&mut self, table: &'static str) -> Result<Vec<String>, Error>;

    /// Takes a row of it.
    fn take(&mut self, columns: &[String], cells: &[Cell]) -> Result<(), Error>;
}

/// Gives every row of a campaign, in one view, beside running servers. Which authority it is.
pub async fn campaign_rows(
    address: &Address,
    campaign: &CampaignId,
    into: &mut impl Rows,
) -> Result<Incarnation, Error> {
    let connection = beside(address).await?;
    connection.begin(Mode::View).await.store()?;
    // As long as it takes: a view holds nobody up.
    let patient = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0";
    connection.run(patient).await.map_err(Fault::into_error)?;
    for (table, condition) in CAMPAIGN_TABLES {
        let columns = into.begin(table)?;
        let sql = format!("SELECT {} FROM {table} WHERE {condition}", columns.join(", "));
        let value: (&(dyn ToSql + Sync), Type) = (&campaign.as_str(), Type::TEXT);
        let found = connection.client().query_typed_raw(&sql, [value]).await.store()?;
        let mut found = pin!(found);
        while let Some(row) = found.try_next().await.store()? {
            let cells: Vec<Cell> =
                (0..columns.len()).map(|place| cell(&row, place)).collect::<Result<_, _>>()?;
            into.take(&columns, &cells)?;
        }
    }
    let found = rows(&connection, "SELECT incarnation FROM authority", &[], &[]).await;
    let found = found.map_err(Fault::into_error)?;
    let known = first(&found, |row| number_id(row, "incarnation").map(Incarnation))?;
    connection.rollback().await;
    known.ok_or_else(|| holdfast_store::rows::corrupt("the authority's row is missing"))
}

fn cell(row: &Row, place: usize) -> Result<Cell, Error> {
    let of = row.columns().get(place).map(|column| column.type_().clone());
    let odd = |error: tokio_postgres::Error| Error::Corrupt(error.to_string());
    let cell = match of {
        Some(Type::INT8) => row.try_get::<_, Option<i64>>(place).map_err(odd)?.map(Cell::Integer),
        Some(Type::INT4) => {
            row.try_get::<_, Option<i32>>(place).map_err(odd)?.map(|number| Cell::Integer(number.into()))
        }
        Some(Type::BOOL) => {
            row.try_get::<_, Option<bool>>(place).map_err(odd)?.map(|truth| Cell::Integer(truth.into()))
        }
        Some(Type::TEXT) => row.try_get::<_, Option<String>>(place).map_err(odd)?.map(Cell::Text),
        Some(Type::BYTEA) => row.try_get::<_, Option<Vec<u8>>>(place).map_err(odd)?.map(Cell::Bytes),
        Some(Type::UUID) => {
            row.try_get::<_, Option<Uuid>>(place).map_err(odd)?.map(|id| Cell::Bytes(id.as_bytes().to_vec()))
        }
        other => return Err(Error::Corrupt(format!("a column of type {other:?}"))),
    };
    Ok(cell.unwrap_or(Cell::Null))
}
