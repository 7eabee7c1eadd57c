//! Health: the process is alive; the node takes work.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_wire::{Code, HealthView};

use crate::answer::json;
use crate::app::App;
use crate::openapi::problems::{ANY, problems};
use crate::problem::Problem;

problems! {
    /// Problems of a process that is alive.
    LiveProblems = &[Code::NotAcceptable, Code::UnsupportedMediaType];
    /// Problems of a node that takes no work.
    ReadyProblems = ANY, &[Code::StorageFull, Code::OutcomeUnknown, Code::ShuttingDown];
}

/// Says that the process is alive
#[utoipa::path(
    get, path = "/livez", tag = "operation", security(()),
    responses(
        (status = 200, description = "It is.", body = HealthView),
        LiveProblems
    )
)]
pub(crate) async fn livez() -> Result<Response, Problem> {
    json(StatusCode::OK, &HealthView { status: "ok".to_owned() })
}

/// Says that the node takes work
#[utoipa::path(
    get, path = "/readyz", tag = "operation", security(()),
    responses(
        (status = 200, description = "It does.", body = HealthView),
        ReadyProblems
    )
)]
pub(crate) async fn readyz(State(app): State<App>) -> Result<Response, Problem> {
    app.engine().readiness()?;
    json(StatusCode::OK, &HealthView { status: "ok".to_owned() })
}
