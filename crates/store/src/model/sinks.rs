//! The model's sinks.

use std::collections::BTreeMap;

use async_trait::async_trait;
use holdfast_core::command::How;
use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::stock::{Bucket, BucketKey};
use holdfast_core::time::Timestamp;

use super::{ModelStore, Rows, after};
use crate::acts::Act;
use crate::error::Error;
use crate::read::{LedgerPosition, Page, page_of};
use crate::sinks::{
    AdvanceSink, BACKLOG_BUCKETS_MAX, Backlog, BucketEntries, ChangeSink, DeadLetter, DeadLetterState,
    DeliveryOf, DeliveryState, Lag, PutSink, SINKS_MAX, SinkEffect, SinkName, SinkRefusal, SinkRow,
    SinkStore,
};

/// A sink with everything that is known of it.
struct Known {
    row: SinkRow,
    /// When each round begins, from the first on.
    rounds: Vec<Timestamp>,
    places: BTreeMap<BucketKey, Place>,
    dead: BTreeMap<LedgerPosition, DeadLetter>,
}

#[derive(Clone, Copy)]
struct Place {
    round: u64,
    seq: u64,
    strikes: u32,
}

impl Known {
    /// The row as it is read: with the counts of what is parked.
    fn shown(&self) -> SinkRow {
        let count = |state| self.dead.values().filter(|letter| letter.state == state).count() as u64;
        let (parked, waiting) = (count(DeadLetterState::Parked), count(DeadLetterState::Waiting));
        SinkRow { parked, waiting, ..self.row.clone() }
    }

    /// The earliest time that rounds after this one name.
    fn from(&self, round: u64) -> Option<Timestamp> {
        let later = self.rounds.iter().skip(usize::try_from(round).unwrap_or(usize::MAX));
        later.min().copied()
    }
}

/// The sinks by their names.
#[derive(Default)]
pub(super) struct Sinks(BTreeMap<SinkName, Known>);

impl Rows {
    fn put_sink(&mut self, put: &PutSink, now: Timestamp) -> Result<(SinkRow, How), SinkRefusal> {
        let before = self.sinks.0.get(&put.name).map(Known::shown);
        if before.is_none() && self.sinks.0.len() >= SINKS_MAX {
            return Err(SinkRefusal::TooMany);
        }
        let Some(row) = put.onto(before.as_ref(), now)? else {
            return before.map(|row| (row, How::Repeated)).ok_or(SinkRefusal::Unknown);
        };
        if let Some(act) = Act::put_sink(before.as_ref(), &row, put.via.as_ref()) {
            self.record(&act, now);
        }
        match self.sinks.0.get_mut(&put.name) {
            Some(known) => known.row = row.clone(),
            None => {
                let known = Known {
                    row: row.clone(),
                    rounds: vec![put.from],
                    places: BTreeMap::new(),
                    dead: BTreeMap::new(),
                };
                self.sinks.0.insert(put.name.clone(), known);
            }
        }
        Ok((row, if before.is_some() { How::Changed } else { How::Created }))
    }

    fn change_sink(&mut self, change: &ChangeSink, now: Timestamp) -> Result<Option<SinkRow>, SinkRefusal> {
        let known = self.sinks.0.get_mut(&change.name).ok_or(SinkRefusal::Unknown)?;
        match change.onto(&known.shown(), now)? {
            SinkEffect::None => return Ok(Some(known.shown())),
            SinkEffect::Row(row) => known.row = *row,
            SinkEffect::Round(row, from) => {
                known.row = *row;
                known.rounds.push(from);
            }
            SinkEffect::DeadLetters => {
                for letter in known.dead.values_mut().filter(|d| d.state == DeadLetterState::Parked) {
                    (letter.state, letter.at) = (DeadLetterState::Waiting, now);
                }
            }
            SinkEffect::Delete => {
                self.sinks.0.remove(&change.name);
            }
        }
        self.record(&Act::change_sink(change), now);
        Ok(self.sinks.0.get(&change.name).map(Known::shown))
    }

    /// The last entry of a bucket before a time.
    fn last_before(&self, bucket: BucketKey, from: Timestamp) -> u64 {
        let entries = self.ledger.range((bucket, 0)..=(bucket, u64::MAX));
        entries.filter(|(_, entry)| entry.at < from).map(|((_, seq), _)| *seq).max().unwrap_or(0)
    }

    fn lag(&self, known: &Known, bucket: &Bucket) -> Option<Lag> {
        let place = known.places.get(&bucket.key);
        let from = known.from(place.map_or(0, |place| place.round));
        let is_behind = place.is_some_and(|place| bucket.ledger_seq > place.seq);
        if !is_behind && from.is_none_or(|from| bucket.last_at < from) {
            return None;
        }
        let start = from.map_or(u64::MAX, |from| self.last_before(bucket.key, from));
        let seq = place.map_or(u64::MAX, |place| place.seq).min(start);
        let strikes = place.filter(|place| place.seq == seq).map_or(0, |place| place.strikes);
        Some(Lag { bucket: bucket.key, seq, ledger_seq: bucket.ledger_seq, strikes })
    }

    fn lagging(&self, name: &SinkName, page: &Page<BucketKey>) -> Vec<Lag> {
        let Some(known) = self.sinks.0.get(name) else { return Vec::new() };
        let buckets = after(&self.buckets, page.after.as_ref());
        buckets.iter().filter_map(|(_, bucket)| self.lag(known, bucket)).take(page.limit).collect()
    }

    fn advance(&mut self, advance: AdvanceSink, now: Timestamp) -> bool {
        let lease = self.leases.get(&advance.name.lease()).map(|(holder, _)| *holder);
        let Some(known) = self.sinks.0.get_mut(&advance.name) else { return false };
        if known.row.round != advance.round || (advance.holder.is_some() && advance.holder != lease) {
            return false;
        }
        for new in advance.positions {
            let round = advance.round;
            let place = known.places.entry(new.bucket).or_insert(Place { round, seq: 0, strikes: 0 });
            let is_new = place.round != round || new.seq >= place.seq;
            if is_new {
                *place = Place { round, seq: new.seq, strikes: new.strikes };
            }
        }
        for park in advance.parked {
            let letter = DeadLetter {
                position: park.position,
                attempts: park.attempts,
                why: park.why,
                at: now,
                state: DeadLetterState::Parked,
            };
            known.dead.insert(park.position, letter);
        }
        for position in advance.redelivered {
            if let Some(letter) = known.dead.get_mut(&position) {
                (letter.state, letter.at) = (DeadLetterState::Delivered, now);
            }
        }
        if let Some(health) = advance.health {
            known.row.health = health;
        }
        if let Some(why) = advance.disable {
            (known.row.state, known.row.why) = (crate::sinks::SinkState::Disabled, Some(why));
        }
        true
    }

    fn backlog(&self, name: &SinkName) -> Backlog {
        let page = Page { after: None, limit: BACKLOG_BUCKETS_MAX + 1 };
        let (lags, more) = page_of(self.lagging(name, &page), BACKLOG_BUCKETS_MAX);
        let first = |lag: &Lag| {
            let position = (lag.bucket, lag.seq + 1);
            self.ledger.get(&position).map(|entry| (entry.at, position))
        };
        Backlog {
            buckets: lags.len() as u64,
            entries: lags.iter().map(|lag| lag.ledger_seq - lag.seq).sum(),
            oldest: lags.iter().filter_map(first).min(),
            more,
        }
    }

    pub(super) fn deliveries_of(&self, position: LedgerPosition) -> Vec<DeliveryOf> {
        self.sinks.0.values().filter_map(|known| self.delivery(known, position)).collect()
    }

    fn delivery(&self, known: &Known, position: LedgerPosition) -> Option<DeliveryOf> {
        let entry = self.ledger.get(&position)?;
        let place = known.places.get(&position.0);
        let from = known.from(place.map_or(0, |place| place.round));
        let state = match known.dead.get(&position) {
            Some(DeadLetter {
                state: DeadLetterState::Parked | DeadLetterState::Waiting,
                attempts,
                why,
                ..
            }) => DeliveryState::Parked { attempts: *attempts, why: why.clone() },
            Some(_) | None if from.is_some_and(|from| entry.at >= from) => DeliveryState::Waiting,
            Some(_) | None => match place {
                Some(place) if place.seq >= position.1 => DeliveryState::Delivered,
                Some(_) => DeliveryState::Waiting,
                None => DeliveryState::Before,
            },
        };
        Some(DeliveryOf { sink: known.row.name.clone(), position, state })
    }

    fn is_behind(&self, known: &Known, pools: &[PoolId]) -> bool {
        let is_of = |bucket: &BucketKey| pools.contains(&bucket.pool);
        let undelivered = |letter: &DeadLetter| letter.state != DeadLetterState::Delivered;
        self.buckets.values().any(|bucket| is_of(&bucket.key) && self.lag(known, bucket).is_some())
            || known.dead.values().any(|letter| is_of(&letter.position.0) && undelivered(letter))
    }
}

#[async_trait]
impl SinkStore for ModelStore {
    async fn put_sink(&self, put: PutSink) -> Result<Result<(SinkRow, How), SinkRefusal>, Error> {
        let now = self.clock.now();
        Ok(self.rows().put_sink(&put, now))
    }

    async fn change_sink(&self, change: ChangeSink) -> Result<Result<Option<SinkRow>, SinkRefusal>, Error> {
        let now = self.clock.now();
        Ok(self.rows().change_sink(&change, now))
    }

    async fn sink(&self, name: SinkName) -> Result<Option<SinkRow>, Error> {
        Ok(self.rows().sinks.0.get(&name).map(Known::shown))
    }

    async fn sinks(&self) -> Result<Vec<SinkRow>, Error> {
        Ok(self.rows().sinks.0.values().map(Known::shown).collect())
    }

    async fn lagging(&self, name: SinkName, page: Page<BucketKey>) -> Result<Vec<Lag>, Error> {
        Ok(self.rows().lagging(&name, &page))
    }

    async fn entries_after(
        &self,
        bucket: BucketKey,
        seq: u64,
        limit: usize,
    ) -> Result<Option<BucketEntries>, Error> {
        let rows = self.rows();
        let Some(pool) = rows.pools.get(&bucket.pool) else { return Ok(None) };
        let later = rows.ledger.range((bucket, seq.saturating_add(1))..=(bucket, u64::MAX));
        let entries = later.take(limit).map(|(_, entry)| entry.clone()).collect();
        Ok(Some(BucketEntries { campaign: pool.campaign.clone(), entries }))
    }

    async fn advance_sink(&self, advance: AdvanceSink) -> Result<bool, Error> {
        let now = self.clock.now();
        Ok(self.rows().advance(advance, now))
    }

    async fn dead_letters(
        &self,
        name: SinkName,
        state: Option<DeadLetterState>,
        page: Page<LedgerPosition>,
    ) -> Result<(Vec<DeadLetter>, bool), Error> {
        let rows = self.rows();
        let Some(known) = rows.sinks.0.get(&name) else { return Ok((Vec::new(), false)) };
        let found = after(&known.dead, page.after.as_ref()).into_iter().map(|(_, letter)| letter);
        let found = found.filter(|letter| state.is_none_or(|state| state == letter.state));
        Ok(page_of(found.collect(), page.limit))
    }

    async fn backlog(&self, name: SinkName) -> Result<Backlog, Error> {
        Ok(self.rows().backlog(&name))
    }

    async fn deliveries(&self, positions: Vec<LedgerPosition>) -> Result<Vec<DeliveryOf>, Error> {
        let rows = self.rows();
        let mut found = Vec::new();
        for position in positions {
            found.extend(rows.deliveries_of(position));
        }
        Ok(found)
    }

    async fn sinks_behind(&self, campaign: CampaignId) -> Result<Vec<SinkName>, Error> {
        let rows = self.rows();
        let of = rows.pools.values().filter(|pool| pool.campaign == campaign);
        let pools: Vec<PoolId> = of.map(|pool| pool.id).collect();
        let behind = rows.sinks.0.iter().filter(|(_, known)| rows.is_behind(known, &pools));
        Ok(behind.map(|(name, _)| name.clone()).collect())
    }
}
