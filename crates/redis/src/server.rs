//! What a server says of itself, in the words of INFO: managed servers answer it where they forbid CONFIG.

use std::collections::HashMap;
use std::sync::Arc;

/// Oldest version that is spoken to: scripts there are refused whole, before they run.
const VERSION_MIN: u32 = 7;
/// Least part of the memory that must be free, in hundredths.
const FREE_PERCENT_MIN: u64 = 10;

/// The answer to INFO.
#[derive(Debug, Clone)]
pub(crate) struct Info(HashMap<String, String>);

impl Info {
    pub(crate) fn read(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Whether it is a master that has read its files.
    pub(crate) fn is_master(&self) -> bool {
        self.text("role") == Some("master") && self.text("loading").is_none_or(|loading| loading == "0")
    }

    /// Its run and its replication. A restart changes the one, a take-over the other or both.
    pub(crate) fn identity(&self) -> Option<Arc<str>> {
        let (run, replication) = (self.text("run_id")?, self.text("master_replid")?);
        Some(format!("{run}:{replication}").into())
    }

    /// What of it matters to what it takes.
    pub(crate) fn examined(&self, node: String) -> Examined {
        // Valkey says here which Redis it is like.
        let version = self.text("redis_version").unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        let limit = self.number("maxmemory").filter(|limit| *limit > 0);
        let failing = ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"];
        Examined {
            node,
            version: version.to_owned(),
            is_old: major.is_none_or(|major: u32| major < VERSION_MIN),
            memory_limit: limit,
            memory_policy: self.text("maxmemory_policy").unwrap_or_default().to_owned(),
            memory_used: self.number("used_memory").unwrap_or(0),
            memory_bound: limit.or_else(|| self.number("total_system_memory")).unwrap_or(0),
            is_appending: self.text("aof_enabled") == Some("1"),
            failing: failing.into_iter().find(|name| self.text(name).is_some_and(|status| status != "ok")),
        }
    }
}

/// A master as it says it is, as far as that matters to what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// Where it is.
    pub node: String,
    /// The version of Redis that it is, or is like.
    pub version: String,
    /// Whether that is too old.
    pub is_old: bool,
    /// Most bytes that it may use; none: no limit of its own.
    pub memory_limit: Option<u64>,
    /// What it does at the limit.
    pub memory_policy: String,
    /// Bytes that it uses.
    pub memory_used: u64,
    /// Bytes that there are for it: its limit, or the machine's; 0: it does not say.
    pub memory_bound: u64,
    /// Whether it has an append-only file.
    pub is_appending: bool,
    /// What of its persistence has failed.
    pub failing: Option<&'static str>,
}

impl Examined {
    /// Whether it may evict keys, which is to lose stock.
    #[must_use]
    pub fn may_evict(&self) -> bool {
        self.memory_limit.is_some() && self.memory_policy != "noeviction"
    }

    /// Whether too little memory is free.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        let least = self.memory_bound / 100 * FREE_PERCENT_MIN;
        self.memory_bound > 0 && self.memory_used.saturating_add(least) > self.memory_bound
    }

    /// Why it cannot be relied on, if so.
    pub(crate) fn fault(&self) -> Option<String> {
        let Self { version, memory_policy, memory_used, memory_bound, .. } = self;
        if self.is_old {
            return Some(format!("version {version} is older than {VERSION_MIN}.0"));
        }
        if self.may_evict() {
            return Some(format!("it may evict keys: maxmemory-policy is {memory_policy}, not noeviction"));
        }
        if self.is_short() {
            return Some(format!("{memory_used} of {memory_bound} bytes of memory are used"));
        }
        self.failing.map(|name| format!("what it takes may not last: {name} is not ok"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "# Server\r\nredis_version:7.0.15\r\nrun_id:aa\r\n# Memory\r\nused_memory:100\r\n\
        total_system_memory:1000\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\nloading:0\r\n\
        rdb_last_bgsave_status:ok\r\naof_last_write_status:ok\r\nrole:master\r\nmaster_replid:bb\r\n";

    #[test]
    fn a_sound_master_has_an_identity_and_no_fault() {
        let info = Info::read(SOUND);
        assert!(info.is_master());
        assert_eq!(info.identity().as_deref(), Some("aa:bb"));
        assert_eq!(
            info.examined(String::new()).fault(),
            None,
            "without a limit nothing is evicted, whatever the policy"
        );
    }

    #[test]
    fn what_may_lose_stock_is_a_fault() {
        for (sound, faulty, why) in [
            ("redis_version:7", "redis_version:6", "older"),
            ("redis_version:7", "other_version:7", "older"),
            ("maxmemory:0", "maxmemory:1000", "evict"),
            ("used_memory:100", "used_memory:901", "901 of 1000"),
            ("bgsave_status:ok", "bgsave_status:err", "rdb_last_bgsave_status"),
            ("write_status:ok", "write_status:err", "aof_last_write_status"),
        ] {
            let fault = Info::read(&SOUND.replace(sound, faulty)).examined(String::new()).fault();
            assert!(fault.as_ref().is_some_and(|fault| fault.contains(why)), "{faulty}: {fault:?}");
        }
        assert!(!Info::read(&SOUND.replace("role:master", "role:slave")).is_master());
        assert!(!Info::read(&SOUND.replace("loading:0", "loading:1")).is_master());
    }
}
