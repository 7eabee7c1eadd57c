//! Makes values from schemas: valid ones, and ones with a fault. Everything comes from one seed.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::schema::Document;

/// Things that exist, by the name of the field that names them.
pub(super) type Known = BTreeMap<&'static str, Vec<Value>>;

/// Makes values.
pub(super) struct Generator<'d> {
    pub(super) document: &'d Document,
    pub(super) rng: Rng,
    pub(super) known: Known,
}

impl Generator<'_> {
    /// A value that a schema allows; `name` is the field's, which says what would make sense.
    pub(super) fn valid(&mut self, schema: &Value, name: &str) -> Value {
        let schema = self.document.resolve(schema).clone();
        if let Some(known) = self.known.get(name)
            && self.rng.u8(..10) < 8
        {
            return known[self.rng.usize(..known.len())].clone();
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[choice].as_array() {
                let choice = self.rng.usize(..choices.len());
                return self.valid(&choices[choice], name);
            }
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[self.rng.usize(..words.len())].clone();
        }
        let of = match &schema["type"] {
            Value::Array(types) => types[self.rng.usize(..types.len())].as_str().unwrap().to_owned(),
            name => name.as_str().unwrap_or("object").to_owned(),
        };
        match of.as_str() {
            "null" => Value::Null,
            "boolean" => self.rng.bool().into(),
            "integer" => self.integer(&schema).into(),
            "string" => self.text(&schema, name).into(),
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(0);
                let most = schema["maxItems"].as_u64().unwrap_or(3).min(least + 2);
                let count = self.rng.u64(least..=most);
                (0..count).map(|_| self.valid(&schema["items"], name)).collect()
            }
            _ => self.object(&schema),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().cloned().collect();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().cloned().unwrap_or_default() {
            if required.contains(&json!(name)) || self.rng.u8(..10) < 3 {
                object.insert(name.clone(), self.valid(&property, &name));
            }
        }
        if schema["additionalProperties"].is_object() {
            // A map of names that the client makes.
            for _ in 0..self.rng.u8(..3) {
                let value = self.valid(&schema["additionalProperties"], "");
                object.insert(self.words(1, 8), value);
            }
        } else if schema.get("properties").is_none() {
            // An object of the client's own.
            object.insert(self.words(1, 8), json!([1.50, null, {"é": "x"}]));
        }
        object.into()
    }

    fn integer(&mut self, schema: &Value) -> i64 {
        let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
        let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
        match self.rng.u8(..10) {
            0 => least,
            1 => most,
            2 => self.rng.i64(least..=most),
            _ => self.rng.i64(least.max(-3)..=most.min(least.saturating_add(5).max(3))),
        }
    }

    fn text(&mut self, schema: &Value, name: &str) -> String {
        let pick = |rng: &mut Rng, texts: &[&str]| texts[rng.usize(..texts.len())].to_owned();
        if schema["format"] == "uuid" {
            return format!("01937a5e-0000-7000-8000-{:012x}", self.rng.u64(..1 << 40));
        }
        match name {
            "currency" => pick(&mut self.rng, &["EUR", "USD", "JPY"]),
            "time_zone" => pick(&mut self.rng, &["Europe/Berlin", "Asia/Shanghai", "UTC"]),
            "starts_at" => pick(&mut self.rng, &["2026-01-01T00:00:00Z", "2026-03-29T12:00:00.25+01:00"]),
            "ends_at" => pick(&mut self.rng, &["2096-01-01T00:00:00Z", "2096-03-29T12:00:00+01:00"]),
            _ if schema["format"] == "date-time" => "2026-01-01T00:00:00Z".into(),
            "from" => pick(&mut self.rng, &["beginning", "2026-01-01T00:00:00Z"]),
            "url" => "http://127.0.0.1:9/in".into(),
            "secret" => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(),
            "wait" => pick(&mut self.rng, &["0", "1s", "0s"]),
            _ => {
                let least = schema["minLength"].as_u64().unwrap_or(0);
                let most = schema["maxLength"].as_u64().unwrap_or(20).min(500);
                let longest = if self.rng.u8(..8) == 0 { most } else { most.min(least + 12) };
                self.words(least, longest)
            }
        }
    }

    /// Text that may stand in an identifier: no control characters, no white space at its ends.
    fn words(&mut self, least: u64, most: u64) -> String {
        const LETTERS: [char; 16] =
            ['a', 'Z', '0', '9', '-', '/', '%', '?', '#', '\'', '"', '\\', 'é', '库', '😀', '\u{200f}'];
        let count = self.rng.u64(least..=most);
        (0..count).map(|_| LETTERS[self.rng.usize(..LETTERS.len())]).collect()
    }

    /// A valid body with one fault somewhere, which may turn out to be none: the schema says.
    pub(super) fn spoiled(&mut self, schema: &Value, name: &str) -> Value {
        let mut value = self.valid(schema, name);
        let schema = self.document.resolve(schema).clone();
        let names: Vec<String> =
            schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
        let Some(object) = value.as_object_mut().filter(|_| !names.is_empty()) else {
            return self.nonsense();
        };
        let field = names[self.rng.usize(..names.len())].clone();
        match self.rng.u8(..6) {
            0 => drop(object.remove(&field)),
            1 => drop(object.insert("surplus".into(), json!(1))),
            2 => {
                let inner = self.spoiled(&schema["properties"][&field], &field);
                object.insert(field, inner);
            }
            3 if self.rng.u8(..3) == 0 => return self.nonsense(),
            _ => {
                let nonsense = self.nonsense();
                object.insert(field, nonsense);
            }
        }
        value
    }

    fn nonsense(&mut self) -> Value {
        let values = [
            json!(null),
            json!(true),
            json!(-1),
            json!(0),
            json!(1.5),
            json!(u64::MAX),
            json!(""),
            json!(" x"),
            json!("a\u{0}b"),
            json!("x".repeat(501)),
            json!([]),
            json!([[]]),
            json!({}),
            json!({"x": 1}),
        ];
        values[self.rng.usize(..values.len())].clone()
    }
}
