//! What the authority says, read over its own API.

use std::collections::HashMap;

use anyhow::{Context, Result};
use holdfast_client::{Client, LedgerQuery, OrdersQuery, PageQuery, PoolsQuery};
use holdfast_core::ledger::Action;
use holdfast_core::order::{Disposition, State};
use holdfast_wire::{BucketCacheView, EventView, LedgerEntryView, OrderView, PoolView};
use uuid::Uuid;

use crate::audit::facts::{
    Bucket, BucketFact, EntryFact, EventFact, Facts, OrderFact, PaymentFact, PoolFact, Units,
};

/// Items on a page: the most that a server gives.
const PAGE_ITEMS: u32 = 500;

/// Reads everything of a campaign.
pub(super) async fn facts(client: &Client, campaign: &str) -> Result<Facts> {
    let pools = pools(client, campaign).await?;
    let places: HashMap<Uuid, u16> = pools.iter().map(|pool| pool.id).zip(0..).collect();
    let (mut entries, mut events) = (Vec::new(), Vec::new());
    for pool in &pools {
        read_entries(client, &pool.id.to_string(), &places, &mut entries).await?;
        read_events(client, &pool.id.to_string(), &places, &mut events).await?;
    }
    entries.sort_by_key(|entry| (entry.bucket, entry.seq));
    let orders = orders(client, campaign, &places).await?;
    let settlement = client.settlement(campaign).await.context("the settlement cannot be read")?.units;
    let settled = units(settlement.available, settlement.held, settlement.sold)?;
    let is_open = client.campaign(campaign).await.context("the campaign cannot be read")?.state == "open";
    Ok(Facts { pools, orders, entries, settled: Some(settled), events: Some(events), is_open })
}

/// The pools of a campaign, with what their caches have.
pub(super) async fn pools(client: &Client, campaign: &str) -> Result<Vec<PoolFact>> {
    let query = PoolsQuery { campaign_id: Some(campaign.to_owned()), ..PoolsQuery::default() };
    let views = client.every_pool(&query).await.context("the pools cannot be read")?;
    let mut pools = Vec::with_capacity(views.len());
    for view in views {
        let caches = if view.path == "cached" {
            let cache = client.cache(&view.id).await.context("a cache cannot be read")?;
            cache.buckets
        } else {
            Vec::new()
        };
        pools.push(pool(&view, &caches)?);
    }
    Ok(pools)
}

fn pool(view: &PoolView, caches: &[BucketCacheView]) -> Result<PoolFact> {
    let bucket = |(at, bucket): (usize, &holdfast_wire::BucketView)| -> Result<BucketFact> {
        let units = units(bucket.available, bucket.held, bucket.sold)?;
        let cache = caches.get(at);
        let backlog = cache.and_then(|cache| cache.backlog);
        let cached = cache.filter(|cache| cache.accepts).and_then(|cache| cache.available);
        Ok(BucketFact { units, ledger_seq: bucket.ledger_seq, backlog, cached })
    };
    Ok(PoolFact {
        id: view.id.parse().context("a pool's id")?,
        sku: view.sku.clone(),
        units: units(view.available, view.held, view.sold)?,
        supply: i64::try_from(view.supply)?,
        frozen: view.frozen,
        buckets: view.buckets.iter().enumerate().map(bucket).collect::<Result<_>>()?,
    })
}

fn units(available: u64, held: u64, sold: u64) -> Result<Units> {
    Ok(Units { available: available.try_into()?, held: held.try_into()?, sold: sold.try_into()? })
}

async fn orders(client: &Client, campaign: &str, places: &HashMap<Uuid, u16>) -> Result<Vec<OrderFact>> {
    let query = OrdersQuery { campaign_id: Some(campaign.to_owned()), ..OrdersQuery::default() };
    let mut page = PageQuery { limit: Some(PAGE_ITEMS), cursor: None };
    let mut orders = Vec::new();
    loop {
        let answer = client.orders(&query, &page).await.context("the orders cannot be read")?;
        for view in &answer.items {
            orders.push(order(view, places).with_context(|| format!("order {}", view.id))?);
        }
        page.cursor = answer.next_cursor;
        if page.cursor.is_none() {
            return Ok(orders);
        }
    }
}

fn order(view: &OrderView, places: &HashMap<Uuid, u16>) -> Result<OrderFact> {
    let mut allocations = Vec::new();
    for allocation in view.lines.iter().flat_map(|line| &line.allocations) {
        let bucket = bucket(&allocation.pool_id, allocation.bucket, places)?;
        allocations.push((bucket, i64::try_from(allocation.quantity)?));
    }
    let mut payments = Vec::with_capacity(view.payments.len());
    for payment in &view.payments {
        let disposition = Disposition::parse(&payment.disposition);
        payments.push(PaymentFact {
            payment_id: payment.payment_id.as_str().into(),
            succeeded: payment.outcome == "succeeded",
            disposition: disposition
                .with_context(|| format!("{:?} is no disposition", payment.disposition))?,
        });
    }
    Ok(OrderFact {
        id: view.id.parse()?,
        order_no: view.order_no.as_str().into(),
        account: view.account.as_str().into(),
        state: state(&view.state)?,
        version: view.version,
        lines: view.lines.iter().map(|line| (line.sku.as_str().into(), line.quantity)).collect(),
        allocations,
        payments,
    })
}

async fn read_entries(
    client: &Client,
    pool: &str,
    places: &HashMap<Uuid, u16>,
    entries: &mut Vec<EntryFact>,
) -> Result<()> {
    let query = LedgerQuery { pool_id: Some(pool.to_owned()), order_id: None };
    let mut page = PageQuery { limit: Some(PAGE_ITEMS), cursor: None };
    loop {
        let answer = client.ledger(&query, &page).await.context("the ledger cannot be read")?;
        for view in &answer.items {
            entries.push(entry(view, places).with_context(|| format!("entry {}", view.seq))?);
        }
        page.cursor = answer.next_cursor;
        if page.cursor.is_none() {
            return Ok(());
        }
    }
}

fn entry(view: &LedgerEntryView, places: &HashMap<Uuid, u16>) -> Result<EntryFact> {
    let at: jiff::Timestamp = view.at.parse()?;
    let action = Action::parse(&view.action);
    Ok(EntryFact {
        bucket: bucket(&view.pool_id, view.bucket, places)?,
        seq: view.seq,
        at_ms: at.as_millisecond(),
        order: view.order_id.as_deref().map(str::parse).transpose()?,
        action: action.with_context(|| format!("{:?} is no action", view.action))?,
        change: Units { available: view.delta_available, held: view.delta_held, sold: view.delta_sold },
        settled: view.settled,
        from: view.from_state.as_deref().map(state).transpose()?,
        to: view.to_state.as_deref().map(state).transpose()?,
    })
}

async fn read_events(
    client: &Client,
    pool: &str,
    places: &HashMap<Uuid, u16>,
    events: &mut Vec<EventFact>,
) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let page = client.pool_events(pool, after.as_deref(), PAGE_ITEMS).await;
        let page = page.context("the feed of order events cannot be read")?;
        for event in &page.items {
            let event: EventView = serde_json::from_str(event.get())?;
            let bucket = bucket(&event.data.pool_id, event.data.bucket, places)?;
            events.push(EventFact { bucket, seq: event.data.seq, order: event.data.order_id.parse()? });
        }
        if !page.more {
            return Ok(());
        }
        after = Some(page.position);
    }
}

fn bucket(pool: &str, number: u32, places: &HashMap<Uuid, u16>) -> Result<Bucket> {
    let id: Uuid = pool.parse()?;
    let pool = *places.get(&id).with_context(|| format!("pool {id} is not of this campaign"))?;
    Ok(Bucket { pool, number: number.try_into()? })
}

fn state(text: &str) -> Result<State> {
    State::parse(text).with_context(|| format!("{text:?} is no state"))
}
