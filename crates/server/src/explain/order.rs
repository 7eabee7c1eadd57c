//! The chain of an order.

use std::collections::BTreeMap;

use holdfast_core::cache::LandingKey;
use holdfast_core::ledger::Entry;
use holdfast_core::order::{Order, Payment, State};
use holdfast_core::snapshot::PaymentClaim;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_store::{DeliveryOf, DeliveryState, OrderEvidence};
use holdfast_wire::{DeliveryView, OrderExplanationView, OrderUnitsView, PositionView, StepView};

use super::left_off;
use super::steps::{Steps, step};
use crate::view;

/// How an order came to the authority.
#[derive(Clone, Copy)]
enum CameBy {
    Lane,
    Queue(BucketKey),
    Cache(LandingKey),
}

impl CameBy {
    fn of(order: &Order, entries: &[Entry]) -> Self {
        let landed = entries.iter().find_map(|entry| LandingKey::of_source(entry.bucket, &entry.source));
        if let Some(key) = landed {
            return Self::Cache(key);
        }
        let was_queued =
            order.state == State::Queued || entries.iter().any(|e| e.from_state == Some(State::Queued));
        order.home.filter(|_| was_queued).map_or(Self::Lane, Self::Queue)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Lane => "lane",
            Self::Queue(_) => "queue",
            Self::Cache(_) => "cache",
        }
    }
}

/// An order with everything that is known of it.
pub fn order(evidence: &OrderEvidence) -> OrderExplanationView {
    let OrderEvidence { order, entries, claims, cache, deliveries, cases, approvals, acts } = evidence;
    let mut ledger: Vec<&Entry> = entries.0.iter().collect();
    ledger.sort_by_key(|entry| (entry.at, entry.bucket, entry.seq));
    let came_by = CameBy::of(order, &entries.0);
    let mut steps = Steps::default();
    requested(&mut steps, order);
    match came_by {
        CameBy::Lane => {}
        CameBy::Queue(home) => {
            let text = format!("taken into the queue of bucket {} of pool {}", home.number, home.pool);
            steps.add(order.created_at, step("queue", text + "; nothing is held yet"));
        }
        CameBy::Cache(key) => accepted(&mut steps, key, cache.as_ref()),
    }
    for attempt in &order.attempts {
        let stands = if attempt.open { "its outcome is open" } else { "it is over" };
        let text = format!("payment {} begun with {}; {stands}", attempt.attempt_id, attempt.provider);
        steps.add(attempt.started_at, step("attempt", text));
    }
    order.payments.iter().for_each(|payment| told(&mut steps, order, payment, claims));
    ledger.iter().for_each(|entry| steps.entry(entry, false, ""));
    if let Some(due) = &order.refund_due {
        let ids: Vec<_> = due.payments.iter().map(|(provider, id)| format!("{id} of {provider}")).collect();
        let text = format!("money must go back: {}", ids.join(", "));
        steps.add(due.since, step("refund_due", text));
    }
    steps.approvals(&approvals.0);
    steps.acts(&acts.0);
    steps.cases(&cases.0);
    OrderExplanationView {
        order: view::order(order),
        came_by: came_by.word().into(),
        units: units(&entries.0),
        timeline: steps.finish(),
        deliveries: deliveries.iter().map(delivery).collect(),
        ledger: ledger.into_iter().map(view::entry).collect(),
        left_off: left_off([
            ("ledger", entries.1),
            ("cases", cases.1),
            ("approvals", approvals.1),
            ("acts", acts.1),
        ]),
    }
}

/// An order that only a cache has: accepted, and not yet landed.
pub(crate) fn waiting(order: &Order) -> OrderExplanationView {
    let mut steps = Steps::default();
    requested(&mut steps, order);
    let at = order.home.map(|home| format!(" by the cache of bucket {} of pool {}", home.number, home.pool));
    let text = format!("accepted{}; it has not landed, and nothing is held", at.unwrap_or_default());
    steps.add(order.created_at, step("cache", text));
    OrderExplanationView {
        order: view::order(order),
        came_by: "cache".into(),
        units: Vec::new(),
        timeline: steps.finish(),
        deliveries: Vec::new(),
        ledger: Vec::new(),
        left_off: Vec::new(),
    }
}

/// What was asked for. A refusal that is kept for the key has no entry that would tell it.
fn requested(steps: &mut Steps, order: &Order) {
    let lines = order.lines.iter().map(|line| format!("{} × {}", line.placed_quantity, line.sku));
    let mut text = format!("placed: {}", lines.collect::<Vec<_>>().join(", "));
    if order.state == State::Failed && order.home.is_none() {
        text += &format!("; refused at once: {}", order.reason.map_or("failed", |reason| reason.as_str()));
    }
    if let Some(short) = &order.shortage {
        text += &format!("; line {} asked for {} of {}", short.line, short.requested, short.available);
    }
    let actor = Some(order.account.to_string());
    steps.add(order.created_at, StepView { actor, ..step("request", text) });
}

fn accepted(steps: &mut Steps, key: LandingKey, cache: Option<&holdfast_core::cache::CacheBucket>) {
    let LandingKey { bucket, epoch, entry } = key;
    let mut text = format!(
        "accepted by the cache of bucket {} of pool {}: epoch {epoch}, entry {entry}",
        bucket.number, bucket.pool
    );
    if let Some(row) = cache.filter(|row| row.key == bucket) {
        text += &format!("; the cache is in epoch {} now, {}", row.epoch, row.state.as_str());
    }
    let micros = i64::try_from(entry.millis.saturating_mul(1_000)).unwrap_or(i64::MAX);
    steps.add(Timestamp(micros), step("cache", text));
}

/// What a provider said.
fn told(steps: &mut Steps, order: &Order, payment: &Payment, claims: &[PaymentClaim]) {
    let notice = &payment.notice;
    let mut text = format!("payment {} {}", notice.payment_id, notice.outcome.as_str());
    if let (Some(amount), Some(currency)) = (notice.amount_minor, &notice.currency) {
        text += &format!(", {amount} {currency} (minor units)");
    }
    if let Some(paid) = notice.paid_at {
        text += &format!(", paid {}", view::time(paid));
    }
    text += &format!(
        ": {} (event {}, met version {})",
        payment.disposition.as_str(),
        notice.event_id,
        payment.order_version
    );
    let claim = claims.iter().find(|c| c.provider == notice.provider && c.payment_id == notice.payment_id);
    if let Some(claim) = claim.filter(|claim| claim.order != order.id) {
        text += &format!("; the payment is for order {}", claim.order);
    }
    let actor = Some(notice.provider.to_string());
    steps.add(payment.received_at, StepView { actor, ..step("payment", text) });
}

fn delivery(of: &DeliveryOf) -> DeliveryView {
    let (bucket, seq) = of.position;
    let (state, attempts, why) = match &of.state {
        DeliveryState::Delivered => ("delivered", None, None),
        DeliveryState::Waiting => ("waiting", None, None),
        DeliveryState::Parked { attempts, why } => ("parked", Some(*attempts), Some(why.clone())),
        DeliveryState::Before => ("before", None, None),
    };
    DeliveryView {
        sink: of.sink.as_str().to_owned(),
        position: PositionView { pool_id: bucket.pool.to_string(), bucket: bucket.number, seq },
        state: state.into(),
        attempts,
        why,
    }
}

/// What the order has of each bucket that ever gave it units.
fn units(entries: &[Entry]) -> Vec<OrderUnitsView> {
    let mut of: BTreeMap<BucketKey, (i64, i64, i64)> = BTreeMap::new();
    for entry in entries {
        let known = of.entry(entry.bucket).or_default();
        known.0 = known.0.saturating_add(entry.delta.held);
        known.1 = known.1.saturating_add(entry.delta.sold);
        known.2 = known.2.saturating_add(entry.delta.available.max(0));
    }
    of.retain(|_, sums| *sums != (0, 0, 0));
    of.into_iter()
        .map(|(bucket, (held, sold, given_back))| OrderUnitsView {
            pool_id: bucket.pool.to_string(),
            bucket: bucket.number,
            held,
            sold,
            given_back,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use holdfast_core::ledger::Action;
    use holdfast_core::stock::Delta;

    use super::*;

    #[test]
    fn what_an_order_has_is_the_sum_of_its_entries() {
        let entry = |number: u32, seq: u64, delta: Delta| Entry {
            bucket: BucketKey { pool: holdfast_core::id::PoolId(1), number },
            seq,
            at: Timestamp(0),
            order_id: None,
            business_no: "a".into(),
            action: Action::Place,
            delta,
            settled: 0,
            from_state: None,
            to_state: None,
            order_version: None,
            source: "".into(),
            actor: "ann".into(),
            reason: "".into(),
            covers: None,
        };
        let entries = [
            entry(0, 2, Delta { available: -3, held: 3, sold: 0 }),
            entry(0, 3, Delta { available: 1, held: -3, sold: 2 }),
            entry(1, 2, Delta { available: -1, held: 1, sold: 0 }),
            entry(1, 3, Delta { available: 1, held: -1, sold: 0 }),
            entry(2, 2, Delta::default()),
        ];
        let found: Vec<_> =
            units(&entries).iter().map(|u| (u.bucket, u.held, u.sold, u.given_back)).collect();
        assert_eq!(found, [(0, 0, 2, 1), (1, 0, 0, 1)]);
    }
}
