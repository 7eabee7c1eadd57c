//! What the node shows of itself.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use holdfast_metrics::Format;

use crate::accept::best_of;
use crate::app::App;
use crate::openapi::problems::{ANY, KEYED, problems};
use crate::problem::Problem;

problems! {
    /// Problems of what a node shows.
    ShownProblems = ANY, KEYED;
}

/// Shows what the node measures
#[utoipa::path(
    get, path = "/metrics", tag = "operation",
    responses(
        (status = 200, description = "Every metric of this node; docs/metrics.md lists them.", content(
            (String = "application/openmetrics-text"), (String = "text/plain"),
        )),
        ShownProblems
    )
)]
pub(crate) async fn get_metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let chosen = best_of(&headers, &Format::ALL.map(Format::media_type))?;
    let format = Format::ALL.into_iter().find(|format| format.media_type() == chosen);
    let format = format.unwrap_or(Format::OpenMetrics);
    // It reads files of the kernel and puts much text together: no work for those who answer requests.
    let text = tokio::task::spawn_blocking(move || app.metrics().text(format)).await;
    let text =
        text.ok().and_then(Result::ok).ok_or_else(|| Problem::internal("the metrics were not written"))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(format.content_type())),
        (header::VARY, HeaderValue::from_static("accept")),
    ];
    Ok((headers, text).into_response())
}
