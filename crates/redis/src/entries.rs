//! Stream entries, read. What is no order is told as such, with as much as can be read of it.

use std::sync::Arc;

use holdfast_core::cache::{Accepted, EntryId, Epoch, Landing, SetAside};
use holdfast_core::stock::BucketKey;
use holdfast_engine::Delivery;
use redis::Value;

use crate::codec;
use crate::replies::{items, number, text};

/// An entry as it was read: its epoch may be unknown if it is no order.
pub(crate) enum Entry {
    Order(Arc<Landing>),
    Unreadable { epoch: Option<Epoch>, set_aside: SetAside },
}

impl Entry {
    /// What to do with it. An epoch that it does not name is that of the stream.
    pub(crate) fn into_delivery(self, of_stream: Epoch) -> Delivery {
        match self {
            Self::Order(landing) => Delivery::Order(landing),
            Self::Unreadable { epoch, mut set_aside } => {
                set_aside.accepted.epoch = epoch.unwrap_or(of_stream);
                Delivery::Poison(set_aside)
            }
        }
    }

    pub(crate) fn has_no_epoch(&self) -> bool {
        matches!(self, Self::Unreadable { epoch: None, .. })
    }
}

/// The entries of an answer to XREADGROUP; none: it cannot be read.
pub(crate) fn of_read(bucket: BucketKey, value: &Value) -> Option<Vec<Entry>> {
    // The time is over, and there was nothing.
    if *value == Value::Nil {
        return Some(Vec::new());
    }
    if let Value::Map(streams) = value {
        let [(_, entries)] = streams.as_slice() else { return None };
        return all(bucket, entries);
    }
    let [stream] = items(value)? else { return None };
    let [_, entries] = items(stream)? else { return None };
    all(bucket, entries)
}

/// The next start and the entries of an answer to XAUTOCLAIM; none: it cannot be read. What is said of entries
/// that were trimmed while they waited is left: the server forgets them with this answer.
pub(crate) fn of_claim(bucket: BucketKey, value: &Value) -> Option<(EntryId, Vec<Entry>)> {
    let [start, entries, ..] = items(value)? else { return None };
    Some((text(start)?.parse().ok()?, all(bucket, entries)?))
}

/// The entries of an answer to XRANGE; none: it cannot be read.
pub(crate) fn all(bucket: BucketKey, value: &Value) -> Option<Vec<Entry>> {
    items(value)?.iter().map(|entry| one(bucket, entry)).collect()
}

fn one(bucket: BucketKey, value: &Value) -> Option<Entry> {
    let [id, body] = items(value)? else { return None };
    let entry: EntryId = text(id)?.parse().ok()?;
    let fields = items(body).unwrap_or_default();
    let field = |name: &str| {
        let mut pairs = fields.as_chunks::<2>().0.iter();
        pairs.find(|[key, _]| text(key) == Some(name)).map(|[_, value]| value)
    };
    let epoch = field("epoch").and_then(number).map(Epoch);
    let (count, units) = (field("number").and_then(number), field("units").and_then(number));
    let set_aside = |why: &str| Entry::Unreadable {
        epoch,
        set_aside: SetAside {
            accepted: Accepted {
                bucket,
                epoch: epoch.unwrap_or_default(),
                entry,
                number: count.unwrap_or(0),
                units: units.unwrap_or(0),
            },
            why: why.into(),
        },
    };
    let payload = field("order").and_then(text);
    let (Some(epoch), Some(number), Some(units), Some(payload)) = (epoch, count, units, payload) else {
        let why = if fields.is_empty() { "its body is gone" } else { "it is not an entry of a cache" };
        return Some(set_aside(why));
    };
    Some(match codec::decode(payload) {
        Ok((place, due_at)) => {
            let accepted = Accepted { bucket, epoch, entry, number, units };
            Entry::Order(Arc::new(Landing { place, accepted, due_at }))
        }
        Err(error) => set_aside(&error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::PoolId;

    use super::*;

    const BUCKET: BucketKey = BucketKey { pool: PoolId(7), number: 1 };

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn entry(id: &str, fields: Value) -> Value {
        Value::Array(vec![bulk(id), fields])
    }

    fn set_aside(entry: Entry) -> SetAside {
        match entry.into_delivery(Epoch(9)) {
            Delivery::Poison(set_aside) => set_aside,
            Delivery::Order(landing) => panic!("{landing:?}"),
        }
    }

    #[test]
    fn an_entry_without_a_body_and_one_of_somebody_else_are_set_aside() {
        let gone = one(BUCKET, &entry("5-1", Value::Nil)).unwrap();
        assert!(gone.has_no_epoch());
        let gone = set_aside(gone);
        assert_eq!((&*gone.why, gone.accepted.epoch, gone.accepted.units), ("its body is gone", Epoch(9), 0));

        let words = ["epoch", "3", "number", "8", "units", "2", "order", "{}"].map(bulk);
        let broken = set_aside(one(BUCKET, &entry("5-2", Value::Array(words.to_vec()))).unwrap());
        let at = EntryId { millis: 5, number: 2 };
        let accepted = Accepted { bucket: BUCKET, epoch: Epoch(3), entry: at, number: 8, units: 2 };
        assert_eq!(broken.accepted, accepted, "what can be read is kept, so that its units are settled");

        let words = ["units", "-2", "order"].map(bulk);
        let foreign = set_aside(one(BUCKET, &entry("5-3", Value::Array(words.to_vec()))).unwrap());
        assert_eq!((&*foreign.why, foreign.accepted.units), ("it is not an entry of a cache", 0));
    }

    #[test]
    fn answers_of_both_protocols_are_read() {
        let entries = Value::Array(vec![entry("5-1", Value::Nil)]);
        let old = Value::Array(vec![Value::Array(vec![bulk("stream"), entries.clone()])]);
        let new = Value::Map(vec![(bulk("stream"), entries.clone())]);
        for value in [old, new] {
            assert_eq!(of_read(BUCKET, &value).map(|entries| entries.len()), Some(1));
        }
        assert_eq!(of_read(BUCKET, &Value::Nil).map(|entries| entries.len()), Some(0));
        assert!(of_read(BUCKET, &Value::Int(1)).is_none());
        let claimed = Value::Array(vec![bulk("0-0"), entries, Value::Array(vec![bulk("4-1")])]);
        let (next, entries) = of_claim(BUCKET, &claimed).unwrap();
        assert_eq!((next, entries.len()), (EntryId::default(), 1));
    }
}
