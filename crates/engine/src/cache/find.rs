//! What became of an accepted order. The authority is asked first; what it does not have may still wait in the
//! cache, as long as the epoch can land; after the epoch was closed it never will, and that is the answer.

use std::sync::Arc;

use holdfast_core::cache::{Accepted, CacheBucket, EpochState, Landing};
use holdfast_core::decide::accepted_order;
use holdfast_core::id::{OrderId, OrderKey};
use holdfast_core::ledger::Entry;
use holdfast_core::order::{Order, State};
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::BucketKey;

use super::contract::Delivery;
use super::ticket::Ticket;
use crate::engine::Engine;
use crate::error::Error;
use crate::offers::Served;
use crate::queue::Standing;
use crate::request::PlaceRequest;

/// Caches that are asked for a number at most.
const LOOKED_AT_MAX: usize = 64;

/// What is known of an order.
#[derive(Debug, Clone)]
pub enum Found {
    /// It is, or waits.
    Order(Arc<Order>),
    /// It was accepted and lost before it was landed: nothing was ever held. The same key may be used again.
    Lost,
    /// There is no such order.
    Nothing,
}

impl Found {
    /// The order, if there is one.
    #[must_use]
    pub fn into_order(self) -> Option<Arc<Order>> {
        match self {
            Self::Order(order) => Some(order),
            Self::Lost | Self::Nothing => None,
        }
    }
}

impl Engine {
    /// An order by its id, or by the ticket that its buyer was given.
    pub async fn find_order(&self, id: OrderId, ticket: Option<&str>) -> Result<Found, Error> {
        if let Some(order) = self.store().order(id).await? {
            self.shared.caches.waiting.leave(id);
            return Ok(Found::Order(order));
        }
        let ticket = match ticket {
            Some(text) => self.shared.caches.tickets.read(self.store(), text).await?,
            None => self.shared.caches.waiting.get(id).map(|waiting| waiting.ticket),
        };
        match ticket {
            Some(ticket) if ticket.order == id => self.fate(&ticket).await,
            Some(_) | None => Ok(Found::Nothing),
        }
    }

    /// The authority does not have an order: if a cache accepted it here, waits until it has landed. None: the
    /// authority has it now.
    pub(crate) async fn refused_before_landing(&self, id: OrderId) -> Result<Option<Refusal>, Error> {
        if self.shared.caches.waiting.get(id).is_none() {
            return Ok(Some(Refusal::UnknownOrder));
        }
        match self.order_when_decided(id, None, self.shared.config.cache_landing_wait).await? {
            Found::Order(order) if order.state == State::Queued => Err(Error::CacheNotReady),
            Found::Order(order) if order.id == id => Ok(None),
            Found::Lost => Ok(Some(Refusal::AdmissionLost)),
            // Its number was known by another id.
            Found::Order(_) | Found::Nothing => Ok(Some(Refusal::UnknownOrder)),
        }
    }

    /// The text of an order's ticket, while it waits and this node knows it.
    pub fn ticket_of(&self, order: OrderId) -> Option<Arc<str>> {
        self.shared.caches.waiting.get(order).map(|waiting| waiting.text)
    }

    /// What became of a ticket. The order of the two looks matters: after the epoch was closed nothing of it lands
    /// any more, so what has not landed then is lost for good, whatever the number is used for later.
    async fn fate(&self, ticket: &Ticket) -> Result<Found, Error> {
        let can_land = self.can_land(&ticket.accepted).await?;
        if let Some(entry) = self.store().landed(ticket.accepted.key()).await? {
            self.shared.caches.waiting.leave(ticket.order);
            return Ok(self.landed_as(ticket, &entry).await?.map_or(Found::Lost, Found::Order));
        }
        if !can_land {
            self.shared.caches.waiting.leave(ticket.order);
            self.shared.caches.metrics.lost.inc();
            return Ok(Found::Lost);
        }
        if let Some(waiting) = self.shared.caches.waiting.get(ticket.order) {
            return Ok(Found::Order(waiting.order));
        }
        self.read_waiting(ticket).await.map(Found::Order)
    }

    /// The order as which a ticket's entry has landed. Its number may have been known by another id. None: the entry
    /// was set aside, or has landed as another order: then a cache went back unnoticed and has used it for both, and
    /// the epoch is given up, since nothing else settles what it took for the second one.
    async fn landed_as(&self, ticket: &Ticket, entry: &Entry) -> Result<Option<Arc<Order>>, Error> {
        let Some(id) = entry.order_id else { return Ok(None) };
        let own = self.store().order(id).await?.filter(|order| order.key == ticket.key);
        if own.is_none() {
            self.doubt(ticket.accepted.bucket, ticket.accepted.epoch);
        }
        Ok(own)
    }

    /// Whether what was accepted there may still land.
    async fn can_land(&self, accepted: &Accepted) -> Result<bool, Error> {
        let may = |row: &CacheBucket| row.epoch == accepted.epoch && row.state != EpochState::Closed;
        // What this node was told is true or late, and being late is only being patient.
        if self.shared.caches.row(accepted.bucket).as_ref().is_some_and(may) {
            return Ok(true);
        }
        Ok(self.store().cache_bucket(accepted.bucket).await?.as_ref().is_some_and(may))
    }

    /// Reads from the cache what this node was not told: another one accepted the order.
    async fn read_waiting(&self, ticket: &Ticket) -> Result<Arc<Order>, Error> {
        let cache = self.shared.caches.cache().ok_or(Error::CacheNotReady)?;
        let accepted = ticket.accepted;
        let entry = cache.entry(accepted.bucket, accepted.entry).await.map_err(|_| Error::CacheNotReady)?;
        let is_own =
            |landing: &Arc<Landing>| landing.accepted == accepted && landing.place.id == ticket.order;
        let landing = match entry {
            Some(Delivery::Order(landing)) => Some(landing).filter(is_own),
            Some(Delivery::Poison(_)) | None => None,
        };
        let Some(landing) = landing else {
            // It has just landed, or is lost and the keeper has not noticed yet.
            let order = match self.store().landed(accepted.key()).await? {
                Some(entry) => self.landed_as(ticket, &entry).await?,
                None => None,
            };
            return order.ok_or(Error::CacheNotReady);
        };
        let campaign = self.shared.catalog.campaign(self.store(), &ticket.key.campaign).await?;
        let policy = campaign.map(|campaign| campaign.policy.clone()).unwrap_or_default();
        let order = accepted_order(&landing.place, &policy, &accepted, landing.due_at, self.store().now());
        let order = Arc::new(order);
        self.keep_waiting(ticket.clone(), &order).await?;
        Ok(order)
    }

    /// The order of a number that a cache knows; none: nothing will ever land there. Its epoch is over and the cache
    /// does not know yet, or its entry was set aside.
    pub(super) async fn known_to_cache(&self, ticket: &Ticket) -> Result<Option<Arc<Order>>, Error> {
        Ok(self.fate(ticket).await?.into_order())
    }

    /// Where an accepted order stands; none if this node does not know that it waits.
    pub(crate) async fn standing_in_cache(&self, order: &Order) -> Option<Standing> {
        let caches = &self.shared.caches;
        let waiting = caches.waiting.get(order.id)?;
        let Accepted { bucket, epoch, number, .. } = waiting.ticket.accepted;
        self.refresh_progress(bucket).await;
        let position = number.saturating_sub(caches.landed(bucket, epoch)).max(1);
        let now = self.store().now();
        Some(Standing::at(position, caches.each_us(bucket, now), order.due_at.unwrap_or(now), now))
    }

    /// Whether an accepted order seems to have left the stream.
    pub(crate) async fn has_left_cache(&self, id: OrderId) -> bool {
        let Some(waiting) = self.shared.caches.waiting.get(id) else { return true };
        let Accepted { bucket, epoch, number, .. } = waiting.ticket.accepted;
        self.refresh_progress(bucket).await;
        self.shared.caches.landed(bucket, epoch) >= number
            || self.shared.caches.row(bucket).is_none_or(|row| row.epoch != epoch)
    }

    /// Asks the cache how far it has come, if that is not known well enough: once in a while, however many ask.
    async fn refresh_progress(&self, bucket: BucketKey) {
        let (caches, age_max) = (&self.shared.caches, self.shared.config.queue_age_max);
        let Some(cache) = caches.cache().filter(|_| caches.begin_refresh(bucket, age_max)) else { return };
        if let Ok(Some(position)) = cache.position(bucket).await {
            caches.note_position(bucket, &position, self.store().now());
        }
    }

    /// An order with this number that a cache of the pool that the request names has accepted; none if none has.
    pub(crate) async fn accepted_before(&self, request: &PlaceRequest) -> Result<Option<Arc<Order>>, Error> {
        let key = &request.key;
        let Some(line) = request.lines.first() else { return Ok(None) };
        let Some(campaign) = self.shared.catalog.campaign(self.store(), &key.campaign).await? else {
            return Ok(None);
        };
        let catalog = &self.shared.catalog;
        let served = catalog.served(self.store(), &campaign, &line.sku, line.location.as_ref()).await?;
        let Some(Served::Pool(pool)) = served.filter(|_| self.has_cache()) else { return Ok(None) };
        let buckets = (0..pool.buckets()).map(|number| BucketKey { pool: pool.id, number });
        self.accepted_in(key, buckets).await
    }

    /// An order with this number that a cache of its campaign has accepted, as far as this node knows the caches;
    /// none if none has.
    pub async fn accepted_by_key(&self, key: &OrderKey) -> Result<Option<Arc<Order>>, Error> {
        let buckets = self.shared.catalog.cached_buckets_of(&key.campaign);
        self.accepted_in(key, buckets.into_iter().take(LOOKED_AT_MAX)).await
    }

    async fn accepted_in(
        &self,
        key: &OrderKey,
        buckets: impl Iterator<Item = BucketKey>,
    ) -> Result<Option<Arc<Order>>, Error> {
        let caches = &self.shared.caches;
        let Some(cache) = caches.cache() else { return Ok(None) };
        for bucket in buckets {
            let Some(row) = caches.row(bucket).filter(|row| row.state != EpochState::Closed) else {
                continue;
            };
            let found = cache.look_up(bucket, row.epoch, &key.order_no).await;
            let Some((accepted, order)) = found.map_err(|_| Error::CacheNotReady)? else { continue };
            let ticket = Ticket { accepted, order, key: key.clone() };
            if let Some(order) = self.known_to_cache(&ticket).await? {
                return Ok(Some(order));
            }
        }
        Ok(None)
    }
}
