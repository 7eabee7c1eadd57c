//! The edge of the server: what holds for every request, whatever its route. The request's id, the
//! deadline, and the one form of every answer with a status of 400 or more.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_wire::{Code, PROBLEM_CONTENT_TYPE};

use crate::answer::REPLAYED;
use crate::app::App;
use crate::problem::Problem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest request id that is taken from a client.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// The id of a request, for logs and answers.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The client's, if it can stand in a log; else a new one.
    fn of(headers: &HeaderMap) -> Self {
        let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let is_good = |text: &&str| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
        };
        sent.filter(is_good).map_or_else(Self::new, |text| Self(Arc::from(text)))
    }

    #[expect(clippy::disallowed_methods, reason = "it names a line of the log; nothing depends on it")]
    pub(crate) fn new() -> Self {
        Self(Arc::from(uuid::Uuid::now_v7().to_string()))
    }
}

/// Surrounds every request.
pub(crate) async fn surround(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (begun, method) = (Instant::now(), request.method().clone());
    let path = request.extensions().get::<MatchedPath>().cloned();
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let mut response = if request.headers().contains_key(header::CONTENT_ENCODING) {
        Problem::new(Code::UnsupportedMediaType, "encoded bodies are not taken").into_response()
    } else {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let patience = Patience::default();
        request.extensions_mut().insert(patience.clone());
        let answer = patience.wait(app.limits().request_timeout, next.run(request));
        answer.await.unwrap_or_else(|| too_late(is_read).into_response())
    };
    if response.status().as_u16() >= 400 {
        response = finished(&app, response, &id);
    }
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    app.http().answered(&method, path, response.status().as_u16(), begun.elapsed());
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// More time for a request that was asked to wait. The deadline is for the answer's head: a body that is
/// sent piece by piece has limits of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patience(Arc<AtomicU64>);

impl Patience {
    /// Lets the request take so much longer.
    pub(crate) fn extend(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// The answer, if it comes in time.
    async fn wait<T>(&self, timeout: Duration, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = std::pin::pin!(answer);
        let mut left = timeout;
        loop {
            if let Ok(answer) = tokio::time::timeout(left, &mut answer).await {
                return Some(answer);
            }
            left = Duration::from_millis(self.0.swap(0, Ordering::SeqCst));
            if left.is_zero() {
                return None;
            }
        }
    }
}

/// The deadline is over. A write goes on by itself, so nobody knows what became of it.
fn too_late(is_read: bool) -> Problem {
    if is_read {
        return Problem::new(Code::AuthorityUnavailable, "no answer in time");
    }
    Problem::unknown(Code::OutcomeUnknown, "no answer in time; ask again with the same key")
}

/// Gives a problem its body and headers. Answers that are none yet come from the router itself.
fn finished(app: &App, response: Response, id: &RequestId) -> Response {
    let (mut parts, _) = response.into_parts();
    let problem = parts.extensions.remove::<Problem>().unwrap_or_else(|| of_status(parts.status));
    app.http().problem(problem.code());
    parts.status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = &mut parts.headers;
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_CONTENT_TYPE));
    if let Some(millis) = problem.retry_after_ms() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(millis.div_ceil(1_000)));
    }
    if problem.is_repeated() {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    if problem.code() == Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if matches!(problem.code(), Code::TooLarge | Code::RequestTimeout) {
        // What is left of the body is not worth reading, so the connection cannot go on.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let body = serde_json::to_vec(&problem.to_wire(id.as_str())).unwrap_or_default();
    Response::from_parts(parts, Body::from(body))
}

/// A problem for an answer that the router made.
fn of_status(status: StatusCode) -> Problem {
    tracing::warn!(%status, "an answer without a problem");
    match status {
        StatusCode::NOT_FOUND => no_route_problem(),
        StatusCode::METHOD_NOT_ALLOWED => wrong_method_problem(),
        status if status.is_server_error() => Problem::internal("an internal error"),
        _ => Problem::new(Code::InvalidValue, "the request is not valid"),
    }
}

fn no_route_problem() -> Problem {
    Problem::not_found("there is no such route")
}

fn wrong_method_problem() -> Problem {
    Problem::new(Code::MethodNotAllowed, "see the Allow header")
}

/// The answer where no route fits.
pub(crate) async fn no_route() -> Problem {
    no_route_problem()
}

/// The answer where the route has no such method. The router adds `Allow`.
pub(crate) async fn wrong_method() -> Problem {
    wrong_method_problem()
}

/// A handler that panicked: a bug. Whether it had done something is not known.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(panic = text, "a handler panicked");
    Problem::internal("an internal error; ask again with the same key").into_response()
}
