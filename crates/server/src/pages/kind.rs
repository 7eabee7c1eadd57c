//! The page of a kind of problem.

use std::fmt::Write as _;

use holdfast_wire::Code;

use super::{escaped, frame, inline};
use crate::guidance::{self, Text};

/// Rows of the table: their names in both languages, and what they say.
fn rows(code: Code) -> [(Text, Text); 5] {
    let guidance = guidance::of(code);
    let name = |en, zh| Text { en, zh };
    [
        (name("What it means", "含义"), guidance.means),
        (name("Is it recorded?", "是否已记录？"), guidance.recorded.text()),
        (name("Try again?", "可以重试吗？"), guidance.retry.text()),
        (name("With which key?", "用哪个键？"), guidance.key.text()),
        (name("Show the buyer", "向买家展示"), guidance.buyer),
    ]
}

/// The page, in English and Chinese.
pub(super) fn page(code: Code) -> String {
    let mut body = format!(
        "<h1><code>{}</code></h1>\n<p>{} · HTTP {}</p>\n",
        escaped(code.as_str()),
        escaped(code.title()),
        code.status()
    );
    for (language, heading, of) in
        [("en", "English", (|text| text.en) as fn(Text) -> &'static str), ("zh", "中文", |text| text.zh)]
    {
        let _ = write!(body, "<section lang=\"{language}\"><h2>{heading}</h2><table>");
        for (name, text) in rows(code) {
            let _ = write!(body, "<tr><th>{}</th><td>{}</td></tr>", inline(of(name)), inline(of(text)));
        }
        body.push_str("</table></section>\n");
    }
    body.push_str("<p><a href=\"/docs\">The contract · 接口文档</a></p>\n");
    frame(&format!("{code}: {}", code.title()), &body)
}
