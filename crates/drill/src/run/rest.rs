//! Waiting, with an end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use holdfast_client::{Client, OrdersQuery, PageQuery};

use super::read;

/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Looks until something is so, or so long; whether it is. What cannot be read is no answer, until the end.
pub(super) async fn until(most: Duration, mut look: impl AsyncFnMut() -> Result<bool>) -> Result<bool> {
    let begun = Instant::now();
    loop {
        let found = look().await;
        if matches!(found, Ok(true)) {
            return Ok(true);
        }
        if begun.elapsed() > most {
            return found;
        }
        tokio::time::sleep_until((Instant::now() + LOOK_AGAIN).into()).await;
    }
}

/// Whether no order of a campaign waits, is held or is in review, nothing waits in a cache, and what came back is there.
pub(super) async fn is_at_rest(client: &Client, campaign: &str) -> Result<bool> {
    for state in ["queued", "held", "in_review"] {
        let query = OrdersQuery {
            campaign_id: Some(campaign.to_owned()),
            state: Some(state.to_owned()),
            ..OrdersQuery::default()
        };
        let page = PageQuery { limit: Some(1), cursor: None };
        let found = client.orders(&query, &page).await.context("the orders cannot be read")?;
        if !found.items.is_empty() {
            return Ok(false);
        }
    }
    let pools = read::pools(client, campaign).await?;
    let mut buckets = pools.iter().flat_map(|pool| &pool.buckets);
    Ok(buckets.all(|bucket| {
        bucket.backlog.is_none_or(|backlog| backlog == 0)
            && bucket.cached.is_none_or(|cached| cached == bucket.units.available)
    }))
}
