//! The steps of the protocol, named as the code's, and what a fault planted in each does.

use super::world::{
    Bucket, Credit, Entry, EpochState, Flight, FlightStep, Keys, Known, LedgerEntry, Order, Phase, Recorded,
    SUPPLY, Seed, Ticket, Waiting, World,
};

/// A mistake that an implementation could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The units are taken in one step, the entry is written in another that a crash prevents.
    SplitAccept,
    /// A credit counts wherever the cache is.
    CreditAnywhere,
    /// An entry is settled before it is landed.
    SettleFirst,
    /// A landing does not look whether it has landed.
    LandTwice,
    /// The next epoch is opened, and entries of the last one still land.
    NeverClosed,
    /// The base's position and its available are read at two times.
    TornBase,
    /// A seed whose answer was lost is sent again.
    SeedAgain,
    /// Nobody looks which server answers, or whether it is behind.
    NoFences,
    /// A landing that finds its order known settles nothing.
    DuplicateKeepsUnit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A node learns from the row which epoch is open.
    Refresh {
        node: usize,
        bucket: Bucket,
    },
    /// The script; the answer may be lost.
    Accept {
        node: usize,
        bucket: Bucket,
        order: Order,
        is_answered: bool,
    },
    /// A node crashes and forgets what it knew.
    Crash {
        node: usize,
    },
    Deliver {
        bucket: Bucket,
    },
    /// An entry that somebody was given is given to somebody else, too.
    Claim {
        bucket: Bucket,
    },
    Land {
        flight: Flight,
    },
    Settle {
        flight: Flight,
    },
    /// Whoever has an entry in hand crashes.
    Drop {
        flight: Flight,
    },
    /// A credit is worked out and sent.
    Plan {
        bucket: Bucket,
    },
    Credit {
        credit: Credit,
    },
    /// An order goes straight to the authority.
    Take {
        bucket: Bucket,
        order: Order,
    },
    Release {
        order: Order,
    },
    Drain {
        bucket: Bucket,
    },
    DrainCache {
        bucket: Bucket,
    },
    Close {
        bucket: Bucket,
    },
    /// At the authority, on the server that was seen, perhaps just before it changed.
    OpenEpoch {
        bucket: Bucket,
        identity: u8,
    },
    Seed {
        seed: Seed,
    },
    /// In the cache, after its law was compared.
    Open {
        bucket: Bucket,
    },
    /// What a replica has now, or a snapshot.
    Copy {
        bucket: Bucket,
    },
    /// A replica takes over, or the snapshot is restored.
    Restore {
        bucket: Bucket,
    },
    Flush {
        bucket: Bucket,
    },
}

impl World {
    /// What the step makes of the world; none: it cannot be taken, or changes nothing.
    pub(crate) fn after(&self, step: Step, mistake: Option<Mistake>) -> Option<Self> {
        let mut next = self.clone();
        next.take_step(step, mistake)?;
        (next != *self).then_some(next)
    }

    /// Takes a step; none: it cannot be taken.
    pub(crate) fn take_step(&mut self, step: Step, mistake: Option<Mistake>) -> Option<()> {
        match step {
            Step::Refresh { node, bucket } => {
                let row = &self.rows[bucket];
                let before = self.nodes[node][bucket].filter(|known| known.epoch == row.epoch);
                let seen = before.map_or(row.landed, |known| known.seen.max(row.landed));
                let known = Known { epoch: row.epoch, identity: row.identity, seen };
                self.nodes[node][bucket] = (row.state == EpochState::Open).then_some(known);
            }
            Step::Accept { node, bucket, order, is_answered } => {
                self.accept(node, bucket, order, is_answered, mistake)?;
            }
            Step::Crash { node } => {
                self.left.crashes = self.left.crashes.checked_sub(1)?;
                self.nodes[node].fill(None);
            }
            Step::Deliver { bucket } => self.deliver(bucket, false)?,
            Step::Claim { bucket } => {
                let left = self.left.crashes.checked_sub(1)?;
                self.deliver(bucket, true)?;
                self.left.crashes = left;
            }
            Step::Land { flight } => self.land_in_hand(flight, mistake)?,
            Step::Settle { flight } => self.settle(flight, mistake)?,
            Step::Drop { flight } => {
                self.left.crashes = self.left.crashes.checked_sub(1)?;
                self.flights.retain(|other| *other != flight);
            }
            Step::Plan { bucket } => self.plan(bucket)?,
            Step::Credit { credit } => self.credit(credit, mistake),
            Step::Take { bucket, order } => self.take(bucket, order)?,
            Step::Release { order } => self.release(order)?,
            Step::Drain { .. } | Step::Close { .. } | Step::OpenEpoch { .. } => self.turn(step, mistake)?,
            Step::DrainCache { bucket } => {
                let epoch = self.rows[bucket].epoch;
                let keys = self.servers[bucket].keys.as_mut().filter(|keys| keys.epoch == epoch)?;
                let is_due = self.rows[bucket].state == EpochState::Draining && keys.phase != Phase::Draining;
                is_due.then_some(())?;
                keys.phase = Phase::Draining;
            }
            Step::Seed { seed } => self.seed(seed, mistake),
            Step::Open { bucket } => {
                let row = &self.rows[bucket];
                let keys = self.servers[bucket].keys.as_mut()?;
                let is_law = keys.keeps_the_law(row) || mistake == Some(Mistake::TornBase);
                (keys.epoch == row.epoch && keys.phase == Phase::Seeded && is_law).then_some(())?;
                keys.phase = Phase::Open;
            }
            Step::Copy { bucket } => {
                let server = &mut self.servers[bucket];
                server.copy.is_none().then_some(())?;
                server.copy = Some(server.keys.clone());
            }
            Step::Restore { bucket } => {
                let server = &mut self.servers[bucket];
                server.keys = server.copy.take()?;
                server.identity += 1;
                self.left.losses = self.left.losses.checked_sub(1)?;
            }
            Step::Flush { bucket } => {
                self.left.losses = self.left.losses.checked_sub(1)?;
                self.servers[bucket].keys.take()?;
            }
        }
        Some(())
    }

    /// The script of accept, by a node that holds the connection's server against the epoch's.
    fn accept(
        &mut self,
        node: usize,
        bucket: Bucket,
        order: Order,
        is_answered: bool,
        mistake: Option<Mistake>,
    ) -> Option<()> {
        let answers = self.left.answers.checked_sub(u8::from(!is_answered))?;
        let node = self.nodes[node][bucket].as_mut()?;
        let server = &mut self.servers[bucket];
        let is_fenced = mistake != Some(Mistake::NoFences);
        (!is_fenced || server.identity == node.identity).then_some(())?;
        let keys = server.keys.as_mut()?;
        if let Some(ticket) = keys.known.iter().find(|ticket| ticket.order == order).copied()
            && keys.epoch >= node.epoch
        {
            // Known: the same answer again.
            is_answered.then(|| self.tickets.push(ticket))?;
            self.tidy();
            return Some(());
        }
        (keys.epoch == node.epoch && keys.phase == Phase::Open).then_some(())?;
        (!is_fenced || keys.accepted >= node.seen && keys.is_whole()).then_some(())?;
        (keys.available >= 1).then_some(())?;
        keys.available -= 1;
        self.left.answers = answers;
        if mistake == Some(Mistake::SplitAccept) && !is_answered {
            return Some(());
        }
        keys.accepted += 1;
        let entry = Entry { generation: server.identity, number: keys.accepted };
        let ticket = Ticket { bucket, epoch: keys.epoch, entry, order };
        keys.known.push(ticket);
        keys.stream.push(Waiting { ticket, number: keys.accepted, is_delivered: false });
        if is_answered {
            node.seen = node.seen.max(keys.accepted);
            self.tickets.push(ticket);
            self.tidy();
        }
        Some(())
    }

    fn deliver(&mut self, bucket: Bucket, again: bool) -> Option<()> {
        let keys = self.servers[bucket].keys.as_mut()?;
        let waiting = keys.stream.iter_mut().find(|waiting| waiting.is_delivered == again)?;
        waiting.is_delivered = true;
        let (ticket, number) = (waiting.ticket, waiting.number);
        self.flights.push(Flight { ticket, number, step: FlightStep::Delivered });
        self.tidy();
        Some(())
    }

    fn land_in_hand(&mut self, flight: Flight, mistake: Option<Mistake>) -> Option<()> {
        if mistake == Some(Mistake::SettleFirst) {
            self.next_flight(flight, FlightStep::Landed, false)?;
        } else {
            self.next_flight(flight, FlightStep::Delivered, true)?;
        }
        self.land(flight, mistake);
        Some(())
    }

    /// Removes the entry, if the server still has it.
    fn settle(&mut self, flight: Flight, mistake: Option<Mistake>) -> Option<()> {
        if mistake == Some(Mistake::SettleFirst) {
            self.next_flight(flight, FlightStep::Delivered, true)?;
        } else {
            self.next_flight(flight, FlightStep::Landed, false)?;
        }
        if let Some(keys) = &mut self.servers[flight.ticket.bucket].keys {
            let before = keys.stream.len();
            keys.stream.retain(|waiting| waiting.ticket != flight.ticket);
            keys.settled += u8::try_from(before - keys.stream.len()).unwrap();
        }
        Some(())
    }

    fn next_flight(&mut self, flight: Flight, from: FlightStep, goes_on: bool) -> Option<()> {
        (flight.step == from).then_some(())?;
        let at = self.flights.iter().position(|other| *other == flight)?;
        self.flights.remove(at);
        if goes_on {
            self.flights.push(Flight { step: FlightStep::Landed, ..flight });
        }
        self.tidy();
        Some(())
    }

    /// One transaction under the locks of the pool's buckets: one ledger entry of the intake bucket, or nothing.
    fn land(&mut self, flight: Flight, mistake: Option<Mistake>) {
        let (ticket, home) = (flight.ticket, flight.ticket.bucket);
        let row = &self.rows[home];
        let is_closed = row.epoch != ticket.epoch || row.state == EpochState::Closed;
        if is_closed && mistake != Some(Mistake::NeverClosed) {
            return;
        }
        if row.has_landed(&ticket) && mistake != Some(Mistake::LandTwice) {
            return;
        }
        let is_known = self.orders[ticket.order].is_some() && mistake != Some(Mistake::LandTwice);
        let with_stock = (0..self.rows.len())
            .map(|step| (home + step) % self.rows.len())
            .find(|bucket| self.rows[*bucket].available > 0);
        let mut settled = 1;
        let mut delta = 0;
        if is_known {
            settled = i8::from(mistake != Some(Mistake::DuplicateKeepsUnit));
        } else if let Some(bucket) = with_stock {
            self.orders[ticket.order] = Some(Recorded::Held(bucket));
            self.taken[ticket.order] += 1;
            self.rows[bucket].available -= 1;
            if bucket == home {
                delta = -1;
            } else {
                self.rows[bucket].ledger.push(LedgerEntry { delta: -1, settled: 0, landing: None });
            }
        } else {
            self.orders[ticket.order] = Some(Recorded::Failed);
        }
        let row = &mut self.rows[home];
        row.ledger.push(LedgerEntry { delta, settled, landing: Some((ticket, row.epoch)) });
        if row.epoch == ticket.epoch {
            row.landed = row.landed.max(flight.number);
        }
    }

    /// Works a credit out from the position that the cache says to the ledger's end.
    fn plan(&mut self, bucket: Bucket) -> Option<()> {
        let (row, keys) = (&self.rows[bucket], self.servers[bucket].keys.as_ref()?);
        let (from, to) = (keys.applied, row.ledger.len());
        (keys.epoch == row.epoch && from < to).then_some(())?;
        self.credits.push(Credit { bucket, epoch: row.epoch, from, to, units: row.credits(from, to) });
        self.tidy();
        Some(())
    }

    /// The script of credit.
    fn credit(&mut self, credit: Credit, mistake: Option<Mistake>) {
        self.credits.retain(|other| *other != credit);
        let Some(keys) = &mut self.servers[credit.bucket].keys else { return };
        let is_at = keys.applied == credit.from || mistake == Some(Mistake::CreditAnywhere);
        if keys.epoch == credit.epoch && is_at {
            keys.available += credit.units;
            keys.applied = credit.to;
        }
    }

    fn take(&mut self, bucket: Bucket, order: Order) -> Option<()> {
        let row = &mut self.rows[bucket];
        (self.orders[order].is_none() && row.available > 0).then_some(())?;
        self.left.takes = self.left.takes.checked_sub(1)?;
        row.available -= 1;
        row.ledger.push(LedgerEntry { delta: -1, settled: 0, landing: None });
        self.orders[order] = Some(Recorded::Held(bucket));
        self.taken[order] += 1;
        Some(())
    }

    fn release(&mut self, order: Order) -> Option<()> {
        let Some(Recorded::Held(bucket)) = self.orders[order] else { return None };
        self.left.releases = self.left.releases.checked_sub(1)?;
        self.orders[order] = Some(Recorded::Released);
        let row = &mut self.rows[bucket];
        row.available += 1;
        row.ledger.push(LedgerEntry { delta: 1, settled: 0, landing: None });
        Some(())
    }

    /// A step of a bucket's epoch at the authority.
    fn turn(&mut self, step: Step, mistake: Option<Mistake>) -> Option<()> {
        match step {
            Step::Drain { bucket } => {
                (self.rows[bucket].state == EpochState::Open).then_some(())?;
                let is_fenced = mistake != Some(Mistake::NoFences);
                if !(is_fenced && self.is_in_doubt(bucket)) {
                    self.left.drains = self.left.drains.checked_sub(1)?;
                }
                self.rows[bucket].state = EpochState::Draining;
            }
            Step::Close { bucket } => {
                let row = &mut self.rows[bucket];
                (row.state == EpochState::Draining).then_some(())?;
                row.state = EpochState::Closed;
                row.closed_seq = row.ledger.len();
            }
            Step::OpenEpoch { bucket, identity } => {
                let row = &mut self.rows[bucket];
                (row.state == EpochState::Closed).then_some(())?;
                row.epoch += 1;
                row.state = EpochState::Open;
                row.identity = identity;
                let is_torn = mistake == Some(Mistake::TornBase);
                row.base_seq = if is_torn { row.closed_seq } else { row.ledger.len() };
                row.base_available = row.available;
                row.landed = 0;
                let (epoch, base_seq, base_available) = (row.epoch, row.base_seq, row.base_available);
                self.seeds.push(Seed { bucket, epoch, base_seq, base_available });
                self.tidy();
            }
            _ => return None,
        }
        Some(())
    }

    /// The script of seed.
    fn seed(&mut self, seed: Seed, mistake: Option<Mistake>) {
        if mistake == Some(Mistake::SeedAgain) && self.left.answers > 0 {
            self.left.answers -= 1;
        } else {
            self.seeds.retain(|other| *other != seed);
        }
        let keys = &mut self.servers[seed.bucket].keys;
        let is_newer = keys.as_ref().is_none_or(|keys| keys.epoch < seed.epoch);
        if is_newer {
            *keys = Some(Keys {
                epoch: seed.epoch,
                phase: Phase::Seeded,
                available: seed.base_available,
                accepted: 0,
                settled: 0,
                applied: seed.base_seq,
                known: Vec::new(),
                stream: Vec::new(),
            });
        }
    }

    /// What has no order is kept sorted, so that two worlds that differ only there are one.
    fn tidy(&mut self) {
        self.tickets.sort_unstable();
        self.tickets.dedup();
        self.flights.sort_unstable();
        self.flights.dedup();
        self.credits.sort_unstable();
        self.credits.dedup();
        self.seeds.sort_unstable();
        self.seeds.dedup();
    }

    /// Never sold twice, by the authority's own arithmetic.
    pub(crate) fn is_not_oversold(&self) -> bool {
        let held =
            |bucket| self.orders.iter().filter(|order| **order == Some(Recorded::Held(bucket))).count();
        self.rows.iter().enumerate().all(|(bucket, row)| {
            row.available >= 0 && row.available + i8::try_from(held(bucket)).unwrap() == SUPPLY
        }) && self.taken.iter().all(|taken| *taken <= 1)
    }
}
