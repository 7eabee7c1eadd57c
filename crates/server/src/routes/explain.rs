//! How orders and pools came to stand where they stand.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::id::{OrderId, PoolId};
use holdfast_core::time::Timestamp;
use holdfast_store::{ActRow, ExplainOrder, ExplainPool, Told};
use holdfast_wire::{Code, OrderExplanationView, OrderView, PoolExplanationView};

use super::orders::found;
use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::explain;
use crate::extract::Named;
use crate::input::query::Query;
use crate::openapi::parameters::{
    ExplainPoolParameters, OrderPath, PoolPath, TICKET_CHARS_MAX, TicketParameter,
};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, problems};
use crate::problem::Problem;
use crate::view;

/// Highest number of a bucket.
const BUCKET_MAX: u64 = 255;

problems! {
    /// Problems of an order's chain.
    OrderProblems = ANY, KEYED, QUERY, NAMED, &[Code::AdmissionLost, Code::CacheNotReady];
    /// Problems of a pool's chain.
    PoolProblems = ANY, KEYED, QUERY, NAMED, &[Code::InvalidTime];
}

/// Tells how an order came to stand where it stands
///
/// Request, queue or cache, ledger entries, payments, what operators did, cases: in time order, read in one view.
#[utoipa::path(
    get, path = "/v1/orders/{id}/explain", tag = "orders",
    params(OrderPath, TicketParameter),
    responses((status = 200, description = "The chain of evidence.", body = OrderExplanationView), OrderProblems)
)]
pub(crate) async fn explain_order(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<OrderId>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let ticket = query.text("ticket", TICKET_CHARS_MAX);
    query.finish(Some(()))?;
    let mut evidence = app.store().order_evidence(ExplainOrder::Id(id)).await?;
    if evidence.is_none() {
        // A cache may have it, or it has landed meanwhile, as another order of the same number.
        let order = found(app.engine().find_order(id, ticket.as_deref()).await?)?;
        evidence = app.store().order_evidence(ExplainOrder::Id(order.id)).await?;
        if evidence.is_none() {
            let view = explain::waiting(&order);
            let order = view::standing_order(app.engine(), &order).await;
            return json(StatusCode::OK, &OrderExplanationView { order, ..view });
        }
    }
    let mut evidence = evidence.ok_or_else(|| Problem::not_found("there is no such order"))?;
    keep_trail(&caller, &mut evidence.acts);
    let order: OrderView = view::standing_order(app.engine(), &evidence.order).await;
    json(StatusCode::OK, &OrderExplanationView { order, ..explain::order(&evidence) })
}

/// Tells how a pool came to stand where it stands
///
/// Its balances as the ledger adds up, now or as of a time or an entry, whose the units are, and what happened.
#[utoipa::path(
    get, path = "/v1/pools/{id}/explain", tag = "pools",
    params(PoolPath, ExplainPoolParameters),
    responses((status = 200, description = "The chain of evidence.", body = PoolExplanationView), PoolProblems)
)]
pub(crate) async fn explain_pool(
    State(app): State<App>,
    caller: Caller,
    Named(pool): Named<PoolId>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let of = ExplainPool {
        pool,
        bucket: query.integer("bucket", BUCKET_MAX).and_then(|number| u32::try_from(number).ok()),
        from_seq: query.integer("from_seq", u64::MAX),
        to_seq: query.integer("to_seq", u64::MAX),
        at: query.time("at").map(Timestamp::end_of_millisecond),
    };
    let of = query.finish(Some(of))?;
    let at = of.at;
    let evidence = app.store().pool_evidence(of).await?;
    let mut evidence =
        evidence.ok_or_else(|| Problem::not_found("there is no such pool, or no such bucket of it"))?;
    keep_trail(&caller, &mut evidence.acts);
    json(StatusCode::OK, &explain::pool(&evidence, at))
}

/// Whoever may not see the trail is told that there is one.
fn keep_trail(caller: &Caller, acts: &mut Told<ActRow>) {
    if !caller.sees_trail() {
        let (told, more) = std::mem::take(acts);
        acts.1 = more || !told.is_empty();
    }
}
