//! The load: buyers who come by a schedule, whatever becomes of those before them.

mod answer;
mod arrivals;
mod buyer;
mod helper;
mod market;
mod node;
mod offer;
mod request;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::arrivals::Arrivals;
use self::buyer::Buyer;
pub use self::helper::help;
pub(crate) use self::helper::{Errand, Helper};
use self::market::{Asker, Market};
use self::node::{Node, trust};
pub use self::offer::{Offer, Offered};
pub(crate) use self::request::LOOK_SECONDS;
use self::request::Wanted;
use crate::history::{Exchange, History};
use crate::sale::Sale;

/// Most buyers of one process who are there at once, most of them thinking. Who comes beyond that waits, and the wait
/// counts.
pub(crate) const BUYERS_MAX: usize = 20_000;

/// How late the load itself may be before it is called the limit, in microseconds, for 99 of 100 buyers.
const LATE_MAX_US: u64 = 50_000;

/// A load that has something to do for so much of the time, in hundredths, has no room for what comes next.
const BUSY_PERCENT_MAX: u64 = 95;

/// How long the answers at the end may be waited for.
const CLOSING_MAX: Duration = Duration::from_secs(120);

/// Where and how orders are sent.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// The base address of each node.
    pub(crate) nodes: Vec<String>,
    /// The key, where they want one.
    pub(crate) key: Option<String>,
    /// Whom nodes behind `https://` may be vouched for by, in PEM form; none: those that the system trusts.
    pub(crate) ca_pem: Option<Vec<u8>>,
    /// Most connections of this process to all nodes together.
    pub(crate) connections: usize,
    /// Most buyers who are there at once.
    pub(crate) buyers_max: usize,
    /// The route of orders.
    pub(crate) place_path: &'static str,
}

/// The route of orders.
pub(crate) const ORDERS: &str = "/v1/orders";

/// A part of a load: of so many processes this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// Which, from 0.
    pub(crate) number: u32,
    /// How many there are.
    pub(crate) of: u32,
}

impl Share {
    /// All of it.
    pub(crate) const WHOLE: Self = Self { number: 0, of: 1 };

    const fn has(self, buyer: u64) -> bool {
        buyer % (self.of as u64) == self.number as u64
    }
}

/// How well a process kept the schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pace {
    /// Orders that were due.
    pub(crate) due: u64,
    /// Orders that were sent.
    pub(crate) sent: u64,
    /// By how much 99 of 100 were late at most for want of the load itself, in microseconds.
    pub late_p99_us: u64,
    /// Orders that had to wait because too many buyers were there.
    pub(crate) held_back: u64,
    /// How much of the time, in hundredths, the load had something to do or waited for a processor to do it.
    pub(crate) busy_percent: u64,
}

impl Pace {
    /// Whether the load was itself the limit.
    pub(crate) const fn is_limit(&self) -> bool {
        self.late_p99_us > LATE_MAX_US || self.busy_percent >= BUSY_PERCENT_MAX || self.sent < self.due
    }

    /// This and another process.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            due: self.due.saturating_add(other.due),
            sent: self.sent.saturating_add(other.sent),
            late_p99_us: self.late_p99_us.max(other.late_p99_us),
            held_back: self.held_back.saturating_add(other.held_back),
            busy_percent: self.busy_percent.max(other.busy_percent),
        }
    }
}

/// A load that runs on a thread of its own: what is measured is the deployment and not who else runs here.
pub(crate) struct Load {
    market: Arc<Market>,
    buyers_max: usize,
    share: Share,
    stop: watch::Sender<bool>,
}

impl Load {
    /// Makes one ready. Its time begins with this call.
    pub(crate) fn new(sale: Sale, way: &Way, share: Share) -> Result<Self> {
        ensure!(share.of > 0 && share.number < share.of, "there is no such share of a load");
        let tls = way.nodes.iter().any(|node| node.starts_with("https://"));
        let tls = tls.then(|| trust(way.ca_pem.as_deref())).transpose()?;
        let (first, more) = way.nodes.split_first().context("a load needs a node")?;
        let each = way.connections.div_ceil(way.nodes.len());
        let node = |base: &String| Node::new(base, way.key.as_deref(), tls.as_ref(), each);
        let nodes = (node(first)?, more.iter().map(node).collect::<Result<_>>()?);
        let market = Market {
            sale,
            nodes,
            history: History::default(),
            place_path: way.place_path,
            zero: Instant::now(),
            over: watch::Sender::new(false),
            waiting: Mutex::default(),
        };
        Ok(Self {
            market: Arc::new(market),
            buyers_max: way.buyers_max,
            share,
            stop: watch::Sender::new(false),
        })
    }

    /// Lets nobody new come.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Lets nobody ask again: whoever waits for an answer hears it, and no more.
    pub(crate) fn end(&self) {
        self.market.over.send_replace(true);
    }

    /// Lets the buyers of this share come, each at its time, and waits until all are done.
    pub(crate) async fn run(&self) -> Result<Pace> {
        let (market, share, mut stop) = (Arc::clone(&self.market), self.share, self.stop.subscribe());
        let room = self.buyers_max;
        on_own_thread(async move {
            let mut crowd = Crowd::new(market, room);
            for (buyer, due_ns) in Arrivals::new(&crowd.market.sale).filter(|(buyer, _)| share.has(*buyer)) {
                tokio::select! {
                    biased;
                    _ = stop.wait_for(|stop| *stop) => break,
                    () = tokio::time::sleep_until(crowd.market.instant(due_ns).into()) => {}
                }
                if !crowd.let_in(buyer, due_ns).await {
                    break;
                }
            }
            crowd.leave().await
        })
        .await
    }

    /// Asks what became of every order that is still queued as far as its buyer knows; when everything is at rest.
    pub(crate) async fn close(&self) -> Result<()> {
        let market = Arc::clone(&self.market);
        market.over.send_replace(false);
        on_own_thread(async move {
            let closed = tokio::time::timeout(CLOSING_MAX, ask_of_waiting(&market)).await;
            closed.context("what became of the orders that wait could not be asked in time")
        })
        .await?
    }

    /// Everything that was asked and told.
    pub(crate) fn into_history(self) -> Vec<Exchange> {
        self.market.history.take()
    }
}

/// Looks every waiting order up until it is known, a few at a time.
async fn ask_of_waiting(market: &Arc<Market>) {
    let waiting =
        std::mem::take(&mut *market.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    let mut asking = JoinSet::new();
    for waiting in waiting {
        while asking.len() >= 64 {
            asking.join_next().await;
        }
        let market = Arc::clone(market);
        asking.spawn(async move {
            let look = Wanted::look(waiting.id, waiting.ticket.as_deref(), true);
            let node = u32::try_from(waiting.buyer % 64).unwrap_or_default();
            let asker = Asker { buyer: waiting.buyer, node, gives_up: false };
            // Nothing breaks any more: each node that is asked may say it.
            for further in 0..8 {
                let asker = Asker { node: asker.node.wrapping_add(further), ..asker };
                let heard = market.ask(asker, &look, market.now_ns()).await;
                if heard.is_some_and(|heard| heard.told().is_none_or(|told| told.state.as_str() != "queued"))
                {
                    return;
                }
            }
        });
    }
    asking.join_all().await;
}

/// Buyers who are there.
struct Crowd {
    market: Arc<Market>,
    room: Arc<Semaphore>,
    buyers: JoinSet<()>,
    pace: Pace,
    late_us: Vec<u32>,
    /// When there was room again after somebody was held back.
    free_ns: u64,
    /// When it began, and the time that this thread had used by then.
    began: (Instant, u64),
}

impl Crowd {
    fn new(market: Arc<Market>, room: usize) -> Self {
        let room = Arc::new(Semaphore::new(room));
        Self {
            market,
            room,
            buyers: JoinSet::new(),
            pace: Pace::default(),
            late_us: Vec::new(),
            free_ns: 0,
            began: (Instant::now(), used_ns()),
        }
    }

    /// Lets a buyer in; whether more may come.
    async fn let_in(&mut self, buyer: u64, due_ns: u64) -> bool {
        self.pace.due = self.pace.due.saturating_add(1);
        // Who was held back because too many were there is not late for want of the load.
        let late_us = self.market.now_ns().saturating_sub(due_ns.max(self.free_ns)) / 1_000;
        self.late_us.push(u32::try_from(late_us).unwrap_or(u32::MAX));
        let place = match Arc::clone(&self.room).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                self.pace.held_back = self.pace.held_back.saturating_add(1);
                // It is never closed.
                let Ok(place) = Arc::clone(&self.room).acquire_owned().await else { return false };
                self.free_ns = self.market.now_ns();
                place
            }
        };
        if self.market.history.is_full() {
            return false;
        }
        let intent = self.market.sale.intent(buyer);
        let life = Buyer::new(Arc::clone(&self.market), intent);
        self.buyers.spawn(async move {
            life.live(due_ns).await;
            drop(place);
        });
        self.pace.sent = self.pace.sent.saturating_add(1);
        while self.buyers.try_join_next().is_some() {}
        true
    }

    /// Waits until everybody is done.
    async fn leave(mut self) -> Pace {
        let (since, used) = self.began;
        let wall = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
        self.pace.busy_percent = used_ns().saturating_sub(used).saturating_mul(100) / wall;
        while self.buyers.join_next().await.is_some() {}
        self.late_us.sort_unstable();
        let rank = self.late_us.len().saturating_mul(99) / 100;
        self.pace.late_p99_us = self.late_us.get(rank).copied().unwrap_or_default().into();
        self.pace
    }
}

/// The time that this thread has worked or waited for a processor, as Linux counts it; 0 where nobody does.
fn used_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().take(2).filter_map(|figure| figure.parse::<u64>().ok()).sum()
}

/// Runs on one thread that does nothing else.
async fn on_own_thread<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (done, doing) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("load".into()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Nobody waits any more only if the whole drill was given up.
        let _ = done.send(runtime.map(|runtime| runtime.block_on(work)));
    })?;
    Ok(doing.await.context("the load died")??)
}
