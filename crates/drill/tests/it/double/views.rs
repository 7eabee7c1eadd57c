//! What the double says, in the words of the contract.

use serde_json::{Value, json};

use super::stock::{Order, Pool, Shop};

const DAY: &str = "2026-11-27T10:00:00Z";

pub(crate) fn campaign(shop: &Shop) -> Value {
    json!({
        "id": shop.campaign, "name": "Drill", "starts_at": null, "ends_at": null, "state": shop.state,
        "policy": {
            "hold_seconds": shop.hold_seconds, "hold_seconds_max": shop.hold_seconds, "payment_extension_seconds": 0,
            "release_grace_ms": 0, "notice_grace_seconds": 0, "capture": "hold", "deadline_basis": "received",
            "late_payment": "retake_else_refund", "payment_failed": "keep", "review_seconds": 3,
            "review_end": "release", "restock_on_refund": false, "account_limit": shop.account_limit,
            "account_open_holds": null, "key_limits": {}, "order_rate_per_account": null, "order_rate": null,
            "queue_limit": 1000, "queue_wait_ms": 1000, "approval_threshold": null,
        },
        "totals": {"pools": 0, "supply": 0, "available": 0, "held": 0, "sold": 0},
        "unsold_to": null, "created_at": DAY, "updated_at": DAY,
    })
}

/// Amounts are never below 0 in the contract: what is, is shown as nothing, as a shop with this fault would.
fn shown(units: [i64; 3]) -> [u64; 3] {
    units.map(|units| u64::try_from(units).unwrap_or(0))
}

pub(crate) fn pool(shop: &Shop, pool: &Pool) -> Value {
    let [available, held, sold] = shown(pool.units());
    let buckets = pool.buckets.iter().enumerate().map(|(number, bucket)| {
        let [available, held, sold] = shown(bucket.units);
        json!({
            "number": number, "weight": 100, "available": available, "held": held, "sold": sold,
            "ledger_seq": bucket.ledger.len(),
        })
    });
    json!({
        "id": pool.id, "campaign_id": shop.campaign, "sku": pool.sku, "location": "main", "path": pool.path,
        "routing": "round_robin", "supply": available + held + sold, "available": available, "held": held, "sold": sold,
        "frozen": false, "retired": false, "max_concurrency": null, "cache_fallback": "direct",
        "buckets": buckets.collect::<Vec<_>>(),
    })
}

pub(crate) fn cache(pool: &Pool) -> Value {
    let buckets = pool.buckets.iter().enumerate().map(|(number, bucket)| {
        json!({
            "number": number, "epoch": 1, "state": "open", "reachable": true, "accepts": true, "cache_epoch": 1,
            "available": bucket.cached, "accepted": 0, "backlog": 0, "delivered": 0,
            "applied_seq": bucket.ledger.len(), "ledger_seq": bucket.ledger.len(),
            "difference": bucket.cached - bucket.units[0],
        })
    });
    json!({"pool_id": pool.id, "buckets": buckets.collect::<Vec<_>>()})
}

pub(crate) fn settlement(shop: &Shop) -> Value {
    let all = shop.pools.iter().fold([0; 3], |sum, pool| super::stock::plus(sum, pool.units()));
    let [available, held, sold] = shown(all);
    json!({
        "campaign_id": shop.campaign, "as_of": DAY, "ledger_entries": 0, "opening": 0, "inbound": 0, "adjusted": 0,
        "moved": 0, "repaired": 0, "supply": available + held + sold, "available": available, "held": held, "sold": sold,
        "refunded_restocked": 0, "refunded_kept": 0, "pool_count": shop.pools.len(), "pools": [],
    })
}

pub(crate) fn order(shop: &Shop, order: &Order) -> Value {
    let allocations = order.parts.iter().filter(|_| order.state != "released").map(
        |(pool, bucket, units)| json!({"pool_id": shop.pools[*pool].id, "bucket": bucket, "quantity": units}),
    );
    let payments = order.payments.iter().map(|payment| {
        json!({
            "provider": "drill", "payment_id": payment.id, "event_id": payment.event, "attempt_id": null,
            "outcome": if payment.succeeded { "succeeded" } else { "failed" }, "amount_minor": null,
            "currency": null, "paid_at": null, "received_at": DAY, "disposition": payment.disposition,
        })
    });
    let mut view = json!({
        "id": order.id, "order_no": order.number, "campaign_id": shop.campaign, "account": order.account,
        "state": order.state, "reason": null, "version": order.version,
        "lines": [{
            "line": 1, "sku": order.sku, "location": "main", "quantity": order.quantity, "refunded_quantity": 0,
            "allocations": allocations.collect::<Vec<_>>(),
        }],
        "hold_expires_at": null, "review_ends_at": null, "amount_due": null, "refund_due": null,
        "payments": payments.collect::<Vec<_>>(), "created_at": DAY, "updated_at": DAY, "metadata": null,
    });
    if order.state == "queued" {
        view["ticket"] = json!("a-ticket");
    }
    view
}

/// All entries of a pool.
pub(crate) fn ledger(pool: &Pool) -> Vec<Value> {
    let mut entries = Vec::new();
    for (number, bucket) in pool.buckets.iter().enumerate() {
        for (at, entry) in bucket.ledger.iter().enumerate() {
            let [available, held, sold] = entry.delta;
            entries.push(json!({
                "pool_id": pool.id, "bucket": number, "seq": at + 1, "at": entry.at.to_string(), "order_id": entry.order,
                "business_no": "", "action": entry.action, "delta_available": available, "delta_held": held,
                "delta_sold": sold, "settled": entry.settled, "from_state": entry.from, "to_state": entry.to,
                "source": "", "actor": "", "reason": "",
            }));
        }
    }
    entries
}

/// All order events of a pool, in the order in which they went out.
pub(crate) fn events(shop: &Shop, at: usize) -> Vec<Value> {
    let events = shop.events.iter().filter(|(pool, ..)| *pool == at).map(|(pool, bucket, seq, order)| {
        json!({
            "specversion": "1.0", "id": format!("{pool}-{bucket}-{seq}"), "source": "/double", "type": "held",
            "subject": "", "time": DAY, "datacontenttype": "application/json", "partitionkey": "", "sequence": "",
            "data": {
                "order_id": order, "order_no": "", "campaign_id": shop.campaign, "version": 1, "from_state": null,
                "to_state": "held", "action": "place", "pool_id": shop.pools[*pool].id, "bucket": bucket, "seq": seq,
                "delta_available": 0, "delta_held": 0, "delta_sold": 0, "source": "", "actor": "", "reason": "",
            },
        })
    });
    events.collect()
}

pub(crate) fn problem(status: u16, code: &str, recorded: Option<bool>) -> Value {
    json!({
        "type": format!("/problems/{code}"), "title": code, "status": status, "code": code, "detail": code,
        "request_id": "", "recorded": recorded, "retryable": status == 503, "errors": [],
    })
}
