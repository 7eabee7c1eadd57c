//! The trail of what operators did.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_store::{ActFilter, ActId, ActRow};
use holdfast_wire::{ActView, Page};

use super::page;
use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::input::query::Query;
use crate::openapi::parameters::{ActFilters, PageParameters};
use crate::openapi::problems::{ANY, KEYED, QUERY, problems};
use crate::problem::Problem;
use crate::view::time;

/// Longest subject that is asked for: a kind and the longest id.
const SUBJECT_CHARS_MAX: usize = 140;

problems! {
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
}

/// Lists what operators did, the newest first
#[utoipa::path(
    get, path = "/v1/audit", tag = "keys",
    params(ActFilters, PageParameters),
    responses((status = 200, description = "A page, also when it is empty.", body = Page<ActView>), ListProblems)
)]
pub(crate) async fn list_acts(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let subject = |text: &str| (text.chars().count() <= SUBJECT_CHARS_MAX).then(|| text.to_owned());
    let filter = ActFilter { subject: query.word("subject", subject), scope: caller.scope().clone() };
    let asked = query.page::<ActId>();
    let asked = query.finish(asked)?;
    let (rows, more) = app.store().acts(filter, asked.page).await?;
    json(StatusCode::OK, &page(&rows, more, &asked.cursor, |row: &ActRow| row.id, shown))
}

fn shown(act: &ActRow) -> ActView {
    ActView {
        id: act.id.0,
        at: time(act.at),
        actor: act.actor.clone(),
        operator: act.operator.as_ref().map(ToString::to_string),
        action: act.action.clone().into(),
        subject: act.subject.clone(),
        campaign_id: act.campaign.as_ref().map(ToString::to_string),
        reason: act.reason.clone(),
        detail: act.detail.clone(),
        request_id: act.request_id.clone(),
    }
}
