//! The assortment (品类组合): what a campaign offers besides its pools. Which locations a line without one takes
//! from, in which order; and bundles, SKUs that are made of others.

use std::collections::BTreeMap;

use crate::id::{Location, MAIN_LOCATION, PoolId, Sku};
use crate::refusal::Refusal;

/// Most locations in a campaign's order.
pub const LOCATIONS_MAX: usize = 16;
/// Most bundles of a campaign: they live in its row, which every batch reads.
pub const BUNDLES_MAX: usize = 200;
/// Most components of a bundle.
pub const COMPONENTS_MAX: usize = 16;
/// Most units of a component in one bundle.
pub const COMPONENT_QUANTITY_MAX: u32 = 1_000;
/// Most pools that the lines of one order may name together, each as often as it is named.
pub const SOURCES_MAX: usize = 4_000;

/// What a campaign offers besides its pools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assortment {
    /// How often it changed. An order is made up by one version and refused by any other, so that a node that
    /// has not heard of a change cannot sell by what was before it.
    pub version: u64,
    /// The location order; empty: [`MAIN_LOCATION`] alone.
    pub locations: Vec<Location>,
    /// Whether a line may be split over locations.
    pub split: bool,
    /// What each bundle is made of.
    pub bundles: BTreeMap<Sku, Vec<Component>>,
}

/// A component of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// What it is.
    pub sku: Sku,
    /// Units of it in one bundle.
    pub quantity: u32,
}

/// A change of an assortment. The same again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssortmentChange {
    /// The location order, and whether lines may be split.
    Locations {
        /// In this order.
        order: Vec<Location>,
        /// Whether a line may be split over them.
        split: bool,
    },
    /// What a bundle is made of.
    Bundle {
        /// What it is sold as.
        sku: Sku,
        /// In one of it.
        components: Vec<Component>,
    },
}

impl Assortment {
    /// The assortment after a change, or why it cannot be; itself if nothing changes. `has_pool` says whether
    /// the campaign has a pool of the SKU that is to be a bundle: it would hide its stock.
    pub fn after(&self, change: &AssortmentChange, has_pool: bool) -> Result<Self, Refusal> {
        let mut after = self.clone();
        match change {
            AssortmentChange::Locations { order, split } => {
                let is_default = matches!(order.as_slice(), [only] if only.as_str() == MAIN_LOCATION);
                after.locations = if is_default { Vec::new() } else { order.clone() };
                after.split = *split;
            }
            AssortmentChange::Bundle { sku, components } => {
                self.check_bundle(sku, components, has_pool)?;
                after.bundles.insert(sku.clone(), components.clone());
            }
        }
        if after != *self {
            after.version = self.version.saturating_add(1);
        }
        Ok(after)
    }

    fn check_bundle(&self, sku: &Sku, components: &[Component], has_pool: bool) -> Result<(), Refusal> {
        let is_new = !self.is_bundle(sku);
        if is_new && has_pool {
            return Err(Refusal::Conflict("the SKU has stock of its own: its pools would be out of reach"));
        }
        if is_new && self.bundles.len() >= BUNDLES_MAX {
            return Err(Refusal::Conflict("the campaign has as many bundles as it may have"));
        }
        if self.bundles.values().flatten().any(|known| known.sku == *sku) {
            return Err(Refusal::Conflict("the SKU is a component of a bundle: bundles are not nested"));
        }
        match components.iter().position(|c| c.sku == *sku || self.is_bundle(&c.sku)) {
            Some(index) => Err(Refusal::InvalidValue {
                pointer: format!("/components/{index}/sku"),
                why: "must not be a bundle: bundles are not nested",
            }),
            None => Ok(()),
        }
    }

    /// Whether a SKU is a bundle: it has no stock of its own.
    pub fn is_bundle(&self, sku: &Sku) -> bool {
        self.bundles.contains_key(sku)
    }

    /// The locations that a line without one takes from, in order.
    pub fn order(&self) -> Vec<Location> {
        if self.locations.is_empty() { vec![Location::main()] } else { self.locations.clone() }
    }

    /// Whether a line without location takes from this one alone.
    pub fn is_only(&self, location: &Location) -> bool {
        match self.locations.as_slice() {
            [] => location.as_str() == MAIN_LOCATION,
            [only] => only == location,
            [..] => false,
        }
    }
}

/// A pool that a part of a line may take from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The pool.
    pub pool: PoolId,
    /// Where its stock is.
    pub location: Location,
}

/// A part of a line: units of one SKU. A line that is no bundle has one part, of its own SKU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub sku: Sku,
    /// Units of it in one unit of the line.
    pub per_unit: u32,
    /// Where it may be taken, in this order; not empty. No other part of the line has any of these pools.
    pub sources: Vec<Source>,
}

impl Part {
    /// Whether it may take from this pool.
    pub fn has(&self, pool: PoolId) -> bool {
        self.sources.iter().any(|source| source.pool == pool)
    }
}

/// What a line is made of, and where each part may be taken: fixed when the order is placed, so that later changes
/// of bundles and locations do not touch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeUp {
    /// Its parts; not empty.
    pub parts: Vec<Part>,
    /// Whether a part may be split over locations. If not, all of the line comes from one, and every part has
    /// the same locations in the same order.
    pub split: bool,
}

impl MakeUp {
    /// Units of stock in one unit of the line.
    pub fn units(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.per_unit)).sum()
    }

    /// Every pool that it may take from.
    pub fn pools(&self) -> impl Iterator<Item = PoolId> {
        self.parts.iter().flat_map(|part| part.sources.iter().map(|source| source.pool))
    }

    /// The part and the source that have this pool.
    pub fn source_of(&self, pool: PoolId) -> Option<(&Part, &Source)> {
        self.parts.iter().find_map(|part| {
            part.sources.iter().find(|source| source.pool == pool).map(|source| (part, source))
        })
    }

    /// Whether there is only this one location.
    pub fn is_only_at(&self, location: &Location) -> bool {
        self.parts.iter().flat_map(|part| &part.sources).all(|source| source.location == *location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sku(name: &str) -> Sku {
        Sku::new(name).unwrap()
    }

    fn bundle(name: &str, components: &[(&str, u32)]) -> AssortmentChange {
        let component = |(name, quantity): &(&str, u32)| Component { sku: sku(name), quantity: *quantity };
        AssortmentChange::Bundle { sku: sku(name), components: components.iter().map(component).collect() }
    }

    fn locations(names: &[&str], split: bool) -> AssortmentChange {
        let order = names.iter().map(|name| Location::new(name).unwrap()).collect();
        AssortmentChange::Locations { order, split }
    }

    #[test]
    fn a_change_counts_only_if_it_changes_something() {
        let first = Assortment::default().after(&locations(&["main"], false), false).unwrap();
        assert_eq!(first, Assortment::default(), "main alone is what there is already");
        let second = first.after(&locations(&["east", "west"], true), false).unwrap();
        assert_eq!((second.version, second.order().len(), first.order()), (1, 2, vec![Location::main()]));
        assert_eq!(second.after(&locations(&["east", "west"], true), false).unwrap(), second);
        let third = second.after(&bundle("set", &[("cup", 2)]), false).unwrap();
        assert_eq!((third.version, third.locations.len()), (2, 2));
        assert_eq!(third.after(&bundle("set", &[("cup", 2)]), true).unwrap().version, 2);
    }

    #[test]
    fn bundles_are_not_nested_and_hide_no_stock() {
        let one = Assortment::default().after(&bundle("set", &[("cup", 2), ("pot", 1)]), false).unwrap();
        for (change, has_pool) in [
            (bundle("cup", &[("a", 1)]), false),
            (bundle("other", &[("set", 1)]), false),
            (bundle("other", &[("a", 1), ("other", 1)]), false),
            (bundle("other", &[("a", 1)]), true),
        ] {
            assert!(one.after(&change, has_pool).is_err(), "{change:?}");
        }
        assert!(one.after(&bundle("other", &[("cup", 1)]), false).is_ok());
    }
}
