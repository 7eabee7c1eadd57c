//! A run second by second, from its history.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::order::State;

use crate::history::{Answered, Ask, Exchange};
use crate::outcome::{Second, Window};

const SECOND_NS: u64 = 1_000_000_000;

/// Every second of a run. A request belongs to the second in which its answer came, an order to the one in which it was
/// due.
pub(super) fn seconds(history: &[Exchange]) -> Vec<Second> {
    let last = history.iter().map(|exchange| exchange.ended_ns / SECOND_NS).max();
    let Some(last) = last else { return Vec::new() };
    let mut seconds: Vec<Second> = (0..=last).map(|at| Second { at, ..Second::default() }).collect();
    let mut latencies: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut arrived = BTreeSet::new();
    let mut under_way: BTreeMap<u64, i64> = BTreeMap::new();
    let mut changed = |ns: u64, by: i64| {
        let change = under_way.entry(ns / SECOND_NS).or_default();
        *change = change.saturating_add(by);
    };
    for exchange in history {
        let (due, ended) = (exchange.due_ns / SECOND_NS, exchange.ended_ns / SECOND_NS);
        changed(exchange.sent_ns, 1);
        changed(exchange.ended_ns, -1);
        if exchange.ask == Ask::Place
            && arrived.insert(exchange.buyer)
            && let Some(second) = at(&mut seconds, due)
        {
            second.due = second.due.saturating_add(1);
        }
        if let Some(second) = at(&mut seconds, ended) {
            let count = second.answers.entry(exchange.class().to_owned()).or_default();
            *count = count.saturating_add(1);
        }
        let is_answer = matches!(exchange.answered, Answered::Order(_) | Answered::Refused { .. });
        if exchange.ask == Ask::Place && is_answer {
            let micros = exchange.ended_ns.saturating_sub(exchange.due_ns) / 1_000;
            latencies.entry(ended).or_default().push(micros);
        }
    }
    for (second, mut of_second) in latencies {
        of_second.sort_unstable();
        if let Some(second) = at(&mut seconds, second) {
            second.p50_us = percentile(&of_second, 50);
            second.p99_us = percentile(&of_second, 99);
            second.max_us = of_second.last().copied();
        }
    }
    let backlog = backlog(history);
    let (mut waiting, mut open) = (0_i64, 0_i64);
    for second in &mut seconds {
        waiting = waiting.saturating_add(backlog.get(&second.at).copied().unwrap_or_default());
        open = open.saturating_add(under_way.get(&second.at).copied().unwrap_or_default());
        second.backlog = u64::try_from(waiting).unwrap_or_default();
        second.under_way = u64::try_from(open).unwrap_or_default();
    }
    seconds
}

/// By how much the number of orders that wait changed in each second, as far as their buyers know.
fn backlog(history: &[Exchange]) -> BTreeMap<u64, i64> {
    let mut since: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    let mut order: Vec<&Exchange> = history.iter().collect();
    order.sort_by_key(|exchange| exchange.ended_ns);
    for exchange in order {
        let is_queued = match &exchange.answered {
            Answered::Order(told) => told.state == State::Queued,
            Answered::Refused { status: 409, .. } => false,
            Answered::Refused { .. }
            | Answered::Lost { .. }
            | Answered::HungUp
            | Answered::Nonsense { .. } => continue,
        };
        let waits = since.entry(exchange.buyer).or_insert(None);
        let by = match (waits.is_some(), is_queued) {
            (false, true) => 1,
            (true, false) => -1,
            (true, true) | (false, false) => continue,
        };
        *waits = is_queued.then_some(exchange.ended_ns);
        let change = changes.entry(exchange.ended_ns / SECOND_NS).or_default();
        *change = change.saturating_add(by);
    }
    changes
}

fn at(seconds: &mut [Second], second: u64) -> Option<&mut Second> {
    seconds.get_mut(usize::try_from(second).ok()?)
}

/// A value of a sorted list.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = sorted.len().saturating_mul(percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied()
}

/// How long after the last fault's end the first order was placed, in milliseconds; none without a fault.
pub(super) fn recovered_after_ms(history: &[Exchange], windows: &[Window]) -> Option<u64> {
    let end = windows.iter().map(|window| window.to).max_by(f64::total_cmp)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a moment of a run")]
    let end_ns = (end * 1e9) as u64;
    history
        .iter()
        .filter(|exchange| exchange.ask == Ask::Place && exchange.ended_ns >= end_ns)
        .filter(|exchange| exchange.told().is_some_and(|told| matches!(told.status, 201 | 202)))
        .map(|exchange| exchange.ended_ns.saturating_sub(end_ns) / 1_000_000)
        .min()
}
