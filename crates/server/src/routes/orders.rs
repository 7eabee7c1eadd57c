//! Orders.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use holdfast_core::approval::ApprovalKey;
use holdfast_core::command::{How, OrderAction, Outcome, Signed};
use holdfast_core::id::{OrderId, OrderKey, PoolId};
use holdfast_core::limit::LimitKeys;
use holdfast_core::order::{Allocation, Line, Order, State as OrderState};
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_engine::{Engine, Found, PlaceRequest, RequestedLine};
use holdfast_store::{OrderFilter, Page as StorePage};
use holdfast_wire::{
    ApprovalView, BatchResult, BatchView, CancelRequest, Code, OrderView, Page, PaymentAttemptRequest,
    PlaceBatchRequest, PlaceOrderRequest, RefundRequest, ResolveOrderRequest,
};
use tokio::task::JoinSet;

use super::{approvals, page};
use crate::answer::{OrderAnswer, json};
use crate::app::{App, WritePermit};
use crate::auth::Caller;
use crate::edge::{Patience, RequestId};
use crate::extract::{Named, WriteBody};
use crate::input::field::pool_id_of;
use crate::input::orders::{
    DecisionInput, read_attempt, read_batch, read_cancel, read_decision, read_place, read_refund,
};
use crate::input::query::Query;
use crate::openapi::parameters::{
    OrderFilters, OrderPath, PageParameters, TICKET_CHARS_MAX, TicketParameter, WaitParameter,
};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::scope::{Mentioned, of_list};
use crate::view;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const RESPOND_ASYNC: &str = "respond-async";
/// Most orders of one batch that are under way at once.
const BATCH_IN_FLIGHT_MAX: usize = 64;

/// How an order stands that a command does not fit.
const OVER: &[Code] = &[
    Code::AlreadySold,
    Code::AlreadyReleased,
    Code::AlreadyFailed,
    Code::AlreadyRefunded,
    Code::Cancelled,
    Code::InReview,
    Code::Conflict,
];

problems! {
    /// Problems of a place.
    PlaceProblems = ANY, KEYED, WRITE, NAMED, &[
        Code::InvalidQuantity, Code::UnknownSku, Code::SoldOut, Code::AccountLimit, Code::AccountOpenHolds,
        Code::KeyLimit, Code::RateLimited,
        Code::CampaignNotOpen, Code::CampaignPaused, Code::CampaignClosed, Code::Frozen,
        Code::AlreadyReleased, Code::AlreadyFailed, Code::AlreadyRefunded, Code::Cancelled,
        Code::QueueTimeout, Code::QueueFull, Code::Conflict, Code::OrderMismatch, Code::CacheNotReady,
    ];
    /// Problems of a batch as a whole.
    BatchProblems = ANY, KEYED, WRITE;
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
    /// Problems of one order.
    FoundProblems = ANY, KEYED, QUERY, NAMED, &[Code::AdmissionLost, Code::CacheNotReady];
    /// Problems of a cancel.
    CancelProblems = ANY, KEYED, WRITE, NAMED, OVER, &[Code::InvalidQuantity, Code::NotHeld];
    /// Problems of a payment attempt.
    AttemptProblems = ANY, KEYED, WRITE, NAMED, OVER, &[Code::NotHeld, Code::HoldExpired, Code::KeyMismatch];
    /// Problems of a decision.
    DecisionProblems = ANY, KEYED, WRITE, NAMED, OVER,
        &[
            Code::InvalidTime, Code::InvalidQuantity, Code::NotHeld, Code::HoldExpired, Code::SoldOut, Code::Frozen,
            Code::KeyMismatch,
        ];
    /// Problems of a refund.
    RefundProblems = ANY, KEYED, WRITE, NAMED, OVER,
        &[Code::InvalidQuantity, Code::NotSold, Code::RefundExceedsSold, Code::KeyMismatch];
}

/// Places an order
///
/// All lines or nothing. After a lost answer ask again with the same `order_no`: nothing is bought twice.
#[utoipa::path(
    post, path = "/v1/orders", tag = "orders",
    params(("Prefer" = Option<String>, Header, description = "`respond-async`: take the order into a queue whatever the path of its pools.")),
    request_body = PlaceOrderRequest,
    responses(
        (status = 201, description = "Held, or sold where the campaign sells at once.", body = OrderView, headers(("Location" = String, description = "The order."))),
        (status = 200, description = "A repeat: the order as it stands now.", body = OrderView, headers(("Idempotent-Replayed" = String, description = "`true`: this was answered before."))),
        (status = 202, description = "Queued: taken in, and nothing is held yet. Wait for the end of it with `?wait` or with the order's events.", body = OrderView, headers(
            ("Location" = String, description = "The order."),
            ("Preference-Applied" = String, description = "`respond-async`: it is queued because the request preferred it."),
            ("Idempotent-Replayed" = String, description = "`true`: this was answered before."),
        )),
        PlaceProblems
    )
)]
pub(crate) async fn place_order(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: WriteBody,
) -> Result<Response, Problem> {
    let place = body.read(read_place)?;
    caller.allow(&place.key.campaign)?;
    let prefers_queue = prefers_async(&headers);
    let work = |engine: Engine| async move {
        Ok(if prefers_queue { engine.place_queued(place).await? } else { engine.place(place).await? })
    };
    let answer = OrderAnswer::of(app.write(body.permit, work).await?, Subject::NewInCampaign)?;
    let is_applied = prefers_queue && answer.order.state == OrderState::Queued && !answer.is_repeat();
    let mut response = answer.into_placed(app.engine()).await?;
    if is_applied {
        response.headers_mut().insert(PREFERENCE_APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
    }
    Ok(response)
}

/// Whether the client prefers not to wait (RFC 7240). Preferences that are not known are ignored.
fn prefers_async(headers: &HeaderMap) -> bool {
    let values = headers.get_all(PREFER).into_iter().filter_map(|value| value.to_str().ok());
    let tokens =
        values.flat_map(|value| value.split(',')).filter_map(|preference| preference.split(';').next());
    tokens.map(str::trim).any(|token| token.eq_ignore_ascii_case(RESPOND_ASYNC))
}

/// The benchmark's yardstick: takes the same body the same way, and answers with a fixed order.
pub(crate) async fn place_constant(State(app): State<App>, body: WriteBody) -> Result<Response, Problem> {
    let place = body.read(read_place)?;
    let order = app.write(body.permit, |_| async move { Ok(constant_order(place)) }).await?;
    OrderAnswer { order: Arc::new(order), how: How::Created, disposition: None }
        .into_placed(app.engine())
        .await
}

/// Places up to 500 orders, each on its own
#[utoipa::path(
    post, path = "/v1/orders/batch", tag = "orders",
    request_body = PlaceBatchRequest,
    responses(
        (status = 207, description = "One result an order, in their order; one that is wrong does not spoil the others. They are placed beside one another: of several with the same number any may be the first.", body = BatchView),
        BatchProblems
    )
)]
pub(crate) async fn place_batch(
    State(app): State<App>,
    Extension(request_id): Extension<RequestId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let mut orders = body.read(read_batch)?;
    for order in &mut orders {
        if let Ok(Err(problem)) = order.as_ref().map(|place| caller.allow(&place.key.campaign)) {
            *order = Err(problem);
        }
    }
    let answers =
        app.write(body.permit, |engine| async move { Ok(place_all(&engine, orders).await) }).await?;
    let mut results = Vec::with_capacity(answers.len());
    for answer in answers {
        results.push(batch_result(app.engine(), answer, request_id.as_str()).await);
    }
    json(StatusCode::MULTI_STATUS, &BatchView { results })
}

/// A held order with this content.
fn constant_order(place: PlaceRequest) -> Order {
    let bucket = BucketKey { pool: PoolId(7), number: 0 };
    let line = |line: RequestedLine| Line {
        sku: line.sku,
        location: line.location,
        pool: bucket.pool,
        made_of: None,
        placed_quantity: line.quantity,
        quantity: line.quantity,
        refunded: 0,
        allocations: vec![Allocation { bucket, quantity: u64::from(line.quantity), restocked: 0 }],
    };
    Order {
        id: OrderId(7),
        key: place.key,
        account: place.account,
        state: OrderState::Held,
        reason: None,
        version: 1,
        home: Some(bucket),
        lines: place.lines.into_iter().map(line).collect(),
        hold_seconds: 900,
        hold_seconds_sent: None,
        hold_ends_at: Some(Timestamp(900_000_000)),
        due_at: None,
        extended: false,
        amount_due: place.amount_due,
        refund_due: None,
        attempts: Vec::new(),
        payments: Vec::new(),
        refunds: Vec::new(),
        shortage: None,
        limit_keys: LimitKeys::new(),
        metadata: place.metadata,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    }
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

async fn batch_result(
    engine: &Engine,
    answer: Result<OrderAnswer, Problem>,
    request_id: &str,
) -> BatchResult {
    match answer {
        Ok(answer) => BatchResult {
            status: answer.place_status().as_u16(),
            order: Some(view::standing_order(engine, &answer.order).await),
            problem: None,
        },
        Err(problem) => {
            BatchResult { status: problem.status(), order: None, problem: Some(problem.to_wire(request_id)) }
        }
    }
}

/// Shows an order as it stands
#[utoipa::path(
    get, path = "/v1/orders/{id}", tag = "orders",
    params(OrderPath, WaitParameter, TicketParameter),
    responses(
        (status = 200, description = "The order.", body = OrderView),
        FoundProblems
    )
)]
pub(crate) async fn get_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    Extension(patience): Extension<Patience>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let wait = query.wait("wait").unwrap_or_default();
    let ticket = query.text("ticket", TICKET_CHARS_MAX);
    query.finish(Some(()))?;
    patience.extend(wait);
    let order = found(app.engine().order_when_decided(id, ticket.as_deref(), wait).await?)?;
    json(StatusCode::OK, &view::standing_order(app.engine(), &order).await)
}

/// What became of it: an order, or an answer that stays.
pub(crate) fn found(found: Found) -> Result<Arc<Order>, Problem> {
    match found {
        Found::Order(order) => Ok(order),
        Found::Lost => Err(Problem::refused(&Refusal::AdmissionLost, false, false, None, Subject::Named)),
        Found::Nothing => Err(Problem::not_found("there is no such order")),
    }
}

/// Lists orders
#[utoipa::path(
    get, path = "/v1/orders", tag = "orders",
    params(OrderFilters, PageParameters),
    responses(
        (status = 200, description = "A page, also when it is empty.", body = Page<OrderView>),
        ListProblems
    )
)]
pub(crate) async fn list_orders(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let mut filter = OrderFilter {
        campaign: query.id("campaign_id"),
        order_no: query.id("order_no"),
        state: query.word("state", OrderState::parse),
        account: query.id("account"),
        pool: query.number_id("pool_id", pool_id_of),
        refund_due: query.flag("refund_due"),
        ..OrderFilter::default()
    };
    let asked = query.page::<OrderId>();
    let asked = query.finish(asked)?;
    let (campaign, pool) = (filter.campaign.as_ref(), filter.pool);
    filter.scope = of_list(&app, &caller, Mentioned { campaign, pool, order: None }).await?;
    let (orders, more) = orders_of(&app, filter, asked.page).await?;
    let mut shown = page(&orders, more, &asked.cursor, |order| order.id, |order| view::order(order));
    for (view, order) in shown.items.iter_mut().zip(&orders).filter(|(_, o)| o.state == OrderState::Queued) {
        *view = view::standing_order(app.engine(), order).await;
    }
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
    let key = OrderKey { campaign, order_no };
    let order = match app.store().order_by_key(key.clone()).await? {
        None => app.engine().accepted_by_key(&key).await?,
        found => found,
    };
    let is_after = |order: &Arc<Order>| asked.after.is_none_or(|after| order.id > after);
    Ok((order.into_iter().filter(|order| filter.shows(order) && is_after(order)).collect(), false))
}

/// Cancels an order, or reduces lines of it
#[utoipa::path(
    post, path = "/v1/orders/{id}/cancel", tag = "orders",
    params(OrderPath),
    request_body = Option<CancelRequest>,
    responses(
        (status = 200, description = "The order as it stands now.", body = OrderView),
        CancelProblems
    )
)]
pub(crate) async fn cancel_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let cancel = body.read_or_empty(read_cancel)?;
    let signed = Signed::new(Arc::clone(caller.actor()), cancel.reason);
    let outcome = change(&app, body.permit, id, cancel.action, signed).await?;
    OrderAnswer::of(outcome, Subject::Named)?.into_order()
}

/// Says that a payment has begun
#[utoipa::path(
    post, path = "/v1/orders/{id}/payment-attempts", tag = "orders",
    params(OrderPath),
    request_body = PaymentAttemptRequest,
    responses(
        (status = 201, description = "Recorded.", body = OrderView),
        (status = 200, description = "Recorded before: the order as it stands now.", body = OrderView, headers(("Idempotent-Replayed" = String, description = "`true`: this was answered before."))),
        AttemptProblems
    )
)]
pub(crate) async fn begin_payment(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let attempt = body.read(read_attempt)?;
    let signed = Signed::new(Arc::clone(caller.actor()), "");
    let outcome = change(&app, body.permit, id, attempt, signed).await?;
    OrderAnswer::of(outcome, Subject::Named)?.into_added()
}

/// Refunds units of an order
#[utoipa::path(
    post, path = "/v1/orders/{id}/refunds", tag = "orders",
    params(OrderPath),
    request_body = RefundRequest,
    responses(
        (status = 201, description = "Refunded.", body = OrderView),
        (status = 202, description = "A second person must agree first: nothing is refunded yet.", body = ApprovalView),
        (status = 200, description = "Refunded before: the order as it stands now.", body = OrderView, headers(("Idempotent-Replayed" = String, description = "`true`: this was answered before."))),
        RefundProblems
    )
)]
pub(crate) async fn refund_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let refund = body.read(read_refund)?;
    let lines = refund.lines.clone();
    let second = ApprovalKey::of_order(id, "refund", refund.refund_id.as_str());
    let signed = Signed::new(Arc::clone(caller.actor()), Arc::clone(&refund.reason));
    let signed = Signed { via: caller.via(), ..signed };
    let outcome =
        change_with(&app, body.permit, id, OrderAction::Refund(refund), signed, Some(second)).await?;
    if let Outcome::Proposed { approval, repeated } = &outcome {
        return approvals::proposed(&app, approval, *repeated);
    }
    OrderAnswer::of(outcome, Subject::Refund(&lines))?.into_added()
}

/// Decides on an order
///
/// An operator's decision, with reason: confirm or release what is held or in review, extend a hold, or say that
/// money which was due went back. It goes through the same states as everything else.
#[utoipa::path(
    post, path = "/v1/orders/{id}/resolve", tag = "orders",
    params(OrderPath),
    request_body = ResolveOrderRequest,
    responses(
        (status = 200, description = "The order as it stands now.", body = OrderView),
        (status = 202, description = "A second person must agree first: nothing is done yet.", body = ApprovalView),
        DecisionProblems
    )
)]
pub(crate) async fn resolve_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let DecisionInput { action, work, signed } = body.read(read_decision)?;
    let second = work.map(|(word, key)| ApprovalKey::of_order(id, word, key.as_str()));
    let signed = Signed { actor: signed.operator.as_str().into(), reason: signed.reason, via: caller.via() };
    let outcome = change_with(&app, body.permit, id, action, signed, second).await?;
    if let Outcome::Proposed { approval, repeated } = &outcome {
        return approvals::proposed(&app, approval, *repeated);
    }
    OrderAnswer::of(outcome, Subject::Named)?.into_order()
}

/// Changes an order.
async fn change(
    app: &App,
    permit: WritePermit,
    id: OrderId,
    action: OrderAction,
    signed: Signed,
) -> Result<Outcome, Problem> {
    app.write(permit, |engine| async move { Ok(engine.change(id, action, signed).await?) }).await
}

/// The same for work of an operator, for which a second person may have to be asked.
async fn change_with(
    app: &App,
    permit: WritePermit,
    id: OrderId,
    action: OrderAction,
    signed: Signed,
    second: Option<ApprovalKey>,
) -> Result<Outcome, Problem> {
    let Some(second) = second else { return change(app, permit, id, action, signed).await };
    let work = |engine: holdfast_engine::Engine| async move {
        Ok(engine.change_with_second(id, action, signed, second).await?)
    };
    app.write(permit, work).await
}
