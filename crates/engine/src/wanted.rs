//! What an order asks of the pools, and what the node locks for it first: a guess from what it last saw. The
//! authority decides, and says what else must be locked.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::decide::{Taker, shortage};
use holdfast_core::id::{Location, PoolId, Sku};
use holdfast_core::order::Shortage;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{BucketKey, Path};
use holdfast_core::time::Timestamp;

use crate::catalog::PoolEntry;
use crate::engine::Engine;
use crate::offers::{Offer, Served, in_one_line};
use crate::request::{PlaceRequest, RequestedLine};

/// How an order's lines are served.
pub(crate) type ServedLines<'r> = BTreeMap<(&'r Sku, Option<&'r Location>), Served>;

/// What an order asks of one pool.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) entry: Arc<PoolEntry>,
    /// What draws its bucket.
    pub(crate) ticket: u64,
    /// Units of lines that have no choice; 0: the pool is one place of several.
    pub(crate) units: u64,
    /// Which pool of the order it is, in the order in which lines name them.
    pub(crate) place: usize,
}

impl Wanted {
    /// Whether a cache takes first. Frozen stock is refused by the authority, whatever its cache has.
    pub(crate) fn is_cached(&self) -> bool {
        self.entry.path == Path::Cached && !self.entry.frozen
    }
}

/// A line that has a choice of places.
#[derive(Debug)]
pub(crate) struct Choice {
    line: u32,
    quantity: u64,
    offer: Arc<Offer>,
}

/// All that an order asks.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// Every pool, in order of ids.
    pub(crate) pools: Vec<Wanted>,
    pub(crate) choices: Vec<Choice>,
}

impl Asking {
    /// Whether the pool wants each of its orders in a transaction of its own.
    pub(crate) fn is_direct(&self, pool: PoolId) -> bool {
        let at = self.pools.binary_search_by_key(&pool, |want| want.entry.id);
        at.ok().and_then(|at| self.pools.get(at)).is_some_and(|want| want.entry.path == Path::Direct)
    }

    fn ticket(&self, pool: PoolId) -> u64 {
        let at = self.pools.binary_search_by_key(&pool, |want| want.entry.id);
        at.ok().and_then(|at| self.pools.get(at)).map_or(0, |want| want.ticket)
    }
}

/// A pool, and what one unit of a line takes of it.
type Need<'s> = (&'s Arc<PoolEntry>, u64);

/// The offer of a line that has a choice, and the pools of the line: 0 units of each if it has one.
fn needs_of(served: &Served) -> (Option<&Arc<Offer>>, Vec<Need<'_>>) {
    match served {
        Served::Pool(entry) => (None, vec![(entry, 1)]),
        Served::Offer(offer) => {
            let is_choice = offer.places.iter().any(|places| places.len() > 1);
            let parts = offer.made_of.parts.iter().zip(&offer.places);
            let each = |per_unit: u32| if is_choice { 0 } else { u64::from(per_unit) };
            let needs = parts.flat_map(|(part, places)| places.iter().map(move |p| (p, each(part.per_unit))));
            (is_choice.then_some(offer), needs.collect())
        }
    }
}

fn numbered(request: &PlaceRequest) -> impl Iterator<Item = (u32, &RequestedLine)> {
    (1_u32..).zip(&request.lines)
}

fn served_by<'s>(served: &'s ServedLines<'s>, line: &'s RequestedLine) -> Option<&'s Served> {
    served.get(&(&line.sku, line.location.as_ref()))
}

impl Engine {
    /// What an order asks of each pool. Lines of one pool count together.
    pub(crate) fn asking(&self, request: &PlaceRequest, served: &ServedLines<'_>) -> Asking {
        let mut wanted: BTreeMap<PoolId, Wanted> = BTreeMap::new();
        let mut choices = Vec::new();
        for (number, line) in numbered(request) {
            let Some(served) = served_by(served, line) else { continue };
            let quantity = u64::from(line.quantity);
            let (choice, needs) = needs_of(served);
            let choice = choice.map(|offer| Choice { line: number, quantity, offer: Arc::clone(offer) });
            choices.extend(choice);
            for (entry, each) in needs {
                let place = wanted.len();
                let want = wanted.entry(entry.id).or_insert_with(|| Wanted {
                    entry: Arc::clone(entry),
                    ticket: self.ticket(entry, request),
                    units: 0,
                    place,
                });
                want.units = want.units.saturating_add(quantity.saturating_mul(each));
            }
        }
        Asking { pools: wanted.into_values().collect(), choices }
    }

    /// What this node thinks is too little of something, if it does.
    pub(crate) fn short(
        &self,
        request: &PlaceRequest,
        served: &ServedLines<'_>,
        asking: &Asking,
    ) -> Option<Shortage> {
        let mut short: Option<Shortage> = None;
        let mut note = |found: Shortage| {
            // The lowest line is named, as the authority does.
            if short.is_none_or(|known| (found.line, found.available) < (known.line, known.available)) {
                short = Some(found);
            }
        };
        // Of a cached pool the caches are asked: they are ahead of what the authority has committed.
        for want in asking.pools.iter().filter(|want| want.units > 0 && !want.is_cached()) {
            let Some((available, as_of)) = self.seen(&want.entry) else { continue };
            if available < want.units {
                self.look_again(&want.entry, as_of);
                note(shortage(&takers(request, served, want.entry.id), available));
            }
        }
        for choice in &asking.choices {
            let Choice { line, quantity: requested, offer } = choice;
            let units = |places: &Vec<Arc<PoolEntry>>| {
                places.iter().map(|entry| self.seen(entry).map(|(available, _)| available)).collect()
            };
            let seen: Option<Vec<Vec<u64>>> = offer.places.iter().map(units).collect();
            let Some(seen) = seen else { continue };
            let available = in_one_line(&offer.made_of, &seen);
            if available < *requested {
                for entry in offer.places.iter().flatten() {
                    self.seen(entry).into_iter().for_each(|(_, as_of)| self.look_again(entry, as_of));
                }
                note(Shortage { line: *line, requested: *requested, available });
            }
        }
        short
    }

    /// A pool that has too little for its lines.
    pub(crate) fn short_of(
        &self,
        request: &PlaceRequest,
        served: &ServedLines<'_>,
        entry: &PoolEntry,
        available: u64,
    ) -> Refusal {
        Refusal::SoldOut(shortage(&takers(request, served, entry.id), available))
    }

    fn seen(&self, entry: &PoolEntry) -> Option<(u64, Timestamp)> {
        self.shared.shelf.remaining(entry.id, entry.buckets())
    }

    /// Somebody is being refused by what was seen: it is read anew, once, and never lapses into letting orders
    /// through to find out.
    fn look_again(&self, entry: &PoolEntry, as_of: Timestamp) {
        if self.is_old(as_of, self.store().now()) && self.shared.shelf.begin_refresh(entry.id) {
            let (engine, pool) = (self.clone(), entry.id);
            tokio::spawn(async move { engine.refresh(pool).await });
        }
    }

    /// What is locked first: of each pool the routed bucket that may have enough, else all of it; of a line that
    /// has a choice, the places up to the first that may serve it.
    pub(crate) fn first_locks(&self, asking: &Asking) -> LockSet {
        let mut locks = LockSet::default();
        // Of a cached pool the caches are asked: they are ahead of what the authority has committed.
        for want in asking.pools.iter().filter(|want| want.units > 0 && !want.is_cached()) {
            self.lock(&mut locks, asking, &want.entry, want.units);
        }
        for Choice { quantity, offer, .. } in &asking.choices {
            if offer.made_of.split {
                self.lock_split(&mut locks, asking, *quantity, offer);
            } else {
                self.lock_one(&mut locks, asking, *quantity, offer);
            }
        }
        locks
    }

    /// Locks a bucket that may have enough, or the whole pool; whether it is a bucket.
    fn lock(&self, locks: &mut LockSet, asking: &Asking, entry: &PoolEntry, units: u64) -> bool {
        let ticket = asking.ticket(entry.id);
        let chosen = self.shared.shelf.choose(entry.id, &entry.weights, units, ticket, &[]);
        match chosen {
            Some(number) => drop(locks.buckets.insert(BucketKey { pool: entry.id, number })),
            None => drop(locks.pools.insert(entry.id)),
        }
        chosen.is_some()
    }

    fn lock_split(&self, locks: &mut LockSet, asking: &Asking, quantity: u64, offer: &Offer) {
        for (part, places) in offer.made_of.parts.iter().zip(&offer.places) {
            let mut rest = quantity.saturating_mul(part.per_unit.into());
            for entry in places {
                if rest == 0 || self.lock(locks, asking, entry, rest) {
                    break;
                }
                let seen = self.seen(entry);
                rest = rest.saturating_sub(seen.map_or(0, |(available, _)| available));
            }
        }
    }

    fn lock_one(&self, locks: &mut LockSet, asking: &Asking, quantity: u64, offer: &Offer) {
        let places = offer.places.first().map_or(0, Vec::len);
        for place in 0..places {
            let mut suffices = true;
            for (part, places) in offer.made_of.parts.iter().zip(&offer.places) {
                let need = quantity.saturating_mul(part.per_unit.into());
                let Some(entry) = places.get(place) else { continue };
                if !self.lock(locks, asking, entry, need) {
                    let seen = self.seen(entry);
                    suffices &= seen.is_none_or(|(available, _)| available >= need);
                }
            }
            if suffices {
                return;
            }
        }
    }
}

/// The lines that have no choice but this pool.
fn takers<'r>(request: &'r PlaceRequest, served: &'r ServedLines<'r>, pool: PoolId) -> Vec<Taker<'r>> {
    let taker = |(number, line): (u32, &'r RequestedLine)| {
        let (_, needs) = needs_of(served_by(served, line)?);
        let (_, each) = needs.into_iter().find(|(entry, each)| entry.id == pool && *each > 0)?;
        Some(Taker { line: number, sku: &line.sku, quantity: u64::from(line.quantity), each })
    };
    numbered(request).filter_map(taker).collect()
}
