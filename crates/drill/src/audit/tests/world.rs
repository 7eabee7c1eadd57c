//! An authority that tells the truth, in a few lines: what it says and what its buyers were told.

use holdfast_core::ledger::Action;
use holdfast_core::order::{Disposition, State};
use holdfast_wire::Code;
use uuid::Uuid;

use crate::audit::facts::{
    Bucket, BucketFact, EntryFact, EventFact, Facts, OrderFact, PaymentFact, PoolFact, Units,
};
use crate::audit::{Case, Findings, audit};
use crate::deployment::Kind;
use crate::history::{Answered, Ask, Exchange, Told};
use crate::outcome::Window;
use crate::sale::{Intent, Sale};
use crate::scenario::Scenario;

/// By how much the authority's clock is ahead, in milliseconds.
const AHEAD_MS: i64 = 1_000_000;
const STEP_NS: u64 = 5_000_000;
/// Units that each bucket opens with.
pub(super) const OPENING: i64 = 6;

pub(super) struct World {
    pub(super) scenario: &'static Scenario,
    pub(super) sale: Sale,
    pub(super) windows: Vec<Window>,
    pub(super) history: Vec<Exchange>,
    pub(super) facts: Facts,
    now_ns: u64,
    /// Buyers who have not been used.
    next: u64,
    accounts: std::collections::BTreeSet<u64>,
}

/// Units in few words.
pub(super) const fn units(available: i64, held: i64, sold: i64) -> Units {
    Units { available, held, sold }
}

impl World {
    /// A shop with two buckets a pool.
    pub(super) fn new(seed: u64) -> Self {
        let scenario = Scenario::named("last-units").unwrap();
        let sale = Sale::new(scenario, Some(Kind::PostgresRedis), "c".to_owned(), seed, (10, 100.0));
        let pools: Vec<PoolFact> = (0..).zip(&sale.goods).map(|(id, good)| pool(id, &good.sku)).collect();
        let facts = Facts {
            pools,
            settled: Some(Units::default()),
            events: Some(Vec::new()),
            is_open: true,
            ..Facts::default()
        };
        let mut world = Self {
            scenario,
            sale,
            windows: Vec::new(),
            history: Vec::new(),
            facts,
            now_ns: STEP_NS,
            next: 0,
            accounts: std::collections::BTreeSet::new(),
        };
        for pool in 0..3 {
            for number in 0..2 {
                world.write(
                    Bucket { pool, number },
                    None,
                    Action::Opening,
                    units(OPENING, 0, 0),
                    (None, None),
                );
            }
        }
        world
    }

    /// A buyer of a good, with an account that nobody else has.
    pub(super) fn buyer(&mut self, good: usize) -> Intent {
        loop {
            let intent = self.sale.intent(self.next);
            self.next += 1;
            if intent.good == good && !intent.at_once && self.accounts.insert(intent.account) {
                return intent;
            }
        }
    }

    fn tick(&mut self) -> u64 {
        self.now_ns += STEP_NS;
        self.now_ns
    }

    fn at_ms(&self) -> i64 {
        AHEAD_MS + i64::try_from(self.now_ns / 1_000_000).unwrap()
    }

    /// Writes an entry and the balances with it.
    pub(super) fn write(
        &mut self,
        bucket: Bucket,
        order: Option<Uuid>,
        action: Action,
        change: Units,
        (from, to): (Option<State>, Option<State>),
    ) {
        let at_ms = self.at_ms();
        let pool = &mut self.facts.pools[usize::from(bucket.pool)];
        let fact = &mut pool.buckets[usize::from(bucket.number)];
        fact.ledger_seq += 1;
        fact.units = fact.units.plus(change);
        let seq = fact.ledger_seq;
        pool.units = pool.units.plus(change);
        pool.supply = pool.units.supply();
        self.facts.settled = self.facts.settled.map(|settled| settled.plus(change));
        self.facts.entries.push(EntryFact {
            bucket,
            seq,
            at_ms,
            order,
            action,
            change,
            settled: 0,
            from,
            to,
        });
        self.facts.entries.sort_by_key(|entry| (entry.bucket, entry.seq));
        if let (Some(order), Some(_), Some(events)) = (order, to, &mut self.facts.events) {
            events.push(EventFact { bucket, seq, order });
        }
    }

    /// Tells a buyer something.
    pub(super) fn tell(&mut self, buyer: u64, ask: Ask, about: Option<Uuid>, answered: Answered) {
        let ended_ns = self.tick();
        let sent_ns = ended_ns - STEP_NS / 2;
        self.history.push(Exchange {
            buyer,
            node: 0,
            ask,
            about,
            due_ns: sent_ns,
            sent_ns,
            ended_ns,
            answered,
        });
    }

    pub(super) fn refuse(&mut self, buyer: u64, ask: Ask, code: Code, recorded: Option<bool>) {
        let status = code.status();
        let answered = Answered::Refused { status, code, recorded, retry_after: status >= 500 };
        self.tell(buyer, ask, None, answered);
    }

    /// What is told of an order as it stands.
    pub(super) fn told(&self, id: Uuid, status: u16) -> Told {
        let row = self.row(id);
        Told {
            status,
            code: None,
            id,
            state: row.state,
            version: row.version,
            disposition: None,
            ticketed: false,
            retry_after: false,
            replayed: false,
        }
    }

    pub(super) fn row(&self, id: Uuid) -> &OrderFact {
        self.facts.orders.iter().find(|order| order.id == id).unwrap()
    }

    pub(super) fn row_mut(&mut self, id: Uuid) -> &mut OrderFact {
        self.facts.orders.iter_mut().find(|order| order.id == id).unwrap()
    }

    fn add_row(&mut self, intent: &Intent, state: State) -> Uuid {
        let id = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(intent.buyer));
        self.facts.orders.push(OrderFact {
            id,
            order_no: self.sale.order_no(intent.buyer).into(),
            account: Sale::account(intent.account).into(),
            state,
            version: 1,
            lines: vec![(self.sale.goods[intent.good].sku.as_str().into(), intent.quantity)],
            allocations: Vec::new(),
            payments: Vec::new(),
        });
        id
    }

    /// Places an order that is held.
    pub(super) fn place(&mut self, intent: &Intent, number: u16) -> Uuid {
        let bucket = Bucket { pool: u16::try_from(intent.good).unwrap(), number };
        let quantity = i64::from(intent.quantity);
        let id = self.add_row(intent, State::Held);
        self.row_mut(id).allocations.push((bucket, quantity));
        self.tick();
        self.write(bucket, Some(id), Action::Place, units(-quantity, quantity, 0), (None, Some(State::Held)));
        self.now_ns -= STEP_NS / 4;
        let told = self.told(id, 201);
        self.tell(intent.buyer, Ask::Place, None, Answered::Order(told));
        id
    }

    /// Queues an order.
    pub(super) fn queue(&mut self, intent: &Intent) -> Uuid {
        let id = self.add_row(intent, State::Queued);
        let told = self.told(id, 202);
        self.tell(intent.buyer, Ask::Place, None, Answered::Order(told));
        id
    }

    /// Moves an order on: what its entries and its row say from now on.
    pub(super) fn go(&mut self, id: Uuid, action: Action, to: State) {
        let row = self.row_mut(id);
        let (from, allocations) = (row.state, row.allocations.clone());
        row.state = to;
        row.version += 1;
        let (bucket, quantity) = allocations[0];
        let change = match (from, to) {
            (State::Held, State::Sold) => units(0, -quantity, quantity),
            (State::Held, State::Released) => units(quantity, -quantity, 0),
            (State::Sold, State::Released) => units(quantity, 0, -quantity),
            (State::Queued, State::Held) => units(-quantity, quantity, 0),
            _ => Units::default(),
        };
        self.tick();
        self.write(bucket, Some(id), action, change, (Some(from), Some(to)));
    }

    pub(super) fn land(&mut self, id: Uuid, good: u16) {
        let quantity = i64::from(self.row(id).lines[0].1);
        self.row_mut(id).allocations.push((Bucket { pool: good, number: 0 }, quantity));
        self.go(id, Action::Land, State::Held);
    }

    pub(super) fn pay(&mut self, intent: &Intent, id: Uuid) {
        self.go(id, Action::Confirm, State::Sold);
        let payment_id = self.sale.payment(intent.buyer, false).into();
        let disposition = Disposition::Applied;
        self.row_mut(id).payments.push(PaymentFact { payment_id, succeeded: true, disposition });
        let told = Told { disposition: Some(disposition), ..self.told(id, 200) };
        self.tell(intent.buyer, Ask::Pay, Some(id), Answered::Order(told));
    }

    pub(super) fn cancel(&mut self, intent: &Intent, id: Uuid) {
        self.go(id, Action::Release, State::Released);
        let told = self.told(id, 200);
        self.tell(intent.buyer, Ask::Cancel, Some(id), Answered::Order(told));
    }

    pub(super) fn look(&mut self, buyer: u64, id: Uuid) {
        let told = self.told(id, 200);
        self.tell(buyer, Ask::Look, Some(id), Answered::Order(told));
    }

    pub(super) fn audit(&self) -> Findings {
        audit(&Case {
            scenario: self.scenario,
            sale: &self.sale,
            windows: &self.windows,
            history: &self.history,
            facts: &self.facts,
        })
    }

    /// The codes of everything that is found.
    pub(super) fn found(&self) -> Vec<String> {
        let findings = self.audit();
        let mut codes: Vec<String> = findings.breaches.iter().map(|breach| breach.code.clone()).collect();
        codes.sort();
        codes.dedup();
        assert!(codes.len() < 6, "{:#?}", findings.breaches);
        codes
    }
}

fn pool(id: u128, sku: &str) -> PoolFact {
    let bucket = BucketFact { units: Units::default(), ledger_seq: 0, backlog: Some(0), cached: None };
    PoolFact {
        id: Uuid::from_u128(id),
        sku: sku.to_owned(),
        units: Units::default(),
        supply: 0,
        frozen: false,
        buckets: vec![bucket; 2],
    }
}
