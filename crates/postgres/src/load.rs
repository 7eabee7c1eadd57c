//! Loads the rows that a batch names: locks, reads and last the clock, in one flight. Only a batch with orders
//! whose pools, campaign or account nobody could know before takes a further one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_core::approval::ApprovalKey;
use holdfast_core::command::Command;
use holdfast_core::id::{CampaignId, Location, OrderId, PoolId, Sku};
use holdfast_core::snapshot::{LockSet, Needs, Snapshot, UsageKey};
use holdfast_core::stock::{BucketKey, Pool};
use holdfast_core::time::Timestamp;
use holdfast_store::rows::{self, Row};
use holdfast_store::{Batch, Error};
use tokio_postgres::types::Type;

use crate::cache;
use crate::clock::Hints;
use crate::connection::{Connection, Mode};
use crate::error::Fault;
use crate::flight::{Flight, Outstanding, Owned};
use crate::row::{all, first, uuid};
use crate::statement::Sql;
use crate::{approvals, files, payments, reconcile, usage};

static LOCK_BUCKETS: Sql = Sql::new(
    "SELECT bucket.* FROM UNNEST($1, $2) AS wanted (pool, number) \
     JOIN bucket ON bucket.pool = wanted.pool AND bucket.number = wanted.number \
     ORDER BY bucket.pool, bucket.number FOR UPDATE OF bucket",
    &[Type::UUID_ARRAY, Type::INT4_ARRAY],
);
/// Where no number is named, all of the pool.
static LOCK_POOLS: Sql = Sql::new(
    "SELECT bucket.* FROM UNNEST($1, $2) AS wanted (pool, number) \
     JOIN bucket ON bucket.pool = wanted.pool AND bucket.number = coalesce(wanted.number, bucket.number) \
     ORDER BY bucket.pool, bucket.number FOR UPDATE OF bucket",
    &[Type::UUID_ARRAY, Type::INT4_ARRAY],
);
static READ_BUCKETS: Sql =
    Sql::new("SELECT * FROM bucket WHERE pool = ANY ($1) ORDER BY pool, number", &[Type::UUID_ARRAY]);
static ORDERS_BY_KEY: Sql = Sql::new(
    "SELECT found.* FROM UNNEST($1, $2) AS wanted (campaign_id, order_no), LATERAL (SELECT * FROM orders \
     WHERE orders.campaign_id = wanted.campaign_id AND orders.order_no = wanted.order_no LIMIT 1) AS found",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY],
);
static ORDERS_BY_ID: Sql = Sql::new("SELECT * FROM orders WHERE id = ANY ($1)", &[Type::UUID_ARRAY]);
static ADJUSTMENTS: Sql = Sql::new("SELECT * FROM adjustment WHERE id = ANY ($1)", &[Type::TEXT_ARRAY]);
static TRANSFERS: Sql = Sql::new("SELECT * FROM transfer WHERE id = ANY ($1)", &[Type::TEXT_ARRAY]);
static ADDRESSES: Sql = Sql::new(
    "SELECT pool.* FROM UNNEST($1, $2, $3) AS wanted (campaign_id, sku, location) JOIN pool ON \
     pool.campaign_id = wanted.campaign_id AND pool.sku = wanted.sku AND pool.location = wanted.location",
    &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY],
);
/// Whether a SKU is a bundle and whether it has a pool are in rows of their own: whoever opens a pool keeps the
/// campaign from changing, or each of two could find that the other is not there.
static KEEP_CAMPAIGNS: Sql =
    Sql::new("SELECT id FROM campaign WHERE id = ANY ($1) ORDER BY id FOR SHARE", &[Type::TEXT_ARRAY]);
static POOLS: Sql = Sql::new("SELECT * FROM pool WHERE id = ANY ($1)", &[Type::UUID_ARRAY]);
static CAMPAIGNS: Sql = Sql::new(
    "SELECT * FROM campaign WHERE id IN (SELECT UNNEST($1) UNION SELECT campaign_id FROM pool WHERE id = ANY ($2))",
    &[Type::TEXT_ARRAY, Type::UUID_ARRAY],
);
/// A statement of its own behind the locks: the clock of a statement that waited would be that of before.
static CLOCK: Sql = Sql::new(
    "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS clock, \
     EXISTS (SELECT 1 FROM cases WHERE state = 'open' AND kind = 'incarnation') AS halted",
    &[],
);

/// How many orders wait in the queues of pools. Not locked: a few more than the limit are no harm.
static QUEUE_LENGTHS: Sql = Sql::new(
    "SELECT wanted.pool, (SELECT count(*) FROM orders WHERE orders.state = 'queued' \
     AND orders.home_pool = wanted.pool) AS length FROM UNNEST($1) AS wanted (pool)",
    &[Type::UUID_ARRAY],
);
static CLOCK_ALONE: Sql =
    Sql::new("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS clock", &[]);

/// What every batch may ask.
pub(crate) static HOT: &[&Sql] =
    &[&LOCK_BUCKETS, &LOCK_POOLS, &ORDERS_BY_KEY, &ORDERS_BY_ID, &QUEUE_LENGTHS, &POOLS, &CAMPAIGNS, &CLOCK];

/// How many flights a batch may take to learn what it needs: orders, then campaigns, then usage.
const FLIGHTS_MAX: usize = 4;

/// What a batch stands on.
pub(crate) struct Loaded {
    pub(crate) snapshot: Snapshot,
    /// The authority's clock, read last.
    pub(crate) clock: Timestamp,
    /// Usage rows that are there, and locked.
    pub(crate) counted: BTreeSet<UsageKey>,
}

/// What was asked for, or has to be.
#[derive(Default)]
struct Named {
    pools: BTreeSet<PoolId>,
    campaigns: BTreeSet<CampaignId>,
    usage: BTreeSet<UsageKey>,
    counts: BTreeSet<(PoolId, Timestamp)>,
    /// Pools that are to be opened and are there: shown with their buckets, not locked.
    opened: BTreeSet<PoolId>,
}

impl Named {
    fn is_empty(&self) -> bool {
        let Self { pools, campaigns, usage, counts, opened } = self;
        pools.is_empty() && campaigns.is_empty() && usage.is_empty() && counts.is_empty() && opened.is_empty()
    }

    /// What is in it, and neither in `asked` nor read along with something else.
    fn without(&self, asked: &Self, rows: &Snapshot) -> Self {
        let new_pool = |pool: &&PoolId| !rows.pools.contains_key(pool);
        let new_campaign = |campaign: &&CampaignId| !rows.campaigns.contains_key(*campaign);
        Self {
            pools: self.pools.difference(&asked.pools).filter(new_pool).copied().collect(),
            campaigns: self.campaigns.difference(&asked.campaigns).filter(new_campaign).cloned().collect(),
            usage: self.usage.difference(&asked.usage).cloned().collect(),
            counts: self.counts.difference(&asked.counts).copied().collect(),
            opened: self.opened.difference(&asked.opened).copied().collect(),
        }
    }

    fn extend(&mut self, other: Self) {
        self.pools.extend(other.pools);
        self.campaigns.extend(other.campaigns);
        self.usage.extend(other.usage);
        self.counts.extend(other.counts);
        self.opened.extend(other.opened);
    }
}

/// Where the answers of a flight stand.
#[derive(Default)]
struct Places {
    buckets: Option<usize>,
    orders: Vec<usize>,
    events: Option<usize>,
    claims: Option<usize>,
    adjustments: Option<usize>,
    transfers: Option<usize>,
    imports: Option<usize>,
    approvals: Option<usize>,
    since: Option<usize>,
    addresses: Option<usize>,
    queues: Option<usize>,
    caches: Option<usize>,
    landings: Option<usize>,
    repairs: Option<usize>,
    pools: Option<usize>,
    campaigns: Option<usize>,
    usage: usage::Places,
    opened: Option<usize>,
    clock: usize,
}

/// Begins the transaction of a batch, locks, and reads every row that the batch needs to be decided.
pub(crate) async fn load(connection: &Connection, batch: &Batch, hints: &Hints) -> Result<Loaded, Fault> {
    let needs = Needs::of(&batch.commands);
    let commands = &batch.commands;
    let mut loaded = Loader { needs: &needs, locks: &batch.locks, commands, rows: Rows::default() };
    let mut missing = loaded.expected(hints);
    let mut asked = Named::default();
    for flight_number in 0..FLIGHTS_MAX {
        let mut flight = Flight::default();
        let mut places = if flight_number == 0 { loaded.ask_first(&mut flight) } else { Places::default() };
        ask_named(&mut flight, &mut places, &missing);
        let begin = (flight_number == 0).then(|| {
            Box::pin(async { connection.begin(Mode::Write).await.map(|()| Vec::new()) }) as Outstanding<'_>
        });
        let answers = flight.send(connection, begin).await?.answers().await?;
        drop(flight);
        loaded.take(&answers, &places).map_err(Fault::Refused)?;
        asked.extend(missing);
        missing = loaded.named().without(&asked, &loaded.rows.snapshot);
        if missing.is_empty() {
            return loaded.finish(hints).map_err(Fault::Refused);
        }
    }
    Err(Fault::Refused(Error::Corrupt("a batch names more and more rows".into())))
}

#[derive(Default)]
struct Rows {
    snapshot: Snapshot,
    clock: Timestamp,
    counted: BTreeSet<UsageKey>,
}

struct Loader<'b> {
    needs: &'b Needs<'b>,
    locks: &'b LockSet,
    commands: &'b [Command],
    rows: Rows,
}

impl<'b> Loader<'b> {
    /// What can be asked for before anything was read.
    fn expected(&self, hints: &Hints) -> Named {
        let mut named = self.named();
        let mut guess = Snapshot::default();
        let known = self.needs.campaigns.iter().filter_map(|id| hints.limiting(id));
        guess.campaigns.extend(known.map(|campaign| (campaign.id.clone(), campaign)));
        named.usage.extend(guess.usage_of(self.commands));
        named
    }

    /// What the batch needs, as far as the rows that are read tell.
    fn named(&self) -> Named {
        let rows = &self.rows.snapshot;
        let mut named = Named { pools: self.needs.pools.clone(), ..Named::default() };
        named.pools.extend(self.locks.pools.iter().copied());
        named.pools.extend(self.locks.buckets.iter().map(|key| key.pool));
        named.pools.extend(rows.orders.values().flat_map(|order| order.pools()));
        named.campaigns.extend(self.needs.campaigns.iter().map(|id| (*id).clone()));
        named.campaigns.extend(rows.orders.values().map(|order| order.key.campaign.clone()));
        named.usage.extend(rows.usage_of(self.commands));
        named.counts = rows.counts_of(self.commands);
        let shown = |(campaign, sku, location): &(&CampaignId, &Sku, &Location)| {
            rows.pool_addresses.get(&((*campaign).clone(), (*sku).clone(), (*location).clone())).copied()
        };
        let opened = self.needs.opened.iter().filter_map(shown);
        named.opened.extend(opened.filter(|pool| !rows.has_locked(*pool)));
        named
    }

    /// The locks first, then what is named by the commands.
    fn ask_first(&self, flight: &mut Flight<'b>) -> Places {
        let needs = self.needs;
        self.keep_campaigns(flight);
        let mut places = Places { buckets: self.ask_locks(flight), ..Places::default() };
        if !needs.order_keys.is_empty() {
            let campaigns = texts(needs.order_keys.iter().map(|key| key.campaign.as_str()));
            let numbers = texts(needs.order_keys.iter().map(|key| key.order_no.as_str()));
            places.orders.push(flight.add(&ORDERS_BY_KEY, vec![campaigns, numbers]));
        }
        if !needs.orders.is_empty() {
            places.orders.push(flight.add(&ORDERS_BY_ID, vec![uuids(needs.orders.iter().map(|id| id.0))]));
        }
        (places.events, places.claims) = payments::ask(flight, needs);
        if !needs.adjustments.is_empty() {
            let ids = texts(needs.adjustments.iter().map(|id| id.as_str()));
            places.adjustments = Some(flight.add(&ADJUSTMENTS, vec![ids]));
        }
        if !needs.transfers.is_empty() {
            let ids = texts(needs.transfers.iter().map(|id| id.as_str()));
            places.transfers = Some(flight.add(&TRANSFERS, vec![ids]));
        }
        if !needs.imports.is_empty() {
            let ids = texts(needs.imports.iter().map(|id| id.as_str()));
            places.imports = Some(flight.add(&files::IMPORTS, vec![ids]));
        }
        if !needs.approvals.is_empty() {
            let keys = texts(needs.approvals.iter().map(ApprovalKey::as_str));
            places.approvals = Some(flight.add(&approvals::APPROVALS, vec![keys]));
        }
        if !needs.queues.is_empty() {
            let pools = uuids(needs.queues.iter().map(|pool| pool.0));
            places.queues = Some(flight.add(&QUEUE_LENGTHS, vec![pools]));
        }
        if !needs.caches.is_empty() {
            places.caches = Some(cache::ask_rows(flight, &needs.caches));
        }
        if !needs.landings.is_empty() {
            places.landings = Some(cache::ask_landed(flight, &needs.landings));
        }
        places.repairs = reconcile::ask(flight, needs);
        if !needs.pool_addresses.is_empty() {
            let campaigns = texts(needs.pool_addresses.iter().map(|(campaign, ..)| campaign.as_str()));
            let skus = texts(needs.pool_addresses.iter().map(|(_, sku, _)| sku.as_str()));
            let locations = texts(needs.pool_addresses.iter().map(|(.., location)| location.as_str()));
            places.addresses = Some(flight.add(&ADDRESSES, vec![campaigns, skus, locations]));
        }
        places
    }

    /// Before any bucket: whoever counts anew for a limit locks them in this order, too.
    fn keep_campaigns(&self, flight: &mut Flight<'b>) {
        let opened = self.needs.pool_addresses.iter().map(|(campaign, ..)| campaign.as_str());
        let kept: BTreeSet<_> = opened.collect();
        if !kept.is_empty() {
            flight.add(&KEEP_CAMPAIGNS, vec![texts(kept.into_iter())]);
        }
    }

    fn ask_locks(&self, flight: &mut Flight<'b>) -> Option<usize> {
        let locks = self.locks;
        let single = |key: &&BucketKey| !locks.pools.contains(&key.pool);
        let mut wanted: Vec<(u128, Option<i32>)> = locks.pools.iter().map(|pool| (pool.0, None)).collect();
        for key in locks.buckets.iter().filter(single) {
            wanted.push((key.pool.0, Some(i32::try_from(key.number).unwrap_or(i32::MAX))));
        }
        let sql = if locks.pools.is_empty() { &LOCK_BUCKETS } else { &LOCK_POOLS };
        let pools = uuids(wanted.iter().map(|(pool, _)| *pool));
        let numbers: Vec<Option<i32>> = wanted.iter().map(|(_, number)| *number).collect();
        (!wanted.is_empty()).then(|| flight.add(sql, vec![pools, Box::new(numbers)]))
    }

    /// Takes what a flight brought.
    fn take(&mut self, answers: &[Vec<tokio_postgres::Row>], places: &Places) -> Result<(), Error> {
        let at = |place: Option<usize>| place.and_then(|at| answers.get(at)).map_or(&[][..], Vec::as_slice);
        let rows = &mut self.rows.snapshot;
        rows.buckets
            .extend(all(at(places.buckets), rows::bucket)?.into_iter().map(|bucket| (bucket.key, bucket)));
        for place in &places.orders {
            for order in all(at(Some(*place)), rows::order)? {
                rows.order_keys.insert(order.key.clone(), order.id);
                rows.orders.insert(order.id, Arc::new(order));
            }
        }
        payments::take(at(places.events), at(places.claims), rows)?;
        for known in all(at(places.adjustments), rows::adjustment)? {
            rows.adjustments.insert(known.adjustment_id.clone(), known);
        }
        for known in all(at(places.transfers), rows::transfer)? {
            rows.transfers.insert(known.transfer_id.clone(), known);
        }
        for known in all(at(places.imports), rows::imported)? {
            rows.imports.insert(known.id.clone(), known);
        }
        for known in all(at(places.approvals), rows::approval)? {
            rows.approvals.insert(known.key.clone(), Arc::new(known));
        }
        rows.since.extend(all(at(places.since), files::since)?);
        let length =
            |row: &dyn Row| Ok((PoolId(rows::number_id(row, "pool")?), rows::number(row, "length")?));
        rows.queue_lengths.extend(all(at(places.queues), length)?);
        let caches = all(at(places.caches), rows::cache_bucket)?.into_iter();
        rows.caches.extend(caches.map(|row| (row.key, row)));
        rows.landed.extend(all(at(places.landings), rows::landing)?);
        reconcile::take(answers, places.repairs, rows)?;
        for pool in all(at(places.addresses), rows::pool)? {
            let address = (pool.campaign.clone(), pool.sku.clone(), pool.location.clone());
            rows.pool_addresses.insert(address, pool.id);
            rows.pools.insert(pool.id, pool);
        }
        rows.pools.extend(all(at(places.pools), rows::pool)?.into_iter().map(|pool| (pool.id, pool)));
        let campaigns = all(at(places.campaigns), rows::campaign)?.into_iter();
        rows.campaigns.extend(campaigns.map(|campaign| (campaign.id.clone(), Arc::new(campaign))));
        for (key, usage) in usage::take(answers, &places.usage)? {
            self.rows.counted.insert(key.clone());
            rows.usage.insert(key, usage);
        }
        rows.buckets
            .extend(all(at(places.opened), rows::bucket)?.into_iter().map(|bucket| (bucket.key, bucket)));
        let read = |row: &dyn Row| Ok((rows::number(row, "clock").map(Timestamp)?, row.flag("halted")?));
        let clock = first(at(Some(places.clock)), read)?;
        (self.rows.clock, rows.halted) = clock.ok_or_else(|| rows::corrupt("no clock"))?;
        Ok(())
    }

    fn finish(self, hints: &Hints) -> Result<Loaded, Error> {
        let Rows { snapshot, clock, counted } = self.rows;
        let mut locked: BTreeMap<PoolId, u32> = BTreeMap::new();
        for key in snapshot.buckets.keys() {
            *locked.entry(key.pool).or_default() += 1;
        }
        let is_whole = |pool: &Pool| locked.get(&pool.id) == Some(&pool.buckets);
        // Its new bucket was not there when we asked for all of them.
        let wanted = self.locks.pools.iter().filter_map(|pool| snapshot.pools.get(pool));
        if let Some(pool) = wanted.into_iter().find(|pool| !is_whole(pool)) {
            return Err(Error::Conflict(format!("pool {} has grown", pool.id)));
        }
        for campaign in snapshot.campaigns.values() {
            hints.learn(campaign);
        }
        Ok(Loaded { snapshot, clock, counted })
    }
}

/// Asks for rows that commands or orders name, and for the clock behind them.
fn ask_named(flight: &mut Flight<'_>, places: &mut Places, named: &Named) {
    let Named { pools, campaigns, usage, counts, opened } = named;
    if !pools.is_empty() {
        places.pools = Some(flight.add(&POOLS, vec![uuids(pools.iter().map(|pool| pool.0))]));
    }
    if !pools.is_empty() || !campaigns.is_empty() {
        let ids: Vec<String> = campaigns.iter().map(ToString::to_string).collect();
        let params: Vec<Owned<'_>> = vec![Box::new(ids), uuids(pools.iter().map(|pool| pool.0))];
        places.campaigns = Some(flight.add(&CAMPAIGNS, params));
    }
    if !usage.is_empty() {
        places.usage = usage::ask(flight, usage);
    }
    if !counts.is_empty() {
        places.since = Some(files::ask_since(flight, counts));
    }
    if !opened.is_empty() {
        places.opened = Some(flight.add(&READ_BUCKETS, vec![uuids(opened.iter().map(|pool| pool.0))]));
    }
    places.clock = flight.add(&CLOCK, Vec::new());
}

pub(crate) fn texts<'t>(values: impl Iterator<Item = &'t str>) -> Owned<'t> {
    Box::new(values.collect::<Vec<_>>())
}

fn uuids<'t>(values: impl Iterator<Item = u128>) -> Owned<'t> {
    Box::new(values.map(uuid).collect::<Vec<_>>())
}

/// The clock, read without a batch.
pub(crate) async fn clock(connection: &Connection) -> Result<Timestamp, tokio_postgres::Error> {
    let found = connection.rows(&CLOCK_ALONE, &[]).await?;
    Ok(Timestamp(found.first().map_or(Ok(0), |row| row.try_get("clock"))?))
}

/// Locks the buckets of a set, without reading anything else.
pub(crate) async fn lock(connection: &Connection, locks: &LockSet) -> Result<(), Fault> {
    let needs = Needs::default();
    let loader = Loader { needs: &needs, locks, commands: &[], rows: Rows::default() };
    let mut flight = Flight::default();
    if loader.ask_locks(&mut flight).is_some() {
        flight.send(connection, None).await?.answers().await?;
    }
    Ok(())
}

/// An order by its id, inside a transaction.
pub(crate) async fn order_is_there(
    connection: &Connection,
    order: OrderId,
) -> Result<bool, tokio_postgres::Error> {
    Ok(!connection.rows(&ORDERS_BY_ID, &[&vec![uuid(order.0)]]).await?.is_empty())
}
