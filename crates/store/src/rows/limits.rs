//! Limits of named keys, and the keys that orders carry, as JSON inside a row.

use std::collections::BTreeMap;

use holdfast_core::id::{HashedKey, LimitName};
use holdfast_core::limit::{LimitKeys, Limits};
use serde::{Deserialize, Serialize};

use super::corrupt;
use super::detail::{id, json, parse};
use crate::error::Error;

#[derive(Serialize, Deserialize)]
struct LimitsJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_holds: Option<u64>,
}

/// Limits by name, as stored.
pub fn write_limits(limits: &BTreeMap<LimitName, Limits>) -> Result<String, Error> {
    let row = |limits: &Limits| LimitsJson { units: limits.units, open_holds: limits.open_holds };
    json(&limits.iter().map(|(name, limits)| (name.as_str(), row(limits))).collect::<BTreeMap<_, _>>())
}

/// Limits by name, as read.
pub(crate) fn read_limits(text: &str) -> Result<BTreeMap<LimitName, Limits>, Error> {
    let rows: BTreeMap<String, LimitsJson> = parse(text)?;
    let limits = |row: LimitsJson| Limits { units: row.units, open_holds: row.open_holds };
    rows.into_iter().map(|(name, row)| Ok((id(&name, LimitName::new)?, limits(row)))).collect()
}

/// The keys of an order, as stored; nothing for an order without.
pub fn write_keys(keys: &LimitKeys) -> Result<Option<String>, Error> {
    if keys.is_empty() {
        return Ok(None);
    }
    let row = |key: &HashedKey| format!("{:032x}", key.0);
    json(&keys.iter().map(|(name, key)| (name.as_str(), row(key))).collect::<BTreeMap<_, _>>()).map(Some)
}

/// The keys of an order, as read.
pub(crate) fn read_keys(text: Option<&str>) -> Result<LimitKeys, Error> {
    let Some(text) = text else { return Ok(LimitKeys::new()) };
    let rows: BTreeMap<String, String> = parse(text)?;
    let key = |hex: &str| {
        u128::from_str_radix(hex, 16).map(HashedKey).map_err(|_| corrupt(format_args!("not a key: {hex:?}")))
    };
    rows.iter().map(|(name, hex)| Ok((id(name, LimitName::new)?, key(hex)?))).collect()
}
