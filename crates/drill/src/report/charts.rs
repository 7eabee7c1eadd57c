//! The charts of one outcome, each with its figures in a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::markup::{escaped, figure, thousands, time};
use super::plot::{Axis, Plot, svg};
use super::words::{self, Text};
use crate::outcome::{BucketFigures, Outcome, Second};

/// Most steps that a chart draws, and most rows of its table: a longer run is drawn in longer steps.
const STEPS_MAX: usize = 400;
const ROWS_MAX: usize = 120;
/// Most bars of a chart; what is left is one bar.
const BARS_MAX: usize = 40;
const BAR: f64 = 22.0;
const BARS_LEFT: f64 = 230.0;
const BARS_RIGHT: f64 = 770.0;

/// Some seconds that are drawn as one step.
struct Group {
    from: u64,
    to: u64,
    due: u64,
    answers: BTreeMap<String, u64>,
    /// The worst of the seconds.
    p50_us: Option<u64>,
    p99_us: Option<u64>,
    max_us: Option<u64>,
    /// At the end of the last of them.
    backlog: u64,
    under_way: u64,
}

impl Group {
    fn a_second(&self, count: u64) -> f64 {
        figure(count) / figure((self.to - self.from).max(1))
    }

    fn of_class(&self, class: &str) -> u64 {
        self.answers.get(class).copied().unwrap_or(0)
    }
}

fn groups(seconds: &[Second], most: usize) -> Vec<Group> {
    let size = seconds.len().div_ceil(most).max(1);
    let groups = seconds.chunks(size).map(|chunk| {
        let mut answers = BTreeMap::new();
        for (class, count) in chunk.iter().flat_map(|second| &second.answers) {
            *answers.entry(class.clone()).or_default() += count;
        }
        let from = chunk.first().map_or(0, |second| second.at);
        Group {
            from,
            to: chunk.last().map_or(from, |second| second.at) + 1,
            due: chunk.iter().map(|second| second.due).sum(),
            answers,
            p50_us: chunk.iter().filter_map(|second| second.p50_us).max(),
            p99_us: chunk.iter().filter_map(|second| second.p99_us).max(),
            max_us: chunk.iter().filter_map(|second| second.max_us).max(),
            backlog: chunk.last().map_or(0, |second| second.backlog),
            under_way: chunk.last().map_or(0, |second| second.under_way),
        }
    });
    groups.collect()
}

fn end(outcome: &Outcome) -> u64 {
    outcome.seconds.last().map_or(1, |second| second.at + 1)
}

/// What was due, and what was answered by class.
pub(super) fn pressure(id: &str, outcome: &Outcome) -> String {
    let groups = groups(&outcome.seconds, STEPS_MAX);
    let stacked = |group: &Group| words::CLASSES.iter().map(|(class, _)| group.of_class(class)).sum::<u64>();
    let most = groups.iter().map(|group| group.a_second(group.due.max(stacked(group)))).fold(1.0, f64::max);
    let mut plot = Plot::new(end(outcome), "s", Axis::linear(most), whole);
    let mut feet = vec![0.0; groups.len()];
    let mut key = Vec::new();
    for (class, text) in words::CLASSES {
        if groups.iter().all(|group| group.of_class(class) == 0) {
            continue;
        }
        let steps: Vec<_> = groups
            .iter()
            .zip(&mut feet)
            .map(|(group, foot)| {
                let low = *foot;
                *foot += group.a_second(group.of_class(class));
                (group.from, group.to, low, *foot)
            })
            .collect();
        plot.area(class, &steps);
        key.push((class, text));
    }
    plot.windows(&outcome.windows);
    let due = groups.iter().map(|group| (group.from, group.to, Some(group.a_second(group.due))));
    plot.trace("due", true, due);
    let drawn = plot.finish(&format!("{id}-pressure"), words::PRESSURE, words::PRESSURE_DESC);
    let heads = std::iter::once(words::DUE).chain(key.iter().map(|(_, text)| *text)).collect::<Vec<_>>();
    let table = by_second(outcome, &heads, |group| {
        let of_classes = key.iter().map(|(class, _)| thousands(group.of_class(class)));
        std::iter::once(thousands(group.due)).chain(of_classes).collect()
    });
    figure_of(&legend(&key), &drawn, &table)
}

/// How long placing took.
pub(super) fn latency(id: &str, outcome: &Outcome) -> String {
    let groups = groups(&outcome.seconds, STEPS_MAX);
    let values = groups.iter().flat_map(|group| [group.p50_us, group.p99_us, group.max_us]).flatten();
    let mut plot = Plot::new(end(outcome), "s", Axis::log(values), decade);
    plot.windows(&outcome.windows);
    type Of = fn(&Group) -> Option<u64>;
    let lines: [(&str, Of); 3] =
        [("max", |group| group.max_us), ("p99", |group| group.p99_us), ("p50", |group| group.p50_us)];
    for (class, of) in lines {
        plot.trace(class, false, groups.iter().map(|group| (group.from, group.to, of(group).map(figure))));
    }
    let drawn = plot.finish(&format!("{id}-latency"), words::LATENCY, words::LATENCY_DESC);
    let heads = ["p50", "p99", "max"].map(|name| Text { en: name, zh: name });
    let key = heads.map(|text| (text.en, text));
    let table = by_second(outcome, &heads, |group| {
        let text = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), time);
        vec![text(group.p50_us), text(group.p99_us), text(group.max_us)]
    });
    figure_of(&legend(&key), &drawn, &table)
}

/// What waited.
pub(super) fn backlog(id: &str, outcome: &Outcome) -> String {
    let groups = groups(&outcome.seconds, STEPS_MAX);
    let most = groups.iter().map(|group| group.backlog.max(group.under_way)).max().unwrap_or(0);
    let mut plot = Plot::new(end(outcome), "s", Axis::linear(figure(most)), whole);
    plot.windows(&outcome.windows);
    plot.trace("queued", false, groups.iter().map(|of| (of.from, of.to, Some(figure(of.backlog)))));
    plot.trace("refused", false, groups.iter().map(|of| (of.from, of.to, Some(figure(of.under_way)))));
    let drawn = plot.finish(&format!("{id}-backlog"), words::BACKLOG, words::BACKLOG_DESC);
    let key = [("queued", words::WAITING), ("refused", words::UNDER_WAY)];
    let table = by_second(outcome, &key.map(|(_, text)| text), |group| {
        vec![thousands(group.backlog), thousands(group.under_way)]
    });
    figure_of(&legend(&key), &drawn, &table)
}

/// How often each answer came.
pub(super) fn outcomes(id: &str, outcome: &Outcome) -> String {
    if outcome.answers.is_empty() {
        return format!("<p>{}</p>", words::NOTHING.spans());
    }
    let mut answers: Vec<(&String, u64)> =
        outcome.answers.iter().map(|(name, count)| (name, *count)).collect();
    answers.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let most = answers.first().map_or(1, |(_, count)| *count).max(2);
    let shown = answers.len().min(BARS_MAX);
    let mut inner = String::new();
    for (row, (name, count)) in (0_u32..).zip(answers.iter().take(BARS_MAX)) {
        let y = name_bar(&mut inner, row, name);
        // One above the count, so that what came once is seen.
        let share = figure(count + 1).ln() / figure(most + 1).ln();
        let width = (BARS_RIGHT - BARS_LEFT) * share;
        bar(&mut inner, BARS_LEFT, y, width, class_of(name));
        end_of_bar(&mut inner, BARS_LEFT + width, y, &thousands(*count));
    }
    let id = format!("{id}-outcomes");
    let drawn = svg(&id, words::OUTCOMES, words::OUTCOMES_DESC, height(shown), &inner);
    let mut rows = String::new();
    for (name, count) in &answers {
        let _ =
            write!(rows, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escaped(name), thousands(*count));
    }
    figure_of("", &drawn, &table(words::OUTCOMES, &[words::ANSWER, words::COUNT], &rows))
}

/// The colour of an answer, by its status.
fn class_of(answer: &str) -> &'static str {
    let status = answer.split(' ').nth(1).unwrap_or_default();
    match status.as_bytes().first() {
        Some(b'2') => "held",
        Some(b'4') => "refused",
        Some(b'5') => "outage",
        _ => "lost",
    }
}

/// Where the units are.
pub(super) fn buckets(id: &str, outcome: &Outcome) -> String {
    if outcome.buckets.is_empty() {
        return format!("<p>{}</p>", words::NOTHING.spans());
    }
    let units = |of: &BucketFigures| of.available + of.held + of.sold;
    let mut drawn: Vec<(String, [u64; 3])> = outcome
        .buckets
        .iter()
        .take(BARS_MAX)
        .map(|of| (format!("{} #{}", of.sku, of.bucket), [of.available, of.held, of.sold]))
        .collect();
    let left = outcome.buckets.get(BARS_MAX..).unwrap_or_default();
    if !left.is_empty() {
        let sum = |of: fn(&BucketFigures) -> u64| left.iter().map(of).sum::<u64>();
        let name = format!("{} / {}", words::OTHER_BUCKETS.en, words::OTHER_BUCKETS.zh);
        drawn.push((name, [sum(|of| of.available), sum(|of| of.held), sum(|of| of.sold)]));
    }
    let most = drawn.iter().map(|(_, parts)| parts.iter().sum::<u64>()).max().unwrap_or(1).max(1);
    let classes = [("released", words::AVAILABLE), ("held", words::HELD_UNITS), ("sold", words::SOLD_UNITS)];
    let mut inner = String::new();
    for (row, (name, parts)) in (0_u32..).zip(&drawn) {
        let y = name_bar(&mut inner, row, name);
        let mut left = BARS_LEFT;
        for ((class, _), part) in classes.iter().zip(parts) {
            let width = (BARS_RIGHT - BARS_LEFT) * figure(*part) / figure(most);
            bar(&mut inner, left, y, width, class);
            left += width;
        }
        end_of_bar(&mut inner, left, y, &thousands(parts.iter().sum()));
    }
    let id = format!("{id}-buckets");
    let drawn = svg(&id, words::BUCKETS, words::BUCKETS_DESC, height(drawn.len()), &inner);
    let mut rows = String::new();
    for of in &outcome.buckets {
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{} #{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&of.sku),
            of.bucket,
            thousands(of.available),
            thousands(of.held),
            thousands(of.sold),
            thousands(units(of))
        );
    }
    let heads = [words::BUCKET, words::AVAILABLE, words::HELD_UNITS, words::SOLD_UNITS, words::STOCK];
    figure_of(&legend(&classes), &drawn, &table(words::BUCKETS, &heads, &rows))
}

/// A decade of microseconds.
pub(super) fn decade(micros: f64) -> String {
    [(1e6, "s"), (1e3, "ms"), (1.0, "µs")]
        .into_iter()
        .find(|(unit, _)| micros >= *unit)
        .map_or_else(String::new, |(unit, name)| format!("{:.0} {name}", micros / unit))
}

pub(super) fn whole(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn height(bars: usize) -> f64 {
    BAR * f64::from(u32::try_from(bars).unwrap_or(u32::MAX)) + 8.0
}

fn name_bar(inner: &mut String, row: u32, name: &str) -> f64 {
    let y = BAR * f64::from(row) + 4.0;
    let _ = write!(inner, "<text x=\"0\" y=\"{:.1}\">{}</text>", y + 12.0, escaped(name));
    y
}

fn bar(inner: &mut String, x: f64, y: f64, width: f64, class: &str) {
    let _ = write!(
        inner,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"15\" style=\"fill:var(--{class})\"/>",
        width.max(0.0)
    );
}

fn end_of_bar(inner: &mut String, x: f64, y: f64, text: &str) {
    let _ = write!(inner, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 6.0, y + 12.0, escaped(text));
}

pub(super) fn legend(key: &[(&str, Text)]) -> String {
    let mut out = String::from("<ul class=\"key\">");
    for (class, text) in key {
        let _ = write!(out, "<li><i style=\"background:var(--{class})\"></i>{}</li>", text.spans());
    }
    out.push_str("</ul>");
    out
}

/// A table with a row a second, or a few seconds.
fn by_second(outcome: &Outcome, heads: &[Text], cells: impl Fn(&Group) -> Vec<String>) -> String {
    let mut rows = String::new();
    for group in groups(&outcome.seconds, ROWS_MAX) {
        let last = group.to - 1;
        let name = if last == group.from { last.to_string() } else { format!("{}–{last}", group.from) };
        let _ = write!(rows, "<tr><th scope=\"row\">{name}</th>");
        for cell in cells(&group) {
            let _ = write!(rows, "<td>{}</td>", escaped(&cell));
        }
        rows.push_str("</tr>");
    }
    let heads: Vec<Text> = std::iter::once(words::SECOND).chain(heads.iter().copied()).collect();
    table(words::FIGURES, &heads, &rows)
}

/// A table of finished rows.
pub(super) fn table(caption: Text, heads: &[Text], rows: &str) -> String {
    let mut out = format!("<div class=\"wide\"><table><caption>{}</caption><thead><tr>", caption.spans());
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{}</th>", head.spans());
    }
    let _ = write!(out, "</tr></thead><tbody>{rows}</tbody></table></div>");
    out
}

pub(super) fn figure_of(legend: &str, drawn: &str, table: &str) -> String {
    let summary = words::FIGURES.spans();
    format!("<figure>{legend}{drawn}<details><summary>{summary}</summary>{table}</details></figure>")
}
