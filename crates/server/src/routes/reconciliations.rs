//! Reconciliation: runs on demand, their history, and the differences that they found.

use std::borrow::Cow;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::id::{DiscrepancyId, RunId};
use holdfast_core::reconcile::{Class, Discrepancy, DiscrepancyState};
use holdfast_store::{DiscrepancyFilter, Run};
use holdfast_wire::{Code, DiscrepancyView, Page, RawJson, ReconcileRequest, ReconciliationView};

use super::page;
use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, NoQuery, WriteBody};
use crate::input::query::Query;
use crate::input::reconciliations::read_reconcile;
use crate::openapi::parameters::{DiscrepancyFilters, PageParameters, RunPath};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::Problem;
use crate::view::time;

problems! {
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
    /// Problems of one run.
    RunProblems = ANY, KEYED, QUERY, NAMED;
    /// Problems of asking for a run.
    AskProblems = ANY, KEYED, WRITE, &[Code::QueueFull];
}

/// Asks for a comparison of everything, or of what is new, with the ledger
#[utoipa::path(
    post, path = "/v1/reconciliations", tag = "operation",
    request_body = ReconcileRequest,
    responses(
        (status = 201, description = "The run; it goes on in the background, beside the sales. Ask again how it stands.", body = ReconciliationView),
        AskProblems
    )
)]
pub(crate) async fn reconcile(
    State(app): State<App>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let scope = body.read(read_reconcile)?;
    let asked_by = std::sync::Arc::clone(caller.actor());
    let work = |engine: holdfast_engine::Engine| async move { Ok(engine.ask_run(scope, asked_by).await?) };
    match app.write(body.permit, work).await? {
        Some(run) => json(StatusCode::CREATED, &shown(&run)),
        None => Err(Problem::new(Code::QueueFull, "as many reconciliations wait as may")),
    }
}

/// Lists reconciliations, the latest first
#[utoipa::path(
    get, path = "/v1/reconciliations", tag = "operation",
    params(PageParameters),
    responses((status = 200, description = "A page, also when it is empty.", body = Page<ReconciliationView>), ListProblems)
)]
pub(crate) async fn list_reconciliations(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let asked = query.page::<RunId>();
    let asked = query.finish(asked)?;
    let (runs, more) = app.store().runs(asked.page).await?;
    json(StatusCode::OK, &page(&runs, more, &asked.cursor, |run: &Run| run.id, shown))
}

/// Shows how a reconciliation stands
#[utoipa::path(
    get, path = "/v1/reconciliations/{id}", tag = "operation",
    params(RunPath),
    responses((status = 200, description = "The run.", body = ReconciliationView), RunProblems)
)]
pub(crate) async fn get_reconciliation(
    State(app): State<App>,
    Named(id): Named<RunId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let run = app.store().run(id).await?;
    let run = run.ok_or_else(|| Problem::not_found("there is no such reconciliation"))?;
    json(StatusCode::OK, &shown(&run))
}

/// Lists differences that reconciliation found
#[utoipa::path(
    get, path = "/v1/discrepancies", tag = "operation",
    params(DiscrepancyFilters, PageParameters),
    responses((status = 200, description = "A page, also when it is empty.", body = Page<DiscrepancyView>), ListProblems)
)]
pub(crate) async fn list_discrepancies(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let filter = DiscrepancyFilter {
        state: query.word("state", DiscrepancyState::parse),
        class: query.word("class", Class::parse),
    };
    let asked = query.page::<DiscrepancyId>();
    let asked = query.finish(asked)?;
    let (found, more) = app.store().discrepancies(filter, asked.page).await?;
    json(StatusCode::OK, &page(&found, more, &asked.cursor, |known: &Discrepancy| known.id, of_discrepancy))
}

fn shown(run: &Run) -> ReconciliationView {
    ReconciliationView {
        id: run.id.to_string(),
        state: run.state.as_str().into(),
        scope: run.scope.as_str().into(),
        asked_by: run.asked_by.to_string(),
        started_at: time(run.started_at),
        finished_at: run.finished_at.map(time),
        buckets_read: run.buckets_read,
        entries_read: run.entries_read,
        orders_read: run.orders_read,
        found: run.found.iter().map(|(class, count)| (class.as_str().to_owned(), *count)).collect(),
        failure: run.failure.as_deref().map(str::to_owned),
    }
}

fn of_discrepancy(known: &Discrepancy) -> DiscrepancyView {
    let found = &known.found;
    DiscrepancyView {
        id: known.id.to_string(),
        class: found.class.as_str().into(),
        pool_id: found.pool.map(|pool| pool.to_string()),
        bucket: found.bucket.map(|bucket| bucket.number),
        order_id: found.order.map(|order| order.to_string()),
        expected: raw(&found.expected),
        actual: raw(&found.actual),
        evidence: raw(&found.evidence),
        first_seen_at: time(known.first_seen_at),
        last_seen_at: time(known.last_seen_at),
        cycles: known.cycles,
        disposition: known.disposition.as_str().into(),
        state: known.state.as_str().into(),
    }
}

/// What is an object is shown as one, all else as a text.
fn raw(text: &str) -> RawJson {
    let json: Cow<'_, str> = if text.starts_with('{') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(serde_json::Value::from(text).to_string())
    };
    let read = serde_json::value::RawValue::from_string(json.into_owned());
    read.unwrap_or_else(|_| serde_json::value::RawValue::NULL.to_owned())
}
