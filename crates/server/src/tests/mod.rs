//! The edges of the server over a real engine and the model store. What an order does is tested
//! elsewhere; here it only has to come through.

mod books;
mod edges;
mod explaining;
mod flow;
mod follow;
mod keys;
pub(crate) mod metrics;
mod sockets;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, Response};
use holdfast_engine::{Engine, UuidV7};
use holdfast_store::model::ModelStore;
use holdfast_store::{Clock, SystemClock};
use serde_json::Value;
use tower::ServiceExt;

use crate::{Auth, Config, Limits, Secret, router};

/// The secret of the provider `signing`.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn code(&self) -> &str {
        self.json["code"].as_str().unwrap_or_default()
    }
}

fn config(auth: Auth, limits: Limits) -> Config {
    let payment_secrets = BTreeMap::from([("signing".to_owned(), vec![Secret::new(SECRET)])]);
    Config {
        listen: "127.0.0.1:0".parse().expect("an address"),
        auth,
        payment_secrets,
        limits,
        api: true,
        constant_answer: false,
    }
}

fn engine() -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Arc::new(ModelStore::new(clock));
    Engine::new(store, Arc::new(UuidV7), holdfast_engine::Config::default())
}

pub(crate) fn router_with(auth: Auth, limits: Limits) -> Router {
    router(engine(), &config(auth, limits))
}

pub(crate) fn open_router() -> Router {
    router_with(Auth::Off, Limits::default())
}

pub(crate) async fn ask(router: &Router, request: Request<Body>) -> Answer {
    let response: Response<Body> = router.clone().oneshot(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.expect("a body");
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let json = serde_json::from_str(&text).unwrap_or(Value::Null);
    Answer { status: parts.status.as_u16(), headers: parts.headers, json, text }
}

pub(crate) fn request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let mut builder = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body.into()).expect("a request")
}

async fn send(router: &Router, method: Method, path: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json")];
    ask(router, request(method, path, &headers, body.to_string())).await
}

async fn post(router: &Router, path: &str, body: &Value) -> Answer {
    send(router, Method::POST, path, body).await
}

pub(crate) async fn get(router: &Router, path: &str) -> Answer {
    ask(router, request(Method::GET, path, &[], Body::empty())).await
}

/// A campaign `c` that is open, with a pool of `s`; the pool's id.
async fn sale(router: &Router, supply: u64) -> String {
    send(router, Method::PUT, "/v1/campaigns/c", &serde_json::json!({"name": "c"})).await;
    let signed = serde_json::json!({"reason": "go", "operator": "olga"});
    assert_eq!(post(router, "/v1/campaigns/c/open", &signed).await.status, 200);
    let pool = serde_json::json!({"campaign_id": "c", "sku": "s", "supply": supply});
    let made = post(router, "/v1/pools", &pool).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.json["id"].as_str().expect("an id").to_owned()
}

/// The next piece of a body that comes piece by piece; none at its end.
async fn next_piece(body: &mut Body) -> Option<String> {
    use axum::body::HttpBody;
    let frame = std::future::poll_fn(|cx| std::pin::Pin::new(&mut *body).poll_frame(cx)).await?;
    let bytes = frame.expect("unbroken").into_data().ok()?;
    Some(String::from_utf8(bytes.to_vec()).expect("UTF-8"))
}
