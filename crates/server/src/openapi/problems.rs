//! The problems that an operation can answer with, as responses of the document: one a status, its codes
//! in the description and in the schema.

use std::collections::BTreeMap;

use holdfast_wire::{Code, PROBLEM_CONTENT_TYPE};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

/// What any route may say.
pub(crate) const ANY: &[Code] =
    &[Code::NotAcceptable, Code::UnsupportedMediaType, Code::Internal, Code::AuthorityUnavailable];
/// Where a key is needed.
pub(crate) const KEYED: &[Code] = &[Code::Unauthenticated, Code::Forbidden];
/// Where something is named by the path.
pub(crate) const NAMED: &[Code] = &[Code::NotFound];
/// Where the query is read: also where it must be empty.
pub(crate) const QUERY: &[Code] =
    &[Code::UnknownField, Code::DuplicateField, Code::InvalidValue, Code::InvalidIdentifier];
/// Where a body is read and something is written.
pub(crate) const WRITE: &[Code] = &[
    Code::MalformedJson,
    Code::UnknownField,
    Code::DuplicateField,
    Code::InvalidValue,
    Code::InvalidIdentifier,
    Code::RequestTimeout,
    Code::TooLarge,
    Code::Overloaded,
    Code::OutcomeUnknown,
    Code::StorageFull,
    Code::ShuttingDown,
];

/// Names the problems of an operation: an `IntoResponses` for `#[utoipa::path]`.
macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $($group:expr),+;)*) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                utoipa::openapi::RefOr<utoipa::openapi::Response>,
            > {
                $crate::openapi::problems::responses(&[$($group),+])
            }
        }
    )*};
}

pub(crate) use problems;

/// One response a status.
pub(crate) fn responses(groups: &[&[Code]]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    // In the order of the table of codes, whatever the order of the groups.
    for code in Code::ALL {
        if groups.iter().any(|group| group.contains(code)) {
            by_status.entry(code.status()).or_default().push(*code);
        }
    }
    let entry = |(status, codes): (u16, Vec<Code>)| (status.to_string(), response(status, &codes).into());
    by_status.into_iter().map(entry).collect()
}

fn response(status: u16, codes: &[Code]) -> Response {
    let lines: Vec<_> =
        codes.iter().map(|code| format!("- [`{code}`]({}): {}", code.problem_type(), code.title())).collect();
    let words = |values: Vec<serde_json::Value>, of: Type| {
        ObjectBuilder::new().schema_type(of).enum_values(Some(values)).build()
    };
    let these = ObjectBuilder::new()
        .property("status", words(vec![status.into()], Type::Integer))
        .property("code", words(codes.iter().map(|code| code.as_str().into()).collect(), Type::String))
        .build();
    let schema = AllOfBuilder::new().item(Ref::from_schema_name("Problem")).item(these).build();
    let content = ContentBuilder::new().schema(Some(Schema::AllOf(schema))).build();
    let mut response =
        ResponseBuilder::new().description(lines.join("\n")).content(PROBLEM_CONTENT_TYPE, content);
    for (name, of, description) in headers(status) {
        let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(of).build()));
        response = response.header(name, header.description(Some(description)).build());
    }
    response.build()
}

/// What a problem says in its headers.
fn headers(status: u16) -> Vec<(&'static str, Type, &'static str)> {
    match status {
        401 => vec![("WWW-Authenticate", Type::String, "`Bearer`.")],
        409 => vec![("Idempotent-Replayed", Type::String, "`true` if this was answered before.")],
        429 | 503 => vec![("Retry-After", Type::Integer, "Seconds to wait before the next try.")],
        _ => Vec::new(),
    }
}
