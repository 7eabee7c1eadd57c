//! Webhooks: `CloudEvents` in structured JSON, one a request or a batch, signed.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_core::time::Timestamp;
use holdfast_engine::{Blame, Delivered, Failure, OutEvent, Sink};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};

use crate::address::{self, PrivateAddresses};
use crate::resolve::Resolver;
use crate::sign::signatures;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(30);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// How much of it is told.
const ANSWER_CHARS_TOLD: usize = 200;

type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything that webhooks share.
pub struct Webhooks {
    http: Client,
    private: PrivateAddresses,
    now: Now,
}

impl Webhooks {
    /// With the clock that signatures tell.
    pub fn new(private: PrivateAddresses, now: Now) -> Result<Self, String> {
        // The library wants its cryptography chosen by the process; an error says that it is.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
                .redirect(redirect::Policy::none())
                // A proxy would look the name up by itself.
                .no_proxy()
                .dns_resolver(Arc::new(Resolver(private)))
                .connect_timeout(CONNECT)
                .pool_idle_timeout(IDLE)
        };
        let built = builder().build().or_else(|error| {
            tracing::warn!(%error, "this system has no certificates: webhooks with https:// will fail");
            builder().tls_certs_only(std::iter::empty::<reqwest::Certificate>()).build()
        });
        Ok(Self { http: built.map_err(|error| error.to_string())?, private, now })
    }

    /// Whether a webhook may lead there.
    pub async fn check(&self, to: &str) -> Result<(), String> {
        address::check(to, self.private).await
    }

    /// The way to a receiver. `is_batched`: events are sent as an array, also when there is one.
    pub fn open(
        &self,
        to: &str,
        secrets: Vec<Arc<str>>,
        is_batched: bool,
        timeout: Duration,
    ) -> Result<Arc<dyn Sink>, String> {
        let url = address::parse(to, self.private)?;
        let (http, now) = (self.http.clone(), Arc::clone(&self.now));
        Ok(Arc::new(Webhook { http, url, secrets, is_batched, timeout, now }))
    }
}

struct Webhook {
    http: Client,
    url: Url,
    secrets: Vec<Arc<str>>,
    is_batched: bool,
    timeout: Duration,
    now: Now,
}

#[async_trait]
impl Sink for Webhook {
    async fn deliver(&self, events: &[Arc<OutEvent>]) -> Delivered {
        if self.is_batched {
            return match self
                .send(&batch_id(events), batch_body(events), "application/cloudevents-batch+json")
                .await
            {
                Ok(()) => Delivered::all(events.len()),
                Err(failure) => Delivered::none(failure),
            };
        }
        for (taken, event) in events.iter().enumerate() {
            let body = Bytes::from(event.body.clone());
            if let Err(failure) = self.send(&event.id, body, "application/cloudevents+json").await {
                return Delivered { taken, failure: Some(failure) };
            }
        }
        Delivered::all(events.len())
    }
}

/// The id of a batch: the same for the same events.
fn batch_id(events: &[Arc<OutEvent>]) -> String {
    match events {
        [] => String::new(),
        [only] => only.id.clone(),
        [first, .., last] => format!("{}+{}", first.id, last.id),
    }
}

fn batch_body(events: &[Arc<OutEvent>]) -> Bytes {
    let mut body = Vec::with_capacity(events.iter().map(|event| event.body.len().saturating_add(1)).sum());
    body.push(b'[');
    for (place, event) in events.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&event.body);
    }
    body.push(b']');
    body.into()
}

impl Webhook {
    async fn send(&self, id: &str, body: Bytes, media: &'static str) -> Result<(), Failure> {
        let seconds = (self.now)().0.div_euclid(1_000_000);
        let signature = signatures(self.secrets.iter().map(|secret| &**secret), id, seconds, &body);
        let request = self
            .http
            .post(self.url.clone())
            .timeout(self.timeout)
            .header(CONTENT_TYPE, media)
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature)
            .body(body);
        let response = request.send().await.map_err(unsent)?;
        let status = response.status();
        let headers = response.headers().clone();
        let told = told(response).await;
        if status.is_success() { Ok(()) } else { Err(refused(status, &headers, &told)) }
    }
}

/// The beginning of an answer. It is read to its end, if that is near, so that the connection can be used again.
async fn told(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        let room = ANSWER_BYTES_MAX.saturating_sub(bytes.len());
        bytes.extend(piece.iter().take(room));
        if bytes.len() >= ANSWER_BYTES_MAX {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(ANSWER_CHARS_TOLD).collect()
}

/// There was no answer. The address stands in the settings; a query of it could hold what logs should not.
fn unsent(error: reqwest::Error) -> Failure {
    let is_timeout = error.is_timeout() && !error.is_connect();
    let error = error.without_url();
    let cause =
        std::iter::successors(error.source(), |cause: &&dyn std::error::Error| (*cause).source()).last();
    let why = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    // One that does not answer in time may do so for these events only.
    if is_timeout { Failure::of_events(why) } else { Failure::of_receiver(why) }
}

/// The answer was no yes.
fn refused(status: StatusCode, headers: &HeaderMap, told: &str) -> Failure {
    let told = told.trim();
    let why = if told.is_empty() { status.to_string() } else { format!("{status}: {told}") };
    let retry_after = retry_after(headers);
    let speaks_of_itself = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::PROXY_AUTHENTICATION_REQUIRED
            | StatusCode::TOO_EARLY
            | StatusCode::TOO_MANY_REQUESTS
    );
    let of_receiver = speaks_of_itself || status.is_redirection() || retry_after.is_some();
    Failure {
        why: if status.is_redirection() { format!("{why} (redirects are not followed)") } else { why },
        blame: if of_receiver { Blame::Receiver } else { Blame::Events },
        retry_after,
        gone: status == StatusCode::GONE,
    }
}

/// How long the receiver wants to be left in peace. A date is read against the receiver's own clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let wish = headers.get(RETRY_AFTER).and_then(text)?;
    if let Ok(seconds) = wish.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(&wish).ok()?;
    let now = httpdate::parse_http_date(&headers.get(DATE).and_then(text)?).ok()?;
    until.duration_since(now).ok()
}

#[cfg(test)]
#[path = "webhook_tests.rs"]
mod tests;
