//! One request, with its repeats, to one typed answer.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_wire::{PROBLEM_CONTENT_TYPE, Problem};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::options::{Options, with_trust};
use crate::query::Parameter;
use crate::retry::{RetryPolicy, pause};

/// Longest answer that is read. A page of 500 pools with 256 buckets each stays below it.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Longest that an answer which comes piece by piece may take in all.
const STREAM_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How much longer than other requests a stock file may take.
const FILE_PATIENCE: Duration = Duration::from_secs(180);

/// What the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<T> {
    /// The HTTP status: 200, 201 or 202.
    pub status: u16,
    /// The server says that it had answered this key before.
    pub replayed: bool,
    /// The body.
    pub value: T,
}

/// A client of one server. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    retry: RetryPolicy,
}

/// A request that can be sent again as it is.
struct Request {
    method: Method,
    url: Url,
    body: Option<Vec<u8>>,
    content_type: &'static str,
    /// How much longer than an ordinary one it may take.
    patience: Duration,
    /// Whether its order may be queued rather than decided.
    prefers_queue: bool,
}

impl Request {
    const fn get(url: Url, patience: Duration) -> Self {
        let content_type = "application/json";
        Self { method: Method::GET, url, body: None, content_type, patience, prefers_queue: false }
    }
}

fn written(body: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(body)
        .map_err(|error| Error::Configuration(format!("the request cannot be written: {error}")))
}

/// Why an attempt brought no answer.
pub(crate) enum Failure {
    /// Another attempt may bring one, not before the given time.
    Again(Error, Option<Duration>),
    /// Another attempt would say the same.
    Final(Error),
}

impl Client {
    /// A client of the server at `base_url` (`http://host:port`), with a key where the server wants one.
    pub fn new(base_url: &str, key: Option<String>) -> Result<Self, Error> {
        Self::with_retry(base_url, key, RetryPolicy::default())
    }

    /// The same with other bounds for attempts.
    pub fn with_retry(base_url: &str, key: Option<String>, retry: RetryPolicy) -> Result<Self, Error> {
        Self::with_options(base_url, Options { key, retry, ca_pem: None })
    }

    /// The same with everything that can be said.
    pub fn with_options(base_url: &str, options: Options) -> Result<Self, Error> {
        let Options { key, retry, ca_pem } = options;
        let base = base(base_url)?;
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| Error::Configuration("the key holds characters that no key has".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("holdfast-rust/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5).min(retry.attempt_timeout))
            .timeout(retry.attempt_timeout);
        builder = with_trust(builder, base.scheme() == "https", ca_pem.as_deref())?;
        if is_loopback(&base) {
            // A proxy set for the outside world has no way to this machine's own loopback.
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| Error::Configuration(error.to_string()))?;
        Ok(Self { http, base, retry })
    }

    /// The same client, which tries only once.
    pub(crate) fn once(&self) -> Self {
        Self { retry: RetryPolicy { attempts_max: 1, ..self.retry }, ..self.clone() }
    }

    /// Where the server is.
    pub fn base_url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: &[Parameter<'_>],
    ) -> Result<T, Error> {
        let url = self.address(path, parameters)?;
        Ok(self.send(Request::get(url, Duration::ZERO)).await?.value)
    }

    /// An order, once it is queued no more or so many seconds are over.
    pub(crate) async fn order_waiting<T: DeserializeOwned>(
        &self,
        id: &str,
        wait_seconds: u64,
    ) -> Result<T, Error> {
        let wait = format!("{wait_seconds}s");
        let url = self.address(&["orders", id], &[("wait", Some(&wait))])?;
        let patience = Duration::from_secs(wait_seconds);
        Ok(self.send(Request::get(url, patience)).await?.value)
    }

    /// How often and how long to try again.
    pub(crate) fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    /// Opens an answer that comes piece by piece; one attempt. The pieces may take any time.
    pub(crate) async fn open(
        &self,
        path: &[&str],
        parameters: &[Parameter<'_>],
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Response, Failure> {
        let url = self.address(path, parameters).map_err(Failure::Final)?;
        let request = self.http.get(url).headers(headers.into_iter().collect()).timeout(STREAM_MAX);
        let begun = tokio::time::timeout(self.retry.attempt_timeout, request.send()).await;
        let late = |_| Failure::Again(Error::Unexpected("no answer in time".into()), None);
        let response = begun.map_err(late)?.map_err(|error| self.lost(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let body = self.read(response).await?;
        Err(refused(status, &headers, &body))
    }

    /// The same with repeats.
    pub(crate) async fn opened(
        &self,
        path: &[&str],
        parameters: &[Parameter<'_>],
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Response, Error> {
        let mut attempts: u32 = 0;
        loop {
            let (error, after) = match self.open(path, parameters, headers.clone()).await {
                Ok(response) => return Ok(response),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again(error, after)) => (error, after),
            };
            attempts = attempts.saturating_add(1);
            if attempts >= self.retry.attempts_max {
                return Err(error);
            }
            pause(self.retry.wait(attempts, after)).await;
        }
    }

    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<Answer<T>, Error> {
        self.send(Request { body: Some(written(body)?), method, ..self.to(path)? }).await
    }

    /// Places an order, and says whether it may be queued.
    pub(crate) async fn post_order<T: DeserializeOwned>(
        &self,
        body: &impl Serialize,
        prefers_queue: bool,
    ) -> Result<Answer<T>, Error> {
        let (body, method) = (Some(written(body)?), Method::POST);
        self.send(Request { body, method, prefers_queue, ..self.to(&["orders"])? }).await
    }

    /// Sends a stock file. It may be long, and all of it is one answer.
    pub(crate) async fn post_file<T: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: &[Parameter<'_>],
        file: Vec<u8>,
    ) -> Result<Answer<T>, Error> {
        let url = self.address(path, parameters)?;
        let (body, method, content_type) = (Some(file), Method::POST, "text/csv");
        self.send(Request { body, method, content_type, ..Request::get(url, FILE_PATIENCE) }).await
    }

    fn to(&self, path: &[&str]) -> Result<Request, Error> {
        Ok(Request::get(self.address(path, &[])?, Duration::ZERO))
    }

    fn address(&self, path: &[&str], parameters: &[Parameter<'_>]) -> Result<Url, Error> {
        let mut url = self.base.clone();
        if let Some(dots) = path.iter().find(|part| matches!(**part, "." | ".." | "")) {
            // Addresses swallow these; the request would go to another route.
            return Err(Error::Configuration(format!("the id {dots:?} cannot stand in an address")));
        }
        url.path_segments_mut()
            .map_err(|()| Error::Configuration("the address has no path".into()))?
            .pop_if_empty()
            .push("v1")
            .extend(path);
        let asked: Vec<_> =
            parameters.iter().filter_map(|(name, value)| value.map(|value| (*name, value))).collect();
        if !asked.is_empty() {
            url.query_pairs_mut().extend_pairs(asked);
        }
        Ok(url)
    }

    async fn send<T: DeserializeOwned>(&self, request: Request) -> Result<Answer<T>, Error> {
        let mut attempts: u32 = 0;
        // Once an attempt may have done the work, a later "nothing was done" speaks only of itself.
        let mut unknown = None;
        loop {
            let (error, after) = match self.attempt(&request).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again(error, after)) => (error, after),
            };
            attempts = attempts.saturating_add(1);
            if attempts >= self.retry.attempts_max {
                return Err(unknown.unwrap_or(error));
            }
            if error.outcome_is_unknown() {
                unknown = Some(error);
            }
            pause(self.retry.wait(attempts, after)).await;
        }
    }

    async fn attempt<T: DeserializeOwned>(&self, request: &Request) -> Result<Answer<T>, Failure> {
        let mut builder = self.http.request(request.method.clone(), request.url.clone());
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, request.content_type).body(body.clone());
        }
        if request.prefers_queue {
            builder = builder.header("prefer", "respond-async");
        }
        if !request.patience.is_zero() {
            builder = builder.timeout(self.retry.attempt_timeout.saturating_add(request.patience));
        }
        let response = builder.send().await.map_err(|error| self.lost(error))?;
        let status = response.status();
        let headers = response.headers().clone();
        let body = self.read(response).await?;
        if status.is_success() {
            return parse(status, &headers, &body).map_err(Failure::Final);
        }
        Err(refused(status, &headers, &body))
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(error))? {
            if body.len().saturating_add(chunk.len()) > ANSWER_BYTES_MAX {
                return Err(Failure::Final(Error::Unexpected(format!("more than {ANSWER_BYTES_MAX} bytes"))));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    pub(crate) fn lost(&self, source: reqwest::Error) -> Failure {
        if source.is_builder() {
            return Failure::Final(Error::Configuration(source.to_string()));
        }
        // Only a connection that was never made proves that nothing was done.
        let maybe_done = !source.is_connect();
        let address = self.base_url().to_owned();
        // The address stands in the error itself; a query could hold what logs should not.
        Failure::Again(Error::Transport { address, maybe_done, source: source.without_url() }, None)
    }
}

/// An answer that is a problem, or none of Holdfast's.
fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let problem = match problem(status, headers, body) {
        Ok(problem) => problem,
        Err(error) => return Failure::Final(error),
    };
    let busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if busy && problem.retryable {
        let after = retry_after(headers, &problem);
        return Failure::Again(Error::Problem(problem), after);
    }
    Failure::Final(Error::Problem(problem))
}

fn parse<T: DeserializeOwned>(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Answer<T>, Error> {
    let value = serde_json::from_slice(body)
        .map_err(|error| Error::Unexpected(format!("status {status}, and the body does not fit: {error}")))?;
    let replayed = headers.get("idempotent-replayed").is_some_and(|value| value.as_bytes() == b"true");
    Ok(Answer { status: status.as_u16(), replayed, value })
}

fn problem(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Box<Problem>, Error> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !kind.starts_with(PROBLEM_CONTENT_TYPE) {
        let kind = if kind.is_empty() { "no content type" } else { kind };
        return Err(Error::Unexpected(format!("status {status} with {kind}: is this a Holdfast server?")));
    }
    serde_json::from_slice(body)
        .map_err(|error| Error::Unexpected(format!("status {status}, and the problem does not fit: {error}")))
}

fn retry_after(headers: &HeaderMap, problem: &Problem) -> Option<Duration> {
    let exact = problem.retry_after_ms.map(Duration::from_millis);
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    exact.or_else(|| header.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs))
}

fn base(text: &str) -> Result<Url, Error> {
    let wrong = |why: &str| Error::Configuration(format!("the target {text:?} {why}"));
    let url = Url::parse(text).map_err(|_| wrong("is not an address such as http://127.0.0.1:8080"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("does not begin with http:// or https://"));
    }
    if url.host_str().is_none() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must be a host and perhaps a path, nothing more"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds credentials; give the key by itself"));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}
