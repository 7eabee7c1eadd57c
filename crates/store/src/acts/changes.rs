//! What an act changed, in the words of the public JSON.

use std::collections::BTreeMap;

use holdfast_core::campaign::{
    Campaign, Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd,
};
use holdfast_core::event::OrderEventKind;
use holdfast_core::id::LimitName;
use holdfast_core::limit::Limits;
use holdfast_core::time::Timestamp;

use crate::sinks::{SinkRow, SinkSettings};

/// A value as JSON spells it.
trait Told {
    fn told(&self) -> String;
}

macro_rules! told {
    ($($shown:ty),* ; $($word:ty),*) => {
        $(impl Told for $shown {
            fn told(&self) -> String {
                self.to_string()
            }
        })*
        $(impl Told for $word {
            fn told(&self) -> String {
                format!("{:?}", self.as_str())
            }
        })*
    };
}

told!(bool, u32, u64; String, Capture, DeadlineBasis, LatePayment, PaymentFailed, ReviewEnd, LimitName);

impl Told for Timestamp {
    fn told(&self) -> String {
        format!("\"{self}\"")
    }
}

impl<T: Told> Told for Option<T> {
    fn told(&self) -> String {
        self.as_ref().map_or_else(|| "null".to_owned(), T::told)
    }
}

impl Told for Limits {
    fn told(&self) -> String {
        let limits = [("units", self.units), ("open_holds", self.open_holds)];
        let limits = limits.iter().filter_map(|(name, most)| most.map(|most| format!("\"{name}\":{most}")));
        format!("{{{}}}", limits.collect::<Vec<_>>().join(","))
    }
}

impl<T: Told> Told for BTreeMap<LimitName, T> {
    fn told(&self) -> String {
        let each = self.iter().map(|(name, value)| format!("{}:{}", name.told(), value.told()));
        format!("{{{}}}", each.collect::<Vec<_>>().join(","))
    }
}

/// What differs between a sink before and after, field by field. Where it leads is not shown: an address may hold what
/// only its owner should know.
pub(super) fn of_sink(before: &SinkRow, after: &SinkRow) -> String {
    // Taken apart whole: a field that comes later must be named here.
    let SinkSettings { to, types, batch_max, timeout_ms, attempts_max, retry_seconds, disable_after_seconds } =
        &before.settings;
    let new = &after.settings;
    let words = |types: &[OrderEventKind]| {
        format!("{:?}", types.iter().map(|kind| kind.as_str()).collect::<Vec<_>>())
    };
    let mut found = Vec::new();
    if *to != new.to {
        found.push("to".to_owned());
    }
    let told = [
        ("types", words(types), words(&new.types)),
        ("batch_max", batch_max.told(), new.batch_max.told()),
        ("timeout_ms", timeout_ms.told(), new.timeout_ms.told()),
        ("attempts_max", attempts_max.told(), new.attempts_max.told()),
        ("retry_seconds", format!("{retry_seconds:?}"), format!("{:?}", new.retry_seconds)),
        ("disable_after_seconds", disable_after_seconds.told(), new.disable_after_seconds.told()),
    ];
    let changed = told.into_iter().filter(|(_, old, new)| old != new);
    found.extend(changed.map(|(name, old, new)| format!("{name} {old} -> {new}")));
    found.join(", ")
}

/// What differs between a campaign before and after, field by field.
pub(super) fn of_campaign(before: &Campaign, after: &Campaign) -> String {
    let mut found = Vec::new();
    let mut note = |name: &str, old: &dyn Told, new: &dyn Told| {
        let (old, new) = (old.told(), new.told());
        if old != new {
            found.push(format!("{name} {old} -> {new}"));
        }
    };
    macro_rules! compare {
        ($($field:ident),*) => {{
            // Taken apart whole: a field that comes later must be named here.
            let Policy { $($field),* } = &before.policy;
            $(note(stringify!($field), $field, &after.policy.$field);)*
        }};
    }
    note("name", &before.name, &after.name);
    note("starts_at", &before.starts_at, &after.starts_at);
    note("ends_at", &before.ends_at, &after.ends_at);
    compare!(
        hold_seconds,
        hold_seconds_max,
        payment_extension_seconds,
        release_grace_ms,
        notice_grace_seconds,
        capture,
        deadline_basis,
        late_payment,
        payment_failed,
        review_seconds,
        review_end,
        restock_on_refund,
        account_limit,
        account_open_holds,
        queue_limit,
        queue_wait_ms,
        key_limits,
        order_rate_per_account,
        order_rate,
        approval_threshold
    );
    found.join(", ")
}
