//! Health: the process is alive; the node takes work.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_wire::HealthView;

use crate::answer::json;
use crate::app::App;
use crate::problem::Problem;

/// `GET /livez`
pub(crate) async fn livez() -> Result<Response, Problem> {
    json(StatusCode::OK, &HealthView { status: "ok".to_owned() })
}

/// `GET /readyz`
pub(crate) async fn readyz(State(app): State<App>) -> Result<Response, Problem> {
    app.engine().readiness()?;
    json(StatusCode::OK, &HealthView { status: "ok".to_owned() })
}
