//! The boundary of a deployment on the page: what it carries, drawn over the loads that were tried.

use std::fmt::Write as _;

use super::charts::{decade, figure_of, legend, table, whole};
use super::markup::{both, escaped, figure, time};
use super::plot::{Axis, Plot};
use super::words;
use crate::boundary::{Boundary, Stair};

/// The section.
pub(super) fn section(out: &mut String, boundary: &Boundary) {
    let _ = write!(out, "<h2>{}</h2>", words::BOUNDARY.spans());
    said(out, boundary);
    if boundary.stairs.is_empty() {
        let _ = write!(out, "<p>{}</p>", words::NOTHING.spans());
        return;
    }
    let stairs = || boundary.stairs.iter().filter(|stair| !stair.is_generator_limit);
    let most = boundary.stairs.iter().map(|stair| stair.offered_rps).fold(1.0, f64::max);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate that was driven")]
    let end = most.ceil() as u64;
    let mut plot = Plot::new(end, "/s", Axis::linear(most), whole);
    plot.line("released", [(0.0, 0.0), (most, most)].into_iter());
    plot.line("held", stairs().map(|stair| (stair.offered_rps, stair.landed_rps)));
    marks(&mut plot, boundary);
    let drawn = plot.finish("boundary-rates", words::BOUNDARY, words::BOUNDARY_DESC);
    let key = legend(&[("released", words::OFFERED), ("held", words::LANDED)]);
    out.push_str(&figure_of(&key, &drawn, &figures(&boundary.stairs)));
    let latencies = || stairs().filter_map(|stair| Some((stair.offered_rps, stair.p99_us?)));
    let mut plot = Plot::new(end, "/s", Axis::log(latencies().map(|(_, micros)| micros)), decade);
    plot.line("p99", latencies().map(|(offered, micros)| (offered, figure(micros))));
    marks(&mut plot, boundary);
    let drawn = plot.finish("boundary-latency", words::BOUNDARY_LATENCY, words::BOUNDARY_LATENCY_DESC);
    let _ = write!(out, "<h3>{}</h3><figure>{drawn}</figure>", words::BOUNDARY_LATENCY.spans());
}

fn marks(plot: &mut Plot, boundary: &Boundary) {
    for (row, (at, text)) in (0..)
        .zip([(boundary.waits_from_rps, words::WAITS_FROM), (boundary.stuck_from_rps, words::STUCK_FROM)])
    {
        if let Some(at) = at {
            plot.mark(at, row, text);
        }
    }
}

/// What is known, and what is not.
fn said(out: &mut String, boundary: &Boundary) {
    let mut sentence = |en: &str, zh: &str| {
        let _ = write!(out, "<p>{}</p>", both(en, zh));
    };
    match (boundary.carries_rps, boundary.waits_from_rps) {
        (Some(carries), Some(waits)) => sentence(
            &format!("It carries {carries:.0} orders a second; at {waits:.0} waiting accumulates."),
            &format!("每秒 {carries:.0} 单承受得住;每秒 {waits:.0} 单时等待开始积累。"),
        ),
        (Some(carries), None) => sentence(
            &format!("It carries {carries:.0} orders a second. {}", words::NOT_REACHED.en),
            &format!("每秒 {carries:.0} 单承受得住。{}", words::NOT_REACHED.zh),
        ),
        (None, Some(_)) => sentence(words::CARRIES_NOTHING.en, words::CARRIES_NOTHING.zh),
        (None, None) => {}
    }
    if let Some(stuck) = boundary.stuck_from_rps {
        sentence(
            &format!("What {stuck:.0} orders a second leave behind takes longer than the load itself."),
            &format!("每秒 {stuck:.0} 单留下的积压,排空时间超过加压时间。"),
        );
    }
    if boundary.ends_at_generator {
        sentence(words::GENERATOR_ENDED.en, words::GENERATOR_ENDED.zh);
    }
}

fn figures(stairs: &[Stair]) -> String {
    let mut rows = String::new();
    for stair in stairs {
        let (class, verdict) = match stair {
            Stair { is_generator_limit: true, .. } => ("note", words::UNKNOWN),
            Stair { is_stuck: true, .. } => ("bad", words::STUCK),
            Stair { accumulates: true, .. } => ("bad", words::ACCUMULATES),
            _ => ("good", words::FITS),
        };
        let hottest = stair.hottest.as_ref().map_or_else(
            || "–".to_owned(),
            |of| format!("{} #{}: {:.0} %", escaped(&of.sku), of.bucket, of.share * 100.0),
        );
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{:.0}</th><td>{:.0}</td><td>{:.1} %</td><td>{}</td><td>{:.0}</td><td>{:.0}</td>\
             <td>{}</td><td>{hottest}</td><td class=\"{class}\">{}</td></tr>",
            stair.offered_rps,
            stair.landed_rps,
            stair.turned_away * 100.0,
            stair.p99_us.map_or_else(|| "–".to_owned(), time),
            stair.waiting_early,
            stair.waiting_late,
            time(stair.drained_after_ms.saturating_mul(1_000)),
            verdict.spans()
        );
    }
    let heads = [
        words::OFFERED,
        words::LANDED,
        words::TURNED_AWAY,
        words::MEDIAN_P99,
        words::WAITS_EARLY,
        words::WAITS_LATE,
        words::DRAIN,
        words::HOTTEST,
        words::VERDICT,
    ];
    table(words::BOUNDARY, &heads, &rows)
}
