//! Schemas that a type cannot say, such as the words that a field may have. Only for the OpenAPI document.
//!
//! The words stand here too because this crate does not know the core; a test of the server reads each of
//! them with the strict reader.

use utoipa::openapi::schema::{
    AdditionalProperties, Array, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};

/// A text that is one of `words`.
fn of(words: &[&str], description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .enum_values(Some(words.iter().copied()))
        .description(Some(description))
}

/// The same, or `null` for the default. `null` must be among the values, too, or no null passes.
fn optional(words: &[&str], description: &str) -> Object {
    let values = words.iter().map(|word| serde_json::json!(word)).chain([serde_json::Value::Null]);
    of(words, description)
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(values))
        .build()
}

pub(crate) fn capture() -> Object {
    optional(&["hold", "immediate"], "Hold first, or sell at once.")
}

pub(crate) fn deadline_basis() -> Object {
    optional(&["received_at", "provider_paid_at"], "Whose time decides whether a payment was in time.")
}

pub(crate) fn late_payment() -> Object {
    optional(&["retake_else_refund", "refund", "review"], "What a payment after the end of the hold does.")
}

pub(crate) fn payment_failed() -> Object {
    optional(&["keep", "release"], "Whether a failed payment ends the hold.")
}

pub(crate) fn review_end() -> Object {
    optional(&["release", "person"], "What the end of a review does.")
}

pub(crate) fn cancelled_state() -> Object {
    optional(&["held", "queued"], "Orders in which state.")
}

pub(crate) fn path() -> Object {
    optional(&["direct", "batched", "queued", "cached"], "How orders reach the authority.")
}

pub(crate) fn routing() -> Object {
    let words = ["order_hash", "round_robin", "random", "account_hash", "node_affinity"];
    optional(&words, "Which bucket an order tries first.")
}

pub(crate) fn cache_fallback() -> Object {
    optional(&["authority", "refuse"], "What a pool does while its cache cannot be used.")
}

/// One weight a bucket.
pub(crate) fn weights() -> Array {
    let weight = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .minimum(Some(0))
        .maximum(Some(10_000));
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(weight)
        .min_items(Some(1))
        .max_items(Some(256))
        .description(Some("The weight of every bucket, by its number; at least one is not 0."))
        .build()
}

pub(crate) fn adjustment_kind() -> Object {
    of(&["inbound", "adjust"], "New stock, or a correction. Inbound stock is not negative.").build()
}

pub(crate) fn case_action() -> Object {
    of(
        &["acknowledge", "accept_ledger", "accept_balance", "compensate"],
        "What is decided; which actions fit, the case tells.",
    )
    .build()
}

pub(crate) fn run_scope() -> Object {
    optional(&["full", "incremental"], "How much it looks at; `full` by default.")
}

pub(crate) fn order_action() -> Object {
    of(&["confirm", "release", "extend", "reduce", "refunded"], "What is decided.").build()
}

pub(crate) fn payment_outcome() -> Object {
    of(&["succeeded", "failed"], "What the provider says.").build()
}

/// The campaigns of a key: their names have bounds of their own, which the field's attributes cannot say.
pub(crate) fn campaigns() -> Array {
    let name = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(1))
        .max_length(Some(128));
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(name)
        .min_items(Some(1))
        .max_items(Some(100))
        .description(Some("The campaigns that it is for; absent: all of them."))
        .build()
}

/// A field that is not built yet.
/// Most names in a map of limits or keys.
const NAMES_MAX: usize = 16;

/// A text that names something.
fn name() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).min_length(Some(1)).max_length(Some(128))
}

/// A map of names, or `null` for an empty one.
fn by_name(values: impl Into<AdditionalProperties<Schema>>, description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .property_names(Some(name()))
        .additional_properties(Some(values))
        .max_properties(Some(NAMES_MAX))
        .description(Some(description))
        .build()
}

/// The keys that an order carries.
pub(crate) fn limit_keys() -> Object {
    by_name(
        name(),
        "Other keys that it counts against, by name: a device, an address. Stored hashed, never shown.",
    )
}

/// The limits of keys that orders carry.
pub(crate) fn key_limits() -> Object {
    let most = |what: &str| {
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
            .minimum(Some(1))
            .maximum(Some(1_000_000_000_000_u64))
            .description(Some(what))
    };
    let limits = ObjectBuilder::new()
        .property("units", most("Most units that it may hold and buy."))
        .property("open_holds", most("Most orders that it may hold open."))
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let units = most("Short for `units` alone.");
    let limits = Schema::OneOf(OneOfBuilder::new().item(units).item(limits).build());
    by_name(limits, "Limits of other keys that orders carry, by name.")
}

pub(crate) fn sink_kind() -> Object {
    of(&["webhook", "nats", "redis", "pull"], "How events reach it. It cannot be changed.").build()
}

pub(crate) fn event_kinds() -> Array {
    let words = [
        "queued",
        "held",
        "in_review",
        "sold",
        "refunded",
        "released",
        "failed",
        "reduced",
        "partly_refunded",
        "changed",
    ];
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(of(&words, "The word in the type of an event."))
        .min_items(Some(1))
        .max_items(Some(10))
        .description(Some("Which events; absent: all."))
        .build()
}

pub(crate) fn retry_seconds() -> Array {
    let seconds = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .minimum(Some(1))
        .maximum(Some(86_400));
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(seconds)
        .min_items(Some(1))
        .max_items(Some(20))
        .description(Some("How long to wait before the next attempts; 1, 5, 30, 120, 600, 3600 if absent."))
        .build()
}

pub(crate) fn role() -> Object {
    of(&["buyer", "payments", "read", "operator", "admin"], "What the key may do.").build()
}
