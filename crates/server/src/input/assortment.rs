//! Requests about what a campaign offers besides its pools.

use std::collections::BTreeSet;

use holdfast_core::assortment::{
    AssortmentChange, COMPONENT_QUANTITY_MAX, COMPONENTS_MAX, Component, LOCATIONS_MAX,
};
use holdfast_core::id::{Location, Sku};
use holdfast_wire::Code;

use super::field::{Flag, id, quantity_in};
use super::reader::Object;

/// Reads a location order.
pub(crate) fn read_locations(body: &mut Object<'_, '_>) -> Option<AssortmentChange> {
    let order: Option<Vec<Location>> = body.array("order", 1..=LOCATIONS_MAX, |item| item.field(id()));
    let split = body.defaulted("split", Flag, false);
    let mut seen = BTreeSet::new();
    for (index, location) in order.iter().flatten().enumerate() {
        if !seen.insert(location) {
            body.refuse_below(&format!("/order/{index}"), Code::InvalidValue, "the location stands twice");
        }
    }
    Some(AssortmentChange::Locations { order: order?, split: split? })
}

/// Reads what a bundle is made of.
pub(crate) fn read_bundle(sku: Sku, body: &mut Object<'_, '_>) -> Option<AssortmentChange> {
    let components = body.array("components", 1..=COMPONENTS_MAX, |item| item.object(read_component));
    let mut seen = BTreeSet::new();
    for (index, component) in components.iter().flatten().enumerate() {
        if !seen.insert(&component.sku) {
            let pointer = format!("/components/{index}/sku");
            body.refuse_below(&pointer, Code::InvalidValue, "the component stands twice");
        }
    }
    Some(AssortmentChange::Bundle { sku, components: components? })
}

fn read_component(body: &mut Object<'_, '_>) -> Option<Component> {
    let sku = body.required("sku", id());
    let quantity = body.required("quantity", quantity_in(1..=COMPONENT_QUANTITY_MAX));
    Some(Component { sku: sku?, quantity: quantity? })
}
