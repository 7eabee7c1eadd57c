//! What a campaign offers besides its pools, as JSON inside its row.

use std::collections::BTreeMap;

use holdfast_core::assortment::{Assortment, Component};
use holdfast_core::id::{Location, Sku};
use serde::{Deserialize, Serialize};

use super::detail::{id, json, parse};
use crate::error::Error;

#[derive(Serialize, Deserialize)]
struct AssortmentJson {
    version: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locations: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    split: bool,
    /// Components as (SKU, quantity), by the SKU of the bundle.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    bundles: BTreeMap<String, Vec<(String, u32)>>,
}

/// An assortment as stored; nothing for one that was never set.
pub fn write_assortment(assortment: &Assortment) -> Result<Option<String>, Error> {
    let Assortment { version, locations, split, bundles } = assortment;
    if *version == 0 {
        return Ok(None);
    }
    let components =
        |components: &[Component]| components.iter().map(|c| (c.sku.to_string(), c.quantity)).collect();
    json(&AssortmentJson {
        version: *version,
        locations: locations.iter().map(ToString::to_string).collect(),
        split: *split,
        bundles: bundles.iter().map(|(sku, own)| (sku.to_string(), components(own))).collect(),
    })
    .map(Some)
}

/// An assortment as read.
pub(super) fn read_assortment(text: Option<&str>) -> Result<Assortment, Error> {
    let Some(text) = text else { return Ok(Assortment::default()) };
    let AssortmentJson { version, locations, split, bundles } = parse(text)?;
    let component = |(sku, quantity): (String, u32)| Ok(Component { sku: id(&sku, Sku::new)?, quantity });
    let bundle = |(sku, components): (String, Vec<(String, u32)>)| {
        let components = components.into_iter().map(component).collect::<Result<_, Error>>()?;
        Ok((id(&sku, Sku::new)?, components))
    };
    Ok(Assortment {
        version,
        locations: locations.iter().map(|name| id(name, Location::new)).collect::<Result<_, Error>>()?,
        split,
        bundles: bundles.into_iter().map(bundle).collect::<Result<_, Error>>()?,
    })
}
