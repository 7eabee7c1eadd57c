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

    /// Why it cannot be relied on, if so.
    pub(crate) fn fault(&self) -> Option<String> {
        // Valkey says here which Redis it is like.
        let version = self.text("redis_version").unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        if major.is_none_or(|major: u32| major < VERSION_MIN) {
            return Some(format!("version {version} is older than {VERSION_MIN}.0"));
        }
        self.fault_of_memory().or_else(|| self.fault_of_persistence())
    }

    fn fault_of_memory(&self) -> Option<String> {
        let limit = self.number("maxmemory").unwrap_or(0);
        let policy = self.text("maxmemory_policy").unwrap_or_default();
        if limit > 0 && policy != "noeviction" {
            return Some(format!("it may evict keys: maxmemory-policy is {policy}, not noeviction"));
        }
        let bound = if limit > 0 { limit } else { self.number("total_system_memory")? };
        let used = self.number("used_memory")?;
        let least = bound / 100 * FREE_PERCENT_MIN;
        let is_short = bound > 0 && used.saturating_add(least) > bound;
        is_short.then(|| format!("{used} of {bound} bytes of memory are used"))
    }

    fn fault_of_persistence(&self) -> Option<String> {
        let failing = ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"];
        let failed = failing.into_iter().find(|name| self.text(name).is_some_and(|status| status != "ok"));
        failed.map(|name| format!("what it takes may not last: {name} is not ok"))
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
        assert_eq!(info.fault(), None, "without a limit nothing is evicted, whatever the policy");
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
            let fault = Info::read(&SOUND.replace(sound, faulty)).fault();
            assert!(fault.as_ref().is_some_and(|fault| fault.contains(why)), "{faulty}: {fault:?}");
        }
        assert!(!Info::read(&SOUND.replace("role:master", "role:slave")).is_master());
        assert!(!Info::read(&SOUND.replace("loading:0", "loading:1")).is_master());
    }
}
