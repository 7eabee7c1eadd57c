//! The pull feed, and what sinks did not take.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_core::id::PoolId;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_engine::{Engine, PullError, Pulled, PulledEvents};
use holdfast_store::{
    BEGINNING, DeadLetter, DeadLetterState, LedgerPosition, PutSink, SinkKind, SinkName, SinkSettings,
};
use holdfast_wire::{AckRequest, AckView, Code, DeadLetterView, EventsView, Page};
use serde_json::value::RawValue;

use super::page;
use super::sinks::refused;
use crate::answer::json;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{Named, WriteBody};
use crate::input::field::pool_id_of;
use crate::input::position::{decode, encode};
use crate::input::query::Query;
use crate::input::report::Located;
use crate::input::sinks::{POSITION_CHARS_MAX, read_ack};
use crate::openapi::parameters::{DeadLetterFilters, EventFilters, PageParameters, SinkPath};
use crate::openapi::problems::{ANY, KEYED, NAMED, QUERY, WRITE, problems};
use crate::problem::Problem;
use crate::view::time;

problems! {
    /// Problems of the feed.
    FeedProblems = ANY, KEYED, QUERY, NAMED, &[Code::Conflict, Code::Overloaded, Code::OutcomeUnknown, Code::ShuttingDown];
    /// Problems of an acknowledgement.
    AckProblems = ANY, KEYED, WRITE, NAMED;
    /// Problems of the list of parked events.
    LetterProblems = ANY, KEYED, QUERY, NAMED;
}

/// What the feed is asked for.
struct Asked {
    consumer: Option<SinkName>,
    pool: Option<PoolId>,
    after: Option<String>,
    from_now: bool,
    limit: usize,
}

fn asked(query: Option<&str>) -> Result<Asked, Problem> {
    let mut query = Query::new(query)?;
    let consumer = query.word("consumer", SinkName::new);
    let pool = query.number_id("pool_id", pool_id_of);
    let after = query.text("after", POSITION_CHARS_MAX);
    let from_now = query.word("from", |text| match text {
        "now" => Some(true),
        "beginning" => Some(false),
        _ => None,
    });
    let limit = query.limit();
    query.finish(Some(Asked { consumer, pool, after, from_now: from_now.unwrap_or(false), limit }))
}

/// Gives order events to a consumer that comes for them
///
/// With `consumer`: the next events from where this consumer stands, which its first visit makes, and the same ones again
/// until `POST /v1/events/ack` says that it has them. Such a consumer is a sink of the kind `pull`: it may be paused and
/// replayed. With `pool_id`: events of one pool after a position that the caller keeps.
#[utoipa::path(
    get, path = "/v1/events", tag = "sinks",
    params(EventFilters),
    responses((status = 200, description = "Events, perhaps none.", body = EventsView), FeedProblems)
)]
pub(crate) async fn pull_events(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let Asked { consumer, pool, after, from_now, limit } = asked(query.as_deref())?;
    let misplaced = |name: &str, why: &'static str| {
        Problem::of_fault(Located::new(format!("/query/{name}"), Code::InvalidValue, why))
    };
    let pulled = match (consumer, pool) {
        (Some(name), None) => {
            if after.is_some() {
                return Err(misplaced("after", "a consumer's place is kept by the server"));
            }
            // It is told of every campaign.
            caller.require_everything()?;
            let from = if from_now { app.store().now() } else { BEGINNING };
            app.engine().pull(first_visit(name, from, &caller), limit).await
        }
        (None, Some(pool)) => {
            if from_now {
                return Err(misplaced("from", "is for a consumer"));
            }
            caller.allow_pool(&app, pool).await?;
            let after = place(&app, pool, after.as_deref()).await?;
            app.engine().pool_events(pool, &after, limit).await
        }
        (Some(_), Some(_)) => return Err(misplaced("pool_id", "a consumer is told of every pool")),
        (None, None) => return Err(misplaced("consumer", "is required, or pool_id")),
    };
    json(StatusCode::OK, &shown(pulled.map_err(|error| problem(error, "/query/after"))?)?)
}

/// What the first visit of a consumer makes.
fn first_visit(name: SinkName, from: Timestamp, caller: &Caller) -> PutSink {
    let settings = SinkSettings::default();
    PutSink { name, kind: SinkKind::Pull, settings, secrets: Vec::new(), from, via: caller.via() }
}

/// Where the caller stands in a pool: a position, or the number of an entry, for every bucket.
async fn place(app: &App, pool: PoolId, after: Option<&str>) -> Result<Pulled, Problem> {
    let Some(after) = after else { return Ok(Pulled::default()) };
    if let Ok(seq) = after.parse::<u64>() {
        let row = app.store().pool(pool).await?.ok_or_else(|| Problem::not_found("there is no such pool"))?;
        let places = row.buckets.iter().map(|bucket| (bucket.key, seq)).collect();
        return Ok(Pulled { round: 0, places });
    }
    let position = decode(after).filter(|position| is_of(position, pool));
    position.ok_or_else(|| problem(PullError::InvalidPosition, "/query/after"))
}

fn is_of(position: &Pulled, pool: PoolId) -> bool {
    position.places.keys().all(|bucket: &BucketKey| bucket.pool == pool)
}

/// Says that a consumer has everything up to a position
///
/// Harmless if it is said again: a place never goes back, but by a replay.
#[utoipa::path(
    post, path = "/v1/events/ack", tag = "sinks",
    request_body = AckRequest,
    responses((status = 200, description = "It is known.", body = AckView), AckProblems)
)]
pub(crate) async fn acknowledge_events(State(app): State<App>, body: WriteBody) -> Result<Response, Problem> {
    let (name, position) = body.read(read_ack)?;
    let position = decode(&position).ok_or_else(|| problem(PullError::InvalidPosition, "/position"))?;
    let consumer = name.to_string();
    let work = |engine: Engine| async move {
        engine.acknowledge_events(name, &position).await.map_err(|error| problem(error, "/position"))
    };
    let applied = app.write(body.permit, work).await?;
    json(StatusCode::OK, &AckView { consumer, applied })
}

/// Lists events that a sink did not take while it took others
#[utoipa::path(
    get, path = "/v1/sinks/{name}/dead-letters", tag = "sinks",
    params(SinkPath, DeadLetterFilters, PageParameters),
    responses((status = 200, description = "A page, also when it is empty.", body = Page<DeadLetterView>), LetterProblems)
)]
pub(crate) async fn list_dead_letters(
    State(app): State<App>,
    Named(name): Named<SinkName>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::new(query.as_deref())?;
    let state = query.word("state", DeadLetterState::parse);
    let asked = query.page::<LedgerPosition>();
    let asked = query.finish(asked)?;
    if app.store().sink(name.clone()).await?.is_none() {
        return Err(Problem::not_found("there is no such sink"));
    }
    let (letters, more) = app.store().dead_letters(name, state, asked.page).await?;
    json(StatusCode::OK, &page(&letters, more, &asked.cursor, |letter: &DeadLetter| letter.position, letter))
}

fn letter(letter: &DeadLetter) -> DeadLetterView {
    let (bucket, seq) = letter.position;
    DeadLetterView {
        pool_id: bucket.pool.to_string(),
        bucket: bucket.number,
        seq,
        attempts: letter.attempts,
        why: letter.why.clone(),
        state: letter.state.as_str().into(),
        at: time(letter.at),
    }
}

fn shown(pulled: PulledEvents) -> Result<EventsView, Problem> {
    let raw = |event: holdfast_engine::OutEvent| {
        String::from_utf8(event.body).ok().and_then(|text| RawValue::from_string(text).ok())
    };
    let position = encode(&pulled.position);
    let items: Option<Vec<_>> = pulled.events.into_iter().map(raw).collect();
    let items = items.ok_or_else(|| Problem::internal("an event cannot be written"))?;
    Ok(EventsView { items, position, more: pulled.more })
}

fn problem(error: PullError, at: &str) -> Problem {
    match error {
        PullError::Refused(refusal) => refused(refusal),
        PullError::Unknown => Problem::not_found("there is no such pool, or no such consumer"),
        PullError::InvalidPosition => {
            Problem::of_fault(Located::new(at, Code::InvalidValue, "is no position of these events"))
        }
        PullError::Engine(error) => error.into(),
    }
}
