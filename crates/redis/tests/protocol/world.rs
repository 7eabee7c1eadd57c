//! What there is in the model: the authority's rows and ledger, each bucket's cache, what nodes and clients know, what is
//! under way. Every order is of one unit.

/// Units of each bucket.
pub(crate) const SUPPLY: i8 = 2;

pub(crate) type Bucket = usize;
pub(crate) type Order = usize;

/// As the cache numbers it: unique within an epoch, also after the cache went back, since it goes by the clock. Here the
/// server's generation stands for the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) generation: u8,
    pub(crate) number: u8,
}

/// Where an accepted order stands: what a ticket says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(crate) bucket: Bucket,
    pub(crate) epoch: u8,
    pub(crate) entry: Entry,
    pub(crate) order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EpochState {
    Open,
    Draining,
    Closed,
}

/// A ledger entry, as far as credits and landings go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LedgerEntry {
    pub(crate) delta: i8,
    pub(crate) settled: i8,
    /// The landing that wrote it, and which epoch the bucket was in.
    pub(crate) landing: Option<(Ticket, u8)>,
}

impl LedgerEntry {
    pub(crate) const fn credit(&self) -> i8 {
        self.delta + self.settled
    }
}

/// A bucket at the authority. Everything here changes under its lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) available: i8,
    pub(crate) ledger: Vec<LedgerEntry>,
    pub(crate) epoch: u8,
    pub(crate) state: EpochState,
    /// The server that the epoch was opened on.
    pub(crate) identity: u8,
    pub(crate) base_seq: usize,
    pub(crate) base_available: i8,
    /// Greatest number that landed in the epoch.
    pub(crate) landed: u8,
    /// Where the ledger ended when the last epoch closed.
    pub(crate) closed_seq: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Seeded,
    Open,
    Draining,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) number: u8,
    pub(crate) is_delivered: bool,
}

/// What a server has of a bucket: the keys that share its hash tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Keys {
    pub(crate) epoch: u8,
    pub(crate) phase: Phase,
    pub(crate) available: i8,
    pub(crate) accepted: u8,
    pub(crate) settled: u8,
    pub(crate) applied: usize,
    pub(crate) known: Vec<Ticket>,
    pub(crate) stream: Vec<Waiting>,
}

/// A server that keeps a bucket's cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    /// Its run and replication.
    pub(crate) identity: u8,
    pub(crate) keys: Option<Keys>,
    /// What a replica has, or an old snapshot.
    pub(crate) copy: Option<Option<Keys>>,
}

/// What a node knows of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) epoch: u8,
    pub(crate) identity: u8,
    pub(crate) seen: u8,
}

/// A delivered entry in somebody's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Flight {
    pub(crate) ticket: Ticket,
    pub(crate) number: u8,
    pub(crate) step: FlightStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FlightStep {
    Delivered,
    Landed,
}

/// A credit that was worked out and is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Credit {
    pub(crate) bucket: Bucket,
    pub(crate) epoch: u8,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) units: i8,
}

/// A seed on its way. Sent once an epoch, by whoever opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Seed {
    pub(crate) bucket: Bucket,
    pub(crate) epoch: u8,
    pub(crate) base_seq: usize,
    pub(crate) base_available: i8,
}

/// What became of an order at the authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Recorded {
    Held(Bucket),
    Released,
    Failed,
}

/// How often each thing may still happen that has no end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    /// Losses of a server: restored, taken over, emptied.
    pub(crate) losses: u8,
    /// Answers that get lost.
    pub(crate) answers: u8,
    /// Crashes of nodes: of what they know, or of what they have in hand.
    pub(crate) crashes: u8,
    /// Orders that go straight to the authority.
    pub(crate) takes: u8,
    pub(crate) releases: u8,
    /// Epochs that are drained without need.
    pub(crate) drains: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) rows: Vec<Row>,
    pub(crate) servers: Vec<Server>,
    /// By node and bucket; none: it has just started.
    pub(crate) nodes: Vec<Vec<Option<Known>>>,
    pub(crate) orders: Vec<Option<Recorded>>,
    /// How many units were ever taken for each order.
    pub(crate) taken: Vec<u8>,
    /// What clients were answered.
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) credits: Vec<Credit>,
    pub(crate) seeds: Vec<Seed>,
    pub(crate) left: Left,
}

impl Row {
    /// The sum of the credits of entries after one position, up to another.
    pub(crate) fn credits(&self, from: usize, to: usize) -> i8 {
        self.ledger.iter().take(to).skip(from).map(LedgerEntry::credit).sum()
    }

    pub(crate) fn has_landed(&self, ticket: &Ticket) -> bool {
        self.ledger.iter().filter_map(|entry| entry.landing).any(|(landed, _)| landed == *ticket)
    }
}

impl Keys {
    /// Whether every accepted order's entry was settled or waits.
    pub(crate) fn is_whole(&self) -> bool {
        usize::from(self.accepted) == usize::from(self.settled) + self.stream.len()
            && usize::from(self.accepted) == self.known.len()
    }

    /// The law of the cache.
    pub(crate) fn keeps_the_law(&self, row: &Row) -> bool {
        let base = row.base_available + row.credits(row.base_seq, self.applied);
        self.available == base - i8::try_from(self.accepted).unwrap()
    }
}

impl World {
    /// All buckets sold out of nothing yet, with an open epoch on a server that is as it should be.
    pub(crate) fn new(buckets: usize, nodes: usize, orders: usize, left: Left) -> Self {
        let row = Row {
            available: SUPPLY,
            ledger: Vec::new(),
            epoch: 1,
            state: EpochState::Open,
            identity: 0,
            base_seq: 0,
            base_available: SUPPLY,
            landed: 0,
            closed_seq: 0,
        };
        let keys = Keys {
            epoch: 1,
            phase: Phase::Open,
            available: SUPPLY,
            accepted: 0,
            settled: 0,
            applied: 0,
            known: Vec::new(),
            stream: Vec::new(),
        };
        Self {
            rows: vec![row; buckets],
            servers: vec![Server { identity: 0, keys: Some(keys), copy: None }; buckets],
            nodes: vec![vec![None; buckets]; nodes],
            orders: vec![None; orders],
            taken: vec![0; orders],
            tickets: Vec::new(),
            flights: Vec::new(),
            credits: Vec::new(),
            seeds: Vec::new(),
            left,
        }
    }

    /// Whether something speaks against the open epoch of a bucket: what the engine sees on its own.
    pub(crate) fn is_in_doubt(&self, bucket: Bucket) -> bool {
        let (row, server) = (&self.rows[bucket], &self.servers[bucket]);
        if self.seeds.iter().any(|seed| seed.bucket == bucket && seed.epoch == row.epoch) {
            return false;
        }
        let Some(keys) = &server.keys else { return true };
        server.identity != row.identity
            || keys.epoch != row.epoch
            || keys.phase == Phase::Draining
            || keys.accepted < row.landed
            || !keys.is_whole()
            || !keys.keeps_the_law(row)
    }
}
