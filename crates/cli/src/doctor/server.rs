//! What a PostgreSQL server and the database in it are like: settings on which the promises rest, schema, clock,
//! cases.

use holdfast_core::time::Timestamp;
use holdfast_postgres::{Address, Examined, examine};
use holdfast_store::{Clock, SystemClock};

use super::Finding;
use super::stored;

/// Connections that other programs and the server's own upkeep need beside ours.
const SPARE_CONNECTIONS: usize = 10;
/// How far the server's clock may be from this machine's before somebody should look: it is the server's that
/// decides, and this machine's that people read.
const CLOCKS_APART_US: u64 = 1_000_000;

/// Looks at the server and the database.
pub(super) async fn findings(address: &Address) -> Vec<Finding> {
    match Box::pin(examine(address)).await {
        Ok(examined) => of_server(address, &examined, SystemClock.now()),
        Err(error) => vec![Finding::unsafe_(
            "database",
            format!("cannot be asked: {error}"),
            "the server must run, and the URL name it, its database and a user who may connect",
        )],
    }
}

fn of_server(address: &Address, examined: &Examined, now: Timestamp) -> Vec<Finding> {
    let value = |name: &str| {
        examined.settings.iter().find(|setting| setting.name == name).and_then(|s| s.value.clone())
    };
    vec![
        version(value("server_version")),
        flag("fsync", value("fsync"), "what is answered can be lost with the power: set fsync = on"),
        flag(
            "full_page_writes",
            value("full_page_writes"),
            "a power cut can tear a page: set full_page_writes = on",
        ),
        synchronous_commit(value("synchronous_commit")),
        standbys(address, value("synchronous_standby_names")),
        checksums(value("data_checksums")),
        connections(address, value("max_connections")),
        stored::schema(examined.schema),
        clocks(examined.now, now),
        stored::clock(examined.last_ledger_at, examined.now),
        stored::cases(&examined.halting_cases),
    ]
}

fn version(value: Option<String>) -> Finding {
    let version = value.unwrap_or_default();
    let major = version.split(|c: char| !c.is_ascii_digit()).next().and_then(|text| text.parse::<u32>().ok());
    if major.is_some_and(|major| major >= 15) {
        Finding::ok("postgresql", version)
    } else {
        Finding::unsafe_("postgresql", version, "PostgreSQL 15 or newer is what it is tested with")
    }
}

fn flag(check: &'static str, value: Option<String>, advice: &'static str) -> Finding {
    match value.as_deref() {
        Some("on") => Finding::ok(check, "on"),
        other => Finding::unsafe_(check, other.unwrap_or("unknown"), advice),
    }
}

fn synchronous_commit(value: Option<String>) -> Finding {
    match value.as_deref() {
        Some(good @ ("on" | "remote_apply")) => Finding::ok("synchronous_commit", good),
        Some("remote_write") => Finding::warning(
            "synchronous_commit",
            "remote_write",
            "a standby that loses power loses what was answered: set synchronous_commit = on",
        ),
        other => Finding::unsafe_(
            "synchronous_commit",
            other.unwrap_or("unknown"),
            "what is answered can be lost; a server refuses to start: set synchronous_commit = on",
        ),
    }
}

fn standbys(address: &Address, value: Option<String>) -> Finding {
    let names = value.unwrap_or_default();
    if !names.is_empty() {
        return Finding::ok("standbys", names);
    }
    if address.is_replicated() {
        let advice =
            "a failover loses what the standby has not: set synchronous_standby_names, best ANY 1 of two";
        return Finding::unsafe_("standbys", "none is waited for, and the URL names several servers", advice);
    }
    let advice = "if that disk is lost so is everything since the last backup";
    Finding::warning("standbys", "none is waited for", advice)
}

fn checksums(value: Option<String>) -> Finding {
    match value.as_deref() {
        Some("on") => Finding::ok("data_checksums", "on"),
        other => Finding::warning(
            "data_checksums",
            other.unwrap_or("unknown"),
            "a disk that lies is not noticed: pg_checksums --enable while the server is stopped",
        ),
    }
}

fn connections(address: &Address, value: Option<String>) -> Finding {
    let most = value.and_then(|value| value.parse::<usize>().ok()).unwrap_or(0);
    let ours = address.connections;
    let found = format!("{most} on the server, {ours} for each node");
    if ours + SPARE_CONNECTIONS <= most {
        Finding::ok("max_connections", found)
    } else {
        let advice = "raise max_connections, or lower connections= in the URL; all nodes together must fit";
        Finding::warning("max_connections", found, advice)
    }
}

fn clocks(server: Timestamp, here: Timestamp) -> Finding {
    let apart = server.0.abs_diff(here.0);
    let found = format!("{} ms from this machine's", apart / 1_000);
    if apart <= CLOCKS_APART_US {
        Finding::ok("server_clock", found)
    } else {
        let advice = "holds end by the server's clock: keep both with NTP";
        Finding::warning("server_clock", found, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn settings_that_lose_answers_are_unsafe() {
        let one = address("postgres://a@b/c");
        let two = address("postgres://a@b,d/c?connections=95");
        let on = |text: &str| Some(text.to_owned());
        for (finding, level) in [
            (flag("fsync", on("off"), ""), Level::Unsafe),
            (flag("fsync", None, ""), Level::Unsafe),
            (synchronous_commit(on("local")), Level::Unsafe),
            (synchronous_commit(on("remote_write")), Level::Warning),
            (synchronous_commit(on("remote_apply")), Level::Ok),
            (standbys(&one, on("")), Level::Warning),
            (standbys(&two, on("")), Level::Unsafe),
            (standbys(&two, on("ANY 1 (s1, s2)")), Level::Ok),
            (checksums(on("off")), Level::Warning),
            (connections(&one, on("100")), Level::Ok),
            (connections(&two, on("100")), Level::Warning),
            (version(on("14.9")), Level::Unsafe),
            (version(on("15.20 (Debian 15.20-1)")), Level::Ok),
            (clocks(Timestamp(5_000_000), Timestamp(0)), Level::Warning),
        ] {
            assert_eq!(finding.level, level, "{finding:?}");
        }
    }
}
