//! Order events as they are told: a ledger entry becomes a CloudEvent. The same entry is always the same bytes.

use holdfast_core::event::{OrderEventKind, event_id};
use holdfast_core::id::{CampaignId, PoolId};
use holdfast_core::ledger::Entry;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;
use holdfast_engine::OutEvent;
use holdfast_store::SinkName;
use holdfast_wire::{EventDataView, EventView};
use uuid::Uuid;

use crate::view::time;

/// What every type begins with, and the version of the form that ends it.
pub(crate) fn type_of(kind: OrderEventKind) -> String {
    format!("dev.holdfast.order.{}.v1", kind.as_str())
}

/// The event that an entry carries; none if it carries none.
pub fn order_event(entry: &Entry, campaign: &CampaignId) -> Option<OutEvent> {
    let kind = OrderEventKind::of(entry)?;
    let order = entry.order_id?;
    let view = EventView {
        specversion: "1.0".into(),
        id: event_id(entry),
        source: format!("/campaigns/{}", encoded(campaign.as_str())),
        event_type: type_of(kind),
        subject: order.to_string(),
        time: time(entry.at),
        datacontenttype: "application/json".into(),
        partitionkey: format!("{}/{}", entry.bucket.pool, entry.bucket.number),
        sequence: format!("{:020}", entry.seq),
        data: EventDataView {
            order_id: order.to_string(),
            order_no: entry.business_no.to_string(),
            campaign_id: campaign.to_string(),
            version: entry.order_version?,
            from_state: entry.from_state.map(|state| state.as_str().into()),
            to_state: entry.to_state?.as_str().into(),
            action: entry.action.as_str().into(),
            pool_id: entry.bucket.pool.to_string(),
            bucket: entry.bucket.number,
            seq: entry.seq,
            delta_available: entry.delta.available,
            delta_held: entry.delta.held,
            delta_sold: entry.delta.sold,
            source: entry.source.to_string(),
            actor: entry.actor.to_string(),
            reason: entry.reason.to_string(),
        },
    };
    Some(OutEvent {
        id: view.id.clone(),
        kind: view.event_type.clone(),
        word: kind.as_str(),
        bucket: entry.bucket,
        seq: entry.seq,
        order: Some(order),
        at: entry.at,
        body: serde_json::to_vec(&view).ok()?,
    })
}

/// An event that tells of nothing.
pub fn test_event(sink: &SinkName, id: u128, now: Timestamp) -> OutEvent {
    let (id, kind) = (Uuid::from_u128(id).to_string(), "dev.holdfast.sink.test.v1");
    let body = serde_json::json!({
        "specversion": "1.0",
        "id": id,
        "source": format!("/sinks/{sink}"),
        "type": kind,
        "time": time(now),
        "datacontenttype": "application/json",
        "data": { "sink": sink.as_str() },
    });
    OutEvent {
        id,
        kind: kind.to_owned(),
        word: "test",
        bucket: BucketKey { pool: PoolId(0), number: 0 },
        seq: 0,
        order: None,
        at: now,
        body: body.to_string().into_bytes(),
    }
}

/// A text as one segment of a URI reference.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::OrderId;
    use holdfast_core::ledger::Action;
    use holdfast_core::order::State;
    use holdfast_core::stock::Delta;

    use super::*;

    fn entry() -> Entry {
        Entry {
            bucket: BucketKey { pool: PoolId(1), number: 2 },
            seq: 3,
            at: Timestamp(1_774_785_600_123_456),
            order_id: Some(OrderId(5)),
            business_no: "no-1".into(),
            action: Action::Place,
            delta: Delta { available: -2, held: 2, sold: 0 },
            settled: 0,
            covers: None,
            from_state: None,
            to_state: Some(State::Held),
            order_version: Some(1),
            source: "no-1".into(),
            actor: "shop".into(),
            reason: "".into(),
        }
    }

    #[test]
    fn an_event_is_what_the_entry_says_and_the_same_every_time() {
        let campaign = CampaignId::new("Frühling 1/2").expect("an id");
        let event = order_event(&entry(), &campaign).expect("an event");
        assert_eq!(order_event(&entry(), &campaign), Some(event.clone()));
        let read: serde_json::Value = serde_json::from_slice(&event.body).expect("JSON");
        let expected = serde_json::json!({
            "specversion": "1.0",
            "id": "00000000-0000-0000-0000-000000000001/2/3/1774785600123456",
            "source": "/campaigns/Fr%C3%BChling%201%2F2",
            "type": "dev.holdfast.order.held.v1",
            "subject": "00000000-0000-0000-0000-000000000005",
            "time": "2026-03-29T12:00:00.123Z",
            "datacontenttype": "application/json",
            "partitionkey": "00000000-0000-0000-0000-000000000001/2",
            "sequence": "00000000000000000003",
            "data": {
                "order_id": "00000000-0000-0000-0000-000000000005",
                "order_no": "no-1",
                "campaign_id": "Frühling 1/2",
                "version": 1,
                "from_state": null,
                "to_state": "held",
                "action": "place",
                "pool_id": "00000000-0000-0000-0000-000000000001",
                "bucket": 2,
                "seq": 3,
                "delta_available": -2,
                "delta_held": 2,
                "delta_sold": 0,
                "source": "no-1",
                "actor": "shop",
                "reason": "",
            },
        });
        assert_eq!(read, expected);
        assert_eq!(
            (event.id, event.word, event.seq),
            (expected["id"].as_str().expect("text").to_owned(), "held", 3)
        );
    }

    #[test]
    fn an_entry_without_an_event_tells_nothing() {
        let campaign = CampaignId::new("c").expect("an id");
        assert_eq!(order_event(&Entry { order_version: None, ..entry() }, &campaign), None);
    }
}
