//! An outcome for people who read it in a terminal.

use std::collections::BTreeMap;

use holdfast_drill::{InvariantVerdict, Outcome};

/// Most breaches of a kind that are shown; more of them are in the JSON.
const SHOWN_MAX: usize = 5;

/// What came of a run, in lines.
pub(crate) fn text(outcome: &Outcome) -> String {
    let Outcome { scenario, parameters, environment, generator, .. } = outcome;
    let mut lines = vec![format!("{scenario}: {}", if outcome.ok { "clean" } else { "BROKEN" })];
    lines.push(format!(
        "  on {} node(s), {}; seed {}; {} units, {} pool(s) ({}), {} buckets, {:.0} % for the first, {} accounts, {} stored before",
        environment.nodes,
        environment.deployment,
        parameters.seed,
        parameters.stock,
        parameters.pools,
        parameters.path,
        parameters.buckets,
        parameters.hot_share * 100.0,
        parameters.accounts,
        parameters.stored_orders,
    ));
    lines.push(format!(
        "  {} of {} orders sent in {} s, {} exchanges; drained after {} ms{}",
        generator.sent,
        generator.due,
        parameters.seconds,
        outcome.answers.values().sum::<u64>(),
        outcome.drained_after_ms,
        outcome
            .recovered_after_ms
            .map_or_else(String::new, |ms| format!("; orders again {ms} ms after the last fault")),
    ));
    if generator.is_limit {
        lines.push(format!("  the load was itself the limit: {} us late", generator.late_p99_us));
    }
    for window in &outcome.windows {
        lines.push(format!("  {:>6.1} s – {:.1} s {}", window.from, window.to, window.fault));
    }
    let answers: Vec<String> =
        outcome.answers.iter().map(|(label, count)| format!("{label}: {count}")).collect();
    lines.push(format!("  {}", answers.join(", ")));
    lines.extend(outcome.invariants.iter().map(verdict));
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for breach in &outcome.breaches {
        let count = shown.entry(breach.code.as_str()).or_default();
        *count = count.saturating_add(1);
        if *count <= SHOWN_MAX {
            lines.push(format!(
                "  {} {}: expected {}, found {}",
                breach.code, breach.subject, breach.expected, breach.actual
            ));
        }
    }
    if outcome.breaches_count > 0 {
        lines.push(format!(
            "  {} breaches; again with: holdfast drill run {scenario} --seed {} --seconds {} --rate {} …",
            outcome.breaches_count, parameters.seed, parameters.seconds, parameters.orders_a_second
        ));
    }
    lines.join("\n")
}

fn verdict(verdict: &InvariantVerdict) -> String {
    let found = match verdict.breaches {
        Some(0) => "ok".to_owned(),
        Some(count) => format!("{count} BREACHES"),
        None => "nothing that was read shows it".to_owned(),
    };
    format!("  {:<17} {:<44} {found}", verdict.code, verdict.name)
}
