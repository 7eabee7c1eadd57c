//! What holds for every operation of the document, said once: the request's id, strict bodies, roles.

use std::collections::BTreeSet;

use axum::http::Method;
use holdfast_store::Role;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::roles::{self, Access, NOTIFIERS};

/// Where a response says its codes.
pub(crate) const CODES: &str = "/content/application~1problem+json/schema/allOf/1/properties/code/enum";

/// Adds to the document what the macros cannot know.
pub(super) fn finish(document: &mut Value) {
    let requests = schemas_of_requests(document);
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for (_, schema) in schemas.into_iter().flatten().filter(|(name, _)| requests.contains(*name)) {
        insert(schema, "additionalProperties", json!(false));
    }
    insert_parameters(document);
    for (method, path, operation) in operations(document) {
        insert_roles(&method, &path, operation);
        finish_operation(operation);
    }
    share_problems(document);
}

/// Says each set of problems once: many operations have the same.
fn share_problems(document: &mut Value) {
    let mut shared = Map::new();
    for (_, _, operation) in operations(document) {
        let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
        for (status, response) in responses.into_iter().flatten() {
            let codes = response.pointer(CODES).and_then(Value::as_array);
            let codes: Vec<_> = codes.into_iter().flatten().filter_map(Value::as_str).collect();
            let name = match codes.as_slice() {
                [] => continue,
                [code] => format!("problem_{status}_{code}"),
                // A name that only says which codes they are, so that other sets do not rename it.
                codes => {
                    let hash = Sha256::digest(codes.join(" "));
                    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
                    format!("problem_{status}_{hash}")
                }
            };
            let reference = json!({"$ref": format!("#/components/responses/{name}")});
            shared.insert(name, std::mem::replace(response, reference));
        }
    }
    if let Some(components) = document.get_mut("components") {
        insert(components, "responses", shared.into());
    }
}

/// Says whose keys open the operation, from the table that lets requests in.
fn insert_roles(method: &str, path: &str, operation: &mut Value) {
    let method = method.to_uppercase().parse::<Method>().ok();
    let Some(route) = method.and_then(|method| roles::find(&method, path)) else { return };
    let (roles, text): (&[Role], _) = match route.access {
        Access::Public => (&[], "No key is needed."),
        Access::Signed => (NOTIFIERS, "A signature, or a key of one of these roles where none is set up: "),
        Access::Roles(roles) => (roles, "A key of one of these roles: "),
    };
    let names: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let end = if names.is_empty() { "" } else { "." };
    let described = operation.get("description").and_then(Value::as_str).map(|text| format!("{text}\n\n"));
    let described = format!("{}{text}{listed}{end}", described.unwrap_or_default());
    insert(operation, "description", described.into());
    insert(operation, "x-holdfast-roles", names.into());
}

fn finish_operation(operation: &mut Value) {
    let reference = json!({"$ref": "#/components/parameters/RequestId"});
    if let Some(object) = operation.as_object_mut() {
        let parameters = object.entry("parameters").or_insert_with(|| json!([]));
        parameters.as_array_mut().into_iter().for_each(|list| list.push(reference.clone()));
    }
    // A body that may be left out is not one that may be `null`.
    if let Some(schema) = operation.pointer_mut("/requestBody/content/application~1json/schema")
        && let Some(some) = schema
            .get("oneOf")
            .and_then(Value::as_array)
            .and_then(|choices| choices.iter().find(|choice| choice.get("$ref").is_some()).cloned())
    {
        *schema = some;
    }
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for (_, response) in responses.into_iter().flatten() {
        if let Some(response) = response.as_object_mut() {
            let headers = response.entry("headers").or_insert_with(|| json!({}));
            insert(headers, "X-Request-Id", json!({"$ref": "#/components/headers/RequestId"}));
        }
    }
}

fn insert_parameters(document: &mut Value) {
    let Some(components) = document.get_mut("components") else { return };
    let schema = json!({"type": "string", "maxLength": 128});
    let parameter = json!({"RequestId": {
        "name": "X-Request-Id", "in": "header", "required": false, "schema": {"type": "string"},
        "description": "Names the request in logs and answers: up to 128 visible ASCII characters. One that \
                        cannot stand in a log is replaced.",
    }});
    let header = json!({"RequestId": {
        "description": "The id of the request.", "required": true, "schema": schema,
    }});
    insert(components, "parameters", parameter);
    insert(components, "headers", header);
}

/// Method, path and content of every operation.
fn operations(document: &mut Value) -> Vec<(String, String, &mut Value)> {
    let mut found = Vec::new();
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            found.push((method.clone(), path.clone(), operation));
        }
    }
    found
}

/// The schemas that requests use. The reader of requests is strict; readers of answers must not be.
fn schemas_of_requests(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = Vec::new();
    let items = document.get("paths").and_then(Value::as_object).into_iter().flat_map(Map::values);
    for operation in items.filter_map(Value::as_object).flat_map(Map::values) {
        references(operation.get("requestBody").unwrap_or(&Value::Null), &mut open);
    }
    while let Some(name) = open.pop() {
        if let Some(schema) = document.pointer(&format!("/components/schemas/{name}")) {
            references(schema, &mut open);
        }
        if !found.insert(name) {
            // A circle of requests has no end.
            open.retain(|name| !found.contains(name));
        }
    }
    found
}

/// The names of the schemas that a value refers to.
fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let name = object.get("$ref").and_then(Value::as_str);
            names.extend(name.and_then(|text| text.strip_prefix("#/components/schemas/")).map(str::to_owned));
            object.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn insert(value: &mut Value, name: &str, inner: Value) {
    if let Some(object) = value.as_object_mut() {
        object.insert(name.to_owned(), inner);
    }
}
