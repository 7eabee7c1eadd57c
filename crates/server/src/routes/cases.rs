//! Cases: what needs a person.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::case::{Case, CaseKind, CaseState};
use holdfast_core::command::Outcome;
use holdfast_core::id::CaseId;
use holdfast_engine::Decided;
use holdfast_store::{CaseFilter, ResolveCase};
use holdfast_wire::{ApprovalView, CaseView, Code, Page, RawJson, ResolutionView, ResolveCaseRequest};

use super::{approvals, page};
use crate::answer::{json, unexpected};
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, WriteBody};
use crate::input::cases::read_resolve;
use crate::input::query::Query;
use crate::openapi::parameters::{CaseFilters, CasePath, PageParameters};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::view::time;

problems! {
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
    /// Problems of a decision.
    ResolveProblems = ANY, KEYED, WRITE, NAMED, &[Code::Conflict, Code::KeyMismatch];
}

/// Lists what needs a person
#[utoipa::path(
    get, path = "/v1/cases", tag = "operation",
    params(CaseFilters, PageParameters),
    responses((status = 200, description = "A page, also when it is empty.", body = Page<CaseView>), ListProblems)
)]
pub(crate) async fn list_cases(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let filter = CaseFilter {
        state: query.word("state", CaseState::parse),
        kind: query.word("kind", CaseKind::parse),
    };
    let asked = query.page::<CaseId>();
    let asked = query.finish(asked)?;
    let (cases, more) = app.store().cases(filter, asked.page).await?;
    json(StatusCode::OK, &page(&cases, more, &asked.cursor, |case: &Case| case.id, shown))
}

/// Decides on a case
#[utoipa::path(
    post, path = "/v1/cases/{id}/resolve", tag = "operation",
    params(CasePath),
    request_body = ResolveCaseRequest,
    responses(
        (status = 200, description = "The case, decided; what mends a difference is done.", body = CaseView),
        (status = 202, description = "A second person must agree first: nothing is mended yet.", body = ApprovalView),
        ResolveProblems
    )
)]
pub(crate) async fn resolve_case(
    State(app): State<App>,
    Named(id): Named<CaseId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let input = body.read(read_resolve)?;
    let resolve = ResolveCase {
        id,
        action: input.action,
        operator: input.operator,
        reason: input.reason,
        via: caller.via(),
    };
    let work = |engine: holdfast_engine::Engine| async move { Ok(engine.decide_case(resolve).await?) };
    match app.write(body.permit, work).await? {
        Ok(Decided::Case(case)) => json(StatusCode::OK, &shown(&case)),
        Ok(Decided::Outcome(Outcome::Proposed { approval, repeated })) => {
            approvals::proposed(&app, &approval, repeated)
        }
        Ok(Decided::Outcome(other)) => Err(unexpected(&other)),
        Err(refusal) => Err(Problem::refused(&refusal, false, false, None, Subject::Named)),
    }
}

fn shown(case: &Case) -> CaseView {
    CaseView {
        id: case.id.to_string(),
        kind: case.kind.as_str().into(),
        pool_id: case.pool.map(|pool| pool.to_string()),
        order_id: case.order.map(|order| order.to_string()),
        evidence: evidence(&case.evidence),
        suggested: case.kind.suggested().as_str().into(),
        actions: case.kind.actions().iter().map(|action| action.as_str().into()).collect(),
        state: case.state().as_str().into(),
        resolution: case.resolution.as_ref().map(|decided| ResolutionView {
            action: decided.action.as_str().into(),
            reason: decided.reason.to_string(),
            operator: decided.operator.to_string(),
            at: time(decided.at),
        }),
        opened_at: time(case.opened_at),
    }
}

/// Evidence is JSON when it is written; what is not is shown as nothing known.
fn evidence(text: &str) -> RawJson {
    let read = serde_json::value::RawValue::from_string(text.to_owned());
    read.unwrap_or_else(|_| serde_json::value::RawValue::NULL.to_owned())
}
