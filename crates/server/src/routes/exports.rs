//! Exports: whole lists as CSV, sent page by page. Each page is one short read, so that a slow reader never
//! holds a snapshot of the database.

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::stock::Bucket;
use holdfast_store::{Page, PoolFilter, PoolRow};
use holdfast_wire::{Code, neutral_cell};
use tokio::sync::OwnedSemaphorePermit;

use crate::accept::best_of;
use crate::app::App;
use crate::auth::Caller;
use crate::input::query::Query;
use crate::input::report::Located;
use crate::openapi::parameters::ExportParameters;
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, problems};
use crate::problem::Problem;
use crate::stream::{self, Gone, Pieces};

const CSV: &str = "text/csv";
/// Pools that are read at once.
const PAGE_POOLS: usize = 500;

problems! {
    /// Problems before the first row.
    ExportProblems = ANY, KEYED, QUERY, NAMED, &[Code::Overloaded];
}

/// Exports the stock of a campaign as CSV
///
/// In the form in which it is imported: `sku, location, quantity`.
#[utoipa::path(
    get, path = "/v1/exports/stock", tag = "pools",
    params(ExportParameters),
    responses(
        (status = 200, description = "Every pool.", body = String, content_type = "text/csv"), ExportProblems
    )
)]
pub(crate) async fn export_stock(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    best_of(&headers, &[CSV])?;
    let mut query = Query::new(query.as_deref())?;
    let campaign = query.id::<CampaignId>("campaign_id");
    let campaign = query.finish(Some(campaign))?.ok_or_else(no_campaign_named)?;
    caller.allow(&campaign)?;
    let permit = app.admit_export()?;
    let found = app.store().campaign(campaign.clone()).await?;
    found.ok_or_else(|| Problem::not_found("there is no such campaign"))?;
    let mut export = Export { app: app.clone(), campaign, after: None, _permit: permit };
    // The first page is read before anything is said: an error is then an answer like any other.
    let (first, more) = export.next().await?;
    let stall_timeout = app.limits().stream_stall_timeout;
    let body = stream::body(stall_timeout, move |pieces| export.run(first, more, pieces));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    headers
        .insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"stock.csv\""));
    Ok(response)
}

fn no_campaign_named() -> Problem {
    let detail = "must name the campaign";
    Problem::of_fault(Located::new("/query/campaign_id", Code::InvalidValue, detail))
}

/// An export under way.
struct Export {
    app: App,
    campaign: CampaignId,
    after: Option<PoolId>,
    _permit: OwnedSemaphorePermit,
}

impl Export {
    /// The next page as CSV, and whether there are more. The header stands before the first.
    async fn next(&mut self) -> Result<(Bytes, bool), Problem> {
        let filter = PoolFilter { campaign: Some(self.campaign.clone()), ..PoolFilter::default() };
        let page = Page { after: self.after, limit: PAGE_POOLS };
        let (rows, more) = self.app.store().pools(filter, page).await?;
        let text = written(&rows, self.after.is_none());
        self.after = rows.last().map(|row| row.pool.id).or(self.after);
        let text = text.map_err(|_| Problem::internal("the stock cannot be written as CSV"))?;
        Ok((text.into(), more))
    }

    async fn run(mut self, first: Bytes, mut more: bool, pieces: Pieces) -> Result<(), Gone> {
        pieces.send(first).await?;
        while more {
            let page;
            (page, more) = self.next().await.map_err(|_| Gone)?;
            pieces.send(page).await?;
        }
        Ok(())
    }
}

/// Rows in the form in which they are imported: the quantity is all that the pool has, sold units too.
fn written(rows: &[PoolRow], with_header: bool) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if with_header {
        writer.write_record(["sku", "location", "quantity"])?;
    }
    for PoolRow { pool, buckets } in rows {
        let supply: u64 = buckets.iter().map(Bucket::supply).sum();
        let (sku, location) = (neutral_cell(pool.sku.as_str()), neutral_cell(pool.location.as_str()));
        writer.write_record([&*sku, &*location, &supply.to_string()])?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}
