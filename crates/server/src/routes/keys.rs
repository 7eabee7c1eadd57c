//! Keys. The key itself stands in one answer: that of the request which made it.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use holdfast_core::time::Timestamp;
use holdfast_engine::Engine;
use holdfast_store::{CreateKey, KeyId, KeyRefusal, KeyRow, RevokeKey};
use holdfast_wire::{Code, CreateKeyRequest, CreatedKeyView, KeyView, Page};

use super::page;
use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, WriteBody};
use crate::input::keys::read_key;
use crate::input::query::Query;
use crate::keyring::NewKey;
use crate::openapi::parameters::{KeyPath, PageParameters};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::Problem;
use crate::view::time;

problems! {
    /// Problems of a list.
    ListProblems = ANY, KEYED, QUERY;
    /// Problems of a new key.
    CreateProblems = ANY, KEYED, WRITE, &[Code::InvalidTime, Code::Conflict];
    /// Problems of a revocation.
    RevokeProblems = ANY, KEYED, WRITE, NAMED, &[Code::Conflict];
}

/// Makes a key
///
/// The answer is the only one that ever shows the key. It is not idempotent: if the answer is lost, list the
/// keys, revoke the one that nobody has, and make another.
#[utoipa::path(
    post, path = "/v1/keys", tag = "keys",
    request_body = CreateKeyRequest,
    responses((status = 201, description = "Made. The key is shown this once.", body = CreatedKeyView), CreateProblems)
)]
pub(crate) async fn create_key(
    State(app): State<App>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let now = app.store().now();
    let input = body.read(|object| read_key(now, object))?;
    let new = NewKey::random().map_err(|error| {
        tracing::error!(%error, "the system has no randomness");
        Problem::internal("no key can be made")
    })?;
    let create = CreateKey {
        id: new.id.clone(),
        name: input.name,
        role: input.role,
        scope: input.scope,
        secret_sha256: new.secret_sha256,
        expires_at: input.expires_at,
        via: caller.via(),
    };
    let work = |engine: Engine| async move { Ok(engine.create_key(create).await?) };
    let made = app.write(body.permit, work).await;
    // Also if the outcome is unknown.
    app.keys_changed();
    let key = made?.map_err(refused)?;
    let view = CreatedKeyView { key: new.text().to_owned(), view: shown(&key, now) };
    let mut response = json(StatusCode::CREATED, &view)?;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Lists keys, without their secrets
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys",
    params(PageParameters),
    responses((status = 200, description = "A page, also when it is empty.", body = Page<KeyView>), ListProblems)
)]
pub(crate) async fn list_keys(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let asked = query.page::<KeyId>();
    let asked = query.finish(asked)?;
    let now = app.store().now();
    let (rows, more) = app.store().keys(asked.page).await?;
    let shown = page(&rows, more, &asked.cursor, |row: &KeyRow| row.id.clone(), |row| shown(row, now));
    json(StatusCode::OK, &shown)
}

/// Revokes a key
///
/// From the answer on it opens nothing at this node; at other nodes within a second.
#[utoipa::path(
    delete, path = "/v1/keys/{id}", tag = "keys",
    params(KeyPath),
    responses((status = 200, description = "Revoked, now or before.", body = KeyView), RevokeProblems)
)]
pub(crate) async fn revoke_key(
    State(app): State<App>,
    Named(id): Named<KeyId>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    body.read_or_empty(|_| Some(()))?;
    let revoke = RevokeKey { id, via: caller.via() };
    let work = |engine: Engine| async move { Ok(engine.revoke_key(revoke).await?) };
    let revoked = app.write(body.permit, work).await;
    app.keys_changed();
    let key = revoked?.map_err(refused)?;
    json(StatusCode::OK, &shown(&key, app.store().now()))
}

fn refused(refusal: KeyRefusal) -> Problem {
    match refusal {
        KeyRefusal::Unknown => Problem::not_found("there is no such key"),
        KeyRefusal::Taken => Problem::new(Code::Conflict, "there is a key with this id; ask again"),
        KeyRefusal::TooMany => Problem::new(Code::Conflict, "too many keys are live; revoke some first"),
        KeyRefusal::LastAdmin => {
            Problem::new(Code::Conflict, "without its last key of the role admin nobody could make keys")
        }
    }
}

fn shown(key: &KeyRow, now: Timestamp) -> KeyView {
    let state = match (key.revoked_at, key.is_live(now)) {
        (Some(_), _) => "revoked",
        (None, true) => "live",
        (None, false) => "expired",
    };
    KeyView {
        id: key.id.to_string(),
        name: key.name.clone(),
        role: key.role.as_str().into(),
        campaigns: key.scope.campaigns().map(|ids| ids.iter().map(ToString::to_string).collect()),
        state: state.into(),
        created_at: time(key.created_at),
        created_by: key.created_by.to_string(),
        expires_at: key.expires_at.map(time),
        revoked_at: key.revoked_at.map(time),
    }
}
