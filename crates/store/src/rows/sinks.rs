//! Rows of sinks. Settings and secrets are JSON inside the row.

use holdfast_core::event::OrderEventKind;
use holdfast_core::id::PoolId;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::codec::{number, number_id, optional_time, text, time, word};
use super::detail::{json, parse};
use super::{Row, corrupt};
use crate::error::Error;
use crate::read::LedgerPosition;
use crate::sinks::{
    DeadLetter, DeadLetterState, DeliveryOf, DeliveryState, SinkHealth, SinkKind, SinkName, SinkRow,
    SinkSecret, SinkSettings, SinkState,
};

#[derive(Serialize, Deserialize)]
struct SettingsJson {
    to: String,
    types: Vec<String>,
    batch_max: u32,
    timeout_ms: u32,
    attempts_max: u32,
    retry_seconds: Vec<u32>,
    disable_after_seconds: u32,
}

#[derive(Serialize, Deserialize)]
struct SecretJson {
    id: String,
    secret: String,
    created_at: i64,
}

/// Settings as stored.
pub fn write_settings(settings: &SinkSettings) -> Result<String, Error> {
    json(&SettingsJson {
        to: settings.to.clone(),
        types: settings.types.iter().map(|kind| kind.as_str().to_owned()).collect(),
        batch_max: settings.batch_max,
        timeout_ms: settings.timeout_ms,
        attempts_max: settings.attempts_max,
        retry_seconds: settings.retry_seconds.clone(),
        disable_after_seconds: settings.disable_after_seconds,
    })
}

fn read_settings(text: &str) -> Result<SinkSettings, Error> {
    let SettingsJson { to, types, batch_max, timeout_ms, attempts_max, retry_seconds, disable_after_seconds } =
        parse(text)?;
    let kind =
        |word: &String| OrderEventKind::parse(word).ok_or_else(|| corrupt(format_args!("an event {word:?}")));
    Ok(SinkSettings {
        to,
        types: types.iter().map(kind).collect::<Result<_, _>>()?,
        batch_max,
        timeout_ms,
        attempts_max,
        retry_seconds,
        disable_after_seconds,
    })
}

/// Secrets as stored.
pub fn write_secrets(secrets: &[SinkSecret]) -> Result<String, Error> {
    let secret = |secret: &SinkSecret| SecretJson {
        id: secret.id.clone(),
        secret: secret.secret.to_string(),
        created_at: secret.created_at.0,
    };
    json(&secrets.iter().map(secret).collect::<Vec<_>>())
}

fn read_secrets(text: &str) -> Result<Vec<SinkSecret>, Error> {
    let secret = |SecretJson { id, secret, created_at }| SinkSecret {
        id,
        secret: secret.into(),
        created_at: holdfast_core::time::Timestamp(created_at),
    };
    Ok(parse::<Vec<SecretJson>>(text)?.into_iter().map(secret).collect())
}

/// Reads a sink's name.
pub fn sink_name(row: &dyn Row, column: &str) -> Result<SinkName, Error> {
    SinkName::new(text(row, column)?).ok_or_else(|| corrupt("the name of a sink"))
}

/// Reads a sink, with the counts of its parked events.
pub fn sink(row: &dyn Row) -> Result<SinkRow, Error> {
    Ok(SinkRow {
        name: sink_name(row, "name")?,
        kind: word(row, "kind", SinkKind::parse)?,
        settings: read_settings(text(row, "settings")?)?,
        secrets: read_secrets(text(row, "secrets")?)?,
        state: word(row, "state", SinkState::parse)?,
        why: row.text("why")?.map(str::to_owned),
        round: number(row, "round")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        health: SinkHealth {
            failing_since: optional_time(row, "failing_since")?,
            failures: number(row, "failures")?,
            next_attempt_at: optional_time(row, "next_attempt_at")?,
            last_error: row.text("last_error")?.map(str::to_owned),
            delivered_at: optional_time(row, "delivered_at")?,
        },
        parked: number(row, "parked")?,
        waiting: number(row, "waiting")?,
    })
}

/// A bucket in which a sink may have something to look at.
#[derive(Debug, Clone, Copy)]
pub struct Lagging {
    /// The bucket.
    pub bucket: BucketKey,
    /// The last entry there is.
    pub ledger_seq: u64,
    /// Where the sink stood, in whichever round; none: nowhere yet.
    pub seq: Option<u64>,
    /// Strikes of the next event.
    pub strikes: u32,
    /// The earliest time that later rounds name: it stands before that, if it came further.
    pub from: Option<Timestamp>,
}

/// Reads such a bucket.
pub fn lagging(row: &dyn Row) -> Result<Lagging, Error> {
    let seq = row.integer("seq")?.map(u64::try_from).transpose();
    Ok(Lagging {
        bucket: BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "number")? },
        ledger_seq: number(row, "ledger_seq")?,
        seq: seq.map_err(|_| corrupt("the position of a sink"))?,
        strikes: number(row, "strikes")?,
        from: optional_time(row, "from_at")?,
    })
}

fn entry_position(row: &dyn Row) -> Result<LedgerPosition, Error> {
    let bucket = BucketKey { pool: PoolId(number_id(row, "pool")?), number: number(row, "bucket")? };
    Ok((bucket, number(row, "seq")?))
}

/// Reads when an entry was written, and its place.
pub fn dated_entry(row: &dyn Row) -> Result<(Timestamp, LedgerPosition), Error> {
    Ok((time(row, "at")?, entry_position(row)?))
}

/// Reads a parked event.
pub fn dead_letter(row: &dyn Row) -> Result<DeadLetter, Error> {
    Ok(DeadLetter {
        position: entry_position(row)?,
        attempts: number(row, "attempts")?,
        why: text(row, "why")?.to_owned(),
        at: time(row, "at")?,
        state: word(row, "state", DeadLetterState::parse)?,
    })
}

/// Reads what became of an event at a sink.
pub fn delivery(row: &dyn Row) -> Result<DeliveryOf, Error> {
    let position = entry_position(row)?;
    let parked = match row.text("dead_state")? {
        Some("parked" | "waiting") => Some(DeliveryState::Parked {
            attempts: number(row, "attempts")?,
            why: text(row, "why")?.to_owned(),
        }),
        Some(_) | None => None,
    };
    let is_passed =
        row.integer("reached")?.is_some_and(|reached| u64::try_from(reached).is_ok_and(|r| r >= position.1));
    let is_replayed = optional_time(row, "from_at")?
        .is_some_and(|from| row.integer("at").is_ok_and(|at| at.is_some_and(|at| at >= from.0)));
    let has_place = row.integer("reached")?.is_some();
    let state = match parked {
        Some(parked) => parked,
        None if is_replayed => DeliveryState::Waiting,
        None if is_passed => DeliveryState::Delivered,
        None if has_place => DeliveryState::Waiting,
        None => DeliveryState::Before,
    };
    Ok(DeliveryOf { sink: sink_name(row, "sink")?, position, state })
}
