//! Asking the caches for an order's units. Which bucket is asked first, second, … is a function of the order's
//! number alone, so that a repeat meets the answer that the first got; where it does not, because weights or
//! epochs changed meanwhile, the key lets it land once and the other entry is settled.

use std::sync::Arc;

use holdfast_core::cache::Accepted;
use holdfast_core::campaign::Campaign;
use holdfast_core::command::Place;
use holdfast_core::decide::accepted_order;
use holdfast_core::order::Order;
use holdfast_core::stock::{BucketKey, CacheFallback};
use holdfast_core::time::Timestamp;
use holdfast_metrics::CacheAnswer;

use super::contract::{Accept, Answer, Cache, CacheError};
use super::ticket::Ticket;
use super::waiting::AcceptedOrder;
use crate::catalog::PoolEntry;
use crate::engine::Engine;
use crate::error::Error;
use crate::keys::stable_hash;
use crate::routing;

/// An order for the caches of its one pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'w> {
    pub(crate) campaign: &'w Campaign,
    pub(crate) pool: &'w PoolEntry,
    pub(crate) place: &'w Arc<Place>,
    pub(crate) units: u64,
}

/// What came of asking.
#[derive(Debug, Clone)]
pub(crate) enum Admission {
    /// Accepted: it is queued.
    Accepted(Arc<Order>),
    /// Its number is known: the order as it stands.
    Known(Arc<Order>),
    /// No cache has enough; what they have together.
    Short(u64),
    /// As many wait as may.
    QueueFull,
    /// The authority is to be asked instead.
    Authority,
}

/// An answer as it is counted.
fn label(answer: &Result<Answer, CacheError>) -> CacheAnswer {
    match answer {
        Ok(Answer::Accepted { .. }) => CacheAnswer::Accepted,
        Ok(Answer::Known { .. }) => CacheAnswer::Known,
        Ok(Answer::Short { .. }) => CacheAnswer::Short,
        Ok(Answer::AccountLimit) => CacheAnswer::AccountLimit,
        Ok(Answer::QueueFull) => CacheAnswer::QueueFull,
        Ok(Answer::NotReady) | Err(CacheError::Unfit(_)) => CacheAnswer::NotReady,
        Ok(Answer::WentBack) => CacheAnswer::WentBack,
        Err(CacheError::Unavailable(_)) => CacheAnswer::Unavailable,
        Err(CacheError::Unknown(_)) => CacheAnswer::Unknown,
    }
}

/// What the caches that were asked had.
#[derive(Debug, Default)]
struct Tried {
    numbers: Vec<u32>,
    available: u64,
    /// One could not be used.
    is_doubtful: bool,
    is_full: bool,
}

impl Engine {
    /// Asks the caches of the pool, one after another.
    pub(crate) async fn admit(&self, wish: Wish<'_>) -> Result<Admission, Error> {
        let ticket = stable_hash(wish.place.key.order_no.as_str());
        let mut tried = Tried::default();
        while let Some(number) = routing::choose(&wish.pool.weights, ticket, &tried.numbers, |_| true) {
            let bucket = BucketKey { pool: wish.pool.id, number };
            if let Some(admission) = self.admit_at(&wish, bucket, &mut tried).await? {
                return Ok(admission);
            }
            tried.numbers.push(number);
        }
        if tried.is_doubtful {
            return match wish.pool.cache_fallback {
                CacheFallback::Authority => Ok(Admission::Authority),
                CacheFallback::Refuse => Err(Error::CacheNotReady),
            };
        }
        if tried.is_full {
            return Ok(Admission::QueueFull);
        }
        // Enough, but in no bucket alone: only the authority can split a line.
        if tried.available >= wish.units {
            return Ok(Admission::Authority);
        }
        Ok(Admission::Short(tried.available))
    }

    /// One bucket's cache; none: go on to the next.
    async fn admit_at(
        &self,
        wish: &Wish<'_>,
        bucket: BucketKey,
        tried: &mut Tried,
    ) -> Result<Option<Admission>, Error> {
        let caches = &self.shared.caches;
        let (Some(cache), Some((epoch, identity))) = (caches.cache(), caches.open_epoch(bucket)) else {
            tried.is_doubtful = true;
            return Ok(None);
        };
        let policy = &wish.campaign.policy;
        let (buckets, now) = (u64::from(wish.pool.buckets()).max(1), self.store().now());
        let accept = Accept {
            bucket,
            epoch,
            identity,
            seen: caches.seen(bucket, epoch),
            place: Arc::clone(wish.place),
            units: wish.units,
            due_at: now.plus_millis(policy.queue_wait_ms),
            account_limit: policy.account_limit,
            backlog_max: policy.queue_limit.div_ceil(buckets),
        };
        let answer = self.ask(&**cache, &accept).await;
        caches.metrics.answers.of(label(&answer)).inc();
        match answer {
            Ok(Answer::Accepted { accepted, backlog }) => {
                caches.note(&accepted, backlog, now);
                let order = self.keep_accepted(wish.campaign, &accept, accepted, now).await?;
                Ok(Some(Admission::Accepted(order)))
            }
            Ok(Answer::Known { accepted, order, backlog }) => {
                caches.note(&accepted, backlog, now);
                let ticket = Ticket { accepted, order, key: wish.place.key.clone() };
                // What the cache knows and can never land is the authority's: there the number is free.
                let order = self.known_to_cache(&ticket).await?;
                Ok(Some(order.map_or(Admission::Authority, Admission::Known)))
            }
            Ok(Answer::Short { available }) => {
                let available = u64::try_from(available).unwrap_or(0);
                tried.available = tried.available.saturating_add(available);
                Ok(None)
            }
            Ok(Answer::QueueFull) => {
                tried.is_full = true;
                Ok(None)
            }
            // What the cache counts an account may have given back: only the authority refuses.
            Ok(Answer::AccountLimit) => Ok(Some(Admission::Authority)),
            Ok(Answer::WentBack) => {
                self.doubt(bucket, epoch);
                tried.is_doubtful = true;
                Ok(None)
            }
            // An answer that stays unknown is harmless: if it was accepted, it lands by its key.
            Ok(Answer::NotReady) | Err(_) => {
                tried.is_doubtful = true;
                Ok(None)
            }
        }
    }

    /// Asks, and if the answer is lost asks what became of it; never sends the same again.
    async fn ask(&self, cache: &dyn Cache, accept: &Accept) -> Result<Answer, CacheError> {
        let lost = match cache.accept(accept).await {
            Err(CacheError::Unknown(why)) => CacheError::Unknown(why),
            answer => return answer,
        };
        let found = cache.look_up(accept.bucket, accept.epoch, &accept.place.key.order_no).await?;
        let (accepted, order) = found.ok_or(lost)?;
        let backlog = accepted.number.saturating_sub(self.shared.caches.landed(accept.bucket, accept.epoch));
        Ok(if order == accept.place.id {
            Answer::Accepted { accepted, backlog }
        } else {
            Answer::Known { accepted, order, backlog }
        })
    }

    /// The order as it waits, with its ticket.
    async fn keep_accepted(
        &self,
        campaign: &Campaign,
        accept: &Accept,
        accepted: Accepted,
        now: Timestamp,
    ) -> Result<Arc<Order>, Error> {
        let place = &accept.place;
        let order = Arc::new(accepted_order(place, &campaign.policy, &accepted, accept.due_at, now));
        let ticket = Ticket { accepted, order: place.id, key: place.key.clone() };
        self.keep_waiting(ticket, &order).await?;
        Ok(order)
    }

    /// Keeps an accepted order at hand until it lands.
    pub(super) async fn keep_waiting(&self, ticket: Ticket, order: &Arc<Order>) -> Result<(), Error> {
        let caches = &self.shared.caches;
        let text = caches.tickets.sign(self.store(), &ticket).await?;
        caches.waiting.enter(AcceptedOrder { order: Arc::clone(order), ticket, text: text.into() });
        Ok(())
    }
}
