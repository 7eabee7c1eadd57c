//! `holdfast diagnose`: what is wrong with a sale.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use holdfast_wire::{DiagnosisView, FigureView, FindingView};

use crate::output::{self, Format, Target};

/// Tell what is wrong with a sale: locks, commits, overload, repeats, races, what is not landed or delivered
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It asks one node for what it saw in the last half hour; ask every node. Exit status 1 if \
                        something that is wrong goes on.\n\n\
                        Example:\n  holdfast diagnose --target http://127.0.0.1:8080"
)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Asks, prints, and says by the exit status whether all is well.
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let diagnosis = args.target.client()?.diagnose().await?;
    output::show(args.format, &diagnosis, text)?;
    Ok(output::verdict(diagnosis.healthy))
}

fn text(diagnosis: &DiagnosisView) -> Result<String> {
    let mut out = String::new();
    let verdict = if diagnosis.healthy { "healthy" } else { "NOT HEALTHY" };
    writeln!(out, "{verdict} at {}, by {} samples of a second", diagnosis.at, diagnosis.samples)?;
    diagnosis.findings.iter().try_for_each(|finding| write_finding(&mut out, finding))?;
    writeln!(out, "the last minute, and what is usual")?;
    write_figures(&mut out, &diagnosis.grounds)?;
    Ok(out)
}

fn write_finding(out: &mut String, finding: &FindingView) -> Result<()> {
    match &finding.until {
        Some(until) => writeln!(out, "{} from {} to {until}", finding.kind, finding.since)?,
        None => writeln!(out, "{} since {}", finding.kind, finding.since)?,
    }
    writeln!(out, "  {}", finding.text)?;
    for onset in &finding.timeline {
        writeln!(out, "  {} {}", onset.at, onset.text)?;
    }
    write_figures(out, &finding.figures)?;
    writeln!(out, "  next: {} ({})", finding.next_step, finding.see)?;
    Ok(())
}

fn write_figures(out: &mut String, figures: &[FigureView]) -> Result<()> {
    for FigureView { name, value, usual } in figures {
        write!(out, "  {name:<28} {value:>12}")?;
        match usual {
            Some(usual) => writeln!(out, "   usually {usual}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnosis_is_told_in_words() {
        let diagnosis = r#"{"at":"T9","healthy":false,"samples_from":"T1","samples":90,"findings":[
            {"kind":"lock_queueing","is_trouble":true,"since":"T5","until":null,"text":"batches wait",
            "figures":[{"name":"lock_wait_p99_ms","value":500.0,"usual":1.5}],
            "timeline":[{"at":"T4","text":"the entry backs up"}],"next_step":"look","see":"docs/diagnose.md#lock_queueing"},
            {"kind":"state_race","is_trouble":true,"since":"T2","until":"T3","text":"late","figures":[],"timeline":[],
            "next_step":"longer","see":"docs/diagnose.md#state_race"}],
            "grounds":[{"name":"orders_per_second","value":100.0,"usual":null}]}"#;
        let expected = "\
NOT HEALTHY at T9, by 90 samples of a second
lock_queueing since T5
  batches wait
  T4 the entry backs up
  lock_wait_p99_ms                      500   usually 1.5
  next: look (docs/diagnose.md#lock_queueing)
state_race from T2 to T3
  late
  next: longer (docs/diagnose.md#state_race)
the last minute, and what is usual
  orders_per_second                     100
";
        assert_eq!(text(&serde_json::from_str(diagnosis).unwrap()).unwrap(), expected);
    }
}
