//! A sink as stored.

use std::fmt;
use std::sync::Arc;

use holdfast_core::event::OrderEventKind;
use holdfast_core::time::Timestamp;

/// Most characters of a sink's name.
pub const SINK_NAME_CHARS_MAX: usize = 64;
/// Most events in one delivery.
pub const BATCH_MAX: u32 = 500;
/// Least and most milliseconds that an attempt may take.
pub const TIMEOUT_MS_MIN: u32 = 100;
/// See [`TIMEOUT_MS_MIN`].
pub const TIMEOUT_MS_MAX: u32 = 60_000;
/// Most attempts of an event that is refused while others are taken.
pub const ATTEMPTS_MAX: u32 = 20;
/// Most waits of a schedule, and the longest of them in seconds.
pub const RETRIES_MAX: usize = 20;
/// See [`RETRIES_MAX`].
pub const RETRY_SECONDS_MAX: u32 = 86_400;
/// How long a sink may fail until it is disabled: least and most.
pub const DISABLE_AFTER_SECONDS_MIN: u32 = 1;
/// See [`DISABLE_AFTER_SECONDS_MIN`]: 30 days.
pub const DISABLE_AFTER_SECONDS_MAX: u32 = 2_592_000;
/// Most secrets with which a delivery is signed at the same time.
pub const SECRETS_MAX: usize = 5;

/// A sink's name: `a`–`z`, `0`–`9`, `-` and `_`, a letter or a digit first. It stands in labels, leases and addresses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkName(Arc<str>);

impl SinkName {
    /// Takes a text that has the form of a name.
    pub fn new(text: &str) -> Option<Self> {
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_rest = |byte: u8| is_good(byte) || byte == b'-' || byte == b'_';
        let is_name = text.len() <= SINK_NAME_CHARS_MAX
            && text.bytes().next().is_some_and(is_good)
            && text.bytes().all(is_rest);
        is_name.then(|| Self(Arc::from(text)))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the lease of whoever delivers.
    pub fn lease(&self) -> String {
        format!("sink {}", self.0)
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How events reach a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SinkKind {
    /// By HTTP requests that are signed.
    Webhook,
    /// Into a stream of NATS `JetStream`.
    Nats,
    /// Into a stream of Redis.
    Redis,
    /// The consumer comes for them.
    Pull,
}

impl SinkKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::Webhook, Self::Nats, Self::Redis, Self::Pull];

    /// The spelling in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Nats => "nats",
            Self::Redis => "redis",
            Self::Pull => "pull",
        }
    }

    /// The kind with this spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// Whether anything is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkState {
    /// Yes.
    Active,
    /// No, an operator said so.
    Paused,
    /// No, the receiver has failed for too long or wants no more.
    Disabled,
}

impl SinkState {
    /// Every state.
    pub const ALL: &'static [Self] = &[Self::Active, Self::Paused, Self::Disabled];

    /// The spelling in SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        }
    }

    /// The state with this spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == text)
    }
}

/// What a delivery is signed with. Shown once, when it is made.
#[derive(Clone, PartialEq, Eq)]
pub struct SinkSecret {
    /// Its id, which is no secret.
    pub id: String,
    /// The secret itself, in the form `whsec_…`.
    pub secret: Arc<str>,
    /// Since when it signs.
    pub created_at: Timestamp,
}

impl fmt::Debug for SinkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkSecret").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a sink is told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkSettings {
    /// Where to: an address of HTTP; for NATS and Redis the subject or the stream. Empty for a pull consumer.
    pub to: String,
    /// Which events; none named: all.
    pub types: Vec<OrderEventKind>,
    /// Most events in one delivery.
    pub batch_max: u32,
    /// How long an attempt may take.
    pub timeout_ms: u32,
    /// How often an event is refused, while others are taken, until it is parked.
    pub attempts_max: u32,
    /// How long to wait before the next attempts; the last for every later one.
    pub retry_seconds: Vec<u32>,
    /// How long a receiver may take nothing until the sink is disabled.
    pub disable_after_seconds: u32,
}

impl Default for SinkSettings {
    fn default() -> Self {
        Self {
            to: String::new(),
            types: Vec::new(),
            batch_max: 1,
            timeout_ms: 10_000,
            attempts_max: 5,
            retry_seconds: vec![1, 5, 30, 120, 600, 3_600],
            disable_after_seconds: 259_200,
        }
    }
}

impl SinkSettings {
    /// Whether events of a kind are wanted.
    pub fn wants(&self, kind: OrderEventKind) -> bool {
        self.types.is_empty() || self.types.contains(&kind)
    }

    /// How long to wait after so many failures, from 1.
    pub fn wait_seconds(&self, failures: u32) -> u32 {
        let place = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
        self.retry_seconds.get(place).or(self.retry_seconds.last()).copied().unwrap_or(1)
    }
}

/// How it goes. A receiver that takes nothing fails as a whole; an event that is refused while others are taken does
/// not show here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkHealth {
    /// Since when the receiver takes nothing.
    pub failing_since: Option<Timestamp>,
    /// Attempts since then.
    pub failures: u32,
    /// When it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// What went wrong at last.
    pub last_error: Option<String>,
    /// When it took something at last.
    pub delivered_at: Option<Timestamp>,
}

/// A sink as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkRow {
    /// Its name.
    pub name: SinkName,
    /// How events reach it.
    pub kind: SinkKind,
    /// What it is told to do.
    pub settings: SinkSettings,
    /// What deliveries are signed with, the newest first.
    pub secrets: Vec<SinkSecret>,
    /// Whether anything is delivered.
    pub state: SinkState,
    /// Why it is paused or disabled.
    pub why: Option<String>,
    /// How often it was begun anew, by replays; from 1.
    pub round: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its settings or its state changed at last.
    pub updated_at: Timestamp,
    /// How it goes.
    pub health: SinkHealth,
    /// Events that it does not take.
    pub parked: u64,
    /// Parked events that somebody asked for again.
    pub waiting: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "erp-1", "0_x", &"a".repeat(64)] {
            assert!(SinkName::new(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "_a", "A", "a b", "a/b", "ä", "a.b", &"a".repeat(65)] {
            assert!(SinkName::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_last_wait_is_for_every_later_attempt() {
        let settings = SinkSettings { retry_seconds: vec![1, 5, 30], ..SinkSettings::default() };
        assert_eq!([1, 2, 3, 4, 900].map(|failures| settings.wait_seconds(failures)), [1, 5, 30, 30, 30]);
    }

    #[test]
    fn a_secret_is_not_printed() {
        let secret = SinkSecret { id: "s1".into(), secret: "whsec_hidden".into(), created_at: Timestamp(0) };
        assert!(!format!("{secret:?}").contains("hidden"));
    }
}
