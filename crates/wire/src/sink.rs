//! Sinks: where order events are delivered.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Word;
#[cfg(feature = "openapi")]
use crate::words;

/// `PUT /v1/sinks/{name}`: makes a sink or changes its settings. What is left out gets its default.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PutSinkRequest {
    /// How events reach it: `webhook`, `nats`, `redis` or `pull`. It cannot be changed.
    #[cfg_attr(feature = "openapi", schema(schema_with = words::sink_kind))]
    pub kind: String,
    /// Where a webhook is sent: a public address, by TLS. Only with `webhook`, and required there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 2000))]
    pub url: Option<String>,
    /// The beginning of the subject in NATS, `SUBJECT.held` and so on. Only with `nats`, and required there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub subject: Option<String>,
    /// The stream in Redis. Only with `redis`, and required there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub stream: Option<String>,
    /// From when on a new sink is told: `beginning` (the default), `now`, or a time. A known sink stays where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub from: Option<String>,
    /// Which events, by the word in their type: `held`, `sold` …; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::event_kinds))]
    pub types: Option<Vec<String>>,
    /// Most events in one delivery. With more than 1 a webhook gets an array of them, `application/cloudevents-batch+json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 500, default = 1))]
    pub batch_max: Option<u32>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 100, maximum = 60000, default = 10000))]
    pub timeout_ms: Option<u32>,
    /// How often an event is refused, while others are taken, until it is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 20, default = 5))]
    pub attempts_max: Option<u32>,
    /// How long to wait before the next attempts, a fifth longer or shorter; the last for every later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = words::retry_seconds))]
    pub retry_seconds: Option<Vec<u32>>,
    /// How long a receiver may take nothing until the sink is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 2592000, default = 259200))]
    pub disable_after_seconds: Option<u32>,
    /// What a new webhook is signed with, in the form `whsec_…`; absent: the server makes one and shows it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 38, max_length = 94))]
    pub secret: Option<String>,
}

impl fmt::Debug for PutSinkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutSinkRequest").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Pauses, resumes, tests or removes a sink.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeSinkRequest {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: Option<String>,
    /// Who; the key if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: Option<String>,
}

/// `POST /v1/sinks/{name}/replay`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReplaySinkRequest {
    /// From where: `dead_letters`, `beginning`, or a time. What was not delivered yet is never skipped.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub from: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub reason: Option<String>,
    /// Who; the key if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub operator: Option<String>,
}

/// `POST /v1/sinks/{name}/secrets`: signs with one more secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddSecretRequest {
    /// The secret, in the form `whsec_…`; absent: the server makes one and shows it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 38, max_length = 94))]
    pub secret: Option<String>,
}

impl fmt::Debug for AddSecretRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddSecretRequest")
    }
}

/// A secret, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinkSecretView {
    /// Its id.
    pub id: String,
    /// Since when it signs.
    pub created_at: String,
}

/// How much a sink has not looked at yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BacklogView {
    /// Ledger entries: at most so many events, for not every entry carries one.
    pub entries: u64,
    /// Buckets in which it is behind.
    pub buckets: u64,
    /// The time of the oldest entry.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub oldest_at: Option<String>,
    /// Whether there are more buckets, which are not counted.
    pub more: bool,
}

/// A sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinkView {
    /// Its name.
    pub name: String,
    /// How events reach it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "webhook"))]
    pub kind: Word,
    /// Where a webhook is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The beginning of the subject in NATS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The stream in Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Which events; empty: all.
    pub types: Vec<String>,
    /// Most events in one delivery.
    pub batch_max: u32,
    /// How long an attempt may take.
    pub timeout_ms: u32,
    /// How often an event is refused, while others are taken, until it is parked.
    pub attempts_max: u32,
    /// How long to wait before the next attempts.
    pub retry_seconds: Vec<u32>,
    /// How long a receiver may take nothing until the sink is disabled.
    pub disable_after_seconds: u32,
    /// What deliveries are signed with, the newest first.
    pub secrets: Vec<SinkSecretView>,
    /// `active`, `failing` (the receiver takes nothing, and is tried again), `paused` or `disabled`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "active"))]
    pub state: Word,
    /// Why it is paused or disabled.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub why: Option<String>,
    /// What it is behind.
    pub backlog: BacklogView,
    /// Events that are parked: the receiver did not take them while it took others.
    pub parked: u64,
    /// Parked events that are to be tried again.
    pub waiting: u64,
    /// Attempts since the receiver takes nothing.
    pub attempts: u32,
    /// Since when it takes nothing.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub failing_since: Option<String>,
    /// When it is tried again.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_attempt_at: Option<String>,
    /// What went wrong at last.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub last_error: Option<String>,
    /// When it took something at last.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub delivered_at: Option<String>,
    /// How often it was begun anew by a replay, from 1.
    pub round: u64,
    /// When it was made.
    pub created_at: String,
    /// When its settings or its state changed at last.
    pub updated_at: String,
}

/// A sink that was just made, or got a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedSinkView {
    /// The secret that the server made: it is shown this once. Absent where it made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The sink.
    #[serde(flatten)]
    pub sink: SinkView,
}

impl fmt::Debug for CreatedSinkView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedSinkView").field("sink", &self.sink).finish_non_exhaustive()
    }
}

/// All sinks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinksView {
    /// In order of their names.
    pub items: Vec<SinkView>,
    /// Always null: there are few.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub next_cursor: Option<String>,
}

/// What a receiver said to a test event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinkTestView {
    /// Whether it took it.
    pub delivered: bool,
    /// Why not.
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub error: Option<String>,
    /// How long it took.
    pub took_ms: u64,
}

/// An event that a receiver did not take while it took others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetterView {
    /// Where its ledger entry stands.
    pub pool_id: String,
    /// See `pool_id`.
    pub bucket: u32,
    /// See `pool_id`.
    pub seq: u64,
    /// How often it was tried.
    pub attempts: u32,
    /// What the receiver said at last.
    pub why: String,
    /// `parked`, `waiting` (to be tried again) or `delivered`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "parked"))]
    pub state: Word,
    /// Since when it stands so.
    pub at: String,
}
