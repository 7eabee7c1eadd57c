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

#[cfg(test)]
mod tests {
    use holdfast_wire::Code;
    use uuid::Uuid;

    use super::*;
    use crate::history::Told;

    const MS: u64 = 1_000_000;

    fn told(status: u16, state: State) -> Answered {
        Answered::Order(Told {
            status,
            code: None,
            id: Uuid::from_u128(1),
            state,
            version: 1,
            disposition: None,
            ticketed: false,
            retry_after: false,
            replayed: false,
        })
    }

    fn exchange(buyer: u64, ask: Ask, [due, sent, ended]: [u64; 3], answered: Answered) -> Exchange {
        let (due_ns, sent_ns, ended_ns) = (due * MS, sent * MS, ended * MS);
        Exchange { buyer, node: 0, ask, about: None, due_ns, sent_ns, ended_ns, answered }
    }

    #[test]
    fn seconds_say_what_was_due_answered_waiting_and_under_way() {
        let history = [
            exchange(1, Ask::Place, [100, 150, 300], told(201, State::Held)),
            exchange(2, Ask::Place, [200, 200, 400], told(202, State::Queued)),
            exchange(2, Ask::Look, [400, 400, 2_100], told(200, State::Held)),
            exchange(3, Ask::Place, [900, 900, 1_900], Answered::Lost { never_sent: false }),
            exchange(3, Ask::Place, [1_950, 1_950, 1_990], told(201, State::Held)),
        ];
        let seconds = seconds(&history);
        let figures: Vec<_> = seconds.iter().map(|s| (s.due, s.backlog, s.under_way)).collect();
        assert_eq!(figures, [(3, 1, 2), (0, 1, 1), (0, 0, 0)]);
        // From when it was due, not from when it was sent; and what has no answer has no latency.
        assert_eq!((seconds[0].p50_us, seconds[0].max_us), (Some(200_000), Some(200_000)));
        assert_eq!(seconds[1].max_us, Some(40_000));
        assert_eq!(seconds[1].answers.get("lost"), Some(&1));
        assert_eq!((seconds[0].answers.get("queued"), seconds[2].answers.get("held")), (Some(&1), Some(&1)));
    }

    #[test]
    fn what_was_lost_with_a_cache_waits_no_more() {
        let lost = Answered::Refused {
            status: 409,
            code: Code::AdmissionLost,
            recorded: Some(false),
            retry_after: false,
        };
        let history = [
            exchange(1, Ask::Place, [0, 0, 10], told(202, State::Queued)),
            exchange(1, Ask::Look, [20, 20, 1_500], lost),
        ];
        assert_eq!(seconds(&history).iter().map(|second| second.backlog).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn recovery_counts_from_the_end_of_the_last_fault() {
        let window = |from, to| Window { fault: "kill-node".to_owned(), from, to };
        let history = [
            exchange(1, Ask::Place, [0, 0, 1_500], told(201, State::Held)),
            exchange(2, Ask::Look, [0, 0, 2_100], told(200, State::Held)),
            exchange(3, Ask::Place, [0, 0, 2_250], told(202, State::Queued)),
        ];
        assert_eq!(recovered_after_ms(&history, &[window(0.5, 1.0), window(1.2, 2.0)]), Some(250));
        assert_eq!(recovered_after_ms(&history, &[]), None);
        assert!(seconds(&[]).is_empty());
    }
}
