//! Payment notices.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use holdfast_core::command::{OrderAction, Signed};
use holdfast_core::id::{OrderId, Provider};
use holdfast_wire::NotificationView;

use crate::answer::{OrderAnswer, json};
use crate::app::App;
use crate::auth::{check_key, unauthenticated};
use crate::extract::{Named, WriteBody};
use crate::input::payments::{OrderName, read_notice};
use crate::problem::{Problem, Subject};
use crate::signature;
use crate::view;

/// `POST /v1/payments/{provider}/notifications`
pub(crate) async fn notify(
    State(app): State<App>,
    Named(provider): Named<Provider>,
    headers: HeaderMap,
    body: WriteBody,
) -> Result<Response, Problem> {
    check_sender(&app, &provider, &headers, &body)?;
    let signed = Signed { actor: Arc::from(provider.as_str()), reason: Arc::from("") };
    let sent = body.read(|object| read_notice(provider, object))?;
    let order = order_of(&app, sent.order).await?;
    let action = OrderAction::Notice(sent.notice);
    let work =
        |engine: holdfast_engine::Engine| async move { Ok(engine.change(order, action, signed).await?) };
    let answer = OrderAnswer::of(app.write(body.permit, work).await?, Subject::Named)?;
    let disposition =
        answer.disposition.ok_or_else(|| Problem::internal("a notice without a disposition"))?;
    let order = view::order(&answer.order);
    json(StatusCode::OK, &NotificationView { disposition: disposition.as_str().into(), order })
}

/// A provider with secrets signs; one without needs a key.
fn check_sender(
    app: &App,
    provider: &Provider,
    headers: &HeaderMap,
    body: &WriteBody,
) -> Result<(), Problem> {
    let secrets = app.secrets_of(provider);
    if secrets.is_empty() {
        return check_key(app.auth(), headers);
    }
    if signature::verify(secrets, headers, &body.bytes, app.store().now()) {
        return Ok(());
    }
    Err(unauthenticated("the signature does not verify"))
}

/// The order that a notice names. One that is not known yet is 404, so that the provider sends it again.
async fn order_of(app: &App, name: OrderName) -> Result<OrderId, Problem> {
    match name {
        OrderName::Id(id) => Ok(id),
        OrderName::Key(key) => {
            let order = app.store().order_by_key(key).await?;
            order.map(|order| order.id).ok_or_else(|| Problem::not_found("there is no such order"))
        }
    }
}
