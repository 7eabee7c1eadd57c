//! Requests about sinks and their events.

use std::sync::Arc;

use holdfast_core::event::OrderEventKind;
use holdfast_core::id::Operator;
use holdfast_core::time::Timestamp;
use holdfast_store::{
    ATTEMPTS_MAX, BATCH_MAX, BEGINNING, DISABLE_AFTER_SECONDS_MAX, DISABLE_AFTER_SECONDS_MIN, RETRIES_MAX,
    RETRY_SECONDS_MAX, SinkChange, SinkKind, SinkName, SinkSettings, TIMEOUT_MS_MAX, TIMEOUT_MS_MIN,
};
use holdfast_wire::Code;

use super::field::{Field, TEXT_CHARS_MAX, id, integer, text, word};
use super::json::Json;
use super::reader::Object;
use super::report::Fault;
use super::time::instant;

/// Longest subject or stream, and longest position, in characters.
const TO_CHARS_MAX: usize = 200;
/// See [`TO_CHARS_MAX`].
pub(crate) const POSITION_CHARS_MAX: usize = 4_096;
const URL_CHARS_MAX: usize = 2_000;
const SECRET_CHARS_MAX: usize = 94;
/// The word for now, where a time could stand.
const NOW: &str = "now";
/// The word for the beginning of every ledger.
const START: &str = "beginning";
/// The word for parked events.
const DEAD_LETTERS: &str = "dead_letters";

/// A sink to make or to change, as it was asked for.
#[derive(Debug)]
pub(crate) struct SinkInput {
    pub(crate) kind: SinkKind,
    pub(crate) settings: SinkSettings,
    pub(crate) from: Timestamp,
    pub(crate) secret: Option<Arc<str>>,
}

/// Where the address of a sink stands in a request.
pub(crate) const fn to_field(kind: SinkKind) -> Option<&'static str> {
    match kind {
        SinkKind::Webhook => Some("url"),
        SinkKind::Nats => Some("subject"),
        SinkKind::Redis => Some("stream"),
        SinkKind::Pull => None,
    }
}

/// A time, or a word that stands for one.
struct Moment {
    now: Option<Timestamp>,
}

impl Field for Moment {
    type Out = Timestamp;

    fn code(&self) -> Code {
        Code::InvalidTime
    }

    fn read(&self, json: &Json<'_>) -> Result<Timestamp, Fault> {
        match (json.text(), self.now) {
            (Some(START), _) => Ok(BEGINNING),
            (Some(NOW), Some(now)) => Ok(now),
            _ => instant().read(json),
        }
    }
}

/// A sink's name.
struct Name;

impl Field for Name {
    type Out = SinkName;

    fn code(&self) -> Code {
        Code::InvalidIdentifier
    }

    fn read(&self, json: &Json<'_>) -> Result<SinkName, Fault> {
        json.text().and_then(SinkName::new).ok_or_else(|| Fault::new(self.code(), SINK_NAME_RULE))
    }
}

/// What a sink's name must be.
pub(crate) const SINK_NAME_RULE: &str =
    "must have 1 to 64 characters of a-z, 0-9, - and _, and begin with a letter or a digit";

/// Reads a sink to make or to change.
pub(crate) fn read_sink(now: Timestamp, body: &mut Object<'_, '_>) -> Option<SinkInput> {
    let kind = body.required("kind", word(SinkKind::parse));
    let to = read_to(kind, body);
    let from = body.defaulted("from", Moment { now: Some(now) }, BEGINNING);
    let event = |item: super::reader::Item<'_, '_>| item.field(word(OrderEventKind::parse));
    let types = body.optional_array("types", 1..=OrderEventKind::ALL.len(), event);
    let defaults = SinkSettings::default();
    let batch_max = body.defaulted("batch_max", integer(1..=BATCH_MAX), defaults.batch_max);
    let timeout = integer(TIMEOUT_MS_MIN..=TIMEOUT_MS_MAX);
    let timeout_ms = body.defaulted("timeout_ms", timeout, defaults.timeout_ms);
    let attempts_max = body.defaulted("attempts_max", integer(1..=ATTEMPTS_MAX), defaults.attempts_max);
    let wait = |item: super::reader::Item<'_, '_>| item.field(integer(1..=RETRY_SECONDS_MAX));
    let retry_seconds = body.optional_array("retry_seconds", 1..=RETRIES_MAX, wait);
    let disable = integer(DISABLE_AFTER_SECONDS_MIN..=DISABLE_AFTER_SECONDS_MAX);
    let disable_after_seconds =
        body.defaulted("disable_after_seconds", disable, defaults.disable_after_seconds);
    let secret = read_secret(body);
    if kind.is_some_and(|kind| kind != SinkKind::Webhook) && body.has("secret") {
        body.refuse("secret", Code::InvalidValue, "only webhooks are signed");
    }
    let settings = SinkSettings {
        to: to?.to_string(),
        types: types?.unwrap_or_default(),
        batch_max: batch_max?,
        timeout_ms: timeout_ms?,
        attempts_max: attempts_max?,
        retry_seconds: retry_seconds?.unwrap_or(defaults.retry_seconds),
        disable_after_seconds: disable_after_seconds?,
    };
    Some(SinkInput { kind: kind?, settings, from: from?, secret: secret? })
}

/// Reads where a sink leads to: one field, by its kind. Where the kind is wrong, none of them is judged.
fn read_to(kind: Option<SinkKind>, body: &mut Object<'_, '_>) -> Option<Arc<str>> {
    let wanted = kind.and_then(to_field);
    let mut to = kind.filter(|_| wanted.is_none()).map(|_| Arc::from(""));
    for (name, chars_max) in [("url", URL_CHARS_MAX), ("subject", TO_CHARS_MAX), ("stream", TO_CHARS_MAX)] {
        if wanted == Some(name) {
            to = body.required(name, text(chars_max));
            continue;
        }
        body.ignored::<()>(name);
        if let Some(kind) = kind.filter(|_| body.has(name)) {
            body.refuse(name, Code::InvalidValue, format!("a sink of kind {} has none", kind.as_str()));
        }
    }
    to
}

/// Reads a secret that may be left out. Whether it can sign is judged by whoever signs.
pub(crate) fn read_secret(body: &mut Object<'_, '_>) -> Option<Option<Arc<str>>> {
    body.optional("secret", text(SECRET_CHARS_MAX))
}

/// Who changes a sink and why: both may be left out.
pub(crate) struct SignedInput {
    pub(crate) operator: String,
    pub(crate) reason: String,
}

/// Reads `{reason?, operator?}`.
pub(crate) fn read_signed(body: &mut Object<'_, '_>) -> Option<SignedInput> {
    let reason = body.optional("reason", text(TEXT_CHARS_MAX));
    let operator = body.optional("operator", id::<Operator>());
    let operator = operator?.map(|operator| operator.to_string()).unwrap_or_default();
    Some(SignedInput { operator, reason: reason?.map(|reason| reason.to_string()).unwrap_or_default() })
}

/// From where a sink is told again.
struct ReplayFrom;

impl Field for ReplayFrom {
    type Out = SinkChange;

    fn code(&self) -> Code {
        Code::InvalidTime
    }

    fn read(&self, json: &Json<'_>) -> Result<SinkChange, Fault> {
        if json.text() == Some(DEAD_LETTERS) {
            return Ok(SinkChange::ReplayDeadLetters);
        }
        Moment { now: None }.read(json).map(SinkChange::ReplayFrom)
    }
}

/// Reads `{from, reason?, operator?}`.
pub(crate) fn read_replay(body: &mut Object<'_, '_>) -> Option<(SinkChange, SignedInput)> {
    let from = body.required("from", ReplayFrom);
    Some((from?, read_signed(body)?))
}

/// Reads `{consumer, position}`.
pub(crate) fn read_ack(body: &mut Object<'_, '_>) -> Option<(SinkName, Arc<str>)> {
    let consumer = body.required("consumer", Name);
    let position = body.required("position", text(POSITION_CHARS_MAX));
    Some((consumer?, position?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::read;

    fn sink(fields: &str) -> Result<SinkInput, Vec<(String, String)>> {
        read(format!("{{{fields}}}").as_bytes(), |body| read_sink(Timestamp(7), body))
            .map_err(|problem| problem.pointers())
    }

    #[test]
    fn what_is_left_out_gets_its_default() {
        let read = sink(r#""kind":"webhook","url":"https://shop.example/in""#).expect("read");
        let expected = SinkSettings { to: "https://shop.example/in".into(), ..SinkSettings::default() };
        assert_eq!((read.kind, read.settings, read.from), (SinkKind::Webhook, expected, BEGINNING));
        assert_eq!(sink(r#""kind":"pull","from":"now""#).expect("read").from, Timestamp(7));
        let at = sink(r#""kind":"nats","subject":"o","from":"1970-01-01T00:00:01Z""#).expect("read");
        assert_eq!((at.from, at.settings.to.as_str()), (Timestamp(1_000_000), "o"));
        let some = sink(r#""kind":"redis","stream":"s","types":["sold","held"],"retry_seconds":[1,2]"#);
        let settings = some.expect("read").settings;
        assert_eq!(settings.types, [OrderEventKind::Sold, OrderEventKind::Held]);
        assert_eq!(settings.retry_seconds, [1, 2]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (fields, pointer, code) in [
            (r#""kind":"webhook""#, "/url", "invalid_value"),
            (r#""kind":"pull","url":"https://x.example""#, "/url", "invalid_value"),
            (r#""kind":"nats","subject":"o","stream":"s""#, "/stream", "invalid_value"),
            (r#""kind":"mail","url":"x""#, "/kind", "invalid_value"),
            (r#""kind":"pull","secret":"whsec_x""#, "/secret", "invalid_value"),
            (r#""kind":"pull","from":"yesterday""#, "/from", "invalid_time"),
            (r#""kind":"pull","types":[]"#, "/types", "invalid_value"),
            (r#""kind":"pull","types":["bought"]"#, "/types/0", "invalid_value"),
            (r#""kind":"pull","batch_max":0"#, "/batch_max", "invalid_value"),
            (r#""kind":"pull","batch_max":501"#, "/batch_max", "invalid_value"),
            (r#""kind":"pull","timeout_ms":99"#, "/timeout_ms", "invalid_value"),
            (r#""kind":"pull","retry_seconds":[0]"#, "/retry_seconds/0", "invalid_value"),
            (r#""kind":"pull","bogus":1"#, "/bogus", "unknown_field"),
        ] {
            let read = sink(fields).map(|read| read.kind);
            assert_eq!(read, Err(vec![(pointer.to_owned(), code.to_owned())]), "{fields}");
        }
    }

    #[test]
    fn a_replay_names_where_it_begins() {
        let replay = |text: &str| read(text.as_bytes(), read_replay).map(|(change, _)| change).ok();
        assert_eq!(replay(r#"{"from":"dead_letters"}"#), Some(SinkChange::ReplayDeadLetters));
        assert_eq!(replay(r#"{"from":"beginning"}"#), Some(SinkChange::ReplayFrom(BEGINNING)));
        let from = SinkChange::ReplayFrom(Timestamp(1_000_000));
        assert_eq!(replay(r#"{"from":"1970-01-01T00:00:01Z","reason":"r"}"#), Some(from));
        for bad in [r#"{"from":"now"}"#, r"{}", r#"{"from":5}"#] {
            assert_eq!(replay(bad), None, "{bad}");
        }
    }
}
