//! An order's changes as server-sent events.
//!
//! Each event is the order and the ledger position of its last event, by which a reader that comes back
//! says what it has seen. The engine's watchers say when something changed; every now and then the order is
//! read anew, so that nothing is missed when they could not.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast_core::id::OrderId;
use holdfast_core::order::{Order, State as OrderState};
use holdfast_engine::{Found, Watcher};
use holdfast_wire::Code;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, MissedTickBehavior};

use crate::accept::best_of;
use crate::app::App;
use crate::extract::Named;
use crate::input::query::Query;
use crate::openapi::parameters::{OrderPath, TICKET_CHARS_MAX, TicketParameter};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, problems};
use crate::problem::Problem;
use crate::routes::orders::found;
use crate::stream::{self, Gone, Pieces};
use crate::view;

const EVENTS: &str = "text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// When a reader whose connection broke may come back, in milliseconds.
const RETRY_MS: u32 = 1_000;

problems! {
    /// Problems before the first event.
    FollowProblems = ANY, KEYED, QUERY, NAMED, &[Code::Overloaded, Code::ShuttingDown, Code::AdmissionLost, Code::CacheNotReady];
}

/// Follows an order as server-sent events
///
/// `event: order`, the order as data, and as `id` the position of its last ledger entry. It ends when the order
/// is sold, refunded, released or failed.
#[utoipa::path(
    get, path = "/v1/orders/{id}/events", tag = "orders",
    params(
        OrderPath,
        TicketParameter,
        ("Last-Event-ID" = Option<String>, Header, description = "What was seen last; it is not sent again."),
    ),
    responses(
        (status = 200, description = "Events until the end.", body = String, content_type = "text/event-stream"),
        (status = 204, description = "The end was seen before: do not come back."),
        FollowProblems
    )
)]
pub(crate) async fn follow_order(
    State(app): State<App>,
    Named(id): Named<OrderId>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let ticket = query.text("ticket", TICKET_CHARS_MAX);
    query.finish(Some(()))?;
    best_of(&headers, &[EVENTS])?;
    let permit = app.admit_events()?;
    // Before the read, so that no change falls between the two.
    let watcher = app.engine().watch(id)?;
    let order = found(app.engine().find_order(id, ticket.as_deref()).await?)?;
    let position = position(&app, &order).await?;
    let is_known = position.is_some()
        && headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok()) == position.as_deref();
    if is_known && is_final(&order) {
        // For a reader of events this means: do not come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let follow = Follow { app: app.clone(), watcher, order, ticket, _permit: permit };
    let first = if is_known { None } else { Some(position) };
    let body = stream::body(app.limits().stream_stall_timeout, move |pieces| follow.run(first, pieces));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Some proxies gather what they pass on; events must not wait.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// Whether nothing more is sent after this state. A refund of a sold order is told to who asks again.
const fn is_final(order: &Order) -> bool {
    match order.state {
        OrderState::Sold | OrderState::Refunded | OrderState::Released | OrderState::Failed => true,
        OrderState::Queued | OrderState::Held | OrderState::InReview => false,
    }
}

/// Where the order's last event stands in the ledger: pool/bucket/sequence. None: it moved no stock.
async fn position(app: &App, order: &Order) -> Result<Option<String>, Problem> {
    let found = app.store().order_position(order.id, order.version).await?;
    Ok(found.map(|(bucket, seq)| format!("{}/{}/{seq}", bucket.pool, bucket.number)))
}

/// One reader's way through an order's life.
struct Follow {
    app: App,
    watcher: Watcher,
    /// As it was sent last, or as the reader knows it.
    order: Arc<Order>,
    /// What finds it while only a cache has it.
    ticket: Option<String>,
    _permit: OwnedSemaphorePermit,
}

impl Follow {
    async fn run(mut self, first: Option<Option<String>>, pieces: Pieces) -> Result<(), Gone> {
        pieces.send(format!("retry: {RETRY_MS}\n\n")).await?;
        if let Some(position) = first {
            pieces.send(event(&self.app, &self.order, position.as_deref()).await?).await?;
        }
        let limits = self.app.limits().clone();
        let end = Instant::now() + limits.events_lifetime;
        let mut beat =
            tokio::time::interval_at(Instant::now() + limits.events_keep_alive, limits.events_keep_alive);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !is_final(&self.order) {
            let changed = tokio::select! {
                biased;
                () = pieces.gone() => return Err(Gone),
                changed = self.watcher.changed() => match changed {
                    Some(order) => Some(Found::Order(order)),
                    // The server stops. Whoever wants more comes back to another.
                    None => return Ok(()),
                },
                () = tokio::time::sleep_until(end) => return Ok(()),
                // Another node may have decided it.
                () = self.app.engine().left_queue(&self.order), if self.order.state == OrderState::Queued => {
                    self.read_anew().await
                }
                _ = beat.tick() => self.read_anew().await,
            };
            let changed = match changed {
                Some(Found::Order(order)) => Some(order),
                // Whoever comes back is told that it was lost, or that there is no such order.
                Some(Found::Lost | Found::Nothing) => return Ok(()),
                None => None,
            };
            match changed.filter(|order| order.version > self.order.version) {
                Some(order) => self.tell(order, &pieces).await?,
                None => pieces.send(": still there\n\n").await?,
            }
        }
        Ok(())
    }

    /// The order as it stands; none if that cannot be said now.
    async fn read_anew(&self) -> Option<Found> {
        self.app.engine().find_order(self.order.id, self.ticket.as_deref()).await.ok()
    }

    async fn tell(&mut self, order: Arc<Order>, pieces: &Pieces) -> Result<(), Gone> {
        // Without its position a reader could not come back: then it is cut off and asks again.
        let position = position(&self.app, &order).await.map_err(|_| Gone)?;
        pieces.send(event(&self.app, &order, position.as_deref()).await?).await?;
        self.order = order;
        Ok(())
    }
}

/// One event. A line break would end its line; in JSON it can only stand between the tokens of metadata.
async fn event(app: &App, order: &Order, position: Option<&str>) -> Result<String, Gone> {
    let shown = view::standing_order(app.engine(), order).await;
    let data = serde_json::to_string(&shown).map_err(|_| Gone)?.replace(['\n', '\r'], " ");
    let id = position.map(|position| format!("id: {position}\n")).unwrap_or_default();
    Ok(format!("event: order\n{id}data: {data}\n\n"))
}
