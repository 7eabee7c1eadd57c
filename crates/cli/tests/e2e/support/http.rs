//! HTTP that hides nothing: status, headers and body as they came.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// How long a node may take to learn what another one was told of a campaign or a pool: as the documents say, and not
/// a moment longer.
pub(crate) const LEARNT_WITHIN: Duration = Duration::from_secs(1);

/// Whether a request changes what every node keeps in its catalog.
fn is_learnt_later(method: &Method, path: &str) -> bool {
    let switches = ["open", "pause", "resume", "freeze", "unfreeze", "close", "retire"];
    method == Method::PUT
        || method == Method::PATCH
        || path.rsplit('/').next().is_some_and(|verb| method == Method::POST && switches.contains(&verb))
}

/// A client of one server, or of several nodes: then each request goes to the next.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    pub(crate) base: String,
    /// Further nodes.
    others: Vec<String>,
    turn: Arc<AtomicUsize>,
    client: reqwest::Client,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Null if it is no JSON.
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) raw: Vec<u8>,
}

impl Answer {
    /// A text of the body.
    #[track_caller]
    pub(crate) fn text(&self, name: &str) -> String {
        self.body[name].as_str().unwrap_or_else(|| panic!("no {name}: {self:?}")).to_owned()
    }

    /// The code of a problem; empty if it is none.
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// Code and pointer of each fault of a problem.
    pub(crate) fn faults(&self) -> Vec<(String, String)> {
        let text = |fault: &Value, name: &str| fault[name].as_str().unwrap_or_default().to_owned();
        let faults = self.body["errors"].as_array().cloned().unwrap_or_default();
        faults.iter().map(|fault| (text(fault, "code"), text(fault, "pointer"))).collect()
    }
}

impl Http {
    pub(crate) fn new(base: &str) -> Self {
        // The library wants its cryptography chosen, also where none is used. An error says that it is.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .tls_certs_only([])
            .no_proxy()
            .timeout(Duration::from_secs(30))
            .build()
            .unwrap();
        Self { base: base.to_owned(), others: Vec::new(), turn: Arc::default(), client }
    }

    /// A client of all these nodes in turn.
    pub(crate) fn of_nodes<'a>(nodes: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut nodes = nodes.into_iter();
        let first = nodes.next().expect("a node").clone();
        Self { others: nodes.map(|node| node.base.clone()).collect(), turn: Arc::default(), ..first }
    }

    pub(crate) fn has_several_nodes(&self) -> bool {
        !self.others.is_empty()
    }

    fn url(&self, path: &str) -> String {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % (self.others.len() + 1);
        let base = turn.checked_sub(1).map_or(&self.base, |other| &self.others[other]);
        format!("{base}{path}")
    }

    /// Sends a request whose answer may not come: none if the connection broke.
    pub(crate) async fn try_send(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
        let method: Method = method.parse().unwrap();
        let mut request = self.client.request(method.clone(), self.url(path));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = Self::read(request).await;
        if self.has_several_nodes() && is_learnt_later(&method, path) {
            let _ = tokio::time::timeout(LEARNT_WITHIN, std::future::pending::<()>()).await;
        }
        answer
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Answer {
        self.try_send_raw(method, path, headers, body).await.expect("an answer")
    }

    /// The same, where the answer may not come.
    pub(crate) async fn try_send_raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Option<Answer> {
        let mut request = self.client.request(method.parse().unwrap(), self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Self::read(request.body(body)).await
    }

    async fn read(request: reqwest::RequestBuilder) -> Option<Answer> {
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.ok()?;
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Some(Answer { status, headers, body, raw: bytes.to_vec() })
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.try_send("GET", path, None).await.expect("an answer")
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_send("POST", path, Some(body)).await.expect("an answer")
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.try_send("PUT", path, Some(body)).await.expect("an answer")
    }
}
