//! Requests about pools.

use std::ops::RangeInclusive;
use std::sync::Arc;

use holdfast_core::command::{
    Adjust, AdjustmentKind, ChangePool, OpenPool, Signed, Sweep, Transfer, TransferEnd,
};
use holdfast_core::id::{Location, Operator, PoolId, SweepId};
use holdfast_core::stock::{BUCKETS_MAX, CacheFallback, Path, Routing, SUPPLY_MAX, WEIGHT_MAX};
use holdfast_wire::Code;

use super::campaigns::{SwitchInput, read_switch};
use super::field::{PoolIdField, TEXT_CHARS_MAX, id, integer, quantity_in, text, word};
use super::reader::{Item, Object};

/// Bounds of an adjustment; 0 is none.
const DELTA: RangeInclusive<i64> = -(SUPPLY_MAX as i64)..=SUPPLY_MAX as i64;

/// Reads a pool to open. Its id is the engine's to make.
pub(crate) fn read_pool(actor: &Arc<str>, body: &mut Object<'_, '_>) -> Option<OpenPool> {
    let campaign = body.required("campaign_id", id());
    let sku = body.required("sku", id());
    let location = read_location(body);
    let supply = body.required("supply", quantity_in(0..=SUPPLY_MAX));
    let buckets = body.defaulted("buckets", integer(1..=BUCKETS_MAX), 1);
    let path = body.defaulted("path", word(Path::parse), Path::Batched);
    let routing = body.defaulted("routing", word(Routing::parse), Routing::OrderHash);
    Some(OpenPool {
        id: PoolId(0),
        campaign: campaign?,
        sku: sku?,
        location: location?,
        supply: supply?,
        buckets: buckets?,
        path: path?,
        routing: routing?,
        signed: Signed::new(Arc::clone(actor), ""),
    })
}

/// Reads `location`, by default `main`.
fn read_location(body: &mut Object<'_, '_>) -> Option<Location> {
    match body.optional("location", id())? {
        Some(location) => Some(location),
        None => Some(Location::main()),
    }
}

/// Reads a change of a pool. Who sends no operator acts under the name of the key.
pub(crate) fn read_change(pool: PoolId, actor: &Arc<str>, body: &mut Object<'_, '_>) -> Option<ChangePool> {
    let path = body.optional("path", word(Path::parse));
    let routing = body.optional("routing", word(Routing::parse));
    let buckets = body.optional("buckets", integer(1..=BUCKETS_MAX));
    let weight = |item: Item<'_, '_>| item.field(integer(0..=WEIGHT_MAX));
    let weights = body.optional_array("weights", 1..=BUCKETS_MAX as usize, weight);
    let max_concurrency = body.nullable("max_concurrency", integer(0..=u32::MAX));
    let cache_fallback = body.optional("cache_fallback", word(CacheFallback::parse));
    let reason = body.optional("reason", text(TEXT_CHARS_MAX));
    let operator: Option<Option<Operator>> = body.optional("operator", id());
    let by = operator?.map_or_else(|| Arc::clone(actor), |operator| operator.as_str().into());
    Some(ChangePool {
        pool,
        path: path?,
        routing: routing?,
        weights: weights?,
        buckets: buckets?,
        max_concurrency: max_concurrency?,
        cache_fallback: cache_fallback?,
        signed: Signed::new(by, reason?.unwrap_or_default()),
    })
}

/// Reads a sweep. Its id is the engine's to make.
pub(crate) fn read_sweep(pool: PoolId, body: &mut Object<'_, '_>) -> Option<Sweep> {
    let signed = read_switch(body);
    let bucket = body.optional("bucket", integer(0..=BUCKETS_MAX - 1));
    let SwitchInput { operator, reason } = signed?;
    let signed = Signed::new(operator.as_str(), reason);
    Some(Sweep { id: SweepId(0), pool, bucket: bucket?, signed })
}

/// Reads a transfer.
pub(crate) fn read_transfer(body: &mut Object<'_, '_>) -> Option<Transfer> {
    let transfer_id = body.required("transfer_id", id());
    let from = read_end("from", body);
    let to = read_end("to", body);
    let quantity = body.required("quantity", quantity_in(1..=SUPPLY_MAX));
    let signed = read_switch(body);
    let (from, to, SwitchInput { operator, reason }) = (from?, to?, signed?);
    if from.pool == to.pool && from.bucket == to.bucket {
        body.refuse("to", Code::InvalidValue, "must be another pool or another bucket");
        return None;
    }
    let signed = Signed::new(operator.as_str(), reason);
    Some(Transfer { transfer_id: transfer_id?, from, to, quantity: quantity?, signed })
}

fn read_end(name: &'static str, body: &mut Object<'_, '_>) -> Option<TransferEnd> {
    let end = body.object(name, |end| {
        let pool = end.required("pool_id", PoolIdField);
        let bucket = end.optional("bucket", integer(0..=BUCKETS_MAX - 1));
        Some(TransferEnd { pool: pool?, bucket: bucket? })
    })?;
    if end.is_none() {
        body.refuse(name, Code::InvalidValue, "is required");
    }
    end
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
            (r#""supply":1,"path":"Direct""#, "/path", "invalid_value"),
            (r#""supply":1,"routing":"nearest""#, "/routing", "invalid_value"),
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

    #[test]
    fn a_change_tells_null_from_absent_where_null_says_something() {
        let actor = Arc::from("key");
        let change = |text: &str| {
            read(text.as_bytes(), |body| read_change(PoolId(1), &actor, body)).map_err(|p| p.pointers())
        };
        let none = change("{}").expect("read");
        assert_eq!((none.max_concurrency, none.path, &*none.signed.actor), (None, None, "key"));
        assert_eq!(change(r#"{"max_concurrency":null}"#).expect("read").max_concurrency, Some(None));
        assert_eq!(change(r#"{"max_concurrency":0}"#).expect("read").max_concurrency, Some(Some(0)));
        assert_eq!(change(r#"{"path":null}"#).expect("read").path, None);
        let named = change(r#"{"weights":[0,10000],"operator":"olga","reason":"look"}"#).expect("read");
        assert_eq!((named.weights, &*named.signed.actor), (Some(vec![0, 10_000]), "olga"));
        for (text, pointer) in [
            (r#"{"max_concurrency":-1}"#, "/max_concurrency"),
            (r#"{"max_concurrency":"1"}"#, "/max_concurrency"),
            (r#"{"weights":[1,-1]}"#, "/weights/1"),
            (r#"{"weights":[10001]}"#, "/weights/0"),
            (r#"{"weights":[]}"#, "/weights"),
            (r#"{"weights":3}"#, "/weights"),
            (r#"{"buckets":0}"#, "/buckets"),
            (r#"{"buckets":257}"#, "/buckets"),
            (r#"{"buckets":2.0}"#, "/buckets"),
            (r#"{"routing":"hash"}"#, "/routing"),
            (r#"{"cache_fallback":"allow"}"#, "/cache_fallback"),
        ] {
            let expected = vec![(pointer.to_owned(), "invalid_value".to_owned())];
            assert_eq!(change(text).expect_err("refused"), expected, "{text}");
        }
    }

    #[test]
    fn a_transfer_goes_somewhere_else() {
        let transfer = |ends: &str, quantity: &str| {
            let body =
                format!(r#"{{"transfer_id":"t",{ends},"quantity":{quantity},"reason":"r","operator":"o"}}"#);
            read(body.as_bytes(), read_transfer).map_err(|problem| problem.pointers())
        };
        let pool = |name: &str, last: u8, bucket: &str| {
            format!(r#""{name}":{{"pool_id":"01937a5e-0000-7000-8000-00000000000{last}"{bucket}}}"#)
        };
        let ends = |from: &str, to: &str| format!("{from},{to}");
        let (a, b) = (pool("from", 1, ""), pool("to", 2, ""));
        assert_eq!(transfer(&ends(&a, &b), "1").expect("read").quantity, 1);
        let within = ends(&pool("from", 1, r#","bucket":0"#), &pool("to", 1, r#","bucket":1"#));
        assert_eq!(transfer(&within, "1000000000000").expect("read").to.bucket, Some(1));
        for (ends, quantity, pointer, code) in [
            (ends(&a, &pool("to", 1, "")), "1", "/to", "invalid_value"),
            (ends(&a, &pool("to", 2, r#","bucket":256"#)), "1", "/to/bucket", "invalid_value"),
            (ends(&a, r#""to":{"pool_id":"west"}"#), "1", "/to/pool_id", "invalid_identifier"),
            (ends(&a, r#""to":null"#), "1", "/to", "invalid_value"),
            (ends(&a, r#""to":"x""#), "1", "/to", "invalid_value"),
            (ends(&a, &b), "0", "/quantity", "invalid_quantity"),
            (ends(&a, &b), "1.0", "/quantity", "invalid_quantity"),
            (ends(&a, &b), "1000000000001", "/quantity", "invalid_quantity"),
        ] {
            let expected = vec![(pointer.to_owned(), code.to_owned())];
            assert_eq!(transfer(&ends, quantity).expect_err("refused"), expected, "{ends} {quantity}");
        }
    }
}
