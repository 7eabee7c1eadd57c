//! `metadata`: the client's own JSON object, kept exactly as it was sent.

use std::sync::Arc;

use holdfast_wire::Code;

use super::json::{Json, parse_kept, push_index, push_key};
use super::report::Located;

/// Longest metadata, in bytes as sent.
pub(crate) const METADATA_BYTES_MAX: usize = 8 * 1_024;

/// Checks metadata without changing it. Pointers are below the metadata.
pub(crate) fn check(text: &str) -> Result<Arc<str>, Located> {
    if text.len() > METADATA_BYTES_MAX {
        return Err(Located::new("", Code::InvalidValue, "must have at most 8192 bytes"));
    }
    let json = parse_kept(text)?;
    if !matches!(json, Json::Object(_)) {
        return Err(Located::new("", Code::InvalidValue, "must be an object"));
    }
    match find_nul(&json, &mut String::new()) {
        Some(pointer) => Err(Located::new(pointer, Code::InvalidValue, "must not hold NUL")),
        None => Ok(Arc::from(text)),
    }
}

/// Where a text or key with NUL is. The depth is bounded by the parser.
fn find_nul(json: &Json<'_>, pointer: &mut String) -> Option<String> {
    let length = pointer.len();
    match json {
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Number | Json::NoText | Json::Raw(_) => None,
        Json::String(text) => text.contains('\0').then(|| pointer.clone()),
        Json::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            pointer.truncate(length);
            push_index(pointer, index);
            find_nul(item, pointer)
        }),
        Json::Object(members) => members.iter().find_map(|(key, value)| {
            pointer.truncate(length);
            push_key(pointer, key);
            if key.contains('\0') { Some(pointer.clone()) } else { find_nul(value, pointer) }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> (Code, String) {
        let located = check(text).expect_err("refused");
        (located.fault.code, located.pointer)
    }

    #[test]
    fn metadata_is_kept_as_sent() {
        let text = r#"{ "b" : 1.50, "a":"\u00e9\ud83d\ude00", "n":[1e3,-0,{}]}"#;
        assert_eq!(check(text).as_deref(), Ok(text));
        assert_eq!(check("{}").as_deref(), Ok("{}"));
    }

    #[test]
    fn what_cannot_be_kept_is_refused_where_it_stands() {
        assert_eq!(pointer("[]"), (Code::InvalidValue, String::new()));
        assert_eq!(pointer("\"x\""), (Code::InvalidValue, String::new()));
        assert_eq!(pointer(r#"{"a":[1,"x\u0000"]}"#), (Code::InvalidValue, "/a/1".into()));
        assert_eq!(pointer(r#"{"x":1,"a":{"b\u0000":1}}"#), (Code::InvalidValue, "/a/b\0".into()));
        assert_eq!(pointer(r#"{"a":{"b":"\ud800"}}"#), (Code::InvalidValue, "/a/b".into()));
        assert_eq!(pointer(r#"{"a":{"\udc00":1}}"#), (Code::InvalidValue, "/a".into()));
        assert_eq!(pointer(r#"{"a":{"b":1,"b":2}}"#), (Code::DuplicateField, "/a/b".into()));
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(METADATA_BYTES_MAX));
        assert_eq!(pointer(&long), (Code::InvalidValue, String::new()));
        let deep = format!("{}1{}", r#"{"a":"#.repeat(40), "}".repeat(40));
        assert_eq!(pointer(&deep).0, Code::InvalidValue);
    }
}
