//! The ledger, as JSON or CSV.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast_core::ledger::Entry;
use holdfast_store::{LedgerFilter, LedgerPosition};
use holdfast_wire::{LedgerEntryView, Page, neutral_cell};

use super::page;
use crate::accept::best_of;
use crate::answer::{JSON, json};
use crate::app::App;
use crate::auth::Caller;
use crate::input::field::{order_id_of, pool_id_of};
use crate::input::query::Query;
use crate::openapi::parameters::{LedgerFilters, PageParameters};
use crate::openapi::problems::{ANY, KEYED, QUERY, problems};
use crate::problem::Problem;
use crate::scope::{Mentioned, of_list};
use crate::view;

const CSV: &str = "text/csv";
/// Where a CSV answer says how to go on; JSON says it in its body.
const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

const COLUMNS: [&str; 16] = [
    "pool_id",
    "bucket",
    "seq",
    "at",
    "order_id",
    "business_no",
    "action",
    "delta_available",
    "delta_held",
    "delta_sold",
    "settled",
    "from_state",
    "to_state",
    "source",
    "actor",
    "reason",
];

problems! {
    /// Problems of the list.
    LedgerProblems = ANY, KEYED, QUERY;
}

/// Lists ledger entries, as JSON or CSV
///
/// In CSV a text that a spreadsheet would take for a formula has an apostrophe before it.
#[utoipa::path(
    get, path = "/v1/ledger", tag = "ledger",
    params(LedgerFilters, PageParameters),
    responses(
        (status = 200, description = "A page, also when it is empty.", content(
            (Page<LedgerEntryView> = "application/json"), (String = "text/csv"),
        ), headers(("X-Next-Cursor" = String, description = "Only with CSV: where the next page begins."))),
        LedgerProblems
    )
)]
pub(crate) async fn list_entries(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = best_of(&headers, &[JSON, CSV])?;
    let mut query = Query::new(query.as_deref())?;
    let mut filter = LedgerFilter {
        pool: query.number_id("pool_id", pool_id_of),
        order: query.number_id("order_id", order_id_of),
        ..LedgerFilter::default()
    };
    let asked = query.page::<LedgerPosition>();
    let asked = query.finish(asked)?;
    let mentioned = Mentioned { pool: filter.pool, order: filter.order, ..Mentioned::default() };
    filter.scope = of_list(&app, &caller, mentioned).await?;
    let (entries, more) = app.store().ledger(filter, asked.page).await?;
    let position = |entry: &Entry| (entry.bucket, entry.seq);
    let shown = page(&entries, more, &asked.cursor, position, view::entry);
    let mut response = if form == CSV { csv(&shown)? } else { json(StatusCode::OK, &shown)? };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

fn csv(page: &Page<LedgerEntryView>) -> Result<Response, Problem> {
    let body = written(&page.items).map_err(|_| Problem::internal("the ledger cannot be written as CSV"))?;
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    if let Some(cursor) = page.next_cursor.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(NEXT_CURSOR, cursor);
    }
    Ok(response)
}

fn written(entries: &[LedgerEntryView]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for entry in entries {
        writer.write_record(row(entry))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

fn row(entry: &LedgerEntryView) -> [String; 16] {
    let optional = |text: &Option<holdfast_wire::Word>| text.as_deref().map(safe).unwrap_or_default();
    [
        safe(&entry.pool_id),
        entry.bucket.to_string(),
        entry.seq.to_string(),
        safe(&entry.at),
        entry.order_id.as_deref().map(safe).unwrap_or_default(),
        safe(&entry.business_no),
        safe(&entry.action),
        entry.delta_available.to_string(),
        entry.delta_held.to_string(),
        entry.delta_sold.to_string(),
        entry.settled.to_string(),
        optional(&entry.from_state),
        optional(&entry.to_state),
        safe(&entry.source),
        safe(&entry.actor),
        safe(&entry.reason),
    ]
}

fn safe(text: &str) -> String {
    neutral_cell(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_neutralised_and_numbers_are_not() {
        let entry = LedgerEntryView {
            pool_id: "01937a5e-0000-7000-8000-0000000000ff".into(),
            bucket: 0,
            seq: 7,
            at: "2026-01-01T00:00:00.000Z".into(),
            order_id: None,
            business_no: "=1+1".into(),
            action: "place".into(),
            delta_available: -2,
            delta_held: 2,
            delta_sold: 0,
            settled: 0,
            from_state: None,
            to_state: Some("held".into()),
            source: "@x".into(),
            actor: "-a, \"b\"".into(),
            reason: "fine".into(),
        };
        let text = String::from_utf8(written(&[entry]).expect("CSV")).expect("UTF-8");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(COLUMNS.join(",").as_str()));
        let expected = concat!(
            "01937a5e-0000-7000-8000-0000000000ff,0,7,2026-01-01T00:00:00.000Z,,'=1+1,place,",
            "-2,2,0,0,,held,'@x,\"'-a, \"\"b\"\"\",fine"
        );
        assert_eq!(lines.next(), Some(expected));
    }
}
