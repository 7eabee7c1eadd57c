//! Orders, balances and ledger of the double, and its cache.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::Bug;

/// What is taken of each bucket: (pool, bucket, units).
pub(crate) type Parts = Vec<(usize, usize, i64)>;

/// Available, held, sold.
pub(crate) type Units = [i64; 3];

pub(crate) struct Entry {
    pub(crate) at: jiff::Timestamp,
    pub(crate) order: Option<Uuid>,
    pub(crate) action: &'static str,
    pub(crate) delta: Units,
    pub(crate) settled: u64,
    pub(crate) from: Option<&'static str>,
    pub(crate) to: Option<&'static str>,
}

#[derive(Default)]
pub(crate) struct Bucket {
    pub(crate) units: Units,
    pub(crate) ledger: Vec<Entry>,
    /// What its cache would still give.
    pub(crate) cached: i64,
}

pub(crate) struct Pool {
    pub(crate) id: Uuid,
    pub(crate) sku: String,
    pub(crate) path: String,
    pub(crate) buckets: Vec<Bucket>,
    opening: i64,
    /// Somebody was told that it is sold out.
    is_sold_out: bool,
}

impl Pool {
    pub(crate) fn units(&self) -> Units {
        self.buckets.iter().fold([0; 3], |sum, bucket| plus(sum, bucket.units))
    }
}

pub(crate) fn plus(a: Units, b: Units) -> Units {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[derive(Clone)]
pub(crate) struct Payment {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) succeeded: bool,
    pub(crate) disposition: &'static str,
}

#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) id: Uuid,
    pub(crate) number: String,
    pub(crate) account: String,
    pub(crate) sku: String,
    pub(crate) quantity: i64,
    pub(crate) state: &'static str,
    pub(crate) version: u32,
    pub(crate) parts: Parts,
    pub(crate) payments: Vec<Payment>,
    ends_at: jiff::Timestamp,
}

/// What came of an attempt to buy.
pub(crate) enum Bought {
    /// The order, and whether it was there before.
    Order(Box<Order>, bool),
    Refused(u16, &'static str),
}

/// Everything.
pub(crate) struct Shop {
    pub(crate) bug: Option<Bug>,
    pub(crate) campaign: String,
    pub(crate) state: &'static str,
    pub(crate) hold_seconds: i64,
    pub(crate) account_limit: Option<i64>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) orders: BTreeMap<Uuid, Order>,
    pub(crate) numbers: HashMap<String, Uuid>,
    /// Units of accounts, held or sold.
    usage: HashMap<String, i64>,
    /// Order events that went out: pool, bucket, number of the entry, order.
    pub(crate) events: Vec<(usize, usize, u64, Uuid)>,
    /// Accepted by a cache, and not landed: the order with what the cache took for it.
    stream: Vec<(Order, Parts)>,
    /// Landed of late.
    landed: Vec<(Order, Parts)>,
    attempts: u64,
}

impl Shop {
    pub(crate) fn new(bug: Option<Bug>) -> Self {
        Self {
            bug,
            campaign: String::new(),
            state: "draft",
            hold_seconds: 3,
            account_limit: None,
            pools: Vec::new(),
            orders: BTreeMap::new(),
            numbers: HashMap::new(),
            usage: HashMap::new(),
            events: Vec::new(),
            stream: Vec::new(),
            landed: Vec::new(),
            attempts: 0,
        }
    }

    pub(crate) fn open_pool(&mut self, sku: &str, path: &str, supply: i64, buckets: usize) -> usize {
        let id = Uuid::now_v7();
        let mut pool = Pool {
            id,
            sku: sku.to_owned(),
            path: path.to_owned(),
            buckets: Vec::new(),
            opening: supply,
            is_sold_out: false,
        };
        for number in 0..buckets as i64 {
            let units = supply / buckets as i64 + i64::from(number < supply % buckets as i64);
            let mut bucket = Bucket { cached: units, ..Bucket::default() };
            append(&mut bucket, entry(None, "opening", [units, 0, 0], None, None));
            pool.buckets.push(bucket);
        }
        self.pools.push(pool);
        self.pools.len() - 1
    }

    pub(crate) fn known(&self, number: &str) -> Option<Order> {
        let waiting = self.stream.iter().map(|(order, _)| order);
        let stored = self.numbers.get(number).map(|id| &self.orders[id]);
        stored.or(waiting.into_iter().find(|order| order.number == number)).cloned()
    }

    pub(crate) fn waiting(&self, id: Uuid) -> Option<Order> {
        self.stream.iter().map(|(order, _)| order).find(|order| order.id == id).cloned()
    }

    /// Whether an account may have so many more.
    pub(crate) fn may_have(&self, account: &str, quantity: i64) -> bool {
        let has = self.usage.get(account).copied().unwrap_or_default();
        self.account_limit.is_none_or(|limit| has + quantity <= limit)
    }

    /// Which buckets would give so many units.
    pub(crate) fn offer(&mut self, pool: usize, quantity: i64) -> Option<Parts> {
        let bug = self.bug;
        let pool_row = &mut self.pools[pool];
        if bug == Some(Bug::UnconditionalDecrement) {
            let bucket = self.attempts as usize % pool_row.buckets.len();
            return Some(vec![(pool, bucket, quantity)]);
        }
        if bug == Some(Bug::HintStays) && pool_row.is_sold_out {
            return None;
        }
        let is_cached = pool_row.path == "cached";
        let (mut parts, mut left) = (Parts::new(), quantity);
        for (number, bucket) in pool_row.buckets.iter().enumerate() {
            let has = if is_cached { bucket.cached } else { bucket.units[0] };
            let take = has.clamp(0, left);
            if take > 0 {
                parts.push((pool, number, take));
                left -= take;
            }
        }
        pool_row.is_sold_out |= left > 0;
        (left == 0).then_some(parts)
    }

    /// An order that takes what was offered.
    pub(crate) fn take(&mut self, order: Order, parts: Parts) -> Bought {
        self.attempts += 1;
        if self.bug == Some(Bug::PublishBeforeCommit) && self.attempts.is_multiple_of(40) {
            let (pool, bucket, _) = parts[0];
            let seq = self.pools[pool].buckets[bucket].ledger.len() as u64 + 1_000_000;
            self.events.push((pool, bucket, seq, order.id));
            return Bought::Refused(503, "authority_unavailable");
        }
        if self.pools[parts[0].0].path == "cached" {
            for (pool, bucket, units) in &parts {
                self.pools[*pool].buckets[*bucket].cached -= units;
            }
            let accepted = Order { state: "queued", version: 1, ..order };
            self.stream.push((accepted.clone(), parts));
            return Bought::Order(Box::new(accepted), false);
        }
        let held = self.hold(order, parts, None);
        if self.bug == Some(Bug::RetryWithNewKey) && self.attempts.is_multiple_of(40) {
            // The answer was slow; the caller's own retry is another order.
            let again =
                Order { id: Uuid::now_v7(), number: format!("{}-retry", held.number), ..held.clone() };
            if let Some(parts) = self.offer(held.parts[0].0, held.quantity) {
                self.hold(again, parts, None);
            }
        }
        Bought::Order(Box::new(held), false)
    }

    fn hold(&mut self, order: Order, parts: Parts, from: Option<&'static str>) -> Order {
        let ends_at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(self.hold_seconds);
        let version = if from.is_some() { 2 } else { 1 };
        let order = Order { state: "held", version, parts, ends_at, ..order };
        *self.usage.entry(order.account.clone()).or_default() += order.quantity;
        let settles = from.is_some();
        self.change(
            &order,
            if settles { "land" } else { "place" },
            from,
            Some("held"),
            |units| [-units, units, 0],
            settles,
        );
        self.numbers.insert(order.number.clone(), order.id);
        self.orders.insert(order.id, order.clone());
        order
    }

    /// Writes an entry in every bucket of an order; the first carries the event.
    fn change(
        &mut self,
        order: &Order,
        action: &'static str,
        from: Option<&'static str>,
        to: Option<&'static str>,
        delta: impl Fn(i64) -> Units,
        settles: bool,
    ) {
        for (at, (pool, bucket, units)) in order.parts.iter().enumerate() {
            let (from, to) = if at == 0 { (from, to) } else { (None, None) };
            let row = &mut self.pools[*pool].buckets[*bucket];
            let settled = if settles && at == 0 { order.quantity as u64 } else { 0 };
            let new = Entry { settled, ..entry(Some(order.id), action, delta(*units), from, to) };
            append(row, new);
            if to.is_some() {
                self.events.push((*pool, *bucket, row.ledger.len() as u64, order.id));
            }
        }
    }

    /// What the caches accepted becomes an order.
    pub(crate) fn land(&mut self) {
        for (order, parts) in std::mem::take(&mut self.stream) {
            self.landed.push((order.clone(), parts.clone()));
            self.hold(order, parts, Some("queued"));
        }
    }

    /// What has just landed is delivered once more.
    pub(crate) fn deliver_again(&mut self) {
        let again = std::mem::take(&mut self.landed);
        for (order, parts) in again.into_iter().rev().take(5) {
            if self.bug == Some(Bug::LandingTwice) {
                self.hold(order, parts, Some("queued"));
            }
        }
    }

    /// The cache is gone, and filled again. What it had accepted is landed first: the double loses no stream.
    pub(crate) fn rebuild(&mut self) {
        self.land();
        for pool in self.pools.iter_mut().filter(|pool| pool.path == "cached") {
            let count = pool.buckets.len() as i64;
            for bucket in &mut pool.buckets {
                bucket.cached = match self.bug {
                    Some(Bug::StaleRebuild) => pool.opening / count,
                    _ => bucket.units[0],
                };
            }
        }
    }

    /// Ends holds whose time is over.
    pub(crate) fn expire(&mut self) {
        let now = jiff::Timestamp::now();
        let due: Vec<Order> = self
            .orders
            .values()
            .filter(|order| order.ends_at <= now)
            .filter(|order| {
                order.state == "held" || (self.bug == Some(Bug::ReleaseAlways) && order.state == "sold")
            })
            .cloned()
            .collect();
        due.into_iter().for_each(|order| self.release(order));
    }

    pub(crate) fn release(&mut self, order: Order) {
        let is_held = order.state == "held";
        let delta = move |units: i64| if is_held { [units, -units, 0] } else { [units, 0, -units] };
        self.change(&order, "release", Some(order.state), Some("released"), delta, false);
        self.credit(&order);
        self.set(&order, "released");
    }

    fn credit(&mut self, order: &Order) {
        *self.usage.entry(order.account.clone()).or_default() -= order.quantity;
        for (pool, bucket, units) in &order.parts {
            if self.bug != Some(Bug::LostCredit) {
                self.pools[*pool].buckets[*bucket].cached += units;
            }
            self.pools[*pool].is_sold_out &= self.bug == Some(Bug::HintStays);
        }
    }

    fn set(&mut self, order: &Order, state: &'static str) {
        let row = self.orders.get_mut(&order.id).unwrap();
        (row.state, row.version) = (state, row.version + 1);
    }

    /// A notice of a payment; what became of it.
    pub(crate) fn notice(&mut self, id: Uuid, payment: Payment) -> Option<&'static str> {
        let order = self.orders.get(&id)?.clone();
        let is_known =
            |other: &Payment| other.event == payment.event || other.id == payment.id && other.succeeded;
        if order.payments.iter().any(is_known) {
            return Some("duplicate");
        }
        let disposition = match (payment.succeeded, order.state) {
            (false, "held") => "applied",
            (false, _) => "ignored",
            (true, "held") => {
                self.change(&order, "confirm", Some("held"), Some("sold"), |units| [0, -units, units], false);
                self.set(&order, "sold");
                "applied"
            }
            (true, _) => "refund_due",
        };
        self.orders.get_mut(&id)?.payments.push(Payment { disposition, ..payment });
        Some(disposition)
    }
}

fn entry(
    order: Option<Uuid>,
    action: &'static str,
    delta: Units,
    from: Option<&'static str>,
    to: Option<&'static str>,
) -> Entry {
    Entry { at: jiff::Timestamp::now(), order, action, delta, settled: 0, from, to }
}

fn append(bucket: &mut Bucket, entry: Entry) {
    bucket.units = plus(bucket.units, entry.delta);
    bucket.ledger.push(entry);
}

impl Order {
    pub(crate) fn new(number: &str, account: &str, sku: &str, quantity: i64) -> Self {
        Self {
            id: Uuid::now_v7(),
            number: number.to_owned(),
            account: account.to_owned(),
            sku: sku.to_owned(),
            quantity,
            state: "held",
            version: 1,
            parts: Parts::new(),
            payments: Vec::new(),
            ends_at: jiff::Timestamp::MAX,
        }
    }
}
