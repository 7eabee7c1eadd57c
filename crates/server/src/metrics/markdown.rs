//! `docs/metrics.md`, from the metrics themselves. Only a test writes it.

use std::fmt::Write as _;

use holdfast_metrics::Description;

const HEAD: &str = "# Metrics\n\n\
    Generated from the code by `cargo xtask docs`; do not edit.\n\n\
    `GET /metrics` answers in OpenMetrics text, or in Prometheus text 0.0.4 where the `Accept` header prefers\n\
    `text/plain`. It needs a key of the role `read`, `operator` or `admin` that is not bound to campaigns, because\n\
    names of campaigns and their stock stand in it; with `--auth off`, which serves loopback only, nobody is asked.\n\n\
    ```yaml\n\
    scrape_configs:\n\
    \x20 - job_name: holdfast\n\
    \x20   authorization: { credentials_file: /etc/prometheus/holdfast.key }\n\
    \x20   static_configs: [{ targets: [\"127.0.0.1:8080\"] }]\n\
    ```\n\n\
    A scrape reads what the node has counted and what it has seen; it never asks the authority. Numbers are of one\n\
    node: add them up over nodes, apart from those that say *of all nodes*. Labels come from closed sets. By pool\n\
    only the 20 busiest of the node are shown, the rest is summed under `rest`; whatever is by pool is a gauge,\n\
    because a counter that moved between the shown and the summed would seem to run backwards. To record costs a\n\
    few atomic additions; nothing that decides reads them.\n\n\
    Alert rules on trends are in [`deploy/alerts.yml`](../deploy/alerts.yml), each with what to do; they are tested\n\
    by `promtool`.\n\n\
    | metric | kind | labels | what it says |\n|---|---|---|---|\n";

/// The page.
pub(crate) fn page(metrics: &[Description]) -> String {
    let mut text = HEAD.to_owned();
    for metric in metrics {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels) = (metric.name, metric.kind.as_str(), labels.join(" "));
        let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {} |", metric.help);
    }
    text
}
