//! Offers: how lines are served that are bundles, or that have a choice of places. Made of what the node knows of
//! campaigns and pools, once for all orders, and forgotten whenever it learns something else.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use holdfast_core::assortment::{Component, MakeUp, Part, Source};
use holdfast_core::campaign::Campaign;
use holdfast_core::id::{CampaignId, Location, Sku};
use holdfast_store::Store;

use crate::catalog::{Catalog, PoolEntry};
use crate::engine::Engine;
use crate::error::Error;

/// Most offers that are kept; beyond it all are made anew.
const OFFERS_MAX: usize = 10_000;

/// What an order may name.
type Address = (CampaignId, Sku, Option<Location>);

/// How a line is served, as the node knows it.
#[derive(Debug, Clone)]
pub(crate) enum Served {
    /// From one pool.
    Pool(Arc<PoolEntry>),
    /// As a bundle, or from one of several places.
    Offer(Arc<Offer>),
}

/// A make-up with its pools.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) made_of: Arc<MakeUp>,
    /// The pools of each part, in the order of its sources.
    pub(crate) places: Vec<Vec<Arc<PoolEntry>>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Counts how often all was forgotten: what was begun before is not kept.
    round: u64,
    /// With the version of the assortment by which each was made; none: there is no stock of it.
    offers: HashMap<Address, (u64, Option<Arc<Offer>>)>,
}

/// The offers that the node has made.
#[derive(Debug, Default)]
pub(crate) struct Offers(RwLock<Kept>);

impl Offers {
    pub(crate) fn forget_all(&self) {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        kept.round = kept.round.wrapping_add(1);
        kept.offers.clear();
    }

    /// Counts how often the node learnt of something that changes offers.
    pub(crate) fn round(&self) -> u64 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).round
    }

    /// What is kept of this address and version, and the round of which that is true.
    fn known(&self, address: &Address, version: u64) -> (u64, Option<Option<Arc<Offer>>>) {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let known = kept.offers.get(address).filter(|(of, _)| *of == version);
        (kept.round, known.map(|(_, offer)| offer.clone()))
    }

    fn keep(&self, round: u64, address: Address, version: u64, offer: Option<Arc<Offer>>) {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.round != round {
            return;
        }
        if kept.offers.len() >= OFFERS_MAX {
            kept.offers.clear();
        }
        kept.offers.insert(address, (version, offer));
    }
}

impl Catalog {
    /// How a line of this SKU is served; none: there is no stock of it. A line that names its location, or of a
    /// campaign without a location order, costs one look into the pools that the node knows.
    pub(crate) async fn served(
        &self,
        store: &dyn Store,
        campaign: &Campaign,
        sku: &Sku,
        location: Option<&Location>,
    ) -> Result<Option<Served>, Error> {
        let assortment = &campaign.assortment;
        let only = match location {
            Some(location) => Some(location.clone()),
            None if assortment.locations.is_empty() => Some(Location::main()),
            None => None,
        };
        match only.filter(|_| !assortment.is_bundle(sku)) {
            Some(only) => {
                let found = self.pool(store, &campaign.id, sku, &only).await?;
                Ok(found.filter(|entry| !entry.retired).map(Served::Pool))
            }
            None => Ok(self.offer(store, campaign, sku, location).await?.map(Served::Offer)),
        }
    }

    async fn offer(
        &self,
        store: &dyn Store,
        campaign: &Campaign,
        sku: &Sku,
        location: Option<&Location>,
    ) -> Result<Option<Arc<Offer>>, Error> {
        let address = (campaign.id.clone(), sku.clone(), location.cloned());
        let version = campaign.assortment.version;
        let (round, known) = self.offers.known(&address, version);
        if let Some(known) = known {
            return Ok(known);
        }
        let offer = self.make(store, campaign, sku, location).await?.map(Arc::new);
        self.offers.keep(round, address, version, offer.clone());
        Ok(offer)
    }

    async fn make(
        &self,
        store: &dyn Store,
        campaign: &Campaign,
        sku: &Sku,
        location: Option<&Location>,
    ) -> Result<Option<Offer>, Error> {
        let assortment = &campaign.assortment;
        let itself = [Component { sku: sku.clone(), quantity: 1 }];
        let components = assortment.bundles.get(sku).map_or(&itself[..], Vec::as_slice);
        let order = location.map_or_else(|| assortment.order(), |only| vec![only.clone()]);
        let mut found: Vec<Vec<Option<Arc<PoolEntry>>>> = Vec::with_capacity(components.len());
        for component in components {
            let mut places = Vec::with_capacity(order.len());
            for location in &order {
                let entry = self.pool(store, &campaign.id, &component.sku, location).await?;
                places.push(entry.filter(|entry| !entry.retired));
            }
            found.push(places);
        }
        Ok(put_together(components, &order, &found, assortment.split))
    }
}

/// Makes an offer of the pools that there are, by component and location. Without splitting only locations that
/// have everything count.
fn put_together(
    components: &[Component],
    order: &[Location],
    found: &[Vec<Option<Arc<PoolEntry>>>],
    split: bool,
) -> Option<Offer> {
    let has_all = |place: usize| found.iter().all(|places| places.get(place).is_some_and(Option::is_some));
    let mut offer = Offer {
        made_of: Arc::new(MakeUp { parts: Vec::new(), split }),
        places: Vec::with_capacity(components.len()),
    };
    let mut parts = Vec::with_capacity(components.len());
    for (component, places) in components.iter().zip(found) {
        let open = order.iter().zip(places).enumerate().filter(|(place, _)| split || has_all(*place));
        let open = open.filter_map(|(_, (location, entry))| Some((location, entry.as_ref()?)));
        let (sources, entries): (Vec<_>, Vec<_>) = open
            .map(|(location, entry)| {
                (Source { pool: entry.id, location: location.clone() }, Arc::clone(entry))
            })
            .unzip();
        if sources.is_empty() {
            return None;
        }
        parts.push(Part { sku: component.sku.clone(), per_unit: component.quantity, sources });
        offer.places.push(entries);
    }
    offer.made_of = Arc::new(MakeUp { parts, split });
    Some(offer)
}

impl Engine {
    /// How many of a bundle could be sold now by what its pools show: the least of its parts, at each location
    /// by itself unless lines may be split. None: it has no stock anywhere.
    pub async fn bundle_available(&self, campaign: &Campaign, sku: &Sku) -> Result<Option<u64>, Error> {
        let Some(offer) = self.shared.catalog.offer(self.store(), campaign, sku, None).await? else {
            return Ok(None);
        };
        let mut shown: Vec<Vec<u64>> = Vec::with_capacity(offer.places.len());
        for places in &offer.places {
            let mut units = Vec::with_capacity(places.len());
            for entry in places {
                units.push(self.availability(entry.id).await?.map_or(0, |seen| seen.available));
            }
            shown.push(units);
        }
        Ok(Some(in_all(&offer.made_of, &shown)))
    }
}

/// How many units of lines there are in what the parts have, by part and place.
fn in_all(made_of: &MakeUp, shown: &[Vec<u64>]) -> u64 {
    if made_of.split { anywhere(made_of, shown) } else { by_place(made_of, shown).sum() }
}

/// The most that one line could have of it.
pub(crate) fn in_one_line(made_of: &MakeUp, shown: &[Vec<u64>]) -> u64 {
    if made_of.split { anywhere(made_of, shown) } else { by_place(made_of, shown).max().unwrap_or(0) }
}

fn least(made_of: &MakeUp, units_of: impl Fn(usize) -> u64) -> u64 {
    let each = made_of.parts.iter().map(|part| u64::from(part.per_unit)).enumerate();
    each.map(|(part, each)| units_of(part).checked_div(each).unwrap_or(0)).min().unwrap_or(0)
}

fn anywhere(made_of: &MakeUp, shown: &[Vec<u64>]) -> u64 {
    least(made_of, |part| shown.get(part).map_or(0, |units| units.iter().sum()))
}

fn by_place(made_of: &MakeUp, shown: &[Vec<u64>]) -> impl Iterator<Item = u64> {
    let places = shown.first().map_or(0, Vec::len);
    let units = |part: usize, place: usize| shown.get(part).and_then(|units| units.get(place)).copied();
    (0..places).map(move |place| least(made_of, |part| units(part, place).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::id::PoolId;

    #[test]
    fn a_bundle_is_as_many_as_the_least_of_its_parts() {
        let part = |name: &str, per_unit| Part {
            sku: Sku::new(name).unwrap(),
            per_unit,
            sources: vec![Source { pool: PoolId(1), location: Location::main() }],
        };
        let made_of = |split| MakeUp { parts: vec![part("a", 2), part("b", 1)], split };
        let shown = [vec![5, 4], vec![1, 9]];
        assert_eq!((in_all(&made_of(false), &shown), in_one_line(&made_of(false), &shown)), (1 + 2, 2));
        assert_eq!((in_all(&made_of(true), &shown), in_one_line(&made_of(true), &shown)), (4, 4));
    }
}
