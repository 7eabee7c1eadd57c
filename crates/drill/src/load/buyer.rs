//! One buyer's life, from the first click to the end of the order.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::order::{Disposition, State};
use uuid::Uuid;

use super::answer::Heard;
use super::market::{Asker, Market, Waiting};
use super::request::{Payment, Wanted};
use crate::history::{Answered, Ask};
use crate::sale::{Fate, Intent};

/// How long before the end of a hold those begin to pay who pay at its end, in milliseconds.
const BEFORE_END_MS: u64 = 120;

/// One who buys.
pub(super) struct Buyer {
    market: Arc<Market>,
    intent: Intent,
}

/// An order as its buyer knows it.
#[derive(Debug, Clone)]
struct Standing {
    id: Uuid,
    state: State,
    ticket: Option<Box<str>>,
}

impl Standing {
    fn of(heard: &Heard) -> Option<Self> {
        let told = heard.told()?;
        Some(Self { id: told.id, state: told.state, ticket: heard.ticket.clone() })
    }
}

impl Buyer {
    pub(super) const fn new(market: Arc<Market>, intent: Intent) -> Self {
        Self { market, intent }
    }

    /// Buys. Everything that is told on the way is in the history.
    pub(super) async fn live(self, due_ns: u64) {
        let Some(standing) = self.place(due_ns).await else { return };
        // A cache of a new epoch has not heard of the number, and what it has accepted and lost is free for other content.
        let has_cache =
            self.market.sale.goods.get(self.intent.good).is_some_and(|good| good.path == "cached");
        if self.intent.alters && !has_cache {
            let other = Wanted::alter(&self.market.sale, &self.intent, self.market.place_path);
            self.ask(1, &other).await;
        }
        let end = match standing.state {
            State::Queued => self.follow(&standing).await,
            State::Held
            | State::InReview
            | State::Sold
            | State::Refunded
            | State::Released
            | State::Failed => Some(standing),
        };
        let Some(standing) = end else { return };
        self.look(&standing).await;
        if standing.state == State::Held {
            self.see_to(standing.id).await;
            self.look(&standing).await;
        }
        if self.intent.repeats {
            let again = Wanted::place(&self.market.sale, &self.intent, self.market.place_path);
            if let Some(heard) = self.ask(1, &again).await {
                self.is_the_same(&standing, &heard).await;
            }
        }
    }

    /// The first order, with all that makes it more than one request.
    async fn place(&self, due_ns: u64) -> Option<Standing> {
        let place = Wanted::place(&self.market.sale, &self.intent, self.market.place_path);
        if let Some(after) = self.intent.hangs_up_ms {
            let after = Duration::from_millis(after.into());
            self.market.hang_up(self.asker(0), &place, due_ns, after).await;
            if self.intent.gives_up {
                return None;
            }
            let heard = self.ask(1, &place).await?;
            return Standing::of(&heard);
        }
        if !self.intent.at_once {
            return Standing::of(&self.market.ask(self.asker(0), &place, due_ns).await?);
        }
        let (one, other) = tokio::join!(
            self.market.ask(self.asker(0), &place, due_ns),
            self.market.ask(self.asker(1), &place, due_ns)
        );
        let one = one.as_ref().and_then(Standing::of);
        let other_standing = other.as_ref().and_then(Standing::of);
        match (one, other) {
            (Some(one), Some(other)) => {
                self.is_the_same(&one, &other).await;
                Some(one)
            }
            (one, _) => one.or(other_standing),
        }
    }

    /// Follows what was told of the same key if it is another order: a cache that has lost the first may have accepted
    /// it again.
    async fn is_the_same(&self, standing: &Standing, heard: &Heard) {
        if let Some(other) = Standing::of(heard)
            && other.id != standing.id
            && other.state == State::Queued
        {
            self.follow(&other).await;
        }
    }

    /// Waits for the end of the queue; none if nobody knows it, or it was lost with the cache.
    async fn follow(&self, standing: &Standing) -> Option<Standing> {
        // What only a cache has accepted is known to others by its ticket alone, and a cancel carries none.
        let is_known = standing.ticket.is_none();
        if is_known && self.intent.fate == Fate::Cancelled && self.intent.think_ms.is_multiple_of(2) {
            self.ask(0, &Wanted::cancel(standing.id)).await;
        }
        let look = Wanted::look(standing.id, standing.ticket.as_deref(), true);
        // The queue's own time bounds this; what is over is asked for once more at the end.
        while !self.market.is_over() {
            let Some(heard) = self.ask(0, &look).await else { break };
            match (Standing::of(&heard), &heard.answered) {
                (Some(now), _) if now.state != State::Queued => return Some(now),
                (Some(_), _) => {}
                // It is refused for good: `admission_lost`.
                (None, Answered::Refused { .. }) => return None,
                (None, _) => break,
            }
        }
        let Standing { id, ticket, .. } = standing.clone();
        self.market.leave(Waiting { buyer: self.intent.buyer, id, ticket });
        None
    }

    /// What becomes of a hold.
    async fn see_to(&self, id: Uuid) {
        let placed_ns = self.market.now_ns();
        let think = u64::from(self.intent.think_ms);
        self.pause(think).await;
        let (hold, grace) = (self.market.sale.shop.hold_seconds, self.market.sale.shop.release_grace_ms);
        let hold_ms = u64::from(hold).saturating_mul(1_000);
        let end_ms = hold_ms.saturating_add(grace.into());
        match self.intent.fate {
            Fate::Paid => self.pay(id, 0, Payment::First).await,
            Fate::PaidDoubled => {
                tokio::join!(self.pay(id, 0, Payment::First), self.pay(id, 1, Payment::First));
                self.pause(think).await;
                self.pay(id, 2, Payment::First).await;
            }
            Fate::PaymentFailed => self.fail(id).await,
            Fate::SecondPayment => {
                self.fail(id).await;
                self.pause(think / 2).await;
                self.pay(id, 1, Payment::Second).await;
            }
            Fate::PaidAtEnd => {
                // From just before the end to just after the release, by what this buyer would have thought.
                let spread = BEFORE_END_MS.saturating_add(grace.into()).saturating_add(BEFORE_END_MS);
                let at = hold_ms
                    .saturating_sub(BEFORE_END_MS)
                    .saturating_add(u64::from(self.intent.node) % spread);
                self.until(placed_ns, at).await;
                self.pay(id, 0, Payment::First).await;
            }
            Fate::PaidLate => {
                self.until(placed_ns, end_ms.saturating_add(500)).await;
                self.pay(id, 0, Payment::First).await;
            }
            Fate::Cancelled => self.cancel(id).await,
            Fate::Raced => {
                tokio::join!(self.pay(id, 0, Payment::First), self.cancel(id));
            }
            Fate::Unpaid => {}
        }
    }

    async fn pay(&self, id: Uuid, node: u32, payment: Payment) {
        let notice = Wanted::notice(&self.market.sale, self.intent.buyer, id, Ask::Pay, payment);
        let Some(heard) = self.ask(node, &notice).await else { return };
        let disposition = heard.told().and_then(|told| told.disposition);
        if disposition == Some(Disposition::RefundDue) && heard.refund_due {
            let gone = Wanted::refunded(&self.market.sale, self.intent.buyer, id, payment);
            self.ask(node, &gone).await;
        }
    }

    async fn fail(&self, id: Uuid) {
        let notice = Wanted::notice(&self.market.sale, self.intent.buyer, id, Ask::Fail, Payment::First);
        self.ask(0, &notice).await;
    }

    async fn cancel(&self, id: Uuid) {
        self.ask(1, &Wanted::cancel(id)).await;
    }

    async fn look(&self, standing: &Standing) {
        if self.intent.looks {
            self.ask(2, &Wanted::look(standing.id, standing.ticket.as_deref(), false)).await;
        }
    }

    /// Asks a node that is so many further than this buyer's first.
    async fn ask(&self, further: u32, wanted: &Wanted) -> Option<Heard> {
        self.market.ask(self.asker(further), wanted, self.market.now_ns()).await
    }

    const fn asker(&self, further: u32) -> Asker {
        let Intent { buyer, node, gives_up, .. } = self.intent;
        Asker { buyer, node: node.wrapping_add(further), gives_up }
    }

    async fn pause(&self, ms: u64) {
        self.until(self.market.now_ns(), ms).await;
    }

    /// Waits until so many milliseconds after a moment.
    async fn until(&self, from_ns: u64, ms: u64) {
        self.market.wait_until(from_ns.saturating_add(ms.saturating_mul(1_000_000))).await;
    }
}
