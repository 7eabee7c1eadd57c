//! What commands share: formats, targets, exit statuses, progress.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::serve::Hidden;
use anyhow::{Context, Result};
use clap::ValueEnum;
use holdfast_client::{Client, Options};
use holdfast_core::time::Timestamp;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The check was made and failed.
pub(crate) const CHECK_FAILED: u8 = 1;

/// Wrong usage, or the command could not run.
pub(crate) const CANNOT_RUN: u8 = 2;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs: one JSON document on standard output
    Json,
}

/// A running server.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// The running server, such as http://127.0.0.1:8080
    #[arg(long, env = "HOLDFAST_TARGET", value_name = "URL")]
    target: Option<String>,
    /// The key for it
    #[arg(long, env = "HOLDFAST_KEY", hide_env_values = true)]
    key: Option<Hidden>,
    /// The certificates, in PEM form, that a server behind https:// may be vouched for by; without it those
    /// that the system trusts
    #[arg(long, env = "HOLDFAST_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Target {
    /// The server that is named. A variable that is set to nothing names none.
    pub(crate) fn named(&self) -> Option<&str> {
        self.target.as_deref().filter(|target| !target.is_empty())
    }

    /// A client of the server; an error if none is named.
    pub(crate) fn client(&self) -> Result<Client> {
        let target = self.named().context("name a running server with --target or HOLDFAST_TARGET")?;
        let key = self.key.as_ref().map(|key| key.0.clone()).filter(|key| !key.is_empty());
        let ca = self.ca.as_deref().filter(|path| !path.as_os_str().is_empty());
        let ca_pem =
            ca.map(|path| std::fs::read(path).with_context(|| path.display().to_string())).transpose()?;
        Ok(Client::with_options(target, Options { key, ca_pem, ..Options::default() })?)
    }
}

/// Exit 0 or, where a check failed, 1.
pub(crate) fn verdict(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::from(CHECK_FAILED) }
}

/// Prints a result on standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("standard output is closed")
}

/// Prints a result as JSON on standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints a result in the form that was asked for.
pub(crate) fn show<T: serde::Serialize>(
    format: Format,
    value: &T,
    text: impl FnOnce(&T) -> Result<String>,
) -> Result<()> {
    match format {
        Format::Json => print_json(value),
        Format::Text => print(text(value)?.trim_end()),
    }
}

/// Reads a time with its offset, as the command line has it.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    holdfast_server::read_time(text).map_err(str::to_owned)
}

/// Says something on standard error.
pub(crate) fn complain(text: &str) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{text}")
}

/// A progress bar on standard error; nothing is drawn where that is no terminal.
pub(crate) fn progress(steps: usize, what: &'static str) -> ProgressBar {
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(u64::try_from(steps).ok(), target).with_message(what);
    match ProgressStyle::with_template("{msg:<16} {wide_bar} {pos}/{len} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
