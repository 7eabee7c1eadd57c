//! What came of it, as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use holdfast_core::audit::Report;
use holdfast_core::invariant::Invariant;
use holdfast_wire::SettlementView;
use serde::Serialize;

use super::tally::Counts;

/// The result; the names are those of the JSON.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) ok: bool,
    url: String,
    database: String,
    campaign_id: String,
    seconds: f64,
    units: u64,
    buyers: u32,
    attempts: u64,
    held: u64,
    repeated: u64,
    sold_out: u64,
    account_limit: u64,
    unanswered: u64,
    hang_ups: u64,
    hang_ups_found: u64,
    orders_held: usize,
    paid_in_time: BTreeMap<String, u64>,
    paid_late: BTreeMap<String, u64>,
    expired: u64,
    sold_orders: usize,
    released_orders: usize,
    stock: Stock,
    ledger_entries: u64,
    invariants: Vec<Judged>,
    breaches: Vec<String>,
    strange: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Stock {
    opening: i64,
    available: u64,
    held: u64,
    sold: u64,
}

#[derive(Debug, Serialize)]
struct Judged {
    code: &'static str,
    name: &'static str,
    breaches: u64,
}

/// What stands beside the counts.
pub(super) struct Facts {
    pub(super) url: String,
    pub(super) database: String,
    pub(super) buyers: u32,
    pub(super) took: Duration,
    pub(super) settlement: SettlementView,
    pub(super) report: Report,
}

impl Outcome {
    /// Puts together what buyers saw and what the rows say.
    pub(super) fn new(counts: Counts, facts: Facts) -> Self {
        let Facts { url, database, buyers, took, settlement, report } = facts;
        let mut breaches = counts.breaches.clone();
        breaches.extend(report.breaches.iter().take(20).map(|breach| {
            let code = breach.invariant.code();
            format!("{code} {}: expected {}, found {}", breach.subject, breach.expected, breach.actual)
        }));
        let units = settlement.units;
        let judged = Invariant::ALL.iter().filter(|invariant| invariant.shown_by_authority());
        Self {
            ok: report.is_clean() && breaches.is_empty(),
            url,
            database,
            campaign_id: settlement.campaign_id,
            seconds: took.as_secs_f64(),
            units: units.supply,
            buyers,
            attempts: counts.answered,
            held: counts.answers_of("held"),
            repeated: counts.answers_of("repeated"),
            sold_out: counts.answers_of("sold_out"),
            account_limit: counts.answers_of("account_limit"),
            unanswered: counts.answers_of("unanswered"),
            hang_ups: counts.hang_ups,
            hang_ups_found: counts.hang_ups_found,
            orders_held: counts.held.len(),
            paid_in_time: counts.paid_in_time,
            paid_late: counts.paid_late,
            expired: counts.expired,
            sold_orders: counts.sold.len(),
            released_orders: counts.released.len(),
            stock: Stock {
                opening: units.opening,
                available: units.available,
                held: units.held,
                sold: units.sold,
            },
            ledger_entries: settlement.ledger_entries,
            invariants: judged
                .map(|invariant| Judged {
                    code: invariant.code(),
                    name: invariant.name(),
                    breaches: report.counts.get(invariant).copied().unwrap_or_default(),
                })
                .collect(),
            breaches,
            strange: counts.strange,
        }
    }

    /// As a table for people.
    pub(super) fn text(&self) -> String {
        let rate = (self.attempts as f64 / self.seconds).round();
        let sum = |counts: &BTreeMap<String, u64>| {
            let parts: Vec<_> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
        };
        let Stock { opening, available, held, sold } = &self.stock;
        let mut rows = vec![
            (
                "attempts",
                format!(
                    "{} by {} buyers in {:.1} s ({rate} a second)",
                    self.attempts, self.buyers, self.seconds
                ),
            ),
            ("  held", self.held.to_string()),
            ("  the same order again", self.repeated.to_string()),
            ("  sold out", self.sold_out.to_string()),
            ("  over the account's limit", self.account_limit.to_string()),
            ("  no answer", self.unanswered.to_string()),
            (
                "hung up before the answer",
                format!("{}; {} had their order when they asked again", self.hang_ups, self.hang_ups_found),
            ),
            ("orders that held stock", self.orders_held.to_string()),
            ("  paid in time", sum(&self.paid_in_time)),
            ("  paid too late", sum(&self.paid_late)),
            ("  never paid, expired", self.expired.to_string()),
            ("orders in the end", format!("{} sold, {} released", self.sold_orders, self.released_orders)),
            ("stock", format!("opened with {opening}: {available} available, {held} held, {sold} sold")),
            ("ledger", format!("{} entries", self.ledger_entries)),
        ];
        rows.retain(|(name, value)| !(name.trim() == "no answer" && value == "0"));
        let mut text = String::new();
        for (name, value) in rows {
            let _ = writeln!(text, "{name:<26} {value}");
        }
        text.push('\n');
        for Judged { code, name, breaches } in &self.invariants {
            let found = if *breaches == 0 { "ok".to_owned() } else { format!("{breaches} BREACHES") };
            let _ = writeln!(text, "{code:<6} {name:<30} {found}");
        }
        for note in &self.breaches {
            let _ = writeln!(text, "BREACH {note}");
        }
        for note in &self.strange {
            let _ = writeln!(text, "not expected: {note}");
        }
        text.trim_end().to_owned()
    }

    /// What can be done with the server that stays up.
    pub(super) fn things_to_try(&self) -> String {
        let Self { url, database, campaign_id, .. } = self;
        [
            format!("listening on {url} until Ctrl-C; try:"),
            format!("  curl '{url}/v1/campaigns/{campaign_id}/settlement'"),
            format!("  curl '{url}/v1/orders?campaign_id={campaign_id}&state=sold&limit=3'"),
            format!("  curl '{url}/v1/orders?campaign_id={campaign_id}&refund_due=true&limit=3'"),
            format!("  holdfast export stock --campaign {campaign_id} --target {url}"),
            format!(
                "  holdfast explain order --campaign {campaign_id} --order-no order-00000 --target {url}"
            ),
            format!("  holdfast verify --database {database}"),
        ]
        .join("\n")
    }
}
