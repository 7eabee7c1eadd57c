//! Validates JSON against the part of JSON Schema that the document uses. A keyword that it does not know
//! fails the test: nothing is believed unseen.

use serde_json::{Map, Value};

/// Keywords that say nothing about what is valid, and formats, which are checked where they matter.
const SILENT: [&str; 7] = ["description", "example", "examples", "format", "title", "default", "deprecated"];

/// The document and its schemas.
#[derive(Debug)]
pub(super) struct Document(pub(super) Value);

impl Document {
    /// A schema, or the one that it refers to.
    pub(super) fn resolve<'d>(&'d self, schema: &'d Value) -> &'d Value {
        match schema["$ref"].as_str() {
            Some(reference) => {
                let pointer = reference.strip_prefix('#').expect("a local reference");
                self.resolve(self.0.pointer(pointer).unwrap_or_else(|| panic!("no {reference}")))
            }
            None => schema,
        }
    }

    /// Whether a value is as a schema says; else where and why not.
    pub(super) fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        self.check_at(schema, value, "")
    }

    fn check_at(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = self.resolve(schema).as_object().unwrap_or_else(|| panic!("no schema: {schema}"));
        for (keyword, rule) in schema {
            let is_good = match keyword.as_str() {
                "type" => is_of_type(rule, value),
                "enum" => rule.as_array().unwrap().contains(value),
                "const" => rule == value,
                "minimum" => value.as_i64().is_none_or(|n| n >= rule.as_i64().unwrap()),
                "maximum" => value.as_i64().is_none_or(|n| n <= rule.as_i64().unwrap()),
                "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= size(rule)),
                "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= size(rule)),
                "minItems" => value.as_array().is_none_or(|items| items.len() >= size(rule)),
                "maxItems" => value.as_array().is_none_or(|items| items.len() <= size(rule)),
                "maxProperties" => value.as_object().is_none_or(|object| object.len() <= size(rule)),
                "required" => value.as_object().is_none_or(|object| {
                    rule.as_array().unwrap().iter().all(|name| object.contains_key(name.as_str().unwrap()))
                }),
                "uniqueItems" => value.as_array().is_none_or(|items| {
                    items.iter().enumerate().all(|(index, item)| !items[..index].contains(item))
                }),
                "allOf" => {
                    for schema in rule.as_array().unwrap() {
                        self.check_at(schema, value, at)?;
                    }
                    true
                }
                "oneOf" => self.count(rule, value, at) == 1,
                "anyOf" => self.count(rule, value, at) > 0,
                "properties" => {
                    for (name, schema) in rule.as_object().unwrap() {
                        if let Some(value) = value.get(name) {
                            self.check_at(schema, value, &format!("{at}/{name}"))?;
                        }
                    }
                    true
                }
                "additionalProperties" => {
                    self.check_others(schema, rule, value, at)?;
                    true
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check_at(rule, item, &format!("{at}/{index}"))?;
                    }
                    true
                }
                // The only patterns are those of parameters, which are made and not checked.
                "pattern" | "propertyNames" => true,
                silent if SILENT.contains(&silent) => true,
                unknown => panic!("a keyword that this test does not know: {unknown}"),
            };
            if !is_good {
                return Err(format!("{at}: {keyword} {rule}: {value}"));
            }
        }
        Ok(())
    }

    fn count(&self, schemas: &Value, value: &Value, at: &str) -> usize {
        let schemas = schemas.as_array().unwrap().iter();
        schemas.filter(|schema| self.check_at(schema, value, at).is_ok()).count()
    }

    fn check_others(
        &self,
        schema: &Map<String, Value>,
        rule: &Value,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let known = |name: &String| schema.get("properties").is_some_and(|all| all.get(name).is_some());
        for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| !known(name)) {
            match rule {
                Value::Bool(true) => {}
                Value::Bool(false) => return Err(format!("{at}/{name}: not known")),
                rule => self.check_at(rule, value, &format!("{at}/{name}"))?,
            }
        }
        Ok(())
    }
}

fn size(rule: &Value) -> usize {
    usize::try_from(rule.as_u64().unwrap()).unwrap()
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("a type that JSON does not have: {unknown}"),
    };
    match rule {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}

#[test]
fn what_a_schema_forbids_is_found() {
    let document = Document(serde_json::json!({"s": {
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": ["integer", "null"], "minimum": 1}, "b": {"enum": ["x"]}},
    }}));
    let schema = serde_json::json!({"allOf": [{"$ref": "#/s"}, {"properties": {"a": {"maximum": 9}}}]});
    for (value, is_good) in [
        (r#"{"a":1,"b":"x"}"#, true),
        (r#"{"a":null}"#, true),
        (r#"{"a":0}"#, false),
        (r#"{"a":10}"#, false),
        (r#"{"a":1.0}"#, false),
        (r#"{"a":"1"}"#, false),
        (r#"{"a":1,"b":"y"}"#, false),
        (r#"{"a":1,"c":1}"#, false),
        ("{}", false),
        ("[]", false),
    ] {
        let checked = document.check(&schema, &serde_json::from_str(value).unwrap());
        assert_eq!(checked.is_ok(), is_good, "{value}: {checked:?}");
    }
}
