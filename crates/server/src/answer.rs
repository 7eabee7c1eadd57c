//! Good answers: JSON with a status, and the mark of a repeat.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast_core::command::{How, Outcome};
use holdfast_core::order::{Disposition, Order, State};
use holdfast_engine::Engine;
use holdfast_wire::{Code, OrderView};
use serde::Serialize;

use crate::problem::{Problem, Subject};
use crate::view;

/// Says that an answer was given before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The media type of good answers.
pub(crate) const JSON: &str = "application/json";

/// JSON with a status.
pub(crate) fn json(status: StatusCode, view: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_vec(view).map_err(|_| Problem::internal("a view cannot be written"))?;
    Ok((status, [(header::CONTENT_TYPE, HeaderValue::from_static(JSON))], body).into_response())
}

/// JSON of something that may be new: 201, or 200 with the mark of a repeat.
pub(crate) fn made(is_repeat: bool, view: &impl Serialize) -> Result<Response, Problem> {
    if !is_repeat {
        return json(StatusCode::CREATED, view);
    }
    let mut response = json(StatusCode::OK, view)?;
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

/// What became of a command about an order.
pub(crate) struct OrderAnswer {
    pub(crate) order: Arc<Order>,
    pub(crate) how: How,
    pub(crate) disposition: Option<Disposition>,
}

impl OrderAnswer {
    /// Takes an outcome apart: the order, or the refusal.
    pub(crate) fn of(outcome: Outcome, subject: Subject<'_>) -> Result<Self, Problem> {
        match outcome {
            Outcome::Order { order, how, disposition } => Ok(Self { order, how, disposition }),
            Outcome::Refused { refusal, recorded, repeated, order } => {
                Err(Problem::refused(&refusal, recorded, repeated, order, subject))
            }
            other @ (Outcome::Pool { .. }
            | Outcome::Adjusted { .. }
            | Outcome::Transferred { .. }
            | Outcome::Imported { .. }
            | Outcome::Proposed { .. }
            | Outcome::Epoch { .. }
            | Outcome::Repaired { .. }
            | Outcome::Miss(_)
            | Outcome::Elsewhere(_)
            | Outcome::Outdated
            | Outcome::NotDue(_)) => Err(unexpected(&other)),
        }
    }

    /// Whether the answer was given before.
    pub(crate) fn is_repeat(&self) -> bool {
        self.how == How::Repeated
    }

    /// The status of a place: new 201, known 200, queued 202.
    pub(crate) fn place_status(&self) -> StatusCode {
        match (self.order.state, self.how) {
            (State::Queued, _) => StatusCode::ACCEPTED,
            (_, How::Created) => StatusCode::CREATED,
            (_, How::Changed | How::Repeated) => StatusCode::OK,
        }
    }

    /// The answer to a place.
    pub(crate) async fn into_placed(self, engine: &Engine) -> Result<Response, Problem> {
        let order = view::standing_order(engine, &self.order).await;
        let mut response = json(self.place_status(), &order)?;
        if self.is_repeat() {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        } else if let Ok(location) = HeaderValue::from_str(&location(&order)) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        Ok(response)
    }

    /// The answer to something that was added to an order: an attempt, a refund.
    pub(crate) fn into_added(self) -> Result<Response, Problem> {
        made(self.is_repeat(), &view::order(&self.order))
    }

    /// The order as it stands.
    pub(crate) fn into_order(self) -> Result<Response, Problem> {
        json(StatusCode::OK, &view::order(&self.order))
    }
}

/// Where the order is found: one that only a cache has, on any node by its ticket.
fn location(order: &OrderView) -> String {
    match &order.ticket {
        Some(ticket) => format!("/v1/orders/{}?ticket={ticket}", order.id),
        None => format!("/v1/orders/{}", order.id),
    }
}

/// An outcome that the engine keeps to itself, or that belongs to another command: a bug that must not
/// look like an answer. Nothing is known to be done, so the client may ask again.
pub(crate) fn unexpected(outcome: &Outcome) -> Problem {
    tracing::error!(?outcome, "the engine gave an outcome that does not belong to the command");
    Problem::unknown(Code::Overloaded, "no answer; ask again with the same key")
}
