//! Whether those who were told that something is sold out were told the truth: at that time, as far as the clocks of
//! both sides can be compared, else at any time.

use std::collections::{BTreeMap, HashMap};

use holdfast_wire::Code;
use uuid::Uuid;

use super::Case;
use super::facts::{Bucket, Facts};
use super::findings::{Check, Findings};
use super::ledger::Life;
use crate::history::{Answered, Ask, Exchange};

/// How old the knowledge may be by which an order is turned away at the entry.
const HINT_MS_MAX: i64 = 2_000;

/// How exactly the clocks must be known against each other to say anything of a moment.
const CLOCKS_MS_MAX: i64 = 500;

/// How far the clocks of processes that share a load may be apart.
const SHARED_CLOCKS_MS_MAX: i64 = 50;

/// The least that a pool may have had, from each moment on.
struct Levels(Vec<(i64, i64)>);

impl Levels {
    /// Of a pool, by its ledger. Entries of one millisecond may have been written in any order across buckets: the least
    /// that any order gives counts.
    fn of(facts: &Facts, pool: u16) -> Self {
        let mut changes: Vec<(i64, Bucket, u64, i64)> = facts
            .entries
            .iter()
            .filter(|entry| entry.bucket.pool == pool)
            .map(|entry| (entry.at_ms, entry.bucket, entry.seq, entry.change.available))
            .collect();
        changes.sort_unstable();
        let mut levels = Vec::new();
        let mut now: BTreeMap<Bucket, i64> = BTreeMap::new();
        for moment in changes.chunk_by(|one, next| one.0 == next.0) {
            let mut least = now.clone();
            for (_, bucket, _, change) in moment {
                let level = now.entry(*bucket).or_default();
                *level = level.saturating_add(*change);
                let low = least.entry(*bucket).or_insert(*level);
                *low = (*low).min(*level);
            }
            if let Some((at, ..)) = moment.first() {
                // The first moment is the opening, before which nobody could ask.
                let sums = if levels.is_empty() { &now } else { &least };
                levels.push((*at, sums.values().sum()));
                levels.push((at.saturating_add(1), now.values().sum()));
            }
        }
        Self(levels)
    }

    /// The least that it can ever have had, whatever the clock said when.
    fn ever(facts: &Facts, pool: u16) -> i64 {
        let mut least: BTreeMap<Bucket, (i64, Option<i64>)> = BTreeMap::new();
        for entry in facts.entries.iter().filter(|entry| entry.bucket.pool == pool) {
            let (level, low) = least.entry(entry.bucket).or_default();
            *level = level.saturating_add(entry.change.available);
            *low = Some(low.map_or(*level, |low| low.min(*level)));
        }
        least.values().filter_map(|(_, low)| *low).sum()
    }

    /// The least between two moments.
    fn least(&self, from: i64, to: i64) -> Option<i64> {
        let begin = self.0.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        self.0.iter().skip(begin).take_while(|(at, _)| *at <= to).map(|(_, units)| *units).min()
    }
}

/// Judges all who were told that there is too little.
pub(super) fn judge(
    case: &Case<'_>,
    rows: &HashMap<u64, &super::facts::OrderFact>,
    lives: &HashMap<Uuid, Life>,
    findings: &mut Findings,
) {
    findings.looks_at(&[Check::Enough]);
    let clocks = Clocks::compare(case, rows, lives);
    let levels: Vec<(Levels, i64)> = (0_u16..)
        .zip(&case.facts.pools)
        .map(|(pool, _)| (Levels::of(case.facts, pool), Levels::ever(case.facts, pool)))
        .collect();
    let pools: BTreeMap<&str, usize> =
        case.facts.pools.iter().enumerate().map(|(at, pool)| (pool.sku.as_str(), at)).collect();
    for exchange in case.history.iter().filter(|exchange| says_sold_out(exchange)) {
        let intent = case.sale.intent(exchange.buyer);
        let Some(good) = case.sale.goods.get(intent.good) else { continue };
        let Some((levels, ever)) = pools.get(good.sku.as_str()).and_then(|at| levels.get(*at)) else {
            continue;
        };
        // A cache may be behind what comes back, and what it accepted and lost is in no ledger.
        if good.path == "cached" {
            continue;
        }
        // A queued order was refused when it landed, not when that was asked.
        let at_that_time =
            clocks.as_ref().filter(|_| good.path != "queued").map(|clocks| clocks.window(exchange));
        let least = at_that_time.map_or(Some(*ever), |(from, to)| levels.least(from, to));
        let Some(least) = least else { continue };
        if least >= i64::from(intent.quantity) {
            let actual = format!("told sold out, while there were at least {least}");
            let subject = case.sale.order_no(exchange.buyer);
            findings.breach(Check::Enough, subject, format!("{} of {}", intent.quantity, good.sku), actual);
        }
    }
}

fn says_sold_out(exchange: &Exchange) -> bool {
    // A repeat says what was found the first time, whatever there is now.
    exchange.ask == Ask::Place
        && match &exchange.answered {
            Answered::Order(told) => told.code == Some(Code::SoldOut) && !told.replayed,
            Answered::Refused { code, .. } => *code == Code::SoldOut,
            Answered::Lost { .. } | Answered::HungUp | Answered::Nonsense { .. } => false,
        }
}

/// By how many milliseconds the authority's clock is ahead of the load's, at least and at most.
struct Clocks {
    least: i64,
    most: i64,
}

impl Clocks {
    /// Compares them by orders of which both sides know when they were placed. None if they moved against each other.
    fn compare(
        case: &Case<'_>,
        rows: &HashMap<u64, &super::facts::OrderFact>,
        lives: &HashMap<Uuid, Life>,
    ) -> Option<Self> {
        let (mut least, mut most) = (i64::MIN, i64::MAX);
        for exchange in case.history {
            let placed = exchange.told().filter(|told| {
                exchange.ask == Ask::Place && told.status == 201 && told.version == 1 && !told.replayed
            });
            // Two who ask at once share an answer: it may be older than the second.
            if placed.is_none() || case.sale.intent(exchange.buyer).at_once {
                continue;
            }
            let at = rows.get(&exchange.buyer).and_then(|row| lives.get(&row.id)?.first_at_ms);
            let Some(at) = at else { continue };
            least = least.max(at.saturating_sub(ms(exchange.ended_ns)));
            most = most.min(at.saturating_add(1).saturating_sub(ms(exchange.sent_ns)));
        }
        if least == i64::MIN {
            return None;
        }
        // Processes that share a load begin their clocks within a few milliseconds of each other.
        let off = least.saturating_sub(most);
        let is_exact = (-CLOCKS_MS_MAX..=SHARED_CLOCKS_MS_MAX).contains(&off);
        is_exact.then_some(Self { least: least.min(most), most: most.max(least) })
    }

    /// When, by the authority's clock, what an answer says must have been so.
    fn window(&self, exchange: &Exchange) -> (i64, i64) {
        let from = ms(exchange.sent_ns).saturating_add(self.least).saturating_sub(HINT_MS_MAX);
        (from, ms(exchange.ended_ns).saturating_add(self.most).saturating_add(1))
    }
}

fn ms(ns: u64) -> i64 {
    i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX)
}
