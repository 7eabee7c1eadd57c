//! Payment notices.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::command::{OrderAction, Signed};
use holdfast_core::id::{OrderId, Provider};
use holdfast_wire::{Code, NotificationView, PaymentNotification};

use crate::answer::{OrderAnswer, json};
use crate::app::App;
use crate::auth::{Caller, identify, unauthenticated};
use crate::extract::{Named, WriteBody, whole_body};
use crate::input::payments::{OrderName, read_notice};
use crate::openapi::parameters::ProviderPath;
use crate::openapi::problems::{ANY, KEYED, NAMED, WRITE, problems};
use crate::problem::{Problem, Subject};
use crate::roles::NOTIFIERS;
use crate::signature;
use crate::view;

problems! {
    /// Problems of a notice.
    NoticeProblems = ANY, KEYED, WRITE, NAMED, &[Code::InvalidTime, Code::Conflict, Code::KeyMismatch];
}

/// Takes what a payment provider says
///
/// A provider with secrets signs its notices; one without needs a key. The order is named by `order_id`, or by
/// `campaign_id` and `order_no`. A notice for an order that is not known yet is 404: send it again.
#[utoipa::path(
    post, path = "/v1/payments/{provider}/notifications", tag = "payments", security(("key" = []), ("standard_webhooks" = []), ("stripe" = [])),
    params(ProviderPath),
    request_body = PaymentNotification,
    responses(
        (status = 200, description = "Understood, whatever became of it.", body = NotificationView),
        NoticeProblems
    )
)]
pub(crate) async fn notify(
    State(app): State<App>,
    Named(provider): Named<Provider>,
    request: Request,
) -> Result<Response, Problem> {
    let (caller, body) = verified(&app, &provider, request).await?;
    let signed = Signed::new(provider.as_str(), "");
    let sent = body.read(|object| read_notice(provider, object))?;
    if let Some(caller) = caller {
        match &sent.order {
            OrderName::Id(id) => caller.allow_order(&app, *id).await?,
            OrderName::Key(key) => caller.allow(&key.campaign)?,
        }
    }
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

/// A provider with secrets signs; one without needs a key, whose scope then holds. A key is checked before the
/// body is read; a signature needs the body, which until then takes only what strangers may have.
async fn verified(
    app: &App,
    provider: &Provider,
    request: Request,
) -> Result<(Option<Caller>, WriteBody), Problem> {
    let secrets = app.secrets_of(provider);
    if secrets.is_empty() {
        let caller = identify(app, request.headers(), Arc::from(""), NOTIFIERS).await?;
        return Ok((Some(caller), WriteBody::from_request(request, app).await?));
    }
    let headers = request.headers().clone();
    let stranger = app.admit_unverified()?;
    let bytes = whole_body(request, app).await?;
    if !signature::verify(secrets, &headers, &bytes, app.store().now()) {
        app.failures().note();
        return Err(unauthenticated("the signature does not verify"));
    }
    drop(stranger);
    Ok((None, WriteBody { permit: app.admit()?, bytes }))
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
