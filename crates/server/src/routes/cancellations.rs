//! Many cancels: page by page, each order by a command of its own, so that a page that was cut off is sent again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::command::{OrderAction, Outcome, Signed};
use holdfast_core::id::OrderId;
use holdfast_core::order::Order;
use holdfast_engine::Engine;
use holdfast_store::{OrderFilter, Page};
use holdfast_wire::{CancelOrdersRequest, CancellationsView, Code, RefusedCancelView};
use tokio::task::JoinSet;

use crate::answer::{OrderAnswer, json};
use crate::app::App;
use crate::auth::Caller;
use crate::extract::WriteBody;
use crate::input::orders::{CancellationsInput, read_cancellations};
use crate::openapi::problems::{ANY, KEYED, NAMED, WRITE, problems};
use crate::problem::{Problem, Subject};

/// Most orders of one page that are under way at once.
const IN_FLIGHT_MAX: usize = 32;

problems! {
    /// Problems of a page as a whole.
    CancellationsProblems = ANY, KEYED, WRITE, NAMED;
}

/// Cancels many orders of a campaign, a page at a time
///
/// Orders in the order of their ids, after `after`. Each is cancelled by a command of its own, as by
/// `POST /v1/orders/{id}/cancel`: the same page again changes nothing. Go on with `next_after` until it is `null`.
#[utoipa::path(
    post, path = "/v1/orders/cancellations", tag = "orders",
    request_body = CancelOrdersRequest,
    responses(
        (status = 200, description = "What became of the page.", body = CancellationsView),
        CancellationsProblems
    )
)]
pub(crate) async fn cancel_orders(
    State(app): State<App>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let input = body.read(read_cancellations)?;
    caller.allow(&input.campaign)?;
    let found = app.store().campaign(input.campaign.clone()).await?;
    found.ok_or_else(|| Problem::not_found("there is no such campaign").at("/campaign_id"))?;
    let CancellationsInput { campaign, state, account, pool, after, limit, operator, reason } = input;
    let filter = OrderFilter {
        campaign: Some(campaign),
        state: Some(state),
        account,
        pool,
        scope: caller.scope().clone(),
        ..OrderFilter::default()
    };
    let (orders, more) = app.store().orders(filter, Page { after, limit }).await?;
    let signed = Signed { via: caller.via(), ..Signed::new(operator.as_str(), reason) };
    let next_after = orders.last().filter(|_| more).map(|last| last.id.to_string());
    let work = |engine: Engine| cancel_all(engine, orders, signed);
    let (cancelled, unchanged, refused) = app.write(body.permit, work).await?;
    json(StatusCode::OK, &CancellationsView { cancelled, unchanged, refused, next_after })
}

type Done = (u64, u64, Vec<RefusedCancelView>);

/// Cancels them side by side. One that cannot be cancelled stops no other; one of which the outcome is not known
/// fails the page, which is then sent again.
async fn cancel_all(engine: Engine, orders: Vec<Arc<Order>>, signed: Signed) -> Result<Done, Problem> {
    let mut done: Done = (0, 0, Vec::new());
    let mut tasks = JoinSet::new();
    for order in orders {
        if tasks.len() >= IN_FLIGHT_MAX {
            note(tasks.join_next().await, &mut done)?;
        }
        let (engine, signed, id) = (engine.clone(), signed.clone(), order.id);
        tasks.spawn(async move { (id, engine.change(id, OrderAction::Cancel, signed).await) });
    }
    while let Some(joined) = tasks.join_next().await {
        note(Some(joined), &mut done)?;
    }
    done.2.sort_by(|a, b| a.order_id.cmp(&b.order_id));
    Ok(done)
}

type Joined = Result<(OrderId, Result<Outcome, holdfast_engine::Error>), tokio::task::JoinError>;

fn note(joined: Option<Joined>, (cancelled, unchanged, refused): &mut Done) -> Result<(), Problem> {
    let Some(joined) = joined else { return Ok(()) };
    let (id, outcome) = joined.map_err(|_| Problem::unknown(Code::OutcomeUnknown, "send the page again"))?;
    let outcome = outcome?;
    let is_refused = matches!(outcome, Outcome::Refused { .. });
    match OrderAnswer::of(outcome, Subject::Named) {
        Ok(answer) if answer.is_repeat() => *unchanged += 1,
        Ok(_) => *cancelled += 1,
        Err(problem) if is_refused => {
            let code = problem.code().as_str().into();
            refused.push(RefusedCancelView { order_id: id.to_string(), code });
        }
        Err(problem) => return Err(problem),
    }
    Ok(())
}
