//! Requests about campaigns.

use std::ops::RangeInclusive;
use std::sync::Arc;

use holdfast_core::campaign::{Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd};
use holdfast_core::id::{CampaignId, Operator, PoolId};
use holdfast_core::limit::{LIMIT_KEYS_MAX, Limits};
use holdfast_store::PutCampaign;
use holdfast_wire::Code;

use super::field::{Flag, PoolIdField, TEXT_CHARS_MAX, id, integer, text, word};
use super::reader::{Item, Object};
use super::time::{Instant, ZoneName};

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Longest time that anything may wait, in seconds: a year.
pub(crate) const SECONDS_MAX: u32 = 31_536_000;
/// Bounds of times that must pass.
pub(crate) const SECONDS: RangeInclusive<u32> = 1..=SECONDS_MAX;
/// Bounds of times that may be none.
const SECONDS_OR_NONE: RangeInclusive<u32> = 0..=SECONDS_MAX;
/// Bounds of the skew: more than an hour is no skew.
const GRACE_MS: RangeInclusive<u32> = 0..=3_600_000;
/// Bounds of what an account may have.
const LIMIT: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// Bounds of what needs no second person; 0: nothing.
const APPROVAL_THRESHOLD: RangeInclusive<u64> = 0..=1_000_000_000_000;
/// Bounds of orders a second.
const RATE: RangeInclusive<u32> = 1..=1_000_000;
/// Bounds of a queue's length: what waits is counted when orders are taken in.
const QUEUE_LIMIT: RangeInclusive<u64> = 1..=1_000_000;
/// Bounds of the time in a queue: at most a day.
const QUEUE_WAIT_MS: RangeInclusive<u32> = 1..=86_400_000;

/// A switch as an operator sets it.
pub(crate) struct SwitchInput {
    pub(crate) operator: Operator,
    pub(crate) reason: Arc<str>,
}

/// Reads `{reason, operator}`.
pub(crate) fn read_switch(body: &mut Object<'_, '_>) -> Option<SwitchInput> {
    let reason = body.required("reason", text(TEXT_CHARS_MAX));
    let operator = body.required("operator", id());
    Some(SwitchInput { operator: operator?, reason: reason? })
}

/// Reads `{reason, operator, unsold_to?}`.
pub(crate) fn read_close(body: &mut Object<'_, '_>) -> Option<(SwitchInput, Option<PoolId>)> {
    let unsold_to = body.optional("unsold_to", PoolIdField);
    Some((read_switch(body)?, unsold_to?))
}

/// Reads a campaign to create or change.
pub(crate) fn read_campaign(campaign: CampaignId, body: &mut Object<'_, '_>) -> Option<PutCampaign> {
    // Without a name of its own a campaign is called by its id.
    let name = body.optional("name", text(NAME_CHARS_MAX));
    let zone = body.optional("time_zone", ZoneName);
    // Where the zone itself is wrong, its times are not judged: they would be blamed for it.
    let (starts_at, ends_at) = match &zone {
        Some(zone) => {
            let time = || Instant { zone: zone.clone() };
            (body.optional("starts_at", time()), body.optional("ends_at", time()))
        }
        None => (body.ignored("starts_at"), body.ignored("ends_at")),
    };
    if let (Some(Some(start)), Some(Some(end))) = (starts_at, ends_at)
        && start >= end
    {
        body.refuse("ends_at", Code::InvalidTime, "must be after starts_at");
    }
    let policy = body.object("policy", read_policy).map(Option::unwrap_or_default);
    Some(PutCampaign {
        name: name?.map_or_else(|| campaign.to_string(), |name| name.to_string()),
        id: campaign,
        starts_at: starts_at?,
        ends_at: ends_at?,
        policy: policy?,
        via: None,
    })
}

fn read_policy(body: &mut Object<'_, '_>) -> Option<Policy> {
    let default = Policy::default();
    let hold = body.defaulted("hold_seconds", integer(SECONDS), default.hold_seconds);
    let hold_max = body.defaulted("hold_seconds_max", integer(SECONDS), default.hold_seconds_max);
    if let (Some(hold), Some(hold_max)) = (hold, hold_max)
        && hold > hold_max
    {
        let name = if body.has("hold_seconds_max") { "hold_seconds_max" } else { "hold_seconds" };
        let detail = format!("hold_seconds ({hold}) must not exceed hold_seconds_max ({hold_max})");
        body.refuse(name, Code::InvalidValue, detail);
    }
    let extension = body.defaulted(
        "payment_extension_seconds",
        integer(SECONDS_OR_NONE),
        default.payment_extension_seconds,
    );
    let grace = body.defaulted("release_grace_ms", integer(GRACE_MS), default.release_grace_ms);
    let notice =
        body.defaulted("notice_grace_seconds", integer(SECONDS_OR_NONE), default.notice_grace_seconds);
    let review = body.defaulted("review_seconds", integer(SECONDS), default.review_seconds);
    let basis = body.defaulted("deadline_basis", word(DeadlineBasis::parse), default.deadline_basis);
    let capture = body.defaulted("capture", word(Capture::parse), default.capture);
    let late = body.defaulted("late_payment", word(LatePayment::parse), default.late_payment);
    let failed = body.defaulted("payment_failed", word(PaymentFailed::parse), default.payment_failed);
    let review_end = body.defaulted("review_end", word(ReviewEnd::parse), default.review_end);
    let restock = body.defaulted("restock_on_refund", Flag, default.restock_on_refund);
    let account_limit = body.optional("account_limit", integer(LIMIT));
    let account_open_holds = body.optional("account_open_holds", integer(LIMIT));
    let queue_limit = body.defaulted("queue_limit", integer(QUEUE_LIMIT), default.queue_limit);
    let queue_wait = body.defaulted("queue_wait_ms", integer(QUEUE_WAIT_MS), default.queue_wait_ms);
    let key_limits = body.map("key_limits", LIMIT_KEYS_MAX, read_limits);
    let rate_per_account = body.optional("order_rate_per_account", integer(RATE));
    let rate = body.optional("order_rate", integer(RATE));
    let approval = body.optional("approval_threshold", integer(APPROVAL_THRESHOLD));
    Some(Policy {
        hold_seconds: hold?,
        hold_seconds_max: hold_max?,
        payment_extension_seconds: extension?,
        release_grace_ms: grace?,
        notice_grace_seconds: notice?,
        capture: capture?,
        deadline_basis: basis?,
        late_payment: late?,
        payment_failed: failed?,
        review_seconds: review?,
        review_end: review_end?,
        restock_on_refund: restock?,
        account_limit: account_limit?,
        account_open_holds: account_open_holds?,
        queue_limit: queue_limit?,
        queue_wait_ms: queue_wait?,
        key_limits: key_limits?.into_iter().filter(|(_, limits)| limits.any()).collect(),
        order_rate_per_account: rate_per_account?,
        order_rate: rate?,
        approval_threshold: approval?,
    })
}

/// What keys of a name may have. A number alone is short for its units.
fn read_limits(item: Item<'_, '_>) -> Option<Limits> {
    if item.is_object() {
        return item.object(|body| {
            let units = body.optional("units", integer(LIMIT));
            let open_holds = body.optional("open_holds", integer(LIMIT));
            Some(Limits { units: units?, open_holds: open_holds? })
        });
    }
    item.field(integer(LIMIT)).map(|units| Limits { units: Some(units), open_holds: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::read;

    fn put(text: &str) -> Result<PutCampaign, Vec<(String, String)>> {
        let campaign = CampaignId::new("c").expect("an id");
        read(text.as_bytes(), |body| read_campaign(campaign, body)).map_err(|problem| problem.pointers())
    }

    fn refused(text: &str) -> Vec<(String, String)> {
        put(text).expect_err("refused")
    }

    fn at(pointer: &str, code: &str) -> Vec<(String, String)> {
        vec![(pointer.to_owned(), code.to_owned())]
    }

    #[test]
    fn a_policy_field_that_is_absent_gets_its_default() {
        let campaign =
            put(r#"{"name":"n","policy":{"account_limit":2,"late_payment":"review"}}"#).expect("read");
        let expected =
            Policy { account_limit: Some(2), late_payment: LatePayment::Review, ..Policy::default() };
        assert_eq!(campaign.policy, expected);
        assert_eq!(put(r#"{"name":"n","starts_at":null}"#).expect("read").policy, Policy::default());
    }

    #[test]
    fn an_approval_threshold_may_be_0_and_what_is_not_known_is_refused() {
        let threshold = |text: &str| format!(r#"{{"name":"n","policy":{{"approval_threshold":{text}}}}}"#);
        assert_eq!(put(&threshold("null")).expect("read").policy.approval_threshold, None);
        assert_eq!(put(&threshold("0")).expect("read").policy.approval_threshold, Some(0));
        for bad in ["-1", "1.0", "\"1\"", "true", "1000000000001"] {
            assert_eq!(refused(&threshold(bad)), at("/policy/approval_threshold", "invalid_value"), "{bad}");
        }
        assert_eq!(refused(r#"{"name":"n","policy":{"x":1}}"#), at("/policy/x", "unknown_field"));
    }

    #[test]
    fn limits_of_keys_are_read_by_name() {
        let policy = |fields: &str| format!(r#"{{"name":"n","policy":{{{fields}}}}}"#);
        let read = |fields: &str| put(&policy(fields)).expect("read").policy;
        let limits =
            read(r#""key_limits":{"device":{"units":2,"open_holds":1},"a/b":3,"gone":{"units":null}}"#);
        let shown: Vec<_> = limits
            .key_limits
            .iter()
            .map(|(name, most)| (name.as_str(), most.units, most.open_holds))
            .collect();
        assert_eq!(shown, [("a/b", Some(3), None), ("device", Some(2), Some(1))]);
        let rates = read(r#""order_rate":5000,"order_rate_per_account":1,"key_limits":{}"#);
        assert_eq!((rates.order_rate, rates.order_rate_per_account), (Some(5_000), Some(1)));
        for (fields, pointer, code) in [
            (r#""key_limits":{"device":{"units":0}}"#, "/policy/key_limits/device/units", "invalid_value"),
            (r#""key_limits":{"device":0}"#, "/policy/key_limits/device", "invalid_value"),
            (r#""key_limits":{"device":{"unit":1}}"#, "/policy/key_limits/device/unit", "unknown_field"),
            (r#""key_limits":{" x":1}"#, "/policy/key_limits/ x", "invalid_identifier"),
            (r#""key_limits":[]"#, "/policy/key_limits", "invalid_value"),
            (r#""order_rate":0"#, "/policy/order_rate", "invalid_value"),
            (r#""order_rate_per_account":1000001"#, "/policy/order_rate_per_account", "invalid_value"),
        ] {
            assert_eq!(refused(&policy(fields)), at(pointer, code), "{fields}");
        }
        let many: Vec<String> = (0..17).map(|n| format!(r#""k{n}":1"#)).collect();
        let many = policy(&format!(r#""key_limits":{{{}}}"#, many.join(",")));
        assert_eq!(refused(&many), at("/policy/key_limits", "invalid_value"));
    }

    #[test]
    fn windows_and_zones() {
        let berlin = |start: &str| {
            format!(r#"{{"name":"n","time_zone":"Europe/Berlin","starts_at":"{start}","ends_at":null}}"#)
        };
        assert!(put(&berlin("2026-03-29T01:30:00")).is_ok());
        assert_eq!(refused(&berlin("2026-03-29T02:30:00")), at("/starts_at", "invalid_time"));
        assert_eq!(refused(&berlin("2026-10-25T02:30:00")), at("/starts_at", "invalid_time"));
        let mars = r#"{"name":"n","time_zone":"Mars/Base","starts_at":"2026-03-29T02:30:00"}"#;
        assert_eq!(refused(mars), at("/time_zone", "invalid_time"));
        let local = r#"{"name":"n","starts_at":"2026-03-29T02:30:00"}"#;
        assert_eq!(refused(local), at("/starts_at", "invalid_time"));
        let turned = r#"{"name":"n","starts_at":"2026-03-29T02:30:00Z","ends_at":"2026-03-29T02:30:00Z"}"#;
        assert_eq!(refused(turned), at("/ends_at", "invalid_time"));
    }

    #[test]
    fn bounds_are_named() {
        let policy = |field: &str| format!(r#"{{"name":"n","policy":{{{field}}}}}"#);
        assert_eq!(refused(&policy(r#""hold_seconds":0"#)), at("/policy/hold_seconds", "invalid_value"));
        assert_eq!(refused(&policy(r#""hold_seconds":7200"#)), at("/policy/hold_seconds", "invalid_value"));
        assert_eq!(
            refused(&policy(r#""hold_seconds_max":899"#)),
            at("/policy/hold_seconds_max", "invalid_value")
        );
        assert_eq!(refused(&policy(r#""account_limit":0"#)), at("/policy/account_limit", "invalid_value"));
        assert_eq!(refused(&policy(r#""capture":"later""#)), at("/policy/capture", "invalid_value"));
        assert_eq!(
            refused(r#"{"nam":"n","name":""}"#),
            [
                ("/name".to_owned(), "invalid_value".to_owned()),
                ("/nam".to_owned(), "unknown_field".to_owned())
            ]
        );
    }
}
