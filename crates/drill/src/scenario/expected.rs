//! Answers that may come, in groups: a scenario names the groups that it expects, and any other answer is a breach.

/// Orders are placed, repeated and looked up; somebody hangs up.
pub(super) const BUYING: &[&str] = &["place 201", "place 200", "place hung up", "look 200"];

/// Orders wait for their turn.
pub(super) const QUEUEING: &[&str] = &["place 202", "place 429 queue_full", "place 409 queue_timeout"];

/// There is not enough.
pub(super) const SHORT: &[&str] = &["place 409 sold_out"];

/// Accounts have a limit.
pub(super) const LIMITED: &[&str] = &["place 409 account_limit"];

/// Holds end without a payment.
pub(super) const ENDING: &[&str] = &[
    "cancel 200",
    "cancel 409 already_released",
    "cancel 409 already_sold",
    "cancel 409 already_failed",
    "place 409 already_released",
    "place 409 cancelled",
];

/// Payments come in time, once or twice, or fail.
pub(super) const PAYING: &[&str] =
    &["pay 200 applied", "pay 200 duplicate", "fail 200 applied", "fail 200 duplicate", "fail 200 ignored"];

/// Payments come when the hold may be over.
pub(super) const LATE: &[&str] = &["pay 200 retaken", "pay 200 refund_due", "refund 200"];

/// A number is used again for something else.
pub(super) const ALTERED: &[&str] = &["alter 422 order_mismatch"];

/// More is asked for than can be done. A cache or an authority that takes too long has not answered.
pub(super) const BUSY: &[&str] = &[
    "* 503 overloaded",
    "* 503 cache_not_ready",
    "* 503 outcome_unknown",
    "* 429 rate_limited",
    "* 429 queue_full",
];

/// Servers or the authority are not there, or their answers do not come back.
pub(super) const OUTAGE: &[&str] = &[
    "* 503 overloaded",
    "* 503 authority_unavailable",
    "* 503 outcome_unknown",
    "* 503 shutting_down",
    "* lost",
    "* not sent",
];

/// The cache is not there, or has lost what it had accepted.
pub(super) const CACHE_LOSS: &[&str] = &[
    "* 503 cache_not_ready",
    "* 503 outcome_unknown",
    "look 409 admission_lost",
    "place 409 admission_lost",
];

/// There is no space for what should be written.
pub(super) const FULL: &[&str] = &["* 503 storage_full"];
