//! An order as a stream entry carries it, and what the cache keeps of it to know it again.
//!
//! The payload is JSON with a version. What is added to it is optional and does not count the version up: nodes of
//! both sides of an upgrade read one stream.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::cache::EntryId;
use holdfast_core::command::{Place, PlaceLine};
use holdfast_core::id::{
    Account, CampaignId, HashedKey, LimitName, Location, OrderId, OrderKey, OrderNo, PoolId, Sku,
};
use holdfast_core::order::Money;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The payload's version.
const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct Payload<'a> {
    v: u8,
    id: Uuid,
    #[serde(borrow)]
    campaign: Cow<'a, str>,
    #[serde(borrow)]
    order_no: Cow<'a, str>,
    #[serde(borrow)]
    account: Cow<'a, str>,
    #[serde(borrow)]
    lines: Vec<Line<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold_seconds: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    amount_due: Option<(i64, Cow<'a, str>)>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    limit_keys: BTreeMap<String, Uuid>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Cow<'a, str>>,
    route: u64,
    record_refusals: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assortment: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intake: Option<(Uuid, u32)>,
    due_at: i64,
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    sku: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    location: Option<Cow<'a, str>>,
    pool: Uuid,
    quantity: u32,
}

impl<'a> Line<'a> {
    fn of(line: &'a PlaceLine) -> Self {
        Self {
            sku: line.sku.as_str().into(),
            location: line.location.as_ref().map(|location| location.as_str().into()),
            pool: Uuid::from_u128(line.pool.0),
            quantity: line.quantity,
        }
    }
}

/// Why an order is not for a cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwritable {
    #[error("it cannot be written: {0}")]
    Form(#[from] serde_json::Error),
    #[error("a line of it is made up of other pools' stock")]
    MadeUp,
}

/// Why a payload is no order.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is not written as an order is: {0}")]
    Form(#[from] serde_json::Error),
    #[error("it is written in version {0}")]
    Version(u8),
    #[error("an identifier in it: {0}")]
    Id(#[from] holdfast_core::id::InvalidId),
}

/// An order and the end of its time in the queue, as text.
pub(crate) fn encode(place: &Place, due_at: Timestamp) -> Result<String, Unwritable> {
    if place.lines.iter().any(|line| line.made_of.is_some()) {
        return Err(Unwritable::MadeUp);
    }
    Ok(serde_json::to_string(&Payload {
        v: VERSION,
        id: Uuid::from_u128(place.id.0),
        campaign: place.key.campaign.as_str().into(),
        order_no: place.key.order_no.as_str().into(),
        account: place.account.as_str().into(),
        lines: place.lines.iter().map(Line::of).collect(),
        hold_seconds: place.hold_seconds,
        amount_due: place.amount_due.as_ref().map(|due| (due.amount_minor, (&*due.currency).into())),
        limit_keys: place
            .limit_keys
            .iter()
            .map(|(name, key)| (name.as_str().to_owned(), Uuid::from_u128(key.0)))
            .collect(),
        metadata: place.metadata.as_deref().map(Cow::from),
        route: place.route,
        record_refusals: place.record_refusals,
        assortment: place.assortment,
        intake: place.intake.map(|bucket| (Uuid::from_u128(bucket.pool.0), bucket.number)),
        due_at: due_at.0,
    })?)
}

/// The order that a payload is, and the end of its time in the queue.
pub(crate) fn decode(text: &str) -> Result<(Place, Timestamp), Unreadable> {
    let payload: Payload<'_> = serde_json::from_str(text)?;
    if payload.v != VERSION {
        return Err(Unreadable::Version(payload.v));
    }
    let line = |line: &Line<'_>| -> Result<PlaceLine, Unreadable> {
        Ok(PlaceLine {
            sku: Sku::new(&line.sku)?,
            location: line.location.as_deref().map(Location::new).transpose()?,
            pool: PoolId(line.pool.as_u128()),
            made_of: None,
            quantity: line.quantity,
        })
    };
    let key = |(name, key): (&String, &Uuid)| -> Result<(LimitName, HashedKey), Unreadable> {
        Ok((LimitName::new(name)?, HashedKey(key.as_u128())))
    };
    let place = Place {
        id: OrderId(payload.id.as_u128()),
        key: OrderKey {
            campaign: CampaignId::new(&payload.campaign)?,
            order_no: OrderNo::new(&payload.order_no)?,
        },
        account: Account::new(&payload.account)?,
        lines: payload.lines.iter().map(line).collect::<Result<_, _>>()?,
        hold_seconds: payload.hold_seconds,
        amount_due: payload
            .amount_due
            .map(|(amount_minor, currency)| Money { amount_minor, currency: Arc::from(&*currency) }),
        limit_keys: payload.limit_keys.iter().map(key).collect::<Result<_, _>>()?,
        metadata: payload.metadata.as_deref().map(Arc::from),
        route: payload.route,
        record_refusals: payload.record_refusals,
        assortment: payload.assortment,
        intake: payload.intake.map(|(pool, number)| BucketKey { pool: PoolId(pool.as_u128()), number }),
    };
    Ok((place, Timestamp(payload.due_at)))
}

/// What the cache keeps of an order: `entry number units order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownOrder {
    pub(crate) entry: EntryId,
    pub(crate) number: u64,
    pub(crate) units: u64,
    pub(crate) order: OrderId,
}

impl KnownOrder {
    /// The part that the node adds; the script puts the rest before it.
    pub(crate) fn tail(order: OrderId) -> String {
        format!("{:032x}", order.0)
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut word = || words.next();
        let known = Self {
            entry: word()?.parse().ok()?,
            number: word()?.parse().ok()?,
            units: word()?.parse().ok()?,
            order: OrderId(u128::from_str_radix(word()?, 16).ok()?),
        };
        word().is_none().then_some(known)
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::assortment::MakeUp;

    use super::*;

    fn place() -> Place {
        let line = |sku, quantity| PlaceLine {
            sku: Sku::new(sku).unwrap(),
            location: Some(Location::new("main").unwrap()),
            pool: PoolId(7),
            made_of: None,
            quantity,
        };
        Place {
            id: OrderId(u128::MAX - 1),
            key: OrderKey {
                campaign: CampaignId::new("c").unwrap(),
                order_no: OrderNo::new("n \"1\" é").unwrap(),
            },
            account: Account::new("a").unwrap(),
            lines: vec![line("s", 1), line("t", u32::MAX)],
            hold_seconds: Some(9),
            amount_due: Some(Money { amount_minor: -1, currency: "CNY".into() }),
            limit_keys: [(LimitName::new("device").unwrap(), HashedKey(u128::MAX))].into(),
            metadata: Some(r#"{"a":"\u0000"}"#.into()),
            route: u64::MAX,
            record_refusals: true,
            assortment: Some(4),
            intake: Some(BucketKey { pool: PoolId(7), number: 255 }),
        }
    }

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let bare = Place {
            hold_seconds: None,
            amount_due: None,
            limit_keys: BTreeMap::new(),
            metadata: None,
            record_refusals: false,
            assortment: None,
            intake: None,
            ..place()
        };
        let mut made_up = place();
        let parts = MakeUp { parts: Vec::new(), split: false };
        made_up.lines[0].made_of = Some(Arc::new(parts));
        assert!(matches!(encode(&made_up, Timestamp(1)), Err(Unwritable::MadeUp)));
        for place in [place(), bare] {
            let text = encode(&place, Timestamp(i64::MIN)).unwrap();
            assert_eq!(decode(&text).unwrap(), (place, Timestamp(i64::MIN)));
        }
    }

    #[test]
    fn what_is_no_order_says_why() {
        let text = encode(&place(), Timestamp(1)).unwrap();
        for (from, to, why) in [
            ("\"v\":1", "\"v\":2", "version 2"),
            ("\"account\":\"a\"", "\"account\":\"\"", "an identifier"),
            ("\"route\"", "\"other\"", "not written as an order"),
            ("{", "", "not written as an order"),
        ] {
            let error = decode(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(why), "{from}: {error}");
        }
        let more = text.replacen('{', "{\"added_later\":[1],", 1);
        assert_eq!(decode(&more).unwrap().0, place(), "what is added later is passed over");
    }

    #[test]
    fn a_known_order_is_read_as_the_script_writes_it() {
        let place = place();
        let entry = EntryId { millis: 5, number: 1 };
        let text = format!("5-1 9 3 {}", KnownOrder::tail(place.id));
        let known = KnownOrder { entry, number: 9, units: 3, order: place.id };
        assert_eq!(KnownOrder::read(&text), Some(known));
        for bad in ["", "5-1 9 3", &text[1..], &format!("{text} 1")] {
            assert_ne!(KnownOrder::read(bad), Some(known), "{bad}");
        }
    }
}
