//! What the figures say to somebody who has to choose.

use super::Figures;

/// Below this share a difference is called none: runs differ by as much.
const SAME: f64 = 0.1;

/// Which path to choose, and why.
pub(super) fn of_paths(paths: &[Figures]) -> String {
    // Only what was measured alike is compared: one node, nothing stored before.
    let alike = |of: &&Figures| of.nodes == 1 && of.stored_orders == 0;
    let paths: Vec<&Figures> = paths.iter().filter(alike).collect();
    let mut said = Vec::new();
    let hot = |path: &str| {
        let of_path = paths.iter().filter(|of| of.hot && of.path == path);
        of_path.max_by(|a, b| a.holds_rps.total_cmp(&b.holds_rps))
    };
    if let (Some(batched), Some(direct)) = (hot("batched"), hot("direct")) {
        let times = batched.holds_rps / direct.holds_rps;
        said.push(format!(
            "One hot pool: batched over {} holds {:.0}/s with a p99 of {:.1} ms, {times:.1} times direct over {}; it \
             waits longest at the {}, {:.0} orders share one transaction.",
            buckets(batched.buckets),
            batched.holds_rps,
            batched.p99_ms,
            buckets(direct.buckets),
            batched.queues_at,
            batched.batch_size_mean
        ));
        said.push(if times > 1.0 + SAME {
            "Choose batched, the default.".to_owned()
        } else {
            "The difference is within the spread: stay on batched, the default.".to_owned()
        });
    }
    if let Some(bucket) = more_buckets(&paths) {
        said.push(bucket);
    }
    if let Some((queued, accepted)) = hot("queued").and_then(|of| of.accepted_rps.map(|rps| (of, rps))) {
        said.push(format!(
            "Queued takes in {accepted:.0}/s, decides {:.0}/s, and answers with a place in the queue: choose it where \
             the rush is longer than buyers' connections live, and what is in the queue may wait.",
            queued.holds_rps
        ));
    }
    let even = paths.iter().filter(|of| !of.hot).max_by(|a, b| a.holds_rps.total_cmp(&b.holds_rps));
    if let Some(even) = even {
        said.push(format!(
            "Ordinary traffic over many pools ({:.0}/s here on {}) has no hot row: leave it on batched with one bucket.",
            even.holds_rps, even.path
        ));
    }
    said.join(" ")
}

/// Whether more buckets help on the batched path.
fn more_buckets(paths: &[&Figures]) -> Option<String> {
    let mut batched: Vec<_> = paths.iter().filter(|of| of.hot && of.path == "batched").collect();
    batched.sort_by_key(|of| of.buckets);
    let (one, most) = (batched.first()?, batched.last()?);
    if one.buckets == most.buckets {
        return None;
    }
    let gain = most.holds_rps / one.holds_rps - 1.0;
    Some(if gain > SAME {
        format!(
            "{} instead of {} give {:.0} % more; `holdfast bench buckets` finds the number for this database.",
            capital(&buckets(most.buckets)),
            one.buckets,
            gain * 100.0
        )
    } else {
        format!("More buckets do not help here ({:+.0} %): one bucket is enough.", gain * 100.0)
    })
}

fn buckets(count: u32) -> String {
    if count == 1 { "one bucket".to_owned() } else { format!("{count} buckets") }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
