//! Checks of the house, by rule rather than by hope.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Longest file and longest function, in lines.
const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// Each room and the rooms that it may look into. Arrows point to core; core points nowhere.
const ARROWS: &[(&str, &[&str])] = &[
    ("holdfast-core", &[]),
    ("holdfast-wire", &[]),
    ("holdfast-metrics", &["holdfast-core"]),
    ("holdfast-store", &["holdfast-core", "holdfast-metrics"]),
    ("holdfast-sqlite", &["holdfast-core", "holdfast-metrics", "holdfast-store"]),
    ("holdfast-postgres", &["holdfast-core", "holdfast-metrics", "holdfast-store"]),
    ("holdfast-engine", &["holdfast-core", "holdfast-metrics", "holdfast-store"]),
    (
        "holdfast-server",
        &["holdfast-core", "holdfast-engine", "holdfast-metrics", "holdfast-store", "holdfast-wire"],
    ),
    ("holdfast-client", &["holdfast-wire"]),
    ("holdfast-drill", &["holdfast-client", "holdfast-core", "holdfast-wire"]),
    ("holdfast-provider", &["holdfast-core", "holdfast-engine"]),
    ("holdfast-redis", &["holdfast-core", "holdfast-engine"]),
    ("holdfast-sink", &["holdfast-core", "holdfast-engine"]),
    ("holdfast-testkit", &[]),
    (
        "holdfast",
        &[
            "holdfast-client",
            "holdfast-core",
            "holdfast-drill",
            "holdfast-engine",
            "holdfast-postgres",
            "holdfast-provider",
            "holdfast-redis",
            "holdfast-server",
            "holdfast-sink",
            "holdfast-sqlite",
            "holdfast-store",
            "holdfast-testkit",
            "holdfast-wire",
        ],
    ),
    ("xtask", &["holdfast-core"]),
];

/// Outside crates and the only rooms in which they appear.
const AT_HOME: &[(&str, &str)] = &[
    ("rusqlite", "holdfast-sqlite"),
    ("tokio-postgres", "holdfast-postgres"),
    ("tokio-postgres-rustls", "holdfast-postgres"),
    ("deadpool", "holdfast-postgres"),
    ("redis", "holdfast-redis"),
    ("axum", "holdfast-server"),
    ("axum-server", "holdfast-server"),
    ("tower-http", "holdfast-server"),
    ("reqwest", "holdfast-client"),
    ("reqwest", "holdfast-provider"),
    ("reqwest", "holdfast-sink"),
    ("async-nats", "holdfast-sink"),
    ("clap", "holdfast"),
    ("indicatif", "holdfast"),
    ("mimalloc", "holdfast"),
    ("prometheus-client", "holdfast-metrics"),
];

/// Everything that is not as it should be.
pub(crate) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let crates = root.join("crates");
    for entry in fs::read_dir(&crates).context("crates/")? {
        check_manifest(&entry?.path().join("Cargo.toml"), &mut faults)?;
    }
    for file in rust_files(&crates)? {
        let text = fs::read_to_string(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        check_lengths(&name, &text, &mut faults);
    }
    Ok(faults)
}

fn check_manifest(path: &Path, faults: &mut Vec<String>) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let manifest: toml::Table = text.parse().with_context(|| path.display().to_string())?;
    let name =
        manifest.get("package").and_then(|p| p.get("name")).and_then(|n| n.as_str()).unwrap_or_default();
    if manifest.get("lints").and_then(|l| l.get("workspace")).and_then(toml::Value::as_bool) != Some(true) {
        faults.push(format!("{name}: does not take the workspace's lints"));
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| *room == name) else {
        faults.push(format!("{name}: a room that the table of arrows does not know"));
        return Ok(());
    };
    let dependencies: BTreeSet<&str> = manifest
        .get("dependencies")
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().map(String::as_str).collect())
        .unwrap_or_default();
    for dependency in &dependencies {
        if dependency.starts_with("holdfast") && !allowed.contains(dependency) {
            faults.push(format!("{name}: may not look into {dependency}"));
        }
        let mut homes = AT_HOME.iter().filter(|(outside, _)| outside == dependency).peekable();
        if let Some((_, home)) = homes.peek()
            && !homes.any(|(_, home)| *home == name)
        {
            faults.push(format!("{name}: {dependency} belongs to {home}"));
        }
    }
    Ok(())
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

fn check_lengths(name: &str, text: &str, faults: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > FILE_LINES_MAX {
        faults.push(format!("{name}: {} lines", lines.len()));
    }
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let is_function =
            ["fn ", "pub fn ", "async fn ", "pub async fn ", "pub(crate) fn ", "pub(super) fn "]
                .iter()
                .chain(&["pub(crate) async fn ", "pub(super) async fn ", "const fn ", "pub const fn "])
                .any(|begin| code.starts_with(begin));
        if !is_function || line.trim_end().ends_with(['}', ';']) {
            continue;
        }
        // The code is formatted: a function ends at the brace under its first letter.
        let indent = line.len() - code.len();
        let end = format!("{}}}", " ".repeat(indent));
        let length = lines.iter().skip(start).position(|l| *l == end).map_or(0, |at| at + 1);
        if length > FUNCTION_LINES_MAX {
            faults.push(format!("{name}:{}: a function of {length} lines", start + 1));
        }
    }
}
