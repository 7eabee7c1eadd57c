//! The pull feed: a consumer comes for its events and says how far it has come. It stands in the authority like every
//! other sink; nobody delivers to it, so nobody needs a lease.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_core::event::OrderEventKind;
use holdfast_core::id::PoolId;
use holdfast_core::stock::BucketKey;
use holdfast_store::{
    AdvanceSink, Lag, Page, PutSink, SinkKind, SinkName, SinkPosition, SinkRefusal, SinkRow, SinkState,
};

use super::contract::OutEvent;
use crate::engine::Engine;
use crate::error::Error;

/// Most buckets of one page: its position names each of them.
const BUCKETS_MAX: usize = 64;
/// Most entries that are read in one bucket for one page.
const ENTRIES_MAX: usize = 1_000;

/// A place in several ledgers at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pulled {
    /// In which round of the consumer; 0 for a pool without consumer.
    pub round: u64,
    /// How far, in each bucket.
    pub places: BTreeMap<BucketKey, u64>,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledEvents {
    /// In the order of each bucket.
    pub events: Vec<OutEvent>,
    /// The place after them.
    pub position: Pulled,
    /// Whether there are more.
    pub more: bool,
}

/// Why there is no page.
#[derive(Debug, Clone)]
pub enum PullError {
    /// The consumer cannot be made, or may not pull.
    Refused(SinkRefusal),
    /// There is no such pool, or no such consumer.
    Unknown,
    /// There is no such place.
    InvalidPosition,
    /// It could not be read.
    Engine(Error),
}

impl From<holdfast_store::Error> for PullError {
    fn from(error: holdfast_store::Error) -> Self {
        Self::Engine(error.into())
    }
}

impl Engine {
    /// The next events of a consumer, which is made by its first visit. The same again until it says that it has them.
    pub async fn pull(&self, first: PutSink, limit: usize) -> Result<PulledEvents, PullError> {
        let consumer = self.pull_consumer(first).await?;
        let page = Page { after: None, limit: limit.min(BUCKETS_MAX) };
        let lags = self.store().lagging(consumer.name.clone(), page).await?;
        let is_cut = lags.len() >= limit.min(BUCKETS_MAX);
        let mut pulled = self.read_on(&lags, limit, |kind| consumer.settings.wants(kind)).await?;
        pulled.more |= is_cut;
        pulled.position.round = consumer.round;
        Ok(pulled)
    }

    async fn pull_consumer(&self, first: PutSink) -> Result<SinkRow, PullError> {
        let known = self.store().sink(first.name.clone()).await?;
        let consumer = match known {
            Some(known) => known,
            None => match self.put_sink(first).await.map_err(PullError::Engine)? {
                Ok((made, _)) => made,
                Err(refusal) => return Err(PullError::Refused(refusal)),
            },
        };
        let refused = |why| Err(PullError::Refused(SinkRefusal::Conflict(why)));
        if consumer.kind != SinkKind::Pull {
            return refused("a sink to which events are sent has this name");
        }
        match consumer.state {
            SinkState::Active => Ok(consumer),
            SinkState::Paused | SinkState::Disabled => refused("the consumer is paused"),
        }
    }

    /// A consumer has everything up to a position. Harmless if it is said again; a position of before a replay moves
    /// nothing. Whether it counted.
    pub async fn acknowledge_events(&self, name: SinkName, position: &Pulled) -> Result<bool, PullError> {
        self.check_running().map_err(PullError::Engine)?;
        let known = self.store().sink(name.clone()).await?;
        if known.is_none_or(|sink| sink.kind != SinkKind::Pull) {
            return Err(PullError::Unknown);
        }
        self.check_places(position).await?;
        let place =
            |(bucket, seq): (&BucketKey, &u64)| SinkPosition { bucket: *bucket, seq: *seq, strikes: 0 };
        let positions = position.places.iter().map(place).collect();
        let advance = AdvanceSink { positions, ..AdvanceSink::of(name, position.round, None) };
        Ok(self.store().advance_sink(advance).await?)
    }

    /// Nobody can have more than there is: what comes later would be lost to the consumer.
    async fn check_places(&self, position: &Pulled) -> Result<(), PullError> {
        let pools: BTreeSet<PoolId> = position.places.keys().map(|bucket| bucket.pool).collect();
        let mut ends = BTreeMap::new();
        for pool in pools {
            let row = self.store().pool(pool).await?.ok_or(PullError::InvalidPosition)?;
            ends.extend(row.buckets.iter().map(|bucket| (bucket.key, bucket.ledger_seq)));
        }
        let is_there = |(bucket, seq): (&BucketKey, &u64)| ends.get(bucket).is_some_and(|end| seq <= end);
        if position.places.iter().all(is_there) { Ok(()) } else { Err(PullError::InvalidPosition) }
    }

    /// Events of one pool after a place that the caller keeps.
    pub async fn pool_events(
        &self,
        pool: PoolId,
        after: &Pulled,
        limit: usize,
    ) -> Result<PulledEvents, PullError> {
        let Some(row) = self.store().pool(pool).await? else { return Err(PullError::Unknown) };
        let lag = |bucket: &holdfast_core::stock::Bucket| Lag {
            bucket: bucket.key,
            seq: after.places.get(&bucket.key).copied().unwrap_or(0),
            ledger_seq: bucket.ledger_seq,
            strikes: 0,
        };
        let lags = row.buckets.iter().map(lag).filter(|lag| lag.ledger_seq > lag.seq);
        let lags: Vec<Lag> = lags.take(limit.min(BUCKETS_MAX)).collect();
        let is_cut = lags.len() >= limit.min(BUCKETS_MAX);
        let mut pulled = self.read_on(&lags, limit, |_| true).await?;
        pulled.more |= is_cut;
        let mut places = after.places.clone();
        places.extend(pulled.position.places);
        pulled.position = Pulled { round: 0, places };
        Ok(pulled)
    }

    /// Reads on in some buckets, in each its share, so that a busy one does not keep the others waiting.
    async fn read_on(
        &self,
        lags: &[Lag],
        limit: usize,
        wants: impl Fn(OrderEventKind) -> bool,
    ) -> Result<PulledEvents, PullError> {
        let mut pulled = PulledEvents { events: Vec::new(), position: Pulled::default(), more: false };
        let Some(sinks) = self.sinks() else { return Ok(pulled) };
        let share = limit.div_ceil(lags.len().max(1)).max(1);
        for lag in lags {
            let room = share.min(limit.saturating_sub(pulled.events.len()));
            if room == 0 {
                pulled.more = true;
                break;
            }
            let found = self.store().entries_after(lag.bucket, lag.seq, ENTRIES_MAX).await?;
            let Some(found) = found else { continue };
            let (mut seq, mut taken) = (lag.seq, 0_usize);
            for entry in &found.entries {
                let is_wanted = OrderEventKind::of(entry).is_some_and(&wants);
                if let Some(event) = sinks.event(entry, &found.campaign).filter(|_| is_wanted) {
                    if taken >= room {
                        break;
                    }
                    pulled.events.push(event);
                    taken = taken.saturating_add(1);
                }
                seq = entry.seq;
            }
            pulled.position.places.insert(lag.bucket, seq);
            pulled.more |= seq < lag.ledger_seq;
        }
        Ok(pulled)
    }
}
