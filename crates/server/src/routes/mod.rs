//! Handlers, one file a resource: parse, one use case, shape.

pub(crate) mod approvals;
pub(crate) mod assortment;
pub(crate) mod audit;
pub(crate) mod caches;
pub(crate) mod campaigns;
pub(crate) mod cancellations;
pub(crate) mod cases;
pub(crate) mod diagnose;
pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod exports;
pub(crate) mod feed;
pub(crate) mod health;
pub(crate) mod imports;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod metrics;
pub(crate) mod orders;
pub(crate) mod payments;
pub(crate) mod pools;
pub(crate) mod reconciliations;
pub(crate) mod settlement;
pub(crate) mod sinks;
pub(crate) mod transfers;

use holdfast_wire::Page;

use crate::input::cursor::{Cursor, Key};

/// A page of a list: its items, and the cursor of the next page if there is one.
fn page<T, K: Key, V>(
    rows: &[T],
    more: bool,
    cursor: &Cursor,
    key: impl Fn(&T) -> K,
    view: impl Fn(&T) -> V,
) -> Page<V> {
    let next_cursor = rows.last().filter(|_| more).map(|row| cursor.encode(&key(row)));
    Page { items: rows.iter().map(view).collect(), next_cursor }
}
