//! The contract for people, from the same document that programs read.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{escaped, frame, inline};
use crate::openapi::finish::CODES;

/// The whole page.
pub(super) fn page(document: &Value) -> String {
    let mut body = format!("<h1>{}</h1>\n", text(document.pointer("/info/title")));
    paragraphs(&mut body, document.pointer("/info/description"));
    body.push_str("<p>For programs: <a href=\"/openapi.json\"><code>/openapi.json</code></a></p>\n");
    let operations = operations(document);
    for tag in items(document.get("tags")) {
        let name = tag.get("name").and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(body, "<h2>{}</h2>\n<p>{}</p>", escaped(name), text(tag.get("description")));
        for (path, method, operation) in &operations {
            if items(operation.get("tags")).any(|tag| tag.as_str() == Some(name)) {
                self::operation(&mut body, document, path, method, operation);
            }
        }
    }
    body.push_str("<h2>Schemas</h2>\n");
    for (name, schema) in members(document.pointer("/components/schemas")) {
        self::schema(&mut body, name, schema);
    }
    frame("Holdfast: the contract", &body)
}

fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let mut found = Vec::new();
    for (path, item) in members(document.get("paths")) {
        for (method, operation) in members(Some(item)) {
            found.push((path.as_str(), method.as_str(), operation));
        }
    }
    found
}

fn operation(body: &mut String, document: &Value, path: &str, method: &str, operation: &Value) {
    let id = text(operation.get("operationId"));
    let _ = writeln!(
        body,
        "<h3 id=\"{id}\"><span class=\"method\">{}</span> <code>{}</code></h3>\n<p>{}</p>",
        escaped(method),
        escaped(path),
        text(operation.get("summary")),
    );
    paragraphs(body, operation.get("description"));
    let parameters: Vec<_> = items(operation.get("parameters")).filter(|p| p.get("name").is_some()).collect();
    if !parameters.is_empty() {
        body.push_str("<table><tr><th>Parameter</th><th>In</th><th>Value</th><th></th></tr>");
        for parameter in parameters {
            let _ = write!(
                body,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                text(parameter.get("name")),
                text(parameter.get("in")),
                value(parameter.get("schema")),
                text(parameter.get("description")),
            );
        }
        body.push_str("</table>\n");
    }
    let content = operation.pointer("/requestBody/content");
    for (media, content) in members(content) {
        let shown = value(content.get("schema"));
        let _ = writeln!(body, "<p>Body: <code>{}</code> {shown}</p>", escaped(media));
    }
    responses(body, document, operation);
}

fn responses(body: &mut String, document: &Value, operation: &Value) {
    body.push_str("<table><tr><th>Status</th><th>Answer</th></tr>");
    for (status, response) in members(operation.get("responses")) {
        let _ = write!(body, "<tr><td>{}</td><td>", escaped(status));
        let shared = response.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        let response = shared.and_then(|pointer| document.pointer(pointer)).unwrap_or(response);
        let codes: Vec<_> = items(response.pointer(CODES)).map(|code| text(Some(code))).collect();
        if codes.is_empty() {
            body.push_str(&text(response.get("description")));
            for (media, content) in members(response.get("content")) {
                let shown = value(content.get("schema"));
                let _ = write!(body, " <code>{}</code> {shown}", escaped(media));
            }
        }
        for code in codes {
            let _ = write!(body, "<a href=\"/problems/{code}\"><code>{code}</code></a> ");
        }
        body.push_str("</td></tr>");
    }
    body.push_str("</table>\n");
}

fn schema(body: &mut String, name: &str, schema: &Value) {
    let name = escaped(name);
    let _ = writeln!(body, "<h3 id=\"schema-{name}\"><code>{name}</code></h3>");
    paragraphs(body, schema.get("description"));
    let required: Vec<_> = items(schema.get("required")).filter_map(Value::as_str).collect();
    body.push_str("<table><tr><th>Field</th><th>Value</th><th></th></tr>");
    for (field, property) in members(schema.get("properties")) {
        let _ = write!(
            body,
            "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(field),
            if required.contains(&field.as_str()) { " (required)" } else { "" },
            value(Some(property)),
            text(property.get("description")),
        );
    }
    body.push_str("</table>\n");
}

/// A schema in a few words, with links to those that have a name.
fn value(schema: Option<&Value>) -> String {
    let Some(schema) = schema else { return String::new() };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = escaped(name.rsplit('/').next().unwrap_or_default());
        return format!("<a href=\"#schema-{name}\"><code>{name}</code></a>");
    }
    let choices: Vec<_> = ["oneOf", "anyOf", "allOf"]
        .iter()
        .flat_map(|key| items(schema.get(*key)))
        .map(|s| value(Some(s)))
        .collect();
    if !choices.is_empty() {
        return choices.join(" or ");
    }
    let mut words: Vec<String> = match schema.get("type") {
        Some(Value::Array(types)) => {
            vec![types.iter().map(|t| text(Some(t))).collect::<Vec<_>>().join(" or ")]
        }
        of => vec![text(of)],
    };
    if schema.get("items").is_some() {
        words.push(format!("of {}", value(schema.get("items"))));
    }
    let bounds =
        ["format", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties"];
    for bound in bounds {
        if let Some(limit) = schema.get(bound) {
            let shown = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
            words.push(format!("{bound}&nbsp;{}", escaped(&shown)));
        }
    }
    let choices: Vec<_> = items(schema.get("enum"))
        .map(|choice| format!("<code>{}</code>", escaped(&choice.to_string())))
        .collect();
    words.push(choices.join(" "));
    words.retain(|word| !word.is_empty());
    words.join(", ")
}

fn paragraphs(body: &mut String, value: Option<&Value>) {
    for paragraph in value.and_then(Value::as_str).unwrap_or_default().split("\n\n").filter(|p| !p.is_empty())
    {
        let _ = writeln!(body, "<p>{}</p>", inline(paragraph));
    }
}

fn text(value: Option<&Value>) -> String {
    inline(value.and_then(Value::as_str).unwrap_or_default())
}

fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::iter)
}
