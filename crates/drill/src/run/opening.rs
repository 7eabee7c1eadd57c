//! The sale is set up, as any shop would do it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use holdfast_client::{Client, Switch};
use holdfast_wire::{
    ChangePoolRequest, OpenPoolRequest, PlaceBatchRequest, PlaceLine, PlaceOrderRequest, PolicyRequest,
    PutCampaignRequest, SwitchRequest,
};

use super::rest::until;
use crate::sale::{Good, Sale};

/// How long a case of doubt stands before it is released, in seconds.
pub(super) const REVIEW_SECONDS: u64 = 3;
/// How long an order may wait in a queue, in milliseconds.
pub(super) const QUEUE_WAIT_MS: u64 = 20_000;
/// How long nodes may take to learn what one of them was told, as the documents say.
const LEARNT_WITHIN: Duration = Duration::from_secs(1);
/// How long caches may take to be ready.
const READY_MAX: Duration = Duration::from_secs(30);
/// Orders that are stored in one request: the most that a server takes.
const STORED_A_REQUEST: u64 = 500;

/// Who does it, and why.
fn reason() -> SwitchRequest {
    SwitchRequest { reason: "drill".to_owned(), operator: "drill".to_owned() }
}

/// Opens the campaign and its pools, and waits until all nodes can sell.
pub(super) async fn open(nodes: &[Client], sale: &Sale) -> Result<()> {
    let client = nodes.first().context("a deployment needs a node")?;
    let shop = &sale.shop;
    let policy = PolicyRequest {
        hold_seconds: Some(shop.hold_seconds.into()),
        hold_seconds_max: Some(u64::from(shop.hold_seconds).saturating_mul(2)),
        release_grace_ms: Some(shop.release_grace_ms.into()),
        account_limit: shop.account_limit.map(u64::from),
        late_payment: Some("retake_else_refund".to_owned()),
        review_seconds: Some(REVIEW_SECONDS),
        queue_wait_ms: Some(QUEUE_WAIT_MS),
        ..PolicyRequest::default()
    };
    put(client, &sale.campaign, policy).await?;
    let mut cached = Vec::new();
    for good in &sale.goods {
        let id = pool(client, &sale.campaign, good).await?;
        if good.path == "cached" {
            cached.push(id);
        }
    }
    client
        .switch_campaign(&sale.campaign, Switch::Open, &reason())
        .await
        .context("the campaign does not open")?;
    let learnt = Instant::now() + LEARNT_WITHIN;
    for node in nodes {
        node.warm_campaign(&sale.campaign, &reason()).await.context("a node does not get ready")?;
    }
    // Several nodes may stand behind one address, and only one of them was asked.
    tokio::time::sleep_until(learnt.into()).await;
    for id in cached {
        let are_ready = until(READY_MAX, async || {
            let cache = client.cache(&id).await.context("a cache cannot be read")?;
            Ok(cache.buckets.iter().all(|bucket| bucket.accepts))
        });
        ensure!(are_ready.await?, "the caches of a pool do not accept orders in {READY_MAX:?}");
    }
    Ok(())
}

async fn put(client: &Client, campaign: &str, policy: PolicyRequest) -> Result<()> {
    let request = PutCampaignRequest {
        name: "Drill".to_owned(),
        policy: Some(policy),
        ..PutCampaignRequest::default()
    };
    client.put_campaign(campaign, &request).await.context("the campaign cannot be made")?;
    Ok(())
}

async fn pool(client: &Client, campaign: &str, good: &Good) -> Result<String> {
    let request = OpenPoolRequest {
        campaign_id: campaign.to_owned(),
        sku: good.sku.clone(),
        location: None,
        supply: good.units,
        buckets: Some(good.buckets),
        path: Some(good.path.to_owned()),
        routing: None,
    };
    let opened = client.open_pool(&request).await;
    let id = opened.with_context(|| format!("a pool on the path {} cannot be opened", good.path))?.value.id;
    if !good.weights.is_empty() {
        let weights =
            ChangePoolRequest { weights: Some(good.weights.to_vec()), ..ChangePoolRequest::default() };
        client.change_pool(&id, &weights).await.context("the weights cannot be set")?;
    }
    Ok(id)
}

/// Stores orders of a campaign that is over when the drill begins: size that every index bears.
pub(super) async fn store(client: &Client, sale: &Sale, orders: u64) -> Result<()> {
    if orders == 0 {
        return Ok(());
    }
    let campaign = format!("{}-stored", sale.campaign);
    let policy = PolicyRequest { capture: Some("immediate".to_owned()), ..PolicyRequest::default() };
    put(client, &campaign, policy).await?;
    let sku = "STORED".to_owned();
    let good = Good { sku: sku.clone(), path: "batched", buckets: 4, weights: &[], units: orders };
    pool(client, &campaign, &good).await?;
    client.switch_campaign(&campaign, Switch::Open, &reason()).await?;
    let mut stored = 0_u64;
    while stored < orders {
        let until = stored.saturating_add(STORED_A_REQUEST).min(orders);
        let order = |number: u64| PlaceOrderRequest {
            campaign_id: campaign.clone(),
            order_no: format!("stored-{number}"),
            account: Sale::account(number),
            lines: vec![PlaceLine { sku: sku.clone(), location: None, quantity: 1 }],
            hold_seconds: None,
            amount_due: None,
            limit_keys: None,
            metadata: None,
        };
        let request = PlaceBatchRequest { orders: (stored..until).map(order).collect() };
        let answer = client.place_orders(&request).await.context("orders cannot be stored")?;
        let refused = answer.results.iter().find_map(|result| result.problem.as_ref());
        ensure!(refused.is_none(), "an order cannot be stored: {:?}", refused.map(|problem| &problem.detail));
        stored = until;
    }
    close(client, &campaign).await
}

/// Closes a campaign: nothing of a drill goes on selling.
pub(super) async fn close(client: &Client, campaign: &str) -> Result<()> {
    client
        .switch_campaign(campaign, Switch::Close, &reason())
        .await
        .context("the campaign does not close")?;
    Ok(())
}
