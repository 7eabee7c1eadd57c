//! Sinks. A secret that the server makes stands in one answer: that of the request which made it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use holdfast_core::command::How;
use holdfast_engine::Engine;
use holdfast_store::{
    Backlog, ChangeSink, PutSink, SinkChange, SinkKind, SinkName, SinkRefusal, SinkRow, SinkState,
};
use holdfast_wire::{
    AddSecretRequest, BacklogView, ChangeSinkRequest, Code, CreatedSinkView, PutSinkRequest,
    ReplaySinkRequest, SinkSecretView, SinkTestView, SinkView, SinksView,
};

use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{InSink, Named, NamingSink, NoQuery, WriteBody};
use crate::input::report::Located;
use crate::input::sinks::{
    SignedInput, SinkInput, read_replay, read_secret, read_signed, read_sink, to_field,
};
use crate::openapi::parameters::{SecretPath, SinkPath};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::Problem;
use crate::view::time;
use crate::webhook_secret;

problems! {
    /// Problems of a read.
    ReadProblems = ANY, KEYED, NAMED, QUERY;
    /// Problems of the list.
    SinkListProblems = ANY, KEYED, QUERY;
    /// Problems of a sink that is made or changed.
    PutProblems = ANY, KEYED, WRITE, &[Code::InvalidTime, Code::Conflict];
    /// Problems of a change.
    ChangeProblems = ANY, KEYED, WRITE, NAMED, &[Code::Conflict];
    /// Problems of a replay.
    ReplayProblems = ANY, KEYED, WRITE, NAMED, &[Code::InvalidTime, Code::Conflict];
}

/// Lists the sinks
#[utoipa::path(
    get, path = "/v1/sinks", tag = "sinks",
    responses((status = 200, description = "All of them, also when there is none.", body = SinksView), SinkListProblems)
)]
pub(crate) async fn list_sinks(State(app): State<App>, _: NoQuery) -> Result<Response, Problem> {
    let mut items = Vec::new();
    for sink in app.store().sinks().await? {
        let backlog = app.store().backlog(sink.name.clone()).await?;
        items.push(shown(&sink, &backlog));
    }
    json(StatusCode::OK, &SinksView { items, next_cursor: None })
}

/// Shows a sink and how it goes
#[utoipa::path(
    get, path = "/v1/sinks/{name}", tag = "sinks",
    params(SinkPath),
    responses((status = 200, description = "The sink.", body = SinkView), ReadProblems)
)]
pub(crate) async fn get_sink(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let sink = app.store().sink(name).await?.ok_or_else(unknown)?;
    json(StatusCode::OK, &view(&app, &sink).await?)
}

/// Makes a sink or changes its settings
///
/// Idempotent. If the server makes the secret, the answer is the only one that ever shows it; if that answer is lost,
/// add another secret.
#[utoipa::path(
    put, path = "/v1/sinks/{name}", tag = "sinks",
    params(SinkPath),
    request_body = PutSinkRequest,
    responses(
        (status = 201, description = "Made. A secret that the server made is shown this once.", body = CreatedSinkView),
        (status = 200, description = "It was known; its settings are these now.", body = CreatedSinkView),
        PutProblems
    )
)]
pub(crate) async fn put_sink(
    State(app): State<App>,
    NamingSink(name): NamingSink,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let now = app.store().now();
    let SinkInput { kind, settings, from, secret } = body.read(|object| read_sink(now, object))?;
    if let (Some(field), Err(why)) = (to_field(kind), app.engine().check_sink(kind, &settings.to).await) {
        return Err(Problem::of_fault(Located::new(format!("/{field}"), Code::InvalidValue, why)));
    }
    let given = secret.is_some();
    let secrets = match kind {
        SinkKind::Webhook => vec![new_secret(secret)?],
        SinkKind::Nats | SinkKind::Redis | SinkKind::Pull => Vec::new(),
    };
    let made = secrets.first().map(|(_, secret)| secret.to_string()).filter(|_| !given);
    let put = PutSink { name, kind, settings, secrets, from, via: caller.via() };
    let work = |engine: Engine| async move { Ok(engine.put_sink(put).await?) };
    let (sink, how) = app.write(body.permit, work).await?.map_err(refused)?;
    let (status, secret) = match how {
        How::Created => (StatusCode::CREATED, made),
        How::Changed | How::Repeated => (StatusCode::OK, None),
    };
    unstored(json(status, &CreatedSinkView { secret, sink: view(&app, &sink).await? })?)
}

/// Forgets a sink and where it stands
#[utoipa::path(
    delete, path = "/v1/sinks/{name}", tag = "sinks",
    params(SinkPath),
    request_body = ChangeSinkRequest,
    responses((status = 200, description = "The sink as it was.", body = SinkView), ChangeProblems)
)]
pub(crate) async fn delete_sink(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let sink = app.store().sink(name.clone()).await?.ok_or_else(unknown)?;
    let last = view(&app, &sink).await?;
    let signed = body.read_or_empty(read_signed)?;
    change(&app, body, name, SinkChange::Delete, signed, &caller).await?;
    json(StatusCode::OK, &last)
}

/// Delivers nothing until it is resumed
#[utoipa::path(
    post, path = "/v1/sinks/{name}/pause", tag = "sinks",
    params(SinkPath),
    request_body = ChangeSinkRequest,
    responses((status = 200, description = "The sink.", body = SinkView), ChangeProblems)
)]
pub(crate) async fn pause_sink(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let signed = body.read_or_empty(read_signed)?;
    changed(&app, change(&app, body, name, SinkChange::Pause, signed, &caller).await?).await
}

/// Delivers again, the backlog first
///
/// Also what was disabled, or waits for its next attempt.
#[utoipa::path(
    post, path = "/v1/sinks/{name}/resume", tag = "sinks",
    params(SinkPath),
    request_body = ChangeSinkRequest,
    responses((status = 200, description = "The sink.", body = SinkView), ChangeProblems)
)]
pub(crate) async fn resume_sink(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let signed = body.read_or_empty(read_signed)?;
    changed(&app, change(&app, body, name, SinkChange::Resume, signed, &caller).await?).await
}

/// Delivers again from a time on, or what is parked
#[utoipa::path(
    post, path = "/v1/sinks/{name}/replay", tag = "sinks",
    params(SinkPath),
    request_body = ReplaySinkRequest,
    responses((status = 200, description = "The sink.", body = SinkView), ReplayProblems)
)]
pub(crate) async fn replay_sink(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let (what, signed) = body.read(read_replay)?;
    changed(&app, change(&app, body, name, what, signed, &caller).await?).await
}

/// Sends a signed test event and tells what the receiver said
#[utoipa::path(
    post, path = "/v1/sinks/{name}/test", tag = "sinks",
    params(SinkPath),
    request_body = ChangeSinkRequest,
    responses((status = 200, description = "What came of it.", body = SinkTestView), ChangeProblems)
)]
pub(crate) async fn test_sink(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    body: WriteBody,
) -> Result<Response, Problem> {
    body.read_or_empty(read_signed)?;
    let sink = app.store().sink(name).await?.ok_or_else(unknown)?;
    if sink.kind == SinkKind::Pull {
        return Err(Problem::new(Code::Conflict, "nothing is sent to a consumer that comes by itself"));
    }
    let work = |engine: Engine| async move { Ok(engine.test_sink(&sink).await?) };
    let tested = app.write(body.permit, work).await?;
    json(
        StatusCode::OK,
        &SinkTestView {
            delivered: tested.failure.is_none(),
            error: tested.failure.map(|failure| failure.why),
            took_ms: u64::try_from(tested.took.as_millis()).unwrap_or(u64::MAX),
        },
    )
}

/// Signs with one more secret
///
/// To rotate: add one, let the receiver take both, drop the old one. Not idempotent: if the answer is lost, look at the
/// sink and drop what nobody has.
#[utoipa::path(
    post, path = "/v1/sinks/{name}/secrets", tag = "sinks",
    params(SinkPath),
    request_body = AddSecretRequest,
    responses((status = 201, description = "Signed with it from now on.", body = CreatedSinkView), ChangeProblems)
)]
pub(crate) async fn add_sink_secret(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let given = body.read_or_empty(read_secret)?;
    let is_given = given.is_some();
    let (id, secret) = new_secret(given)?;
    let made = (!is_given).then(|| secret.to_string());
    let what = SinkChange::AddSecret(id, secret);
    let sink = change(&app, body, name, what, nobody(), &caller).await?.ok_or_else(unknown)?;
    unstored(json(StatusCode::CREATED, &CreatedSinkView { secret: made, sink: view(&app, &sink).await? })?)
}

/// Signs with a secret no more
#[utoipa::path(
    delete, path = "/v1/sinks/{name}/secrets/{id}", tag = "sinks",
    params(SecretPath),
    request_body = ChangeSinkRequest,
    responses((status = 200, description = "The sink.", body = SinkView), ChangeProblems)
)]
pub(crate) async fn drop_sink_secret(
    State(app): State<App>,
    InSink(found): InSink,
    caller: Caller,
    body: WriteBody,
) -> Result<Response, Problem> {
    let (name, id) = found.ok_or_else(unknown)?;
    let signed = body.read_or_empty(read_signed)?;
    changed(&app, change(&app, body, name, SinkChange::DropSecret(id), signed, &caller).await?).await
}

async fn change(
    app: &App,
    body: WriteBody,
    name: SinkName,
    change: SinkChange,
    signed: SignedInput,
    caller: &Caller,
) -> Result<Option<SinkRow>, Problem> {
    let SignedInput { operator, reason } = signed;
    let change = ChangeSink { name, change, operator, reason, via: caller.via() };
    let work = |engine: Engine| async move { Ok(engine.change_sink(change).await?) };
    app.write(body.permit, work).await?.map_err(refused)
}

async fn changed(app: &App, sink: Option<SinkRow>) -> Result<Response, Problem> {
    let sink = sink.ok_or_else(unknown)?;
    json(StatusCode::OK, &view(app, &sink).await?)
}

fn nobody() -> SignedInput {
    SignedInput { operator: String::new(), reason: String::new() }
}

/// A secret with its id: the one that was given, or a new one.
fn new_secret(given: Option<Arc<str>>) -> Result<(String, Arc<str>), Problem> {
    if given.as_deref().is_some_and(|secret| !webhook_secret::is_secret(secret)) {
        return Err(Problem::of_fault(Located::new("/secret", Code::InvalidValue, webhook_secret::RULE)));
    }
    let no_randomness = |error: getrandom::Error| {
        tracing::error!(%error, "the system has no randomness");
        Problem::internal("no secret can be made")
    };
    let id = webhook_secret::random_id().map_err(no_randomness)?;
    let secret = given.map_or_else(webhook_secret::random, Ok).map_err(no_randomness)?;
    Ok((id, secret))
}

/// An answer that nobody between may keep.
fn unstored(mut response: Response) -> Result<Response, Problem> {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn unknown() -> Problem {
    Problem::not_found("there is no such sink")
}

pub(super) fn refused(refusal: SinkRefusal) -> Problem {
    match refusal {
        SinkRefusal::Unknown => unknown(),
        SinkRefusal::TooMany => Problem::new(Code::Conflict, "there are as many sinks as there may be"),
        SinkRefusal::Conflict(why) => Problem::new(Code::Conflict, why),
    }
}

async fn view(app: &App, sink: &SinkRow) -> Result<SinkView, Problem> {
    let backlog = app.store().backlog(sink.name.clone()).await?;
    Ok(shown(sink, &backlog))
}

fn shown(sink: &SinkRow, backlog: &Backlog) -> SinkView {
    let (settings, health) = (&sink.settings, &sink.health);
    let state = match sink.state {
        SinkState::Active if health.failures > 0 => "failing",
        SinkState::Active | SinkState::Paused | SinkState::Disabled => sink.state.as_str(),
    };
    let to = |kind| (sink.kind == kind).then(|| settings.to.clone());
    let secret = |secret: &holdfast_store::SinkSecret| SinkSecretView {
        id: secret.id.clone(),
        created_at: time(secret.created_at),
    };
    SinkView {
        name: sink.name.to_string(),
        kind: sink.kind.as_str().into(),
        url: to(SinkKind::Webhook),
        subject: to(SinkKind::Nats),
        stream: to(SinkKind::Redis),
        types: settings.types.iter().map(|kind| kind.as_str().to_owned()).collect(),
        batch_max: settings.batch_max,
        timeout_ms: settings.timeout_ms,
        attempts_max: settings.attempts_max,
        retry_seconds: settings.retry_seconds.clone(),
        disable_after_seconds: settings.disable_after_seconds,
        secrets: sink.secrets.iter().map(secret).collect(),
        state: state.into(),
        why: sink.why.clone(),
        backlog: BacklogView {
            entries: backlog.entries,
            buckets: backlog.buckets,
            oldest_at: backlog.oldest.map(|(at, _)| time(at)),
            more: backlog.more,
        },
        parked: sink.parked,
        waiting: sink.waiting,
        attempts: health.failures,
        failing_since: health.failing_since.map(time),
        next_attempt_at: health.next_attempt_at.map(time),
        last_error: health.last_error.clone(),
        delivered_at: health.delivered_at.map(time),
        round: sink.round,
        created_at: time(sink.created_at),
        updated_at: time(sink.updated_at),
    }
}
