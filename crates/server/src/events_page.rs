//! `docs/events.md`, from the types themselves. Only a test writes it.

use std::fmt::Write as _;

use holdfast_core::event::OrderEventKind;
use holdfast_wire::{EventDataView, EventView};
use serde_json::{Value, json};
use utoipa::PartialSchema;

use crate::events::type_of;

const HEAD: &str = "# Order events\n\n\
    Generated from the code by `cargo xtask docs`; do not edit. How they are delivered: [sinks](sinks.md).\n\n\
    An event is a [CloudEvent 1.0](https://cloudevents.io) in JSON. It says what stands in one ledger entry, and nothing of\n\
    the order as it stands later: whoever wants that asks `GET /v1/orders/{id}`. Fields may be added; what is there keeps its\n\
    meaning within a version. Drop an event whose `id` you have; within an order go by `data.version`.\n\n\
    | type | what happened | `data.to_state` |\n|---|---|---|\n";

/// What a kind of event says, in the words of the rules.
const fn meaning(kind: OrderEventKind) -> &'static str {
    match kind {
        OrderEventKind::Queued => "The order was taken in and waits; nothing is held for it.",
        OrderEventKind::Held => "Its units are held.",
        OrderEventKind::InReview => "Its units are held, and the provider or a person must decide.",
        OrderEventKind::Sold => "Its units are sold.",
        OrderEventKind::Refunded => "Everything was refunded.",
        OrderEventKind::Released => "Its units went back.",
        OrderEventKind::Failed => "It never held anything and never will.",
        OrderEventKind::Reduced => "It has fewer units than before, in the same state.",
        OrderEventKind::PartlyRefunded => "A part was refunded, the rest stays sold.",
        OrderEventKind::Changed => {
            "Something else changed, in the same state: a payment was begun or told, the end of its hold moved, money is due."
        }
    }
}

/// The states that an order of such an event is in; none: any.
const fn states(kind: OrderEventKind) -> &'static [&'static str] {
    match kind {
        OrderEventKind::Queued => &["queued"],
        OrderEventKind::Held => &["held"],
        OrderEventKind::InReview => &["in_review"],
        OrderEventKind::Sold | OrderEventKind::PartlyRefunded => &["sold"],
        OrderEventKind::Refunded => &["refunded"],
        OrderEventKind::Released => &["released"],
        OrderEventKind::Failed => &["failed"],
        OrderEventKind::Reduced => &["held"],
        OrderEventKind::Changed => &["queued", "held", "in_review", "sold", "refunded", "released", "failed"],
    }
}

/// The JSON Schema of one kind.
fn schema(kind: OrderEventKind) -> Value {
    json!({
        "$id": type_of(kind),
        "allOf": [{"$ref": "#/$defs/EventView"}],
        "properties": {
            "type": {"const": type_of(kind)},
            "data": {"properties": {"to_state": {"enum": states(kind)}}},
        },
    })
}

/// Every schema, in one document.
fn schemas() -> Option<String> {
    let kinds: Vec<Value> = OrderEventKind::ALL.iter().map(|kind| schema(*kind)).collect();
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "oneOf": kinds,
        "$defs": {
            "EventView": serde_json::to_value(EventView::schema()).ok()?,
            "EventDataView": serde_json::to_value(EventDataView::schema()).ok()?,
        },
    });
    let text = serde_json::to_string_pretty(&document).ok()?;
    Some(text.replace("#/components/schemas/", "#/$defs/"))
}

/// The page.
pub(crate) fn page() -> String {
    let mut text = HEAD.to_owned();
    for kind in OrderEventKind::ALL {
        let states: Vec<String> = states(*kind).iter().map(|state| format!("`{state}`")).collect();
        let states = if states.len() > 2 { "any".to_owned() } else { states.join(", ") };
        let _ = writeln!(text, "| `{}` | {} | {states} |", type_of(*kind), meaning(*kind));
    }
    let _ = write!(
        text,
        "\n`POST /v1/sinks/{{name}}/test` sends `dev.holdfast.sink.test.v1`, which tells of nothing and has no `subject`.\n\n\
         ## Schema\n\nJSON Schema 2020-12; one alternative a type.\n\n```json\n{}\n```\n",
        schemas().unwrap_or_default()
    );
    text
}
