//! Who asks: every request is let in here, by the table of [`roles`](crate::roles), or not at all.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use holdfast_core::command::Via;
use holdfast_store::{Role, Scope};
use holdfast_wire::Code;

use crate::app::App;
use crate::config::Auth;
use crate::edge::{RequestId, wrong_method};
use crate::problem::Problem;
use crate::roles::{self, Access};
use crate::scope;

/// The route of the trail.
const TRAIL: &str = "/v1/audit";

/// Whoever asks, known by a key, or anybody where keys are not wanted.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// None where keys are not wanted: everything is allowed.
    role: Option<Role>,
    scope: Scope,
    actor: Arc<str>,
    request_id: Arc<str>,
}

impl Caller {
    /// The name for the ledger.
    pub(crate) fn actor(&self) -> &Arc<str> {
        &self.actor
    }

    /// The campaigns that may be seen and touched.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The way in, for the trail of operators' acts.
    pub(crate) fn via(&self) -> Option<Arc<Via>> {
        let (key, request_id) = (Arc::clone(&self.actor), Arc::clone(&self.request_id));
        Some(Arc::new(Via { key, request_id }))
    }

    /// Whether the trail of what operators did may be seen: by those who may ask for it by itself.
    pub(crate) fn sees_trail(&self) -> bool {
        let trail = roles::find(&Method::GET, TRAIL).map(|route| route.access);
        match (self.role, trail) {
            (None, _) => true,
            (Some(role), Some(Access::Roles(allowed))) => allowed.contains(&role),
            (Some(_), _) => false,
        }
    }

    fn require(&self, roles: &[Role]) -> Result<(), Problem> {
        if self.role.is_none_or(|role| roles.contains(&role)) {
            return Ok(());
        }
        Err(forbidden("the key's role does not allow this"))
    }
}

/// Put there by [`authorize`]; a handler that asks for it on a public route has nobody.
impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::internal("a route without a caller"))
    }
}

/// Lets a request in if the table says so. What is not in the table is not there.
pub(crate) async fn authorize(State(app): State<App>, request: Request, next: Next) -> Response {
    match admit(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => *refused,
    }
}

async fn admit(app: &App, request: Request) -> Result<Request, Box<Response>> {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let Some(route) = roles::find(request.method(), path) else {
        return Err(Box::new(method_not_allowed(path).await));
    };
    let Access::Roles(allowed) = route.access else { return Ok(request) };
    let (mut parts, body) = request.into_parts();
    let refuse = |problem: Problem| Box::new(problem.into_response());
    let request_id = parts.extensions.get::<RequestId>().map_or_else(|| Arc::from(""), RequestId::text);
    let caller = identify(app, &parts.headers, request_id, allowed).await.map_err(refuse)?;
    scope::check_path(app, &caller, route.reach, &mut parts).await.map_err(refuse)?;
    parts.extensions.insert(caller);
    Ok(Request::from_parts(parts, body))
}

async fn method_not_allowed(path: &str) -> Response {
    let mut response = wrong_method().await.into_response();
    if let Ok(methods) = HeaderValue::from_str(&roles::allowed(path)) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// Who sent these headers, if it is somebody of one of these roles.
pub(crate) async fn identify(
    app: &App,
    headers: &HeaderMap,
    request_id: Arc<str>,
    allowed: &[Role],
) -> Result<Caller, Problem> {
    if matches!(app.auth(), Auth::Off) {
        return Ok(Caller { role: None, scope: Scope::All, actor: Arc::from("anonymous"), request_id });
    }
    let known = match bearer(headers) {
        Some(key) => app.known_key(key).await?.ok_or("the key is not known, or not valid any more"),
        None => Err("a key is needed: Authorization: Bearer KEY"),
    };
    let known = known.map_err(|why| {
        app.failures().note();
        unauthenticated(why)
    })?;
    let caller = Caller {
        role: Some(known.row.role),
        scope: known.row.scope.clone(),
        actor: Arc::clone(&known.actor),
        request_id,
    };
    caller.require(allowed).map(|()| caller)
}

/// 401.
pub(crate) fn unauthenticated(detail: &'static str) -> Problem {
    Problem::new(Code::Unauthenticated, detail)
}

/// 403.
pub(crate) fn forbidden(detail: &'static str) -> Problem {
    Problem::new(Code::Forbidden, detail)
}

/// The bearer token, if there is exactly one.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.as_bytes();
    let (scheme, key) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(values: &[&[u8]]) -> Option<Vec<u8>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).expect("a value"));
        }
        bearer(&headers).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_key_comes_in_one_header_of_one_form() {
        assert_eq!(token(&[b"Bearer secret"]).as_deref(), Some(b"secret".as_slice()));
        assert_eq!(token(&[b"bearer  secret"]).as_deref(), Some(b"secret".as_slice()));
        let none: [&[&[u8]]; 5] =
            [&[], &[b""], &[b"Bearer"], &[b"Basic secret"], &[b"Bearer secret", b"Bearer secret"]];
        for values in none {
            assert_eq!(token(values), None, "{values:?}");
        }
    }
}
