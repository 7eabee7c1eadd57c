//! The result as one page: tables and charts drawn here, nothing loaded from anywhere.

use std::fmt::Write as _;

use super::{Figures, Report};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;\
    color:#1b1f24;background:#fff}h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}\
    table{border-collapse:collapse;width:100%}td,th{padding:.25rem .5rem;text-align:right;\
    border-bottom:1px solid #d8dee4}td:first-child,th:first-child{text-align:left}svg{width:100%;height:auto}\
    .note{color:#59636e}text{font:12px system-ui,sans-serif;fill:currentColor}\
    @media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}td,th{border-color:#30363d}\
    .note{color:#9198a1}}";
/// Where an order waits, and the colour of it.
const WAITS: [(&str, &str); 4] =
    [("entry", "#8250df"), ("lane", "#0969da"), ("lock", "#bf8700"), ("commit", "#1a7f37")];
const NAMES_WIDTH: f64 = 190.0;
const BARS_WIDTH: f64 = 560.0;
/// What stands behind the bars of waits is longer than a number.
const WAITS_WIDTH: f64 = 500.0;
const ROW: f64 = 26.0;

/// The page.
pub(super) fn page(report: &Report) -> String {
    let mut out = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
    let environment = &report.environment;
    let _ = write!(
        out,
        "<title>Holdfast: paths</title><style>{STYLE}</style><h1>Paths side by side</h1><p>{}</p>\
         <p class=\"note\">{}; {}. {} processors, {} connections, {} rounds of {} s that take turns, medians; {}; \
         {}; seed {}.</p>",
        escaped(&report.advice),
        escaped(&environment.store),
        escaped(&environment.durability),
        environment.processors,
        environment.connections,
        environment.rounds,
        environment.seconds_a_round,
        escaped(environment.distribution),
        escaped(environment.limits),
        environment.seed
    );
    let _ = write!(out, "<h2>Holds a second</h2>{}", rates(report));
    let _ = write!(out, "<h2>Where an order waits, mean</h2>{}{}", legend(), waits(&report.paths));
    let _ = write!(out, "<h2>Figures</h2>{}", table(report));
    out.push_str("</html>\n");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn chart(rows: usize, inner: &str) -> String {
    let height = ROW * f64::from(u32::try_from(rows).unwrap_or(u32::MAX)) + 8.0;
    format!("<svg viewBox=\"0 0 860 {height}\" role=\"img\">{inner}</svg>")
}

fn name(inner: &mut String, row: usize, text: &str) -> f64 {
    let top = ROW * f64::from(u32::try_from(row).unwrap_or(u32::MAX)) + 4.0;
    let _ = write!(inner, "<text x=\"0\" y=\"{}\">{}</text>", top + 15.0, escaped(text));
    top
}

fn bar(inner: &mut String, left: f64, top: f64, width: f64, colour: &str, title: &str) {
    let _ = write!(
        inner,
        "<rect x=\"{left:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"18\" fill=\"{colour}\"><title>{}</title></rect>",
        width.max(0.5),
        escaped(title)
    );
}

/// Bars of the rates with their spread, and the ceilings above them.
fn rates(report: &Report) -> String {
    let ceilings = &report.ceilings;
    let bare = [
        ("constant HTTP answer", ceilings.constant_http_rps),
        ("bare inserts", ceilings.bare_insert_rps),
        ("one row, one by one", ceilings.one_row_transaction_tps),
        ("bare transaction an order", ceilings.direct_transaction_tps),
        ("holds at the engine", ceilings.engine_holds_rps),
    ];
    let paths = report.paths.iter().map(|of| (of.name.as_str(), of.holds_rps));
    let most = bare.iter().copied().chain(paths).map(|(_, value)| value).fold(1.0, f64::max);
    let scale = BARS_WIDTH / most;
    let mut inner = String::new();
    for (row, (what, value)) in bare.iter().enumerate() {
        let top = name(&mut inner, row, what);
        bar(&mut inner, NAMES_WIDTH, top, value * scale, "#8c959f", what);
        label(&mut inner, NAMES_WIDTH + value * scale, top, *value);
    }
    for (row, of) in report.paths.iter().enumerate() {
        let top = name(&mut inner, row + bare.len(), &of.name);
        let colour = if of.hot { "#0969da" } else { "#54aeff" };
        bar(&mut inner, NAMES_WIDTH, top, of.holds_rps * scale, colour, &of.name);
        let (low, high) = of.spread.bounds();
        let _ = write!(
            inner,
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"currentColor\"/>",
            NAMES_WIDTH + low * scale,
            NAMES_WIDTH + high * scale,
            y = top + 9.0
        );
        label(&mut inner, NAMES_WIDTH + high.max(of.holds_rps) * scale, top, of.holds_rps);
    }
    chart(bare.len() + report.paths.len(), &inner)
}

fn label(inner: &mut String, left: f64, top: f64, value: f64) {
    let _ = write!(inner, "<text x=\"{:.1}\" y=\"{}\">{value:.0}</text>", left + 6.0, top + 14.0);
}

fn legend() -> String {
    let mut inner = String::new();
    for (place, (what, colour)) in (0_u32..).zip(WAITS) {
        let left = NAMES_WIDTH + f64::from(place) * 110.0;
        bar(&mut inner, left, 4.0, 18.0, colour, what);
        let _ = write!(inner, "<text x=\"{}\" y=\"18\">{what}</text>", left + 24.0);
    }
    chart(1, &inner)
}

/// Stacked bars of the waits.
fn waits(paths: &[Figures]) -> String {
    let parts = |of: &Figures| [of.waits_ms.entry, of.waits_ms.lane, of.waits_ms.lock, of.waits_ms.commit];
    let most = paths.iter().map(|of| parts(of).iter().sum::<f64>()).fold(0.001, f64::max);
    let mut inner = String::new();
    for (row, of) in paths.iter().enumerate() {
        let top = name(&mut inner, row, &of.name);
        let mut left = NAMES_WIDTH;
        for ((what, colour), part) in WAITS.iter().zip(parts(of)) {
            let width = part / most * WAITS_WIDTH;
            bar(&mut inner, left, top, width, colour, &format!("{what}: {part:.2} ms"));
            left += width;
        }
        let _ = write!(
            inner,
            "<text x=\"{:.1}\" y=\"{}\">{:.1} ms, at the {}</text>",
            left + 6.0,
            top + 14.0,
            parts(of).iter().sum::<f64>(),
            of.queues_at
        );
    }
    chart(paths.len(), &inner)
}

fn table(report: &Report) -> String {
    let mut out = String::from(
        "<table><tr><th>path<th>holds/s<th>lowest<th>highest<th>taken in/s<th>p50 ms<th>p99 ms<th>p99.9 ms\
         <th>half load p99 ms<th>lock wait p99 ms<th>batch<th>log bytes a hold<th>restart ms<th>left to do</tr>",
    );
    for of in &report.paths {
        let (low, high) = of.spread.bounds();
        let accepted = of.accepted_rps.map_or_else(String::new, |rps| format!("{rps:.0}"));
        let half = of.half_load_p99_ms.map_or_else(String::new, |ms| format!("{ms:.1}"));
        let log = of.log_bytes.map_or_else(String::new, |bytes| format!("{bytes:.0}"));
        let (restart, left) = of.recovery.map_or_else(Default::default, |recovery| {
            (format!("{:.0}", recovery.restart_ms), format!("{:.0}", recovery.left_orders))
        });
        let _ = write!(
            out,
            "<tr><td>{}<td>{:.0}<td>{low:.0}<td>{high:.0}<td>{accepted}<td>{:.1}<td>{:.1}<td>{:.1}<td>{half}\
             <td>{:.1}<td>{:.1}<td>{log}<td>{restart}<td>{left}</tr>",
            escaped(&of.name),
            of.holds_rps,
            of.p50_ms,
            of.p99_ms,
            of.p999_ms,
            of.lock_wait_p99_ms,
            of.batch_size_mean
        );
    }
    out.push_str("</table>");
    out
}
