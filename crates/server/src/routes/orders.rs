//! Orders.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::command::{OrderAction, Outcome, Signed};
use holdfast_core::id::{OrderId, OrderKey};
use holdfast_core::order::{Order, State as OrderState};
use holdfast_engine::{Engine, PlaceRequest};
use holdfast_store::{OrderFilter, Page as StorePage};
use holdfast_wire::{BatchResult, BatchView};
use tokio::task::JoinSet;

use super::page;
use crate::answer::{OrderAnswer, json};
use crate::app::{App, WritePermit};
use crate::edge::RequestId;
use crate::extract::{Named, WriteBody};
use crate::input::field::pool_id_of;
use crate::input::orders::{read_attempt, read_batch, read_cancel, read_place, read_refund};
use crate::input::query::Query;
use crate::problem::{Problem, Subject};
use crate::view;

/// Most orders of one batch that are under way at once.
const BATCH_IN_FLIGHT_MAX: usize = 64;

/// `POST /v1/orders`
pub(crate) async fn place_order(State(app): State<App>, body: WriteBody) -> Result<Response, Problem> {
    let place = body.read(read_place)?;
    let outcome = app.write(body.permit, |engine| async move { Ok(engine.place(place).await?) }).await?;
    OrderAnswer::of(outcome, Subject::NewInCampaign)?.into_placed()
}

/// `POST /v1/orders/batch`
pub(crate) async fn place_batch(
    State(app): State<App>,
    Extension(request_id): Extension<RequestId>,
    body: WriteBody,
) -> Result<Response, Problem> {
    let orders = body.read(read_batch)?;
    let answers =
        app.write(body.permit, |engine| async move { Ok(place_all(&engine, orders).await) }).await?;
    let results = answers.into_iter().map(|answer| batch_result(answer, request_id.as_str())).collect();
    json(StatusCode::MULTI_STATUS, &BatchView { results })
}

/// Places the orders of a batch, each on its own; the answers in the batch's order.
async fn place_all(
    engine: &Engine,
    orders: Vec<Result<PlaceRequest, Problem>>,
) -> Vec<Result<OrderAnswer, Problem>> {
    let mut answers = Vec::with_capacity(orders.len());
    let mut under_way = JoinSet::new();
    for (index, order) in orders.into_iter().enumerate() {
        match order {
            Ok(place) => {
                if under_way.len() >= BATCH_IN_FLIGHT_MAX {
                    answers.extend(under_way.join_next().await.and_then(Result::ok));
                }
                let engine = engine.clone();
                under_way.spawn(async move { (index, place_one(&engine, place, index).await) });
            }
            Err(problem) => answers.push((index, Err(problem))),
        }
    }
    while let Some(answer) = under_way.join_next().await {
        answers.extend(answer.ok());
    }
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

async fn place_one(engine: &Engine, place: PlaceRequest, index: usize) -> Result<OrderAnswer, Problem> {
    let outcome = engine.place(place).await?;
    OrderAnswer::of(outcome, Subject::NewInCampaign)
        .map_err(|problem| problem.below(&format!("/orders/{index}")))
}

fn batch_result(answer: Result<OrderAnswer, Problem>, request_id: &str) -> BatchResult {
    match answer {
        Ok(answer) => BatchResult {
            status: answer.place_status().as_u16(),
            order: Some(view::order(&answer.order)),
            problem: None,
        },
        Err(problem) => {
            BatchResult { status: problem.status(), order: None, problem: Some(problem.to_wire(request_id)) }
        }
    }
}

/// `GET /v1/orders/{id}`
pub(crate) async fn get_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    // Nothing is queued yet, so there is never anything to wait for.
    query.wait("wait");
    query.finish(Some(()))?;
    let order = app.store().order(id).await?;
    json(StatusCode::OK, &view::order(&*order.ok_or_else(|| Problem::not_found("there is no such order"))?))
}

/// `GET /v1/orders`
pub(crate) async fn list_orders(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let filter = OrderFilter {
        campaign: query.id("campaign_id"),
        order_no: query.id("order_no"),
        state: query.word("state", OrderState::parse),
        account: query.id("account"),
        pool: query.number_id("pool_id", pool_id_of),
        refund_due: query.flag("refund_due"),
    };
    let asked = query.page::<OrderId>();
    let asked = query.finish(asked)?;
    let (orders, more) = orders_of(&app, filter, asked.page).await?;
    let shown = page(&orders, more, &asked.cursor, |order| order.id, |order| view::order(order));
    json(StatusCode::OK, &shown)
}

/// The orders of a list. A key names one order, which needs no scan.
async fn orders_of(
    app: &App,
    filter: OrderFilter,
    asked: StorePage<OrderId>,
) -> Result<(Vec<Arc<Order>>, bool), Problem> {
    let (Some(campaign), Some(order_no)) = (filter.campaign.clone(), filter.order_no.clone()) else {
        return Ok(app.store().orders(filter, asked).await?);
    };
    let order = app.store().order_by_key(OrderKey { campaign, order_no }).await?;
    let is_after = |order: &Arc<Order>| asked.after.is_none_or(|after| order.id > after);
    Ok((order.into_iter().filter(|order| filter.shows(order) && is_after(order)).collect(), false))
}

/// `POST /v1/orders/{id}/cancel`
pub(crate) async fn cancel_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    body: WriteBody,
) -> Result<Response, Problem> {
    let cancel = body.read_or_empty(read_cancel)?;
    let outcome = change(&app, body.permit, id, cancel.action, cancel.reason).await?;
    OrderAnswer::of(outcome, Subject::Named)?.into_order()
}

/// `POST /v1/orders/{id}/payment-attempts`
pub(crate) async fn begin_payment(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    body: WriteBody,
) -> Result<Response, Problem> {
    let attempt = body.read(read_attempt)?;
    let outcome = change(&app, body.permit, id, attempt, Arc::from("")).await?;
    OrderAnswer::of(outcome, Subject::Named)?.into_added()
}

/// `POST /v1/orders/{id}/refunds`
pub(crate) async fn refund_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    body: WriteBody,
) -> Result<Response, Problem> {
    let refund = body.read(read_refund)?;
    let (lines, reason) = (refund.lines.clone(), Arc::clone(&refund.reason));
    let outcome = change(&app, body.permit, id, OrderAction::Refund(refund), reason).await?;
    OrderAnswer::of(outcome, Subject::Refund(&lines))?.into_added()
}

/// Changes an order in the name of whoever has the key.
async fn change(
    app: &App,
    permit: WritePermit,
    id: OrderId,
    action: OrderAction,
    reason: Arc<str>,
) -> Result<Outcome, Problem> {
    let signed = Signed { actor: Arc::clone(app.actor()), reason };
    app.write(permit, |engine| async move { Ok(engine.change(id, action, signed).await?) }).await
}
