//! Requests about keys.

use std::sync::Arc;

use holdfast_core::id::CampaignId;
use holdfast_core::time::Timestamp;
use holdfast_store::{Role, SCOPE_CAMPAIGNS_MAX, Scope};
use holdfast_wire::Code;

use super::field::{id, text, word};
use super::reader::Object;
use super::time::instant;

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 100;

/// A key to make, as it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyInput {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) scope: Scope,
    pub(crate) expires_at: Option<Timestamp>,
}

/// Reads a key to make.
pub(crate) fn read_key(now: Timestamp, body: &mut Object<'_, '_>) -> Option<KeyInput> {
    let name = body.required("name", text(NAME_CHARS_MAX));
    let role = body.required("role", word(Role::parse));
    let campaigns =
        body.optional_array("campaigns", 1..=SCOPE_CAMPAIGNS_MAX, |item| item.field(id::<CampaignId>()));
    let expires_at = body.optional("expires_at", instant());
    if role == Some(Role::Admin) && body.has("campaigns") {
        // It could make itself a key without this bound.
        body.refuse("campaigns", Code::InvalidValue, "a key of the role admin is for all campaigns");
    }
    if expires_at.flatten().is_some_and(|end| end <= now) {
        body.refuse("expires_at", Code::InvalidTime, "must be in the future");
    }
    let only = |campaigns: Vec<CampaignId>| Scope::Only(Arc::new(campaigns.into_iter().collect()));
    Some(KeyInput {
        name: name?.to_string(),
        role: role?,
        scope: campaigns?.map_or(Scope::All, only),
        expires_at: expires_at?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::read;

    fn key(text: &str) -> Result<KeyInput, Vec<(String, String)>> {
        read(text.as_bytes(), |body| read_key(Timestamp(0), body)).map_err(|problem| problem.pointers())
    }

    #[test]
    fn a_key_is_for_all_campaigns_or_for_those_that_are_named() {
        let all = key(r#"{"name":"shop","role":"buyer"}"#).expect("read");
        assert_eq!((all.role, all.scope, all.expires_at), (Role::Buyer, Scope::All, None));
        let some = key(r#"{"name":"shop","role":"read","campaigns":["b","a","b"]}"#).expect("read");
        let names: Vec<_> = some.scope.campaigns().expect("a scope").iter().map(CampaignId::as_str).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn what_would_open_too_much_or_nothing_is_refused() {
        for (fields, pointer, code) in [
            (r#""role":"buyer","campaigns":[]"#, "/campaigns", "invalid_value"),
            (r#""role":"buyer","campaigns":["a"," b"]"#, "/campaigns/1", "invalid_identifier"),
            (r#""role":"admin","campaigns":["a"]"#, "/campaigns", "invalid_value"),
            (r#""role":"boss""#, "/role", "invalid_value"),
            (r#""role":"read","expires_at":"1970-01-01T00:00:00Z""#, "/expires_at", "invalid_time"),
            (r#""role":"read","secret":"x""#, "/secret", "unknown_field"),
        ] {
            let body = format!(r#"{{"name":"n",{fields}}}"#);
            assert_eq!(key(&body), Err(vec![(pointer.to_owned(), code.to_owned())]), "{fields}");
        }
    }
}
