//! One outcome on the page: the verdict first, then what it rests on.

use std::fmt::Write as _;

use super::markup::{escaped, thousands, time};
use super::words::{self, Text};
use super::{charts, markup};
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// Most breaches on the page; the JSON has more.
const BREACHES_SHOWN_MAX: usize = 200;

/// Whether all held, in a word that does not need its colour.
pub(super) fn verdict(ok: bool) -> String {
    let (class, text) = if ok { ("good", words::CLEAN) } else { ("bad", words::BROKEN) };
    format!("<span class=\"{class}\">{}</span>", text.spans())
}

/// The section of an outcome.
pub(super) fn section(out: &mut String, id: &str, outcome: &Outcome) {
    let _ = write!(
        out,
        "<section id=\"{id}\"><h2>{}: {} {}</h2>",
        escaped(&outcome.scenario),
        escaped(&outcome.environment.deployment),
        verdict(outcome.ok)
    );
    if let Some(scenario) = Scenario::named(&outcome.scenario) {
        let _ = write!(out, "<p>{}</p>", markup::both(scenario.goal, scenario.goal_zh));
    }
    summary(out, outcome);
    invariants(out, outcome);
    breaches(out, outcome);
    windows(out, outcome);
    type Chart = fn(&str, &Outcome) -> String;
    let drawn: [(Text, Chart); 5] = [
        (words::PRESSURE, charts::pressure),
        (words::LATENCY, charts::latency),
        (words::BACKLOG, charts::backlog),
        (words::OUTCOMES, charts::outcomes),
        (words::BUCKETS, charts::buckets),
    ];
    for (title, chart) in drawn {
        let _ = write!(out, "<h3>{}</h3>{}", title.spans(), chart(id, outcome));
    }
    conditions(out, outcome);
    let _ = write!(
        out,
        "<h3>{}</h3><pre><code>{}</code></pre></section>",
        words::REPEAT.spans(),
        escaped(&repeat(outcome))
    );
}

fn summary(out: &mut String, outcome: &Outcome) {
    out.push_str("<dl>");
    let recovered = match outcome.recovered_after_ms {
        Some(ms) => time(ms.saturating_mul(1_000)),
        None => "–".to_owned(),
    };
    row(out, words::RECOVERED, &recovered);
    row(out, words::DRAINED, &time(outcome.drained_after_ms.saturating_mul(1_000)));
    let worst = outcome.seconds.iter().filter_map(|second| second.p99_us).max();
    row(out, words::WORST_P99, &worst.map_or_else(|| "–".to_owned(), time));
    row(out, words::SEED, &outcome.parameters.seed.to_string());
    let generator = &outcome.generator;
    let kept = markup::both(
        &format!(
            "{} of {} orders sent, 99 % at most {} late",
            thousands(generator.sent),
            thousands(generator.due),
            time(generator.late_p99_us)
        ),
        &format!(
            "到期 {} 单,发出 {} 单,99% 迟发不超过 {}",
            thousands(generator.due),
            thousands(generator.sent),
            time(generator.late_p99_us)
        ),
    );
    let limit = if generator.is_limit {
        format!(" <strong class=\"bad\">{}</strong>", words::IS_LIMIT.spans())
    } else {
        String::new()
    };
    let _ = write!(out, "<dt>{}</dt><dd>{kept}{limit}</dd></dl>", words::GENERATOR.spans());
}

fn invariants(out: &mut String, outcome: &Outcome) {
    let mut rows = String::new();
    for of in &outcome.invariants {
        let name = words::judged(&of.code).map_or_else(|| escaped(&of.name), Text::spans);
        let verdict = match of.breaches {
            Some(0) => format!("<span class=\"good\">{}</span>", words::HOLDS.spans()),
            Some(breaches) => {
                format!("<span class=\"bad\">✘ {} {}</span>", thousands(breaches), words::BREACHES.spans())
            }
            None => format!("<span class=\"note\">{}</span>", words::NOT_SHOWN.spans()),
        };
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{name}</td><td>{verdict}</td></tr>",
            escaped(&of.code)
        );
    }
    let heads = [words::CODE, words::INVARIANT, words::VERDICT];
    let table = charts::table(words::INVARIANTS, &heads, &rows);
    let _ = write!(out, "<h3>{}</h3><div class=\"words\">{table}</div>", words::INVARIANTS.spans());
}

fn breaches(out: &mut String, outcome: &Outcome) {
    let _ = write!(out, "<h3>{}: {}</h3>", words::BREACHES_TITLE.spans(), thousands(outcome.breaches_count));
    if outcome.breaches.is_empty() {
        if outcome.breaches_count == 0 {
            let _ = write!(out, "<p>{}</p>", words::NO_BREACHES.spans());
        }
        return;
    }
    let mut rows = String::new();
    for breach in outcome.breaches.iter().take(BREACHES_SHOWN_MAX) {
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&breach.code),
            escaped(&breach.subject),
            escaped(&breach.expected),
            escaped(&breach.actual)
        );
    }
    let heads = [words::CODE, words::SUBJECT, words::EXPECTED, words::ACTUAL];
    let table = charts::table(words::BREACHES_TITLE, &heads, &rows);
    let _ = write!(out, "<div class=\"words\">{table}</div>");
}

fn windows(out: &mut String, outcome: &Outcome) {
    let _ = write!(out, "<h3>{}</h3>", words::WINDOWS.spans());
    if outcome.windows.is_empty() {
        let _ = write!(out, "<p>{}</p>", words::NO_FAULTS.spans());
        return;
    }
    let mut rows = String::new();
    for window in &outcome.windows {
        let name = words::fault(&window.fault).map_or_else(|| escaped(&window.fault), Text::spans);
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{name}</th><td>{:.1} s</td><td>{:.1} s</td></tr>",
            window.from, window.to
        );
    }
    out.push_str(&charts::table(words::WINDOWS, &[words::FAULT, words::FROM, words::TO], &rows));
}

fn conditions(out: &mut String, outcome: &Outcome) {
    let (environment, parameters) = (&outcome.environment, &outcome.parameters);
    let whether = |is: bool| if is { words::YES } else { words::NO };
    let _ = write!(out, "<h3>{}</h3><dl>", words::CONDITIONS.spans());
    row(out, words::BEGAN_AT, &outcome.began_at);
    row(out, words::DEPLOYMENT, &environment.deployment);
    row(out, words::NODES, &environment.nodes.to_string());
    let _ =
        write!(out, "<dt>{}</dt><dd>{}</dd>", words::PRIVATE.spans(), whether(environment.private).spans());
    row(out, words::VERSION, &environment.version);
    row(out, words::PROCESSORS, &environment.processors.to_string());
    row(out, words::LOAD_SECONDS, &parameters.seconds.to_string());
    row(out, words::RATE, &parameters.orders_a_second.to_string());
    row(out, words::CONNECTIONS, &thousands(u64::try_from(parameters.connections).unwrap_or(u64::MAX)));
    row(out, words::PROCESSES, &parameters.processes.to_string());
    row(out, words::PATH, &parameters.path);
    row(out, words::POOLS, &thousands(parameters.pools.into()));
    row(out, words::BUCKETS_EACH, &parameters.buckets.to_string());
    row(out, words::STOCK, &thousands(parameters.stock));
    row(out, words::HOT_SHARE, &format!("{:.0} %", parameters.hot_share * 100.0));
    row(out, words::ACCOUNTS, &thousands(parameters.accounts));
    let limit = parameters.account_limit.map_or_else(|| words::NONE.spans(), thousands);
    let _ = write!(out, "<dt>{}</dt><dd>{limit}</dd>", words::ACCOUNT_LIMIT.spans());
    row(out, words::HOLD_SECONDS, &thousands(parameters.hold_seconds));
    row(out, words::STORED_ORDERS, &thousands(parameters.stored_orders));
    out.push_str("</dl>");
}

fn row(out: &mut String, name: Text, value: &str) {
    let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", name.spans(), escaped(value));
}

/// The command that does the same again.
fn repeat(outcome: &Outcome) -> String {
    let (environment, parameters) = (&outcome.environment, &outcome.parameters);
    let place = if environment.private {
        format!("--private {}", environment.deployment)
    } else {
        "--target URL".to_owned()
    };
    format!(
        "holdfast drill run {} {place} --seed {} --seconds {} --rate {}",
        outcome.scenario, parameters.seed, parameters.seconds, parameters.orders_a_second
    )
}
