//! Requests about pools.

use std::ops::RangeInclusive;
use std::sync::Arc;

use holdfast_core::command::{Adjust, AdjustmentKind, OpenPool, Signed};
use holdfast_core::id::{Location, Operator, PoolId};
use holdfast_core::stock::{BUCKETS_MAX, Path, SUPPLY_MAX};
use holdfast_wire::Code;

use super::field::{Only, TEXT_CHARS_MAX, id, integer, quantity_in, text, word};
use super::reader::Object;

/// The only routing that is built so far.
pub(crate) const ROUTING: &str = "order_hash";
/// The location of stock for which the client names none.
pub(crate) const LOCATION: &str = "main";
/// Bounds of an adjustment; 0 is none.
const DELTA: RangeInclusive<i64> = -(SUPPLY_MAX as i64)..=SUPPLY_MAX as i64;

/// Reads a pool to open. Its id is the engine's to make.
pub(crate) fn read_pool(actor: &Arc<str>, body: &mut Object<'_, '_>) -> Option<OpenPool> {
    let campaign = body.required("campaign_id", id());
    let sku = body.required("sku", id());
    let location = read_location(body);
    let supply = body.required("supply", quantity_in(0..=SUPPLY_MAX));
    let buckets = body.defaulted("buckets", integer(1..=BUCKETS_MAX), 1);
    let path = body.defaulted("path", word(built_path), Path::Batched);
    let routing = body.optional("routing", Only(ROUTING));
    routing?;
    Some(OpenPool {
        id: PoolId(0),
        campaign: campaign?,
        sku: sku?,
        location: location?,
        supply: supply?,
        buckets: buckets?,
        path: path?,
        signed: Signed::new(Arc::clone(actor), ""),
    })
}

/// The paths that are built so far.
pub(crate) fn built_path(text: &str) -> Option<Path> {
    Path::parse(text).filter(|path| match path {
        Path::Batched | Path::Queued => true,
        Path::Direct | Path::Cached => false,
    })
}

/// Reads `location`, by default `main`.
pub(crate) fn read_location(body: &mut Object<'_, '_>) -> Option<Location> {
    match body.optional("location", id())? {
        Some(location) => Some(location),
        None => Location::new(LOCATION).ok(),
    }
}

/// Reads an adjustment of a pool.
pub(crate) fn read_adjustment(pool: PoolId, body: &mut Object<'_, '_>) -> Option<Adjust> {
    let adjustment_id = body.required("adjustment_id", id());
    let delta = body.required("delta", quantity_in(DELTA));
    let kind = body.required("kind", word(AdjustmentKind::parse));
    let reason = body.required("reason", text(TEXT_CHARS_MAX));
    let operator: Option<Operator> = body.required("operator", id());
    let bucket = body.optional("bucket", integer(0..=BUCKETS_MAX - 1));
    let delta = delta.and_then(|delta| {
        if delta == 0 {
            body.refuse("delta", Code::InvalidQuantity, "must not be 0");
            return None;
        }
        if delta < 0 && kind == Some(AdjustmentKind::Inbound) {
            body.refuse("delta", Code::InvalidQuantity, "must not be negative for inbound stock");
            return None;
        }
        Some(delta)
    });
    Some(Adjust {
        adjustment_id: adjustment_id?,
        pool,
        delta: delta?,
        kind: kind?,
        bucket: bucket?,
        signed: Signed::new(operator?.as_str(), reason?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::read;

    #[test]
    fn a_pool_has_defaults() {
        let actor = Arc::from("test");
        let pool = |text: &str| {
            read(text.as_bytes(), |body| read_pool(&actor, body)).map_err(|problem| problem.pointers())
        };
        let opened = pool(r#"{"campaign_id":"c","sku":"s","supply":0}"#).expect("read");
        assert_eq!((opened.location.as_str(), opened.buckets, opened.supply), ("main", 1, 0));
        for (field, pointer, code) in [
            (r#""supply":-1"#, "/supply", "invalid_quantity"),
            (r#""supply":1000000000001"#, "/supply", "invalid_quantity"),
            (r#""supply":1,"buckets":0"#, "/buckets", "invalid_value"),
            (r#""supply":1,"buckets":257"#, "/buckets", "invalid_value"),
            (r#""supply":1,"path":"direct""#, "/path", "invalid_value"),
            (r#""supply":1,"path":"cached""#, "/path", "invalid_value"),
            (r#""supply":1,"routing":"random""#, "/routing", "invalid_value"),
        ] {
            let body = format!(r#"{{"campaign_id":"c","sku":"s",{field}}}"#);
            assert_eq!(pool(&body).expect_err("refused"), [(pointer.to_owned(), code.to_owned())], "{field}");
        }
    }

    #[test]
    fn adjustments_are_signed_and_not_0() {
        let adjust = |delta: &str, kind: &str| {
            let body = format!(
                r#"{{"adjustment_id":"a","delta":{delta},"kind":"{kind}","reason":"r","operator":"o"}}"#
            );
            read(body.as_bytes(), |body| read_adjustment(PoolId(1), body))
                .map_err(|problem| problem.pointers())
        };
        assert_eq!(adjust("-3", "adjust").map(|a| a.delta), Ok(-3));
        for (delta, kind) in
            [("0", "adjust"), ("-1", "inbound"), ("1000000000001", "inbound"), ("-1000000000001", "adjust")]
        {
            let expected = vec![("/delta".to_owned(), "invalid_quantity".to_owned())];
            assert_eq!(adjust(delta, kind), Err(expected), "{delta} {kind}");
        }
    }
}
