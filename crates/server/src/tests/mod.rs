//! The edges of the server over a real engine and the model store. What an order does is tested
//! elsewhere; here it only has to come through.

mod edges;
mod flow;
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
struct Answer {
    status: u16,
    headers: HeaderMap,
    json: Value,
    text: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn code(&self) -> &str {
        self.json["code"].as_str().unwrap_or_default()
    }
}

fn config(auth: Auth, limits: Limits) -> Config {
    let payment_secrets = BTreeMap::from([("signing".to_owned(), vec![Secret::new(SECRET)])]);
    Config { listen: "127.0.0.1:0".parse().expect("an address"), auth, payment_secrets, limits }
}

fn engine() -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Arc::new(ModelStore::new(clock));
    Engine::new(store, Arc::new(UuidV7), holdfast_engine::Config::default())
}

fn router_with(auth: Auth, limits: Limits) -> Router {
    router(engine(), &config(auth, limits))
}

fn open_router() -> Router {
    router_with(Auth::Off, Limits::default())
}

async fn ask(router: &Router, request: Request<Body>) -> Answer {
    let response: Response<Body> = router.clone().oneshot(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.expect("a body");
    let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let json = serde_json::from_str(&text).unwrap_or(Value::Null);
    Answer { status: parts.status.as_u16(), headers: parts.headers, json, text }
}

fn request(method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Request<Body> {
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

async fn get(router: &Router, path: &str) -> Answer {
    ask(router, request(Method::GET, path, &[], Body::empty())).await
}
