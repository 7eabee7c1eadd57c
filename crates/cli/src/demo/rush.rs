//! The rush: buyers who click twice, hang up, do not pay, or pay too late.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use holdfast_client::{Answer, Client, Error};
use holdfast_wire::{Code, OrderView, PaymentNotification, PlaceLine, PlaceOrderRequest};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::plan::{Attempt, Fate};
use super::tally::Tally;

/// What is sold.
pub(super) const SKU: &str = "POSTER";
/// The payment provider.
const PROVIDER: &str = "demo-pay";
/// Attempts that are under way at once.
const IN_FLIGHT_MAX: usize = 256;
/// The first part of the attempts comes as fast as it can: one in so many.
const BURST_SHARE: usize = 4;
/// After the burst so many attempts begin in a second, so that holds run out while others still try.
const ATTEMPTS_PER_SECOND: usize = 1_500;
/// How often new attempts begin after the burst.
const TICK: Duration = Duration::from_millis(20);
/// How long a buyer waits for the end of an order.
const END_MAX: Duration = Duration::from_secs(60);

/// Everybody who takes part.
#[derive(Clone)]
pub(super) struct Rush {
    pub(super) client: Client,
    pub(super) campaign: Arc<str>,
    pub(super) tally: Arc<Tally>,
}

impl Rush {
    /// Makes all attempts and sees every order that holds stock to its end.
    pub(super) async fn run(&self, attempts: Vec<Attempt>) -> Result<()> {
        let (holders, mut held) = mpsc::channel(IN_FLIGHT_MAX);
        let rush = self.clone();
        let arrivals = tokio::spawn(async move { rush.arrive(attempts, holders).await });
        let mut endings = JoinSet::new();
        while let Some((attempt, id)) = held.recv().await {
            let rush = self.clone();
            endings.spawn(async move { rush.end(attempt, id).await });
            // Whoever is done makes room; how many hold at once is bounded by the stock.
            while endings.try_join_next().is_some() {}
        }
        arrivals.await.context("the rush was cut off")?;
        endings.join_all().await;
        Ok(())
    }

    async fn arrive(&self, attempts: Vec<Attempt>, holders: mpsc::Sender<(Attempt, String)>) {
        let room = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        let burst = attempts.len() / BURST_SHARE;
        let per_tick = (ATTEMPTS_PER_SECOND * TICK.as_millis() as usize / 1_000).max(1);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for (index, attempt) in attempts.into_iter().enumerate() {
            if index > burst && index.is_multiple_of(per_tick) {
                tick.tick().await;
            }
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (rush, holders) = (self.clone(), holders.clone());
            tokio::spawn(async move {
                if let Some(id) = rush.attempt(attempt).await {
                    // The receiver lives until all attempts are made.
                    let _ = holders.send((attempt, id)).await;
                }
                drop(permit);
            });
        }
        // All have their answer when all the room is free again.
        let all = u32::try_from(IN_FLIGHT_MAX).unwrap_or(u32::MAX);
        let _ = room.acquire_many(all).await;
    }

    fn request(&self, attempt: &Attempt) -> PlaceOrderRequest {
        PlaceOrderRequest {
            campaign_id: self.campaign.to_string(),
            order_no: attempt.order_no(),
            account: attempt.account(),
            lines: vec![PlaceLine { sku: SKU.to_owned(), location: None, quantity: attempt.quantity }],
            hold_seconds: None,
            amount_due: None,
            limit_keys: None,
            metadata: None,
        }
    }

    /// One attempt; the order's id if it holds stock and nobody looks after it yet.
    async fn attempt(&self, attempt: Attempt) -> Option<String> {
        let request = self.request(&attempt);
        if attempt.hangs_up {
            let sent = hang_up(self.client.base_url(), &request).await;
            let mut counts = self.tally.counts();
            counts.hang_ups += 1;
            if let Err(error) = sent {
                counts.strange(format!("hanging up: {error:#}"));
            }
        }
        // Who hung up does not know what became of it: the same key again says it.
        let answer = self.client.place_order(&request).await;
        if attempt.hangs_up && answer.as_ref().is_ok_and(|answer| answer.status == 200) {
            self.tally.counts().hang_ups_found += 1;
        }
        self.note(&attempt, answer)
    }

    fn note(&self, attempt: &Attempt, answer: Result<Answer<OrderView>, Error>) -> Option<String> {
        let mut counts = self.tally.counts();
        let order = match answer {
            Ok(answer) => {
                counts.answer(if answer.status == 201 { "held" } else { "repeated" });
                answer.value
            }
            Err(error) => {
                let order = error.problem().and_then(|problem| problem.order.as_deref());
                if let Some(order) = order {
                    counts.saw(attempt.order, &order.id, &order.state);
                }
                match error.code() {
                    Some(Code::SoldOut) => counts.answer("sold_out"),
                    Some(Code::AccountLimit) => counts.answer("account_limit"),
                    Some(Code::AlreadyReleased) => counts.answer("repeated"),
                    _ => {
                        counts.answer("unanswered");
                        counts.strange(format!("{}: {error}", attempt.order_no()));
                    }
                }
                return None;
            }
        };
        counts.saw(attempt.order, &order.id, &order.state).then_some(order.id)
    }

    /// Sees an order that holds stock to its end.
    async fn end(&self, attempt: Attempt, id: String) {
        let ended = match attempt.fate {
            Fate::Paid | Fate::PaidTwiceTold => self.pay(&attempt, &id, false).await,
            Fate::PaidLate => match self.client.wait_for_end(&id, END_MAX).await {
                Ok(_) => self.pay(&attempt, &id, true).await,
                Err(error) => Err(error),
            },
            Fate::Unpaid => self.client.wait_for_end(&id, END_MAX).await.inspect(|order| {
                self.tally.counts().expired += u64::from(order.state == "released");
            }),
        };
        let mut counts = self.tally.counts();
        match ended {
            Ok(order) if order.state == "sold" => drop(counts.sold.insert(order.id)),
            Ok(order) if order.state == "released" => drop(counts.released.insert(order.id)),
            Ok(order) => counts.breach(format!("{} is {} for ever", attempt.order_no(), order.state)),
            Err(error) => counts.strange(format!("{}: {error}", attempt.order_no())),
        }
    }

    /// Tells of the payment, perhaps twice; the order after it.
    async fn pay(&self, attempt: &Attempt, id: &str, is_late: bool) -> Result<OrderView, Error> {
        let event = format!("{}:{}", self.campaign, attempt.order_no());
        let notice = PaymentNotification {
            event_id: event.clone(),
            payment_id: event,
            order_id: Some(id.to_owned()),
            outcome: "succeeded".to_owned(),
            ..PaymentNotification::default()
        };
        let mut answer = self.client.notify_payment(PROVIDER, &notice).await?;
        self.count(answer.value.disposition.to_string(), is_late);
        if attempt.fate == Fate::PaidTwiceTold {
            answer = self.client.notify_payment(PROVIDER, &notice).await?;
            self.count(answer.value.disposition.to_string(), is_late);
        }
        Ok(answer.value.order)
    }

    fn count(&self, disposition: String, is_late: bool) {
        let mut counts = self.tally.counts();
        let counted: &mut BTreeMap<String, u64> =
            if is_late { &mut counts.paid_late } else { &mut counts.paid_in_time };
        let count = counted.entry(disposition).or_default();
        *count = count.saturating_add(1);
    }
}

/// Sends an order and hangs up at once, as a telephone does in a tunnel.
async fn hang_up(base: &str, request: &PlaceOrderRequest) -> Result<()> {
    let address = base.strip_prefix("http://").context("an address")?;
    let body = serde_json::to_string(request)?;
    let length = body.len();
    let sent = format!(
        "POST /v1/orders HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(sent.as_bytes()).await?;
    Ok(())
}
