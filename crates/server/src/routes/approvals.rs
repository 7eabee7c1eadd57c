//! Requests for a second person: shown, and decided.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use holdfast_core::approval::{Approval, ApprovalKey, ApprovalState, Proposal, Verdict};
use holdfast_core::case::CaseAction;
use holdfast_core::command::{OrderAction, Outcome, Signed};
use holdfast_core::id::{AdjustmentId, PoolId};
use holdfast_engine::Engine;
use holdfast_store::ApprovalFilter;
use holdfast_wire::{AdjustmentView, ApprovalView, Code, DecisionView, Page, SwitchRequest};

use super::page;
use super::pools::row_of;
use crate::answer::{REPLAYED, json};
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, WriteBody};
use crate::input::campaigns::read_switch;
use crate::input::query::Query;
use crate::openapi::parameters::{AdjustmentPath, ApprovalFilters, ApprovalPath, PageParameters};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::scope::{Mentioned, of_list};
use crate::view::{self, time};

problems! {
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
    /// Problems of one request.
    ApprovalProblems = ANY, KEYED, QUERY, NAMED;
    /// Problems of a decision: all that the work itself may meet.
    DecideProblems = ANY, KEYED, WRITE, NAMED, &[
        Code::InvalidQuantity, Code::InvalidTime, Code::Frozen, Code::StockInUse, Code::Conflict, Code::KeyMismatch,
        Code::AlreadySold, Code::AlreadyReleased, Code::AlreadyFailed, Code::AlreadyRefunded, Code::Cancelled,
        Code::InReview, Code::NotHeld, Code::NotSold, Code::HoldExpired, Code::SoldOut, Code::RefundExceedsSold,
    ];
}

/// Lists requests for a second person
#[utoipa::path(
    get, path = "/v1/approvals", tag = "operation",
    params(ApprovalFilters, PageParameters),
    responses((status = 200, description = "A page, also when it is empty.", body = Page<ApprovalView>), ListProblems)
)]
pub(crate) async fn list_approvals(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let now = app.store().now();
    let mut filter = ApprovalFilter {
        state: query.word("state", ApprovalState::parse).map(|state| (state, now)),
        campaign: query.id("campaign_id"),
        ..ApprovalFilter::default()
    };
    let asked = query.page::<ApprovalKey>();
    let asked = query.finish(asked)?;
    let mentioned = Mentioned { campaign: filter.campaign.as_ref(), ..Mentioned::default() };
    filter.scope = of_list(&app, &caller, mentioned).await?;
    let (found, more) = app.store().approvals(filter, asked.page).await?;
    let key = |approval: &Arc<Approval>| approval.key.clone();
    json(StatusCode::OK, &page(&found, more, &asked.cursor, key, |approval| shown(&app, approval)))
}

/// Shows a request for a second person
#[utoipa::path(
    get, path = "/v1/approvals/{id}", tag = "operation",
    params(ApprovalPath),
    responses((status = 200, description = "The request.", body = ApprovalView), ApprovalProblems)
)]
pub(crate) async fn get_approval(
    State(app): State<App>,
    Named(key): Named<ApprovalKey>,
    caller: Caller,
    _: crate::extract::NoQuery,
) -> Result<Response, Problem> {
    json(StatusCode::OK, &shown(&app, &*known(&app, &caller, &key).await?))
}

/// Agrees to work that waits for a second person: it is done
#[utoipa::path(
    post, path = "/v1/approvals/{id}/approve", tag = "operation",
    params(ApprovalPath),
    request_body = SwitchRequest,
    responses((status = 200, description = "Done, now or before.", body = ApprovalView), DecideProblems)
)]
pub(crate) async fn approve(
    State(app): State<App>,
    Named(key): Named<ApprovalKey>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    decide_and_show(&app, &caller, &key, Verdict::Approve, body).await
}

/// Refuses work that waits for a second person: it is never done
#[utoipa::path(
    post, path = "/v1/approvals/{id}/reject", tag = "operation",
    params(ApprovalPath),
    request_body = SwitchRequest,
    responses((status = 200, description = "Rejected, now or before.", body = ApprovalView), DecideProblems)
)]
pub(crate) async fn reject(
    State(app): State<App>,
    Named(key): Named<ApprovalKey>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    decide_and_show(&app, &caller, &key, Verdict::Reject, body).await
}

/// Agrees to an adjustment
#[utoipa::path(
    post, path = "/v1/adjustments/{id}/approve", tag = "pools",
    params(AdjustmentPath),
    request_body = SwitchRequest,
    responses((status = 200, description = "Applied, now or before.", body = AdjustmentView), DecideProblems)
)]
pub(crate) async fn approve_adjustment(
    State(app): State<App>,
    Named(id): Named<AdjustmentId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    decide_adjustment(&app, &caller, &id, Verdict::Approve, body).await
}

/// Refuses an adjustment
#[utoipa::path(
    post, path = "/v1/adjustments/{id}/reject", tag = "pools",
    params(AdjustmentPath),
    request_body = SwitchRequest,
    responses((status = 200, description = "Rejected, now or before.", body = AdjustmentView), DecideProblems)
)]
pub(crate) async fn reject_adjustment(
    State(app): State<App>,
    Named(id): Named<AdjustmentId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    decide_adjustment(&app, &caller, &id, Verdict::Reject, body).await
}

/// Decides; the request as it stands now.
async fn decide_and_show(
    app: &App,
    caller: &Caller,
    key: &ApprovalKey,
    verdict: Verdict,
    body: WriteBody,
) -> Result<Response, Problem> {
    decide(app, caller, key, verdict, body).await?;
    json(StatusCode::OK, &shown(app, &*known(app, caller, key).await?))
}

async fn decide_adjustment(
    app: &App,
    caller: &Caller,
    id: &AdjustmentId,
    verdict: Verdict,
    body: WriteBody,
) -> Result<Response, Problem> {
    let key = ApprovalKey::of_adjustment(id);
    let approval = decide(app, caller, &key, verdict, body).await?;
    let state = match verdict {
        Verdict::Approve => "applied",
        Verdict::Reject => ApprovalState::Rejected.as_str(),
    };
    let pool = match &approval.proposal {
        Proposal::Adjust(adjust) => adjust.pool,
        Proposal::Transfer(_) | Proposal::Order(_) | Proposal::Repair(_) => {
            return Err(Problem::internal("no adjustment"));
        }
    };
    let pool = view::pool(&row_of(app, pool).await?);
    let (adjustment_id, approval_id) = (id.to_string(), Some(key.as_str().to_owned()));
    json(StatusCode::OK, &AdjustmentView { adjustment_id, state: state.into(), pool, approval_id })
}

/// A request that the key may see.
async fn known(app: &App, caller: &Caller, key: &ApprovalKey) -> Result<Arc<Approval>, Problem> {
    let approval = app.store().approval(key.clone()).await?;
    let approval = approval.ok_or_else(|| Problem::not_found("nobody is asked for this"))?;
    caller.allow(&approval.campaign)?;
    if let Proposal::Transfer(transfer) = &approval.proposal {
        caller.allow_pool(app, transfer.from.pool).await?;
        caller.allow_pool(app, transfer.to.pool).await?;
    }
    Ok(approval)
}

/// Decides; the request as it was before.
async fn decide(
    app: &App,
    caller: &Caller,
    key: &ApprovalKey,
    verdict: Verdict,
    body: WriteBody,
) -> Result<Arc<Approval>, Problem> {
    let input = body.read(read_switch)?;
    let approval = known(app, caller, key).await?;
    let (actor, via) = (input.operator.as_str().into(), caller.via());
    let signed = Signed { actor, reason: input.reason, via };
    let key = key.clone();
    let work = |engine: Engine| async move { Ok(engine.decide_approval(key, verdict, signed).await?) };
    match app.write(body.permit, work).await? {
        Outcome::Refused { refusal, recorded, repeated, order } => {
            Err(Problem::refused(&refusal, recorded, repeated, order, Subject::Named))
        }
        Outcome::Adjusted { .. }
        | Outcome::Transferred { .. }
        | Outcome::Order { .. }
        | Outcome::Repaired { .. }
        | Outcome::Proposed { .. } => Ok(approval),
        other @ (Outcome::Pool { .. }
        | Outcome::Imported { .. }
        | Outcome::Epoch { .. }
        | Outcome::Miss(_)
        | Outcome::Elsewhere(_)
        | Outcome::Outdated
        | Outcome::NotDue(_)) => Err(crate::answer::unexpected(&other)),
    }
}

/// The answer to work that waits, or that was refused: nothing is done.
pub(crate) fn proposed(app: &App, approval: &Approval, repeated: bool) -> Result<Response, Problem> {
    waiting(app, approval, repeated, &shown(app, approval))
}

/// The same in the form of the work.
pub(crate) fn waiting(
    app: &App,
    approval: &Approval,
    repeated: bool,
    shown: &impl serde::Serialize,
) -> Result<Response, Problem> {
    let status = match approval.state(app.store().now()) {
        ApprovalState::Pending => StatusCode::ACCEPTED,
        ApprovalState::Approved | ApprovalState::Rejected | ApprovalState::Expired => StatusCode::OK,
    };
    let mut response = json(status, shown)?;
    if repeated {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// How a request stands, as a word.
pub(crate) fn state_of(app: &App, approval: &Approval) -> &'static str {
    approval.state(app.store().now()).as_str()
}

fn shown(app: &App, approval: &Approval) -> ApprovalView {
    let (work, pool, detail) = told(&approval.proposal);
    let order = match &approval.proposal {
        Proposal::Order(change) => Some(change.order.to_string()),
        Proposal::Repair(repair) => repair.order.map(|order| order.to_string()),
        Proposal::Adjust(_) | Proposal::Transfer(_) => None,
    };
    let asked = approval.proposal.signed();
    ApprovalView {
        approval_id: approval.key.as_str().to_owned(),
        state: state_of(app, approval).into(),
        work: work.into(),
        campaign_id: approval.campaign.to_string(),
        pool_id: pool.map(|pool| pool.to_string()),
        order_id: order,
        units: approval.units,
        detail,
        operator: asked.actor.to_string(),
        reason: asked.reason.to_string(),
        asked_at: time(approval.asked_at),
        expires_at: time(approval.expires_at),
        decision: approval.decision.as_ref().map(|decision| DecisionView {
            verdict: decision.verdict.as_str().into(),
            operator: decision.signed.actor.to_string(),
            reason: decision.signed.reason.to_string(),
            at: time(decision.at),
        }),
    }
}

fn told(proposal: &Proposal) -> (&'static str, Option<PoolId>, String) {
    match proposal {
        Proposal::Adjust(adjust) => {
            let detail = format!("{} {:+}", adjust.kind.as_str(), adjust.delta);
            ("adjustment", Some(adjust.pool), detail)
        }
        Proposal::Transfer(transfer) => {
            let detail = format!("{} to pool {}", transfer.quantity, transfer.to.pool);
            ("transfer", Some(transfer.from.pool), detail)
        }
        Proposal::Repair(repair) => {
            let decides = repair.decides.map_or("", CaseAction::as_str);
            ("resolve_case", repair.pool, format!("{decides} of case {}", repair.id))
        }
        Proposal::Order(change) => {
            let (work, detail) = match &change.action {
                OrderAction::Confirm => ("confirm", String::new()),
                OrderAction::Release => ("release", String::new()),
                OrderAction::Extend(until) => ("extend", format!("until {until}")),
                OrderAction::Reduce(keeps) => {
                    let lines = keeps.iter().map(|keep| format!("line {} keeps {}", keep.line, keep.keep));
                    ("reduce", lines.collect::<Vec<_>>().join(", "))
                }
                OrderAction::Refund(refund) => {
                    let lines =
                        refund.lines.iter().map(|line| format!("line {}: {}", line.line, line.quantity));
                    ("refund", lines.collect::<Vec<_>>().join(", "))
                }
                OrderAction::Land
                | OrderAction::Cancel
                | OrderAction::Attempt(..)
                | OrderAction::Notice(_)
                | OrderAction::MarkRefunded(_)
                | OrderAction::Expire(_) => ("", String::new()),
            };
            (work, None, detail)
        }
    }
}
