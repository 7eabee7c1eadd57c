//! Core to wire: how rows are shown.

use std::collections::BTreeSet;

use holdfast_core::assortment::{Assortment, Component, MakeUp, Part};
use holdfast_core::campaign::Policy;
use holdfast_core::id::{CampaignId, Location, MAIN_LOCATION, Sku};
use holdfast_core::ledger::Entry;
use holdfast_core::limit::Limits;
use holdfast_core::order::{Allocation, Line, Order, Payment, RefundDue, State};
use holdfast_core::stock::{Bucket, Pool};
use holdfast_core::time::Timestamp;
use holdfast_engine::{Availability, Engine, Standing, Warmth};
use holdfast_store::{CampaignTotals, PoolRow};
use holdfast_wire as wire;
use jiff::fmt::temporal::DateTimePrinter;

/// Times are shown to the millisecond, always with three digits.
const TIMES: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// RFC 3339 in UTC with milliseconds. What no calendar can show is shown as the calendar's end.
pub fn time(at: Timestamp) -> String {
    let end = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    TIMES.timestamp_to_string(&jiff::Timestamp::from_microsecond(at.0).unwrap_or(end))
}

/// An order.
pub(crate) fn order(order: &Order) -> wire::OrderView {
    let holds = matches!(order.state, State::Held | State::InReview);
    wire::OrderView {
        id: order.id.to_string(),
        order_no: order.key.order_no.to_string(),
        campaign_id: order.key.campaign.to_string(),
        account: order.account.to_string(),
        state: order.state.as_str().into(),
        reason: order.reason.map(|reason| reason.as_str().into()),
        version: order.version,
        lines: (1..).zip(&order.lines).map(|(number, row)| line(number, row)).collect(),
        hold_expires_at: order.hold_ends_at.filter(|_| holds).map(time),
        review_ends_at: order.due_at.filter(|_| order.state == State::InReview).map(time),
        amount_due: order
            .amount_due
            .as_ref()
            .map(|due| wire::Money { amount_minor: due.amount_minor, currency: due.currency.to_string() }),
        refund_due: order.refund_due.as_ref().map(|due| refund_due(due, &order.payments)),
        payments: order.payments.iter().map(payment).collect(),
        queue: None,
        ticket: None,
        created_at: time(order.created_at),
        updated_at: time(order.updated_at),
        metadata: order.metadata.as_deref().and_then(raw),
    }
}

/// An order, with its place in the queue if it waits in one.
pub(crate) async fn standing_order(engine: &Engine, row: &Order) -> wire::OrderView {
    let standing = engine.standing(row).await;
    let ticket = engine.ticket_of(row.id).filter(|_| row.state == State::Queued);
    wire::OrderView {
        queue: standing.map(queue),
        ticket: ticket.as_deref().map(ToOwned::to_owned),
        ..order(row)
    }
}

fn queue(standing: Standing) -> wire::QueueView {
    let wait_ms = u64::try_from(standing.estimated_wait.as_millis()).unwrap_or(u64::MAX);
    wire::QueueView { position: standing.position, estimated_wait_ms: wait_ms }
}

/// Metadata was checked when it came, so it is JSON; what is not is not shown.
fn raw(text: &str) -> Option<wire::RawJson> {
    serde_json::value::RawValue::from_string(text.to_owned()).ok()
}

fn line(number: u32, line: &Line) -> wire::LineView {
    wire::LineView {
        line: number,
        sku: line.sku.to_string(),
        location: location_of(line).map(ToString::to_string),
        quantity: line.quantity,
        refunded_quantity: line.refunded,
        components: line.made_of.as_ref().and_then(|made_of| components_of(line, made_of)),
        allocations: line.allocations.iter().map(|allocation| allocation_of(line, allocation)).collect(),
    }
}

/// The location that was named, or the one that the line is from; none if it is from several, or from one of
/// several and nobody knows yet which.
fn location_of(line: &Line) -> Option<&str> {
    let Some(made_of) = line.made_of.as_ref().filter(|_| line.location.is_none()) else {
        return Some(line.location.as_ref().map_or(MAIN_LOCATION, Location::as_str));
    };
    let source = |allocation: &Allocation| Some(&made_of.source_of(allocation.bucket.pool)?.1.location);
    let taken: BTreeSet<_> = line.allocations.iter().filter_map(source).collect();
    let sources = made_of.parts.iter().flat_map(|part| &part.sources);
    let all: BTreeSet<_> = sources.map(|source| &source.location).collect();
    let from = if taken.is_empty() { all } else { taken };
    from.first().filter(|_| from.len() == 1).map(|only| only.as_str())
}

/// What a bundle is made of; none for a line that is none.
fn components_of(line: &Line, made_of: &MakeUp) -> Option<Vec<wire::ComponentView>> {
    let component = |part: &Part| wire::ComponentView { sku: part.sku.to_string(), quantity: part.per_unit };
    let is_bundle = made_of.parts.iter().any(|part| part.sku != line.sku);
    is_bundle.then(|| made_of.parts.iter().map(component).collect())
}

fn allocation_of(line: &Line, allocation: &Allocation) -> wire::AllocationView {
    let source = line.made_of.as_ref().and_then(|made_of| made_of.source_of(allocation.bucket.pool));
    wire::AllocationView {
        pool_id: allocation.bucket.pool.to_string(),
        bucket: allocation.bucket.number,
        quantity: allocation.standing(),
        sku: source.map(|(part, _)| part.sku.to_string()),
        location: source.map(|(_, source)| source.location.to_string()),
    }
}

fn payment(payment: &Payment) -> wire::PaymentView {
    let notice = &payment.notice;
    wire::PaymentView {
        provider: notice.provider.to_string(),
        payment_id: notice.payment_id.to_string(),
        event_id: notice.event_id.to_string(),
        attempt_id: notice.attempt_id.as_ref().map(ToString::to_string),
        outcome: notice.outcome.as_str().into(),
        amount_minor: notice.amount_minor,
        currency: notice.currency.as_deref().map(ToOwned::to_owned),
        paid_at: notice.paid_at.map(time),
        received_at: time(payment.received_at),
        disposition: payment.disposition.as_str().into(),
    }
}

fn refund_due(due: &RefundDue, payments: &[Payment]) -> wire::RefundDueView {
    let shown = |(provider, id): &(_, _)| {
        let paid = payments
            .iter()
            .find(|p| p.succeeded() && p.notice.provider == *provider && p.notice.payment_id == *id);
        wire::RefundDuePaymentView {
            payment_id: id.to_string(),
            amount_minor: paid.and_then(|p| p.notice.amount_minor),
            currency: paid.and_then(|p| p.notice.currency.as_deref()).map(ToOwned::to_owned),
        }
    };
    wire::RefundDueView { since: time(due.since), payments: due.payments.iter().map(shown).collect() }
}

/// A pool with its buckets.
pub(crate) fn pool(row: &PoolRow) -> wire::PoolView {
    pool_of(&row.pool, &row.buckets)
}

/// A pool with its buckets, from two places.
pub(crate) fn pool_of(pool: &Pool, buckets: &[Bucket]) -> wire::PoolView {
    let sum = |balance: fn(&Bucket) -> u64| buckets.iter().map(balance).sum();
    wire::PoolView {
        id: pool.id.to_string(),
        campaign_id: pool.campaign.to_string(),
        sku: pool.sku.to_string(),
        location: pool.location.to_string(),
        path: pool.path.as_str().into(),
        routing: pool.routing.as_str().into(),
        supply: sum(Bucket::supply),
        available: sum(|bucket| bucket.available),
        held: sum(|bucket| bucket.held),
        sold: sum(|bucket| bucket.sold),
        frozen: pool.frozen,
        retired: pool.retired,
        max_concurrency: pool.max_concurrency,
        cache_fallback: pool.cache_fallback.as_str().into(),
        buckets: buckets.iter().map(bucket).collect(),
    }
}

fn bucket(bucket: &Bucket) -> wire::BucketView {
    wire::BucketView {
        number: bucket.key.number,
        weight: bucket.weight,
        available: bucket.available,
        held: bucket.held,
        sold: bucket.sold,
        ledger_seq: bucket.ledger_seq,
    }
}

/// A pool's stock for display.
pub(crate) fn availability(shown: &Availability) -> wire::AvailabilityView {
    wire::AvailabilityView {
        available: shown.available,
        in_stock: shown.available > 0,
        as_of: time(shown.as_of),
        age_ms: shown.age_ms,
        source: shown.source.into(),
    }
}

/// A campaign by itself, as it stands at `now`.
pub(crate) fn whole_campaign(row: &CampaignTotals, now: Timestamp) -> wire::CampaignView {
    wire::CampaignView { assortment: Some(assortment(&row.campaign.assortment)), ..campaign(row, now) }
}

/// A campaign with its totals, as it stands at `now`: one of many.
pub(crate) fn campaign(row: &CampaignTotals, now: Timestamp) -> wire::CampaignView {
    let campaign = &row.campaign;
    wire::CampaignView {
        id: campaign.id.to_string(),
        name: campaign.name.clone(),
        starts_at: campaign.starts_at.map(time),
        ends_at: campaign.ends_at.map(time),
        state: row.status(now).as_str().into(),
        policy: policy(&campaign.policy),
        totals: wire::TotalsView {
            pools: row.pools,
            supply: row.available.saturating_add(row.held).saturating_add(row.sold),
            available: row.available,
            held: row.held,
            sold: row.sold,
        },
        unsold_to: campaign.unsold_to.map(|pool| pool.to_string()),
        assortment: None,
        warm: None,
        created_at: time(campaign.created_at),
        updated_at: time(campaign.updated_at),
    }
}

/// What a node has made ready for a campaign.
pub(crate) fn warmth(warmth: &Warmth) -> wire::WarmView {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    wire::WarmView {
        ready: warmth.is_ready,
        pools: number(warmth.pools),
        buckets: number(warmth.buckets),
        offers: number(warmth.offers),
        connections: number(warmth.connections),
        took_ms: u64::try_from(warmth.took.as_millis()).unwrap_or(u64::MAX),
    }
}

fn assortment(assortment: &Assortment) -> wire::AssortmentView {
    let made_of = |(sku, components): (&Sku, &Vec<Component>)| wire::MadeOfView {
        sku: sku.to_string(),
        components: components.iter().map(component).collect(),
    };
    wire::AssortmentView {
        order: assortment.order().iter().map(ToString::to_string).collect(),
        split: assortment.split,
        bundles: assortment.bundles.iter().map(made_of).collect(),
    }
}

fn component(component: &Component) -> wire::ComponentView {
    wire::ComponentView { sku: component.sku.to_string(), quantity: component.quantity }
}

/// A campaign's location order.
pub(crate) fn locations(campaign: &CampaignId, assortment: &Assortment) -> wire::LocationsView {
    wire::LocationsView {
        campaign_id: campaign.to_string(),
        order: assortment.order().iter().map(ToString::to_string).collect(),
        split: assortment.split,
    }
}

/// A bundle.
pub(crate) fn bundle(
    campaign: &CampaignId,
    sku: &Sku,
    components: &[Component],
    available: u64,
) -> wire::BundleView {
    wire::BundleView {
        campaign_id: campaign.to_string(),
        sku: sku.to_string(),
        components: components.iter().map(component).collect(),
        available,
    }
}

/// A policy, every field; those that are not built at their defaults.
pub fn policy(policy: &Policy) -> wire::PolicyView {
    wire::PolicyView {
        hold_seconds: policy.hold_seconds.into(),
        hold_seconds_max: policy.hold_seconds_max.into(),
        payment_extension_seconds: policy.payment_extension_seconds.into(),
        release_grace_ms: policy.release_grace_ms.into(),
        notice_grace_seconds: policy.notice_grace_seconds.into(),
        capture: policy.capture.as_str().into(),
        deadline_basis: policy.deadline_basis.as_str().into(),
        late_payment: policy.late_payment.as_str().into(),
        payment_failed: policy.payment_failed.as_str().into(),
        review_seconds: policy.review_seconds.into(),
        review_end: policy.review_end.as_str().into(),
        restock_on_refund: policy.restock_on_refund,
        account_limit: policy.account_limit,
        account_open_holds: policy.account_open_holds,
        key_limits: policy.key_limits.iter().map(|(name, most)| (name.to_string(), limits(*most))).collect(),
        order_rate_per_account: policy.order_rate_per_account.map(u64::from),
        order_rate: policy.order_rate.map(u64::from),
        queue_limit: policy.queue_limit,
        queue_wait_ms: policy.queue_wait_ms.into(),
        approval_threshold: policy.approval_threshold,
    }
}

fn limits(limits: Limits) -> wire::KeyLimits {
    wire::KeyLimits { units: limits.units, open_holds: limits.open_holds }
}

/// A ledger entry.
pub(crate) fn entry(entry: &Entry) -> wire::LedgerEntryView {
    wire::LedgerEntryView {
        pool_id: entry.bucket.pool.to_string(),
        bucket: entry.bucket.number,
        seq: entry.seq,
        at: time(entry.at),
        order_id: entry.order_id.map(|id| id.to_string()),
        business_no: entry.business_no.to_string(),
        action: entry.action.as_str().into(),
        delta_available: entry.delta.available,
        delta_held: entry.delta.held,
        delta_sold: entry.delta.sold,
        settled: entry.settled,
        from_state: entry.from_state.map(|state| state.as_str().into()),
        to_state: entry.to_state.map(|state| state.as_str().into()),
        source: entry.source.to_string(),
        actor: entry.actor.to_string(),
        reason: entry.reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_end_in_z() {
        assert_eq!(time(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(Timestamp(1_774_785_600_123_999)), "2026-03-29T12:00:00.123Z");
        assert!(time(Timestamp(i64::MAX)).starts_with("9999-12-3"));
    }
}
