//! Chains of evidence as text.

use std::fmt::Write;

use anyhow::Result;
use holdfast_wire::{
    BucketExplanationView, DeliveryView, LineView, OrderExplanationView, OrderUnitsView, PoolExplanationView,
    StepView, Word,
};

/// The chain of an order.
pub(super) fn order(explanation: &OrderExplanationView) -> Result<String> {
    let order = &explanation.order;
    let mut out = String::new();
    let because = order.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    writeln!(out, "order {} is {}{because}", order.order_no, order.state)?;
    writeln!(out, "  id {}, campaign {}, account {}", order.id, order.campaign_id, order.account)?;
    writeln!(out, "  placed {}, changed {}, version {}", order.created_at, order.updated_at, order.version)?;
    if let Some(queue) = &order.queue {
        writeln!(
            out,
            "  waits in the queue at place {}, about {} ms",
            queue.position, queue.estimated_wait_ms
        )?;
    }
    if let Some(end) = &order.hold_expires_at {
        writeln!(out, "  the hold ends {end}")?;
    }
    if let Some(end) = &order.review_ends_at {
        writeln!(out, "  the review ends {end}")?;
    }
    if let Some(due) = &order.amount_due {
        writeln!(out, "  due {} {} (minor units)", due.amount_minor, due.currency)?;
    }
    if let Some(due) = &order.refund_due {
        let payments: Vec<_> = due.payments.iter().map(|payment| payment.payment_id.as_str()).collect();
        writeln!(out, "  money must go back since {}: {}", due.since, payments.join(", "))?;
    }
    writeln!(out, "  came by a {}", explanation.came_by)?;
    writeln!(out, "lines")?;
    order.lines.iter().try_for_each(|line| write_line(&mut out, line))?;
    writeln!(out, "units by the ledger{}", if explanation.units.is_empty() { ": none" } else { "" })?;
    for units in &explanation.units {
        let OrderUnitsView { pool_id, bucket, held, sold, given_back } = units;
        writeln!(out, "  pool {pool_id} bucket {bucket}: held {held}, sold {sold}, given back {given_back}")?;
    }
    write_steps(&mut out, &explanation.timeline, &explanation.left_off)?;
    for delivery in &explanation.deliveries {
        let DeliveryView { sink, position, state, attempts, why } = delivery;
        write!(out, "  sink {sink}: bucket {} #{} {state}", position.bucket, position.seq)?;
        if let (Some(attempts), Some(why)) = (attempts, why) {
            write!(out, " after {attempts} attempts: {why}")?;
        }
        writeln!(out)?;
    }
    Ok(out)
}

fn write_line(out: &mut String, line: &LineView) -> Result<()> {
    write!(out, "  {}: {} × {}", line.line, line.quantity, line.sku)?;
    if let Some(location) = &line.location {
        write!(out, " at {location}")?;
    }
    if line.refunded_quantity > 0 {
        write!(out, ", {} refunded", line.refunded_quantity)?;
    }
    writeln!(out)?;
    for part in &line.allocations {
        write!(out, "     {}", part.quantity)?;
        if let (Some(sku), Some(location)) = (&part.sku, &part.location) {
            write!(out, " × {sku} at {location}")?;
        }
        writeln!(out, " from pool {} bucket {}", part.pool_id, part.bucket)?;
    }
    Ok(())
}

/// The chain of a pool.
pub(super) fn pool(explanation: &PoolExplanationView) -> Result<String> {
    let pool = &explanation.pool;
    let mut out = String::new();
    writeln!(out, "pool {} at {} of {}", pool.sku, pool.location, pool.campaign_id)?;
    writeln!(out, "  id {}, path {}, routing {}", pool.id, pool.path, pool.routing)?;
    writeln!(
        out,
        "  now: supply {} = available {} + held {} + sold {}",
        pool.supply, pool.available, pool.held, pool.sold
    )?;
    match &explanation.as_of {
        Some(at) => writeln!(out, "buckets by the ledger as of {at}")?,
        None => writeln!(out, "buckets by the ledger")?,
    }
    explanation.buckets.iter().try_for_each(|bucket| write_bucket(&mut out, bucket))?;
    if !explanation.actions.is_empty() {
        writeln!(out, "what was done")?;
    }
    for sum in &explanation.actions {
        writeln!(
            out,
            "  {:<12} {:>8} entries, available {:+}, held {:+}, sold {:+}",
            sum.action, sum.entries, sum.delta_available, sum.delta_held, sum.delta_sold
        )?;
    }
    writeln!(out, "owners{}", if explanation.owners.is_empty() { ": none" } else { "" })?;
    for owner in &explanation.owners {
        writeln!(
            out,
            "  order {} ({}): held {}, sold {}",
            owner.order_no, owner.order_id, owner.held, owner.sold
        )?;
    }
    write_steps(&mut out, &explanation.timeline, &explanation.left_off)?;
    Ok(out)
}

fn write_bucket(out: &mut String, bucket: &BucketExplanationView) -> Result<()> {
    write!(out, "  {} after entry {}: ", bucket.number, bucket.seq)?;
    match (bucket.available, bucket.held, bucket.sold) {
        (Some(available), Some(held), Some(sold)) => {
            write!(out, "available {available}, held {held}, sold {sold}")?;
        }
        _ => write!(out, "too many entries to add up here; holdfast verify does")?,
    }
    match bucket.agrees {
        Some(true) => writeln!(out, ", as the stored balance says")?,
        Some(false) => writeln!(out, ", AND THE STORED BALANCE SAYS OTHERWISE")?,
        None => writeln!(out)?,
    }
    Ok(())
}

fn write_steps(out: &mut String, steps: &[StepView], left_off: &[Word]) -> Result<()> {
    writeln!(out, "what happened")?;
    for step in steps {
        write!(out, "  {} {:<9} {}", step.at, step.kind, step.text)?;
        if let Some(position) = &step.position {
            write!(out, " [pool {} bucket {} #{}]", position.pool_id, position.bucket, position.seq)?;
        }
        if let Some(actor) = &step.actor {
            write!(out, " by {actor}")?;
        }
        if let Some(request) = &step.request_id {
            write!(out, ", request {request}")?;
        }
        writeln!(out)?;
    }
    if !left_off.is_empty() {
        writeln!(out, "there is more than is told of: {}", left_off.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_of_an_order_is_told_in_words() {
        let explanation = r#"{"order":{"id":"o1","order_no":"A-1","campaign_id":"c","account":"ann","state":"sold",
            "reason":"retaken","version":3,"lines":[{"line":1,"sku":"cup","location":"main","quantity":2,
            "refunded_quantity":1,"allocations":[{"pool_id":"p1","bucket":0,"quantity":2}]}],
            "hold_expires_at":null,"amount_due":{"amount_minor":500,"currency":"EUR"},"refund_due":null,
            "payments":[],"created_at":"T1","updated_at":"T2","metadata":null},"came_by":"queue",
            "units":[{"pool_id":"p1","bucket":0,"held":0,"sold":2,"given_back":0}],
            "timeline":[{"at":"T1","kind":"request","text":"placed: 2 × cup","actor":"ann"},
            {"at":"T2","kind":"ledger","text":"place held +2","position":{"pool_id":"p1","bucket":0,"seq":2}},
            {"at":"T3","kind":"act","text":"extend","actor":"bob","request_id":"r1"}],
            "deliveries":[{"sink":"erp","position":{"pool_id":"p1","bucket":0,"seq":2},"state":"parked","attempts":5,"why":"no"}],
            "ledger":[],"left_off":["acts"]}"#;
        let expected = "\
order A-1 is sold (retaken)
  id o1, campaign c, account ann
  placed T1, changed T2, version 3
  due 500 EUR (minor units)
  came by a queue
lines
  1: 2 × cup at main, 1 refunded
     2 from pool p1 bucket 0
units by the ledger
  pool p1 bucket 0: held 0, sold 2, given back 0
what happened
  T1 request   placed: 2 × cup by ann
  T2 ledger    place held +2 [pool p1 bucket 0 #2]
  T3 act       extend by bob, request r1
there is more than is told of: acts
  sink erp: bucket 0 #2 parked after 5 attempts: no
";
        assert_eq!(order(&serde_json::from_str(explanation).unwrap()).unwrap(), expected);
    }

    #[test]
    fn the_chain_of_a_pool_is_told_in_words() {
        let explanation = r#"{"pool":{"id":"p1","campaign_id":"c","sku":"cup","location":"main","path":"batched",
            "routing":"order_hash","supply":5,"available":3,"held":2,"sold":0,"frozen":false,"retired":false,
            "max_concurrency":null,"cache_fallback":"authority","buckets":[]},"as_of":"T9",
            "buckets":[{"number":0,"seq":7,"available":3,"held":2,"sold":0,"agrees":false},{"number":1,"seq":9}],
            "actions":[{"action":"place","entries":1,"delta_available":-2,"delta_held":2,"delta_sold":0}],
            "owners":[{"order_id":"o1","order_no":"A-1","held":2,"sold":0}],"timeline":[],"ledger":[],"left_off":[]}"#;
        let expected = "\
pool cup at main of c
  id p1, path batched, routing order_hash
  now: supply 5 = available 3 + held 2 + sold 0
buckets by the ledger as of T9
  0 after entry 7: available 3, held 2, sold 0, AND THE STORED BALANCE SAYS OTHERWISE
  1 after entry 9: too many entries to add up here; holdfast verify does
what was done
  place               1 entries, available -2, held +2, sold +0
owners
  order A-1 (o1): held 2, sold 0
what happened
";
        assert_eq!(pool(&serde_json::from_str(explanation).unwrap()).unwrap(), expected);
    }
}
