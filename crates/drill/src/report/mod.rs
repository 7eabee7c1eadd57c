//! The page: all of what a drill found in one file that loads nothing, reads without a script, in two languages.

mod charts;
mod limits;
mod markup;
mod plot;
mod sections;
#[cfg(test)]
mod tests;
mod words;

use std::fmt::Write as _;

use markup::{both, escaped, thousands, time};

use serde::Serialize;

use crate::boundary::Boundary;
use crate::outcome::Outcome;

const STYLE: &str = include_str!("style.css");

/// One self-contained page of what was found.
#[must_use]
pub fn page(outcomes: &[Outcome]) -> String {
    document(outcomes, |out| runs(out, outcomes))
}

/// The same of a row of loads, with the boundary that they show before them.
#[must_use]
pub fn boundary_page(boundary: &Boundary, outcomes: &[Outcome]) -> String {
    document(&(boundary, outcomes), |out| {
        limits::section(out, boundary);
        runs(out, outcomes);
    })
}

fn document(data: &(impl Serialize + ?Sized), body: impl FnOnce(&mut String)) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>{} / {}</title><style>{STYLE}</style></head><body>\
         <input type=\"radio\" name=\"language\" class=\"chosen\" id=\"en\" checked=\"checked\"/>\
         <input type=\"radio\" name=\"language\" class=\"chosen\" id=\"zh\"/>\
         <div class=\"tongues\" role=\"group\" aria-label=\"{} / {}\"><label for=\"en\" lang=\"en\">English</label>\
         <label for=\"zh\" lang=\"zh-CN\">中文</label></div><main><h1>{}</h1><p>{}</p>",
        words::TITLE.en,
        words::TITLE.zh,
        words::LANGUAGE.en,
        words::LANGUAGE.zh,
        words::TITLE.spans(),
        words::INTRO.spans()
    );
    body(&mut out);
    raw(&mut out, data);
    out.push_str("</main></body></html>\n");
    out
}

fn runs(out: &mut String, outcomes: &[Outcome]) {
    if outcomes.len() != 1 {
        overview(out, outcomes);
    }
    for (place, outcome) in outcomes.iter().enumerate() {
        sections::section(out, &format!("run-{place}"), outcome);
    }
}

/// A line for each outcome.
fn overview(out: &mut String, outcomes: &[Outcome]) {
    let broken = outcomes.iter().filter(|outcome| !outcome.ok).count();
    let _ = write!(
        out,
        "<h2>{}</h2><p class=\"{}\">{}</p>",
        words::OVERVIEW.spans(),
        if broken == 0 { "good" } else { "bad" },
        both(
            &format!("{} runs, {broken} broken", outcomes.len()),
            &format!("共 {} 次演练,{broken} 次有违反", outcomes.len())
        )
    );
    let mut rows = String::new();
    for (place, outcome) in outcomes.iter().enumerate() {
        let worst = outcome.seconds.iter().filter_map(|second| second.p99_us).max();
        let recovered =
            outcome.recovered_after_ms.map_or_else(|| "–".to_owned(), |ms| time(ms.saturating_mul(1_000)));
        let _ = write!(
            rows,
            "<tr><th scope=\"row\"><a href=\"#run-{place}\">{}</a></th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{recovered}</td><td>{}</td><td>{}</td></tr>",
            escaped(&outcome.scenario),
            escaped(&outcome.environment.deployment),
            sections::verdict(outcome.ok),
            thousands(outcome.breaches_count),
            thousands(outcome.generator.due),
            worst.map_or_else(|| "–".to_owned(), time),
            time(outcome.drained_after_ms.saturating_mul(1_000)),
            outcome.parameters.seed
        );
    }
    let heads = [
        words::SCENARIO,
        words::DEPLOYMENT,
        words::VERDICT,
        words::BREACHES,
        words::DUE,
        words::WORST_P99,
        words::RECOVERED,
        words::DRAINED,
        words::SEED,
    ];
    out.push_str(&charts::table(words::OVERVIEW, &heads, &rows));
}

/// All figures, for programs: in an element of the page, and as a link that saves them.
fn raw(out: &mut String, data: &(impl Serialize + ?Sized)) {
    // They are plain data: they always have a JSON form.
    let json = serde_json::to_string(data).unwrap_or_default();
    // Within a script element nothing is unescaped, so nothing in it may end it. These letters stand only in texts.
    let inert = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{fffe}', "\\ufffe"),
        ('\u{ffff}', "\\uffff"),
    ]
    .into_iter()
    .fold(json.clone(), |text, (letter, escape)| text.replace(letter, escape));
    let link = percent_encoding::utf8_percent_encode(&json, percent_encoding::NON_ALPHANUMERIC);
    let _ = write!(
        out,
        "<h2>{}</h2><p><a download=\"holdfast-drill.json\" href=\"data:application/json;charset=utf-8,{link}\">{}</a>. \
         {}</p><script type=\"application/json\" id=\"drill-data\">{inert}</script>",
        words::RAW.spans(),
        words::DOWNLOAD.spans(),
        words::RAW_NOTE.spans()
    );
}
