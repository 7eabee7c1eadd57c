//! The `holdfast` binary: command line, configuration, wiring.

mod approval;
mod archive;
mod backup;
mod bench;
mod cancel;
mod chain;
mod config;
mod database;
mod demo;
mod diagnose;
mod doctor;
mod drill;
mod explain;
mod export;
mod import;
mod key;
mod migrate;
mod notify;
mod output;
mod plan;
mod private;
mod reconcile;
mod replay;
mod serve;
mod shell;
mod sink;
mod sinks;
mod state_file;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Inventory reservation for flash sales: hold, pay, sell; never too much, and every unit accounted for.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, arg_required_else_help = true)]
#[command(after_help = "Exit status: 0 done; 1 the check failed; 2 wrong usage, or it could not run.\n\n\
                        Example:\n  holdfast serve --auth off")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Demo(demo::Args),
    Verify(verify::Args),
    Archive(archive::Args),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Migrate(migrate::Args),
    Doctor(doctor::Args),
    Diagnose(diagnose::Args),
    Replay(replay::Args),
    /// Bring stock in from a file
    #[command(subcommand)]
    Import(import::Command),
    /// Write what there is to a file
    #[command(subcommand)]
    Export(export::Command),
    /// Give back what many orders hold
    #[command(subcommand)]
    Cancel(cancel::Command),
    /// See and decide work that waits for a second person
    #[command(subcommand)]
    Approval(approval::Command),
    Reconcile(reconcile::ReconcileArgs),
    /// See what reconciliation found
    #[command(subcommand)]
    Discrepancy(reconcile::DiscrepancyCommand),
    /// See and decide what needs a person
    #[command(subcommand)]
    Case(reconcile::CaseCommand),
    /// Measure what this machine can do
    #[command(subcommand)]
    Bench(bench::Command),
    Plan(plan::Args),
    /// Drive load, break things, and hold every answer against the ledger
    #[command(subcommand)]
    Drill(drill::Command),
    /// Make, list and revoke keys of a running server
    #[command(subcommand)]
    Key(key::Command),
    /// See and steer where a running server delivers order events
    #[command(subcommand)]
    Sink(sink::Command),
    /// Show how something came to stand where it stands
    #[command(subcommand)]
    Explain(explain::Command),
    /// See what a server would be told
    #[command(subcommand)]
    Config(config::Command),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

/// In a rush the system's allocator took an eighth of all processor time, this one a fraction of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match read().and_then(|cli| run(cli.command)) {
        Ok(code) => code,
        Err(error) => {
            // The exit status says the same where standard error is closed too.
            let _ = output::complain(&format!("error: {error:#}"));
            ExitCode::from(output::CANNOT_RUN)
        }
    }
}

/// Reads the command line, and for `serve` the configuration file. Wrong usage ends the process.
fn read() -> Result<Cli> {
    let matches = config::matches(Cli::command(), std::env::args_os().collect())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.exit())
}

fn run(command: Command) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => Box::pin(serve::run(args)).await,
            Command::Verify(args) => Box::pin(verify::run(args)).await,
            Command::Archive(args) => Box::pin(archive::run(args)).await,
            Command::Backup(args) => Box::pin(backup::backup(args)).await,
            Command::Restore(args) => Box::pin(backup::restore(args)).await,
            Command::Migrate(args) => Box::pin(migrate::run(args)).await,
            Command::Diagnose(args) => Box::pin(diagnose::run(args)).await,
            Command::Doctor(args) => Box::pin(doctor::run(args)).await,
            Command::Replay(args) => Box::pin(replay::run(args)).await,
            Command::Import(command) => Box::pin(import::run(command)).await,
            Command::Export(command) => Box::pin(export::run(command)).await,
            Command::Cancel(command) => Box::pin(cancel::run(command)).await,
            Command::Approval(command) => Box::pin(approval::run(command)).await,
            Command::Reconcile(args) => Box::pin(reconcile::reconcile(args)).await,
            Command::Discrepancy(command) => Box::pin(reconcile::discrepancies(command)).await,
            Command::Case(command) => Box::pin(reconcile::cases(command)).await,
            Command::Demo(args) => Box::pin(demo::run(args)).await,
            Command::Bench(command) => Box::pin(bench::run(command)).await,
            Command::Plan(args) => Box::pin(plan::run(args)).await,
            Command::Drill(command) => Box::pin(drill::run(command)).await,
            Command::Key(command) => Box::pin(key::run(command)).await,
            Command::Sink(command) => Box::pin(sink::run(command)).await,
            Command::Explain(command) => Box::pin(explain::run(command)).await,
            Command::Config(command) => config::run::<Cli>(command),
            Command::Completions(args) => shell::completions::<Cli>(&args),
            Command::Man(args) => shell::man::<Cli>(&args),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &clap::Command, found: &mut Vec<clap::Command>) {
        if command.get_subcommands().next().is_none() {
            found.push(command.clone());
        }
        command.get_subcommands().for_each(|sub| leaves(sub, found));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        let mut found = Vec::new();
        leaves(&Cli::command(), &mut found);
        assert!(found.len() >= 5);
        for mut command in found {
            let help = command.render_help().to_string();
            assert!(help.contains("Example:\n  holdfast "), "{help}");
        }
    }

    #[test]
    fn wrong_usage_is_exit_2() {
        for line in [
            "holdfast nonsense",
            "holdfast replay f.csv",
            "holdfast replay f.csv --preset online-retail --columns order=a,sku=b,quantity=c",
            "holdfast replay f.csv --preset online-retail --concurrency 0",
            "holdfast import stock f.csv",
            "holdfast key create --name n --role boss",
            "holdfast key create --role buyer",
            "holdfast key revoke",
            "holdfast cancel orders --campaign c --operator o",
            "holdfast cancel orders --campaign c --operator o --reason r --state sold",
            "holdfast approval approve adjustment:a-1 --operator o",
            "holdfast approval list --state open",
            "holdfast discrepancy list --state gone",
            "holdfast case resolve id --action forget --operator o --reason r",
            "holdfast serve --tls-cert a.pem",
            "holdfast explain order --target http://a",
            "holdfast explain order id --order-no n --campaign c",
            "holdfast explain order --order-no n",
            "holdfast archive spring",
            "holdfast explain pool",
            "holdfast explain pool p --at yesterday",
            "holdfast serve --listen nowhere",
            "holdfast drill run nonsense --target http://a",
            "holdfast drill run hot-pool --target http://a --seconds 0",
            "holdfast drill check --target http://a",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}: {error}");
        }
    }
}
