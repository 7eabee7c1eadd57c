//! What is wrong with a sale, as this node sees it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::time::Timestamp;
use holdfast_engine::{Diagnosis, Figure, Finding};
use holdfast_wire::{DiagnosisView, FigureView, FindingView, OnsetView};

use crate::answer::json;
use crate::app::App;
use crate::extract::NoQuery;
use crate::openapi::problems::{ANY, KEYED, QUERY, problems};
use crate::problem::Problem;
use crate::view::time;

problems! {
    /// Problems of a diagnosis.
    DiagnosisProblems = ANY, KEYED, QUERY;
}

/// Tells what is wrong with a sale
///
/// From the samples of this node's last half hour and a few reads of the authority: waiting for locks, slow commits, overload,
/// repeats, payments that race the end of their holds, and what was accepted and not done are told apart. Ask every node.
#[utoipa::path(
    get, path = "/v1/diagnose", tag = "operation",
    responses((status = 200, description = "What was found, with its grounds.", body = DiagnosisView), DiagnosisProblems)
)]
pub(crate) async fn get_diagnosis(State(app): State<App>, _: NoQuery) -> Result<Response, Problem> {
    json(StatusCode::OK, &shown(&app.engine().diagnose().await?))
}

fn shown(diagnosis: &Diagnosis) -> DiagnosisView {
    DiagnosisView {
        at: time(diagnosis.at),
        healthy: diagnosis.is_healthy(),
        samples_from: diagnosis.from.map(time),
        samples: diagnosis.samples as u64,
        findings: diagnosis.findings.iter().map(finding).collect(),
        grounds: diagnosis.grounds.iter().map(figure).collect(),
    }
}

fn finding(found: &Finding) -> FindingView {
    let onset = |(at, text): &(Timestamp, String)| OnsetView { at: time(*at), text: text.clone() };
    let kind = found.kind.as_str();
    FindingView {
        kind: kind.into(),
        is_trouble: found.kind.is_trouble(),
        since: time(found.since),
        until: found.until.map(time),
        text: found.text.clone(),
        figures: found.figures.iter().map(figure).collect(),
        timeline: found.timeline.iter().map(onset).collect(),
        next_step: found.kind.next_step().to_owned(),
        see: format!("docs/diagnose.md#{kind}"),
    }
}

/// To three digits behind the point: more says nothing.
fn figure(figure: &Figure) -> FigureView {
    let short = |value: f64| (value * 1e3).round() / 1e3;
    FigureView { name: figure.name.into(), value: short(figure.value), usual: figure.usual.map(short) }
}
