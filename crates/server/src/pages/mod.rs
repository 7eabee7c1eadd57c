//! Pages for people, written by the server: no script, nothing from elsewhere.

mod contract;
mod kind;

use std::sync::LazyLock;

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_wire::Code;
use sha2::{Digest, Sha256};

/// The style of every page. It stands in the page, and the policy names its hash.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1,h2,h3,h4{line-height:1.2}\
h3{margin-top:2.5rem;border-top:1px solid #8885;padding-top:1rem}\
code{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}\
td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8883}\
.method{text-transform:uppercase;font-weight:bold}";

/// Such a page needs nothing but itself: a browser may load nothing, run nothing, and show it in no frame.
static POLICY: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).ok()
});

static DOCS: LazyLock<String> = LazyLock::new(|| contract::page(&crate::openapi::document()));

/// The contract.
pub(crate) fn docs() -> &'static str {
    &DOCS
}

/// What to do about a problem.
pub(crate) fn problem(code: Code) -> String {
    kind::page(code)
}

/// What a browser may do with a page.
pub(crate) fn policy() -> Option<HeaderValue> {
    POLICY.clone()
}

/// A page around its content.
fn frame(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\n\
         <body>\n{body}</body></html>\n",
        escaped(title)
    )
}

/// Text that HTML shows as it is.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

/// Text in which `code` stands between backticks.
fn inline(text: &str) -> String {
    let mut html = String::new();
    for (part, is_code) in text.split('`').zip([false, true].into_iter().cycle()) {
        let part = escaped(part);
        if is_code {
            html.push_str(&format!("<code>{part}</code>"));
        } else {
            html.push_str(&part);
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escaped("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        assert_eq!(inline("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
        assert!(frame("<x>", "").contains("<title>&lt;x&gt;</title>"));
    }

    #[test]
    fn pages_name_no_other_host_and_run_nothing() {
        let kinds = Code::ALL.iter().map(|code| problem(*code));
        for page in kinds.chain([docs().to_owned()]) {
            for outside in ["http:", "https:", "src=", "<script", "@import", "url(", " on", "javascript:"] {
                // Prose may say " on"; an attribute would be followed by its value.
                let found = page.match_indices(outside).any(|(at, _)| {
                    outside != " on" || page.get(at..at + 12).is_some_and(|text| text.contains('='))
                });
                assert!(!found, "{outside} in {page}");
            }
        }
    }
}
