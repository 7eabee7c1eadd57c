//! The shop behind the HTTP API: a campaign of its own on a server.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use holdfast_client::{Answer, Client, Error, PoolsQuery, Switch};
use holdfast_wire::{
    AdjustPoolRequest, Code, OpenPoolRequest, PaymentNotification, PlaceLine, PlaceOrderRequest, PoolView,
    PutCampaignRequest, RefundLine, RefundRequest, SwitchRequest,
};
use indicatif::ProgressBar;
use tokio::task::JoinSet;

use super::book::Taken;
use super::plan::{Adjustment, Order, Pool, Return};
use super::shop::{Moved, Placed, Shop, Stock};

/// The payment provider, and the operator who adjusts.
const REPLAY: &str = "replay";

/// Pools that are opened at once.
const OPENING_MAX: usize = 16;

/// A campaign on a server.
pub(crate) struct HttpShop {
    client: Client,
    campaign_id: String,
    /// The pools' ids by SKU.
    pools: HashMap<String, String>,
}

impl HttpShop {
    /// Makes the campaign, opens its pools, then lets it sell.
    pub(crate) async fn open(
        client: Client,
        campaign_id: String,
        pools: &[Pool],
        bar: &ProgressBar,
    ) -> Result<Self> {
        let request = PutCampaignRequest { name: campaign_id.clone(), ..PutCampaignRequest::default() };
        client.put_campaign(&campaign_id, &request).await.context("the campaign was not made")?;
        let mut opened = HashMap::new();
        let mut tasks = JoinSet::new();
        for pool in pools {
            if tasks.len() >= OPENING_MAX {
                note(&mut tasks, &mut opened, bar).await?;
            }
            let request = OpenPoolRequest {
                campaign_id: campaign_id.clone(),
                sku: pool.sku.clone(),
                location: None,
                supply: pool.supply,
                buckets: None,
                path: None,
                routing: None,
            };
            let client = client.clone();
            tasks.spawn(async move {
                let answer = client.open_pool(&request).await;
                answer.with_context(|| format!("the pool of {:?} was not opened", request.sku))
            });
        }
        while !tasks.is_empty() {
            note(&mut tasks, &mut opened, bar).await?;
        }
        let request = SwitchRequest { reason: "replay".to_owned(), operator: REPLAY.to_owned() };
        let campaign = client.switch_campaign(&campaign_id, Switch::Open, &request).await?;
        if campaign.state != "open" {
            bail!("the campaign should be open and is {}", campaign.state);
        }
        Ok(Self { client, campaign_id, pools: opened })
    }

    /// Adjustment, event and payment ids are the server's over all campaigns, so the campaign, which no
    /// other replay shares, stands before what the file says. Too long a text would be refused: then the
    /// row or rank, which is as stable, stands for it.
    fn global_id(&self, text: &str, place: impl std::fmt::Display) -> String {
        let long = format!("{}:{text}:{place}", self.campaign_id);
        if long.chars().count() <= 128 { long } else { format!("{}:{place}", self.campaign_id) }
    }
}

async fn note(
    tasks: &mut JoinSet<Result<Answer<PoolView>>>,
    opened: &mut HashMap<String, String>,
    bar: &ProgressBar,
) -> Result<()> {
    if let Some(joined) = tasks.join_next().await {
        let pool = joined.context("an opening was cut off")??.value;
        opened.insert(pool.sku, pool.id);
        bar.inc(1);
    }
    Ok(())
}

/// A refusal is an answer; everything else is none.
fn refusal(error: Error) -> Result<(Option<Code>, String)> {
    match error {
        Error::Problem(problem) if problem.status < 500 && problem.status != 429 => {
            Ok((problem.known_code(), format!("{} {}", problem.code, problem.detail)))
        }
        error @ (Error::Problem(_)
        | Error::Transport { .. }
        | Error::Unexpected(_)
        | Error::Configuration(_)) => Err(error.into()),
    }
}

/// What an answer to a write says, where one code stands for too little stock.
fn moved<T>(answer: Result<T, Error>, short: Option<Code>) -> Result<Moved> {
    let Err(error) = answer else { return Ok(Moved::Done) };
    let (code, words) = refusal(error)?;
    Ok(if code.is_some() && code == short { Moved::Refused } else { Moved::Other(words) })
}

impl Shop for HttpShop {
    async fn place(&self, order: &Order) -> Result<Placed> {
        let lines = order.lines.iter();
        let request = PlaceOrderRequest {
            campaign_id: self.campaign_id.clone(),
            order_no: order.order_no.clone(),
            account: order.account.clone(),
            lines: lines
                .map(|line| PlaceLine { sku: line.sku.clone(), location: None, quantity: line.quantity })
                .collect(),
            hold_seconds: None,
            amount_due: None,
            limit_keys: None,
            metadata: None,
        };
        let order = match self.client.place_order(&request).await {
            Ok(answer) => answer.value,
            Err(error) => {
                let (code, words) = refusal(error)?;
                return Ok(if code == Some(Code::SoldOut) { Placed::SoldOut } else { Placed::Other(words) });
            }
        };
        Ok(if order.state == "held" {
            Placed::Held(order.id)
        } else {
            Placed::Other(format!("answered {}", order.state))
        })
    }

    async fn pay(&self, order: &Order, order_id: &str) -> Result<Moved> {
        let id = self.global_id(&order.order_no, order.rank);
        let notice = PaymentNotification {
            event_id: id.clone(),
            payment_id: id,
            order_id: Some(order_id.to_owned()),
            outcome: "succeeded".to_owned(),
            ..PaymentNotification::default()
        };
        match self.client.notify_payment(REPLAY, &notice).await {
            // The disposition of a repeat is `duplicate`; only the state says what became of the order.
            Ok(answer) if answer.value.order.state == "sold" => Ok(Moved::Done),
            Ok(answer) => {
                let answer = answer.value;
                Ok(Moved::Other(format!(
                    "answered {}, the order is {}",
                    answer.disposition, answer.order.state
                )))
            }
            Err(error) => Ok(Moved::Other(refusal(error)?.1)),
        }
    }

    async fn adjust(&self, adjustment: &Adjustment) -> Result<Moved> {
        let pool = self.pools.get(&adjustment.sku).context("no pool was opened for the SKU")?;
        let request = AdjustPoolRequest {
            adjustment_id: self.global_id(&adjustment.invoice, adjustment.line),
            delta: -i64::from(adjustment.units),
            kind: "adjust".to_owned(),
            reason: format!("line {} of the file", adjustment.line),
            operator: REPLAY.to_owned(),
            bucket: None,
        };
        moved(self.client.adjust_pool(pool, &request).await, Some(Code::StockInUse))
    }

    async fn refund(&self, row: &Return, taken: &Taken) -> Result<Moved> {
        let lines = taken.lines.iter();
        let request = RefundRequest {
            // Per order: the row of the return is enough.
            refund_id: format!("row-{}", row.line),
            lines: lines.map(|(line, quantity)| RefundLine { line: *line, quantity: *quantity }).collect(),
            restock: Some(true),
            reason: format!("line {} of the file", row.line),
        };
        moved(self.client.refund_order(&taken.order_id, &request).await, None)
    }

    async fn stock(&self) -> Result<Vec<Stock>> {
        let query = PoolsQuery { campaign_id: Some(self.campaign_id.clone()), ..PoolsQuery::default() };
        let pools = self.client.every_pool(&query).await?;
        pools.into_iter().map(stock).collect()
    }
}

/// A pool's figures; its buckets must add up to them.
fn stock(pool: PoolView) -> Result<Stock> {
    let sum = |part: fn(&holdfast_wire::BucketView) -> u64| pool.buckets.iter().map(part).sum::<u64>();
    let buckets = (sum(|bucket| bucket.available), sum(|bucket| bucket.held), sum(|bucket| bucket.sold));
    if buckets != (pool.available, pool.held, pool.sold) {
        bail!("the buckets of {:?} do not add up to their pool", pool.sku);
    }
    let PoolView { sku, supply, available, held, sold, .. } = pool;
    Ok(Stock { sku, supply, available, held, sold })
}
