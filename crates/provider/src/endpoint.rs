//! One provider's endpoint: its address, its key, and how much of it is asked for at once.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_engine::{PaymentStatus, StatusQuestion};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Url};
use tokio::sync::Semaphore;

use crate::ConfigError;
use crate::answer;
use crate::breaker::Breaker;

/// How long a connection may take.
pub(crate) const CONNECT: Duration = Duration::from_secs(2);
/// How long one try may take.
const TRY: Duration = Duration::from_secs(3);
/// How long a question may take in all, with its wait for a turn.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often it is tried.
const TRIES_MAX: u32 = 2;
/// The wait before the next try.
const BACKOFF: Duration = Duration::from_millis(250);
/// Most questions to one provider at once.
const QUESTIONS_MAX: usize = 8;
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

pub(crate) struct Endpoint {
    name: String,
    url: Url,
    key: Option<HeaderValue>,
    questions: Semaphore,
    breaker: Mutex<Breaker>,
}

impl Endpoint {
    /// Only what the operator wrote is asked, and in the clear only on this machine.
    pub(crate) fn new(name: &str, address: &str, key: Option<&str>) -> Result<Self, ConfigError> {
        let wrong = |why| ConfigError::Address { provider: name.to_owned(), why };
        let url =
            Url::parse(address).map_err(|_| wrong("is no address such as https://bank.example/status"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds credentials; give the key by itself"));
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) => {}
            "http" => return Err(wrong("must begin with https://, but on this machine's own loopback")),
            _ => return Err(wrong("must begin with https://")),
        }
        let key = match key {
            Some(key) => {
                let bearer = HeaderValue::from_str(&format!("Bearer {key}"));
                let mut value = bearer.map_err(|_| ConfigError::Key(name.to_owned()))?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let (questions, breaker) = (Semaphore::new(QUESTIONS_MAX), Mutex::default());
        Ok(Self { name: name.to_owned(), url, key, questions, breaker })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    fn breaker(&self) -> std::sync::MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks; whatever goes wrong is unknown.
    pub(crate) async fn ask(&self, http: &Client, question: &StatusQuestion) -> PaymentStatus {
        let asked = tokio::time::timeout(DEADLINE, self.asked(http, question)).await;
        asked.unwrap_or(PaymentStatus::Unknown)
    }

    async fn asked(&self, http: &Client, question: &StatusQuestion) -> PaymentStatus {
        let Ok(_turn) = self.questions.acquire().await else { return PaymentStatus::Unknown };
        for tried in 1..=TRIES_MAX {
            if !self.breaker().lets_through(Instant::now()) {
                return PaymentStatus::Unknown;
            }
            match self.attempt(http, question).await {
                Ok(status) => {
                    self.breaker().answered();
                    return status;
                }
                Err(why) => {
                    let opened = self.breaker().failed(Instant::now());
                    tracing::warn!(provider = self.name, order = %question.order, why, opened, "no answer of a provider");
                }
            }
            if tried < TRIES_MAX {
                pause(BACKOFF).await;
            }
        }
        PaymentStatus::Unknown
    }

    async fn attempt(&self, http: &Client, question: &StatusQuestion) -> Result<PaymentStatus, String> {
        let body = serde_json::json!({
            "provider": question.provider.as_str(),
            "attempt_id": question.attempt_id.as_str(),
            "order_id": question.order.to_string(),
            "campaign_id": question.key.campaign.as_str(),
            "order_no": question.key.order_no.as_str(),
        });
        let mut request = http.post(self.url.clone()).timeout(TRY).json(&body);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        // The address stands in the configuration; a query of it could hold what logs should not.
        let told = |error: reqwest::Error| error.without_url().to_string();
        let mut response = request.send().await.map_err(told)?;
        if !response.status().is_success() {
            return Err(format!("status {}", response.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(told)? {
            if bytes.len().saturating_add(piece.len()) > ANSWER_BYTES_MAX {
                return Err(format!("more than {ANSWER_BYTES_MAX} bytes"));
            }
            bytes.extend_from_slice(&piece);
        }
        answer::read(&bytes).ok_or_else(|| "an answer that says nothing".to_owned())
    }
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

#[expect(clippy::disallowed_methods, reason = "a bounded backoff between the tries of one question")]
async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

#[cfg(test)]
mod tests;
