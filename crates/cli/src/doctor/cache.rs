//! What the Redis of the cached path is like: whether it keeps what it takes.

use holdfast_redis::{Address, Examined, Options, RedisCache};

use super::Finding;

/// Looks at every master that buckets may lie on.
pub(super) async fn findings(address: &Address) -> Vec<Finding> {
    let examined = match RedisCache::new(address, Options::default()) {
        Ok(cache) => cache.examine_masters().await.map_err(|error| error.to_string()),
        Err(error) => Err(format!("the roots of the URL cannot be read: {error}")),
    };
    match examined {
        Ok(masters) => masters.iter().flat_map(of_master).collect(),
        Err(why) => vec![Finding::unsafe_(
            "redis",
            why,
            "the server must run, be a master, and the URL name it and a user who may connect",
        )],
    }
}

fn of_master(master: &Examined) -> [Finding; 4] {
    [version(master), eviction(master), memory(master), persistence(master)]
}

fn version(master: &Examined) -> Finding {
    let found = format!("{}, {}", master.version, master.node);
    if master.is_old {
        let advice = "no cache is begun on it: Redis 7.0 or newer, or Valkey";
        return Finding::unsafe_("redis", found, advice);
    }
    Finding::ok("redis", found)
}

fn eviction(master: &Examined) -> Finding {
    const CHECK: &str = "redis_eviction";
    match master.memory_limit {
        None => Finding::ok(CHECK, "no maxmemory"),
        Some(_) if master.may_evict() => Finding::unsafe_(
            CHECK,
            master.memory_policy.as_str(),
            "an evicted key is lost stock, and no cache is begun on it: set maxmemory-policy noeviction",
        ),
        Some(_) => Finding::ok(CHECK, master.memory_policy.as_str()),
    }
}

fn memory(master: &Examined) -> Finding {
    let found = format!("{} of {} MiB used", master.memory_used >> 20, master.memory_bound >> 20);
    if master.is_short() {
        let advice =
            "no cache is begun on it until a tenth is free: raise maxmemory, or give the machine more";
        return Finding::unsafe_("redis_memory", found, advice);
    }
    Finding::ok("redis_memory", found)
}

fn persistence(master: &Examined) -> Finding {
    const CHECK: &str = "redis_persistence";
    if let Some(failing) = master.failing {
        let advice = "no cache is begun on it: look at its log and its disk";
        return Finding::unsafe_(CHECK, format!("{failing} is not ok"), advice);
    }
    if master.is_appending {
        return Finding::ok(CHECK, "append-only file");
    }
    let advice =
        "what it accepted and forgets is answered admission_lost: appendonly yes, appendfsync always";
    Finding::warning(CHECK, "no append-only file", advice)
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn what_loses_stock_is_unsafe_and_what_loses_answers_worth_a_look() {
        let sound = Examined {
            node: "cache:6379".into(),
            version: "7.2.4".into(),
            is_old: false,
            memory_limit: Some(1_000),
            memory_policy: "noeviction".into(),
            memory_used: 100,
            memory_bound: 1_000,
            is_appending: true,
            failing: None,
        };
        assert!(of_master(&sound).iter().all(|finding| finding.level == Level::Ok));
        let levels = |change: fn(&mut Examined)| {
            let mut master = sound.clone();
            change(&mut master);
            of_master(&master).map(|finding| finding.level)
        };
        let (ok, bad) = (Level::Ok, Level::Unsafe);
        assert_eq!(levels(|master| master.is_old = true), [bad, ok, ok, ok]);
        assert_eq!(levels(|master| master.memory_policy = "allkeys-lru".into()), [ok, bad, ok, ok]);
        assert_eq!(levels(|master| master.memory_used = 950), [ok, ok, bad, ok]);
        assert_eq!(levels(|master| master.failing = Some("aof_last_write_status")), [ok, ok, ok, bad]);
        assert_eq!(levels(|master| master.is_appending = false), [ok, ok, ok, Level::Warning]);
    }
}
