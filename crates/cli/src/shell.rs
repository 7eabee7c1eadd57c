//! `holdfast completions` and `holdfast man`: for packages.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, ValueEnum};

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  holdfast completions bash > /usr/share/bash-completion/completions/holdfast"
)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write the manual pages into a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  holdfast man /usr/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory; it must be there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the completions.
pub(crate) fn completions<C: CommandFactory>(args: &CompletionsArgs) -> Result<ExitCode> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut C::command(), "holdfast", &mut script);
    std::io::stdout().lock().write_all(&script).context("standard output is closed")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages.
pub(crate) fn man<C: CommandFactory>(args: &ManArgs) -> Result<ExitCode> {
    let shown = || args.directory.display().to_string();
    clap_mangen::generate_to(C::command(), &args.directory).with_context(shown)?;
    Ok(ExitCode::SUCCESS)
}
