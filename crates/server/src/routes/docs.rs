//! Documents that the server carries: its contract, and what to do about a problem.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast_wire::{Code, ProblemKindView};

use crate::accept::best_of;
use crate::answer::{JSON, json};
use crate::extract::{Named, PathId};
use crate::openapi::problems::{NAMED, problems};
use crate::problem::Problem;
use crate::{guidance, openapi, pages};

const HTML: &str = "text/html";

problems! {
    /// Problems of documents that always exist.
    DocumentProblems = &[Code::NotAcceptable, Code::UnsupportedMediaType];
    /// Problems of the pages about problems.
    KindProblems = NAMED, &[Code::NotAcceptable, Code::UnsupportedMediaType];
}

/// This document
#[utoipa::path(
    get, path = "/openapi.json", tag = "operation", security(()),
    responses((status = 200, description = "The document.", body = Object), DocumentProblems)
)]
pub(crate) async fn get_openapi() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(JSON))], openapi::text()).into_response()
}

/// This document for people
#[utoipa::path(
    get, path = "/docs", tag = "operation", security(()),
    responses(
        (status = 200, description = "One page that loads nothing else.", body = String, content_type = "text/html"),
        DocumentProblems
    )
)]
pub(crate) async fn get_docs(headers: HeaderMap) -> Result<Response, Problem> {
    best_of(&headers, &[HTML])?;
    Ok(page(pages::docs().to_owned()))
}

impl PathId for Code {
    fn from_path(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

/// What a problem's code means and what to do about it
#[utoipa::path(
    get, path = "/problems/{code}", tag = "operation", security(()),
    params(("code" = String, Path, description = "The code of a problem, such as `sold_out`.")),
    responses(
        (status = 200, description = "In English and Chinese.", content(
            (String = "text/html"), (ProblemKindView = "application/json"),
        )),
        KindProblems
    )
)]
pub(crate) async fn get_problem_kind(
    Named(code): Named<Code>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = best_of(&headers, &[HTML, JSON])?;
    let mut response =
        if form == JSON { json(StatusCode::OK, &guidance::view(code))? } else { page(pages::problem(code)) };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// A page of our own.
fn page(html: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let mut response = (headers, html).into_response();
    if let Some(policy) = pages::policy() {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
