//! `holdfast doctor`: what is unsafe here, told before the sale.

mod cache;
mod machine;
mod server;
mod stored;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::database;
use crate::output::{self, Format};

/// Name what is unsafe about a database, the machine that it is on, and the Redis of the cached path
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It changes nothing but a small file that it flushes 50 times beside a SQLite database and \
                        removes.\nIt may run beside a server. Exit status 1 if anything is unsafe; what is \
                        only worth a look is no failure.\n\n\
                        Example:\n  holdfast doctor --database sqlite:shop.db --format json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    authority: database::Named,
    /// Redis or Valkey, if the server has one for pools on the cached path
    #[arg(long, env = "HOLDFAST_REDIS", hide_env_values = true, value_name = "URL")]
    redis: Option<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    /// As it should be.
    Ok,
    /// Worth a look before the sale.
    Warning,
    /// Do not sell like this.
    Unsafe,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    check: &'static str,
    level: Level,
    found: String,
    /// What to do; none where all is well.
    advice: Option<&'static str>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, found: found.into(), advice: None }
    }

    fn warning(check: &'static str, found: impl Into<String>, advice: &'static str) -> Self {
        Self { check, level: Level::Warning, found: found.into(), advice: Some(advice) }
    }

    fn unsafe_(check: &'static str, found: impl Into<String>, advice: &'static str) -> Self {
        Self { check, level: Level::Unsafe, found: found.into(), advice: Some(advice) }
    }
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    ok: bool,
    database: String,
    findings: Vec<Finding>,
}

/// Looks, prints, and says by the exit status whether it is safe.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let url = args.authority.url()?;
    let redis = args.redis.as_deref().map(holdfast_redis::Address::parse).transpose()?;
    let mut findings = match url.clone() {
        database::Url::Sqlite(path) => tokio::task::spawn_blocking(move || of_file(&path)).await?,
        database::Url::Postgres(address) => server::findings(&address).await,
    };
    if let Some(redis) = redis {
        findings.extend(cache::findings(&redis).await);
    }
    let diagnosis = Diagnosis::new(shown(&url), findings);
    match args.format {
        Format::Json => output::print_json(&diagnosis)?,
        Format::Text => output::print(&text(&diagnosis))?,
    }
    Ok(output::verdict(diagnosis.ok))
}

impl Diagnosis {
    fn new(database: String, findings: Vec<Finding>) -> Self {
        let ok = findings.iter().all(|finding| finding.level != Level::Unsafe);
        Self { ok, database, findings }
    }
}

/// A file by its name, a server by its address.
fn shown(url: &database::Url) -> String {
    match url {
        database::Url::Sqlite(path) => path.display().to_string(),
        database::Url::Postgres(address) => address.to_string(),
    }
}

fn of_file(database: &Path) -> Vec<Finding> {
    let parent = database.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    let mut findings = machine::findings(directory);
    findings.extend(stored::findings(database));
    findings
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut lines = Vec::new();
    for Finding { check, level, found, advice } in &diagnosis.findings {
        let level = match level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Unsafe => "UNSAFE",
        };
        lines.push(format!("{level:<8} {check:<16} {found}"));
        lines.extend(advice.map(|advice| format!("{:<25} {advice}", "")));
    }
    lines.push(if diagnosis.ok { "nothing unsafe".to_owned() } else { "do not sell like this".to_owned() });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_alone_fails() {
        let one = |finding: Finding| text(&Diagnosis::new("a.db".into(), vec![finding]));
        assert!(
            one(Finding::warning("free_space", "5 %", "make room")).ends_with("make room\nnothing unsafe")
        );
        assert!(one(Finding::unsafe_("file_system", "nfs", "move")).ends_with("do not sell like this"));
        assert_eq!(one(Finding::ok("clock", "fine")).lines().count(), 2);
    }

    #[test]
    fn a_database_that_is_not_there_yet_is_judged_by_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let findings = of_file(&directory.path().join("new.db"));
        let checks: Vec<_> = findings.iter().map(|finding| finding.check).collect();
        assert_eq!(
            checks,
            ["file_system", "free_space", "flush", "open_files", "sqlite", "permissions", "database"]
        );
        let unsafe_: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Unsafe).collect();
        // Where tests run the directory may be in memory or in layers; nothing else may be unsafe.
        assert!(unsafe_.iter().all(|finding| finding.check == "file_system"), "{unsafe_:?}");
    }
}
