//! Evidence as JSON objects. The core knows no serde; what is written here is flat and its texts are escaped.

use std::fmt::Write as _;

use crate::case::quoted_text;
use crate::ledger::Entry;
use crate::stock::Delta;

use super::Discrepancy;

/// Puts an object together, field by field.
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self("{".into())
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        let _ = write!(self.0, "\"{name}\":");
    }

    /// A field whose value is JSON already.
    pub(super) fn raw(mut self, name: &str, json: impl std::fmt::Display) -> Self {
        self.name(name);
        let _ = write!(self.0, "{json}");
        self
    }

    pub(super) fn text(mut self, name: &str, text: impl std::fmt::Display) -> Self {
        self.name(name);
        self.0.push_str(&quoted_text(&text.to_string()));
        self
    }

    pub(super) fn texts(self, name: &str, texts: &[String]) -> Self {
        let quoted: Vec<String> = texts.iter().map(|text| quoted_text(text)).collect();
        self.raw(name, format_args!("[{}]", quoted.join(",")))
    }

    pub(super) fn units(self, name: &str, units: Delta) -> Self {
        self.raw(name, units_of(units))
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub(super) fn units_of(units: Delta) -> String {
    let Delta { available, held, sold } = units;
    format!(r#"{{"available":{available},"held":{held},"sold":{sold}}}"#)
}

/// An entry, as far as it identifies itself.
pub(super) fn entry(entry: &Entry) -> String {
    Object::new()
        .raw("bucket", entry.bucket.number)
        .raw("seq", entry.seq)
        .text("at", entry.at)
        .text("action", entry.action.as_str())
        .text("business_no", &entry.business_no)
        .text("source", &entry.source)
        .units("delta", entry.delta)
        .finish()
}

/// The evidence of a difference with what tells which one it is.
pub(super) fn with_outline(discrepancy: &Discrepancy) -> String {
    let found = &discrepancy.found;
    let mut object = Object::new().text("discrepancy_id", discrepancy.id).text("class", found.class.as_str());
    if let Some(bucket) = found.bucket {
        object = object.raw("bucket", bucket.number);
    }
    object
        .text("expected", &found.expected)
        .text("actual", &found.actual)
        .raw("seen", &found.evidence)
        .finish()
}
