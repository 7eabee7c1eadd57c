//! The model's cache path: epochs of the buckets of the first pool, and what landings settle.

use std::collections::{BTreeMap, BTreeSet};

use super::{Answer, Line, Model, Ord, St, refused, say};
use crate::steps::{Accepted, POOLS, PlaceStep, TurnStep};

/// Where an epoch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    Draining,
    Closed,
}

impl Phase {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Draining => "draining",
            Self::Closed => "closed",
        }
    }
}

/// What the authority knows of caches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caches {
    /// Epoch, phase and server of each bucket that has one.
    pub(crate) epochs: BTreeMap<u32, (u64, Phase, u8)>,
    /// Units that each landing has settled and its order, by bucket, epoch and entry.
    pub(crate) settled: BTreeMap<(u32, u64, u64), (u64, Option<u32>)>,
    /// Entries of which a person was told.
    pub(crate) poisons: BTreeSet<(u32, u64, u64)>,
}

impl Caches {
    /// Units that the landings of an epoch have settled.
    pub(crate) fn units(&self, bucket: u32, epoch: u64) -> u64 {
        let of_epoch = self.settled.range((bucket, epoch, 0)..=(bucket, epoch, u64::MAX));
        of_epoch.map(|(_, (units, _))| units).sum()
    }

    fn lands(&self, at: &Accepted) -> bool {
        let epoch = self.epochs.get(&at.bucket);
        epoch.is_some_and(|(epoch, phase, _)| *epoch == at.epoch && *phase != Phase::Closed)
    }

    fn told(&self, bucket: u32, changed: bool) -> Answer {
        let (epoch, phase, _) = self.epochs[&bucket];
        format!("epoch {epoch} {}{}", phase.word(), if changed { "" } else { " as it was" })
    }
}

impl Accepted {
    fn key(&self) -> (u32, u64, u64) {
        (self.bucket, self.epoch, self.entry)
    }
}

impl Model {
    pub(crate) fn turn(&mut self, bucket: u32, epoch: u64, turn: TurnStep) -> Answer {
        if bucket as usize >= self.pools[0].weights.len() {
            return refused("invalid_value");
        }
        if matches!(turn, TurnStep::Open(_)) && self.closed {
            return refused("campaign_closed");
        }
        let known = self.caches.epochs.get(&bucket).copied();
        let after = match (turn, known) {
            (TurnStep::Open(server), Some((at, phase, on))) if at == epoch => {
                if phase != Phase::Open || server != on {
                    return refused("conflict");
                }
                (at, phase, on)
            }
            (TurnStep::Open(server), None) => (epoch, Phase::Open, server),
            (TurnStep::Open(server), Some((at, Phase::Closed, _))) if epoch > at => {
                (epoch, Phase::Open, server)
            }
            (TurnStep::Drain, Some((at, Phase::Open, on))) if at == epoch => (at, Phase::Draining, on),
            (TurnStep::Drain, Some(same)) if same.0 == epoch => same,
            (TurnStep::Close, Some((at, _, on))) if at == epoch => (at, Phase::Closed, on),
            _ => return refused("conflict"),
        };
        self.caches.epochs.insert(bucket, after);
        self.caches.told(bucket, known != Some(after))
    }

    pub(crate) fn land_accepted(&mut self, step: &PlaceStep, at: &Accepted, due: i64) -> Answer {
        let known = self.orders.get(&step.order).map(|order| (order.state, self.place_again(step, order)));
        if let Some((_, settled)) = self.caches.settled.get(&at.key()) {
            let own = known.filter(|_| *settled == Some(step.order));
            return own.map_or(refused("admission_lost"), |(_, answer)| answer);
        }
        if !self.caches.lands(at) {
            return refused("admission_lost");
        }
        if let Some((state, answer)) = known {
            self.caches.settled.insert(at.key(), (at.units, Some(step.order)));
            if answer == "refused order_mismatch" && matches!(state, St::Held | St::InReview | St::Sold) {
                self.cases.insert((step.order, "order_mismatch"));
            }
            return answer;
        }
        if step.lines.iter().any(|(kind, _)| *kind == POOLS.len()) {
            return refused("unknown_sku");
        }
        let order = taken_in(step, self.now, due);
        let limit = self.limits(step, order.units(), !self.rules.immediate);
        let short = self.served(&order.lines, true).err();
        let refusal = if self.now >= due {
            Some("queue_timeout")
        } else if self.any_frozen(&order.lines, true) {
            Some("frozen")
        } else {
            limit.or(short)
        };
        if refusal == Some("frozen") {
            return say("not due");
        }
        self.caches.settled.insert(at.key(), (at.units, Some(step.order)));
        self.orders.insert(step.order, order);
        match refusal {
            Some(code) => self.fail_queued(step.order, code),
            None => self.take(step.order, true),
        }
        say("created")
    }

    pub(crate) fn set_aside(&mut self, at: &Accepted) -> Answer {
        if self.caches.settled.contains_key(&at.key()) {
            return self.caches.told(at.bucket, false);
        }
        if !self.caches.lands(at) {
            return refused("admission_lost");
        }
        self.caches.settled.insert(at.key(), (at.units, None));
        self.caches.poisons.insert(at.key());
        self.caches.told(at.bucket, true)
    }
}

/// An order as if it waited in a queue.
fn taken_in(step: &PlaceStep, now: i64, due: i64) -> Ord {
    Ord {
        state: St::Queued,
        sent: step.clone(),
        lines: step.lines.iter().map(|(kind, quantity)| Line::new(*kind, *quantity)).collect(),
        created: now,
        end: None,
        review_ends: None,
        queue_ends: due,
        extended: false,
        why: "",
        attempts: Vec::new(),
        seen: Vec::new(),
        refunds: Vec::new(),
        due: Vec::new(),
    }
}
