//! What the database is like: SQLite, schema, soundness, log, permissions, clock, cases.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdfast_core::id::CaseId;
use holdfast_core::time::Timestamp;
use holdfast_server::time_text;
use holdfast_sqlite::{Examined, examine_file, files_of, sqlite_version};
use holdfast_store::{Clock, Schema, SystemClock};

use super::Finding;

/// A log above it was not copied back for long: a reader holds it, or the disk is too slow.
const LOG_LARGE: u64 = 64 << 20;
/// The last entry may be so far ahead of the clock; more, and the clock was set back.
const AHEAD_US: i64 = 1_000_000;

/// Looks at the database and the files beside it.
pub(super) fn findings(database: &Path) -> Vec<Finding> {
    let mut found = vec![sqlite(), permissions(database)];
    if !database.exists() {
        found.push(Finding::ok("database", "not there yet; the server makes it"));
        return found;
    }
    match examine_file(database) {
        Ok(examined) => found.extend(of_file(database, &examined, SystemClock.now())),
        Err(error) => found.push(Finding::unsafe_(
            "database",
            format!("cannot be read: {error}"),
            "restore the newest backup elsewhere and compare",
        )),
    }
    found
}

fn of_file(database: &Path, examined: &Examined, now: Timestamp) -> Vec<Finding> {
    let served = if examined.served { "a server has it open" } else { "no server has it open" };
    vec![
        Finding::ok("database", served),
        quick_check(&examined.complaints),
        schema(examined.schema),
        journal_mode(&examined.journal_mode),
        synchronous(examined.synchronous),
        log_size(database),
        clock(examined.last_ledger_at, now),
        cases(&examined.halting_cases),
    ]
}

fn sqlite() -> Finding {
    match sqlite_version() {
        (version, true) => Finding::ok("sqlite", version),
        (version, false) => {
            let advice = "below 3.51.3 a log may be reset while it is read: use the official build";
            Finding::unsafe_("sqlite", version, advice)
        }
    }
}

fn permissions(database: &Path) -> Finding {
    let mut readable = Vec::new();
    for file in files_of(database) {
        let Ok(metadata) = file.metadata() else { continue };
        let mode = metadata.permissions().mode() & 0o777;
        let shown = format!("{} {mode:03o}", file.display());
        if mode & 0o002 != 0 {
            return Finding::unsafe_("permissions", shown, "everybody may change it: chmod o-w");
        }
        // The lock and the index of the log tell nothing.
        if mode & 0o004 != 0 && (file == *database || file.as_os_str().as_encoded_bytes().ends_with(b"-wal"))
        {
            readable.push(shown);
        }
    }
    match readable.first() {
        None => Finding::ok("permissions", "for the owner and the group only"),
        Some(first) => {
            Finding::warning("permissions", first.clone(), "everybody may read who bought what: chmod o-r")
        }
    }
}

fn quick_check(complaints: &[String]) -> Finding {
    match complaints.first() {
        None => Finding::ok("quick_check", "ok"),
        Some(first) => Finding::unsafe_(
            "quick_check",
            format!("{} complaints, the first: {first}", complaints.len()),
            "the file is damaged: restore the newest backup",
        ),
    }
}

pub(super) fn schema(schema: Schema) -> Finding {
    let Schema { version, known, compatible_from } = schema;
    let found = match version {
        Some(version) => format!("version {version}, this holdfast knows {known}"),
        None => "none yet".to_owned(),
    };
    if !schema.is_usable() {
        Finding::unsafe_("schema", found, "a newer holdfast has migrated it: start that one")
    } else if version.is_some_and(|version| version > known) {
        let from = compatible_from.unwrap_or(0);
        let advice = "it may be served from, and newer features are missing: plan the upgrade";
        Finding::warning("schema", format!("{found}, usable from {from} on"), advice)
    } else {
        Finding::ok("schema", found)
    }
}

fn journal_mode(mode: &str) -> Finding {
    match mode {
        "wal" => Finding::ok("journal_mode", mode),
        // A copy that was restored and not yet served from.
        "delete" => Finding::ok("journal_mode", "delete; the server sets wal when it starts"),
        _ => Finding::unsafe_("journal_mode", mode, "another program has changed it: start the server once"),
    }
}

fn synchronous(level: i64) -> Finding {
    match level {
        2 | 3 => Finding::ok("synchronous", "FULL; the server sets it and checks it at its start"),
        _ => Finding::unsafe_(
            "synchronous",
            format!("{level}"),
            "this build of SQLite does not flush at every commit: use the official build",
        ),
    }
}

fn log_size(database: &Path) -> Finding {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    let bytes = Path::new(&name).metadata().map_or(0, |metadata| metadata.len());
    let found = format!("{} KiB", bytes >> 10);
    if bytes > LOG_LARGE {
        let advice = "something reads for very long, such as a backup or another tool: let it end";
        Finding::warning("log_size", found, advice)
    } else {
        Finding::ok("log_size", found)
    }
}

pub(super) fn clock(last: Option<Timestamp>, now: Timestamp) -> Finding {
    let Some(last) = last else { return Finding::ok("clock", "no ledger entry to compare with") };
    let ahead = last.0.saturating_sub(now.0);
    if ahead > AHEAD_US {
        Finding::unsafe_(
            "clock",
            format!("the last entry is of {}, {} s ahead of the clock", time_text(last), ahead / 1_000_000),
            "holds would not end until the clock has caught up: set the clock",
        )
    } else {
        Finding::ok("clock", format!("the last entry is of {}", time_text(last)))
    }
}

pub(super) fn cases(halting: &[CaseId]) -> Finding {
    match halting.first() {
        None => Finding::ok("cases", "none stops the sale"),
        Some(case) => Finding::unsafe_(
            "cases",
            format!("{} of kind incarnation open, such as {case}", halting.len()),
            "nothing is sold until it is resolved: POST /v1/cases/ID/resolve",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn examined() -> Examined {
        Examined {
            journal_mode: "wal".into(),
            synchronous: 2,
            complaints: Vec::new(),
            schema: Schema { version: Some(3), known: 3, compatible_from: Some(3) },
            last_ledger_at: Some(Timestamp(5_000_000)),
            halting_cases: Vec::new(),
            served: false,
        }
    }

    fn level(check: &str, change: impl FnOnce(&mut Examined)) -> Level {
        let mut examined = examined();
        change(&mut examined);
        let found = of_file(Path::new("/nowhere/a.db"), &examined, Timestamp(5_000_000));
        found.iter().find(|finding| finding.check == check).unwrap().level
    }

    #[test]
    fn each_fault_is_found() {
        let all = of_file(Path::new("/nowhere/a.db"), &examined(), Timestamp(5_000_000));
        assert!(all.iter().all(|finding| finding.level == Level::Ok), "{all:?}");
        assert_eq!(level("quick_check", |e| e.complaints.push("page 7".into())), Level::Unsafe);
        assert_eq!(level("journal_mode", |e| e.journal_mode = "off".into()), Level::Unsafe);
        assert_eq!(level("synchronous", |e| e.synchronous = 0), Level::Unsafe);
        assert_eq!(level("clock", |e| e.last_ledger_at = Some(Timestamp(7_000_000))), Level::Unsafe);
        assert_eq!(level("cases", |e| e.halting_cases.push(CaseId(1))), Level::Unsafe);
        let newer = |compatible_from| Schema { version: Some(9), known: 3, compatible_from };
        assert_eq!(level("schema", |e| e.schema = newer(None)), Level::Unsafe);
        assert_eq!(level("schema", |e| e.schema = newer(Some(4))), Level::Unsafe);
        assert_eq!(level("schema", |e| e.schema = newer(Some(3))), Level::Warning);
    }
}
