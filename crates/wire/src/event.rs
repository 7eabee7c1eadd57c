//! Order events as they are told to other systems: CloudEvents 1.0 in JSON. They say what stands in the ledger entry, and
//! nothing of the order as it stands later.

use serde::{Deserialize, Serialize};

use crate::{RawJson, Word};

/// An order event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventView {
    /// `1.0`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "1.0"))]
    pub specversion: Word,
    /// The same however often the event is delivered: who has it drops it. It is not to be taken apart.
    pub id: String,
    /// The campaign: `/campaigns/` and its id, percent-encoded.
    #[cfg_attr(feature = "openapi", schema(example = "/campaigns/spring"))]
    pub source: String,
    /// What happened: `dev.holdfast.order.`, a word, and the version of its form.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(example = "dev.holdfast.order.held.v1"))]
    pub event_type: String,
    /// The order's id.
    pub subject: String,
    /// When it was decided, by the authority's clock.
    #[cfg_attr(feature = "openapi", schema(example = "2026-03-29T12:00:00.000Z"))]
    pub time: String,
    /// `application/json`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "application/json"))]
    pub datacontenttype: Word,
    /// Pool and bucket: events with the same one are delivered in order.
    pub partitionkey: String,
    /// The entry's number in its bucket, with leading zeros, so that texts stand in the order of numbers. It rises within
    /// a `partitionkey`, with gaps: not every entry carries an event.
    pub sequence: String,
    /// What stands in the ledger.
    pub data: EventDataView,
}

/// What an order event says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventDataView {
    /// The order.
    pub order_id: String,
    /// Its number, by its client.
    pub order_no: String,
    /// Its campaign.
    pub campaign_id: String,
    /// Its version after this event: it rises by 1 with each.
    pub version: u32,
    /// Its state before; null where it is new.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = true))]
    pub from_state: Option<Word>,
    /// Its state after.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "held"))]
    pub to_state: Word,
    /// What the ledger calls it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "place"))]
    pub action: Word,
    /// The pool of the order's home bucket.
    pub pool_id: String,
    /// The order's home bucket.
    pub bucket: u32,
    /// The entry's number there.
    pub seq: u64,
    /// How the home bucket changed. Other buckets that the order has stock of have entries of their own.
    pub delta_available: i64,
    /// See `delta_available`.
    pub delta_held: i64,
    /// See `delta_available`.
    pub delta_sold: i64,
    /// The command's own key, or where it came from.
    pub source: String,
    /// Who did it.
    pub actor: String,
    /// Why; may be empty.
    pub reason: String,
}

/// `GET /v1/events`: events that a consumer comes for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventsView {
    /// In the order of each bucket, and the same bytes as every sink gets.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<EventView>))]
    pub items: Vec<RawJson>,
    /// Where the consumer stands once it has these: for `POST /v1/events/ack`, or for `after`.
    pub position: String,
    /// Whether there are more now.
    pub more: bool,
}

/// `POST /v1/events/ack`: the consumer has everything up to a position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AckRequest {
    /// Which consumer.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$"))]
    pub consumer: String,
    /// The position of the events that it has.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
    pub position: String,
}

/// What an acknowledgement came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AckView {
    /// Which consumer.
    pub consumer: String,
    /// Whether it counted: not if the position is of before a replay.
    pub applied: bool,
}
