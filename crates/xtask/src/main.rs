//! Chores of the repository: `cargo xtask tidy` checks the house, `cargo xtask docs` writes what is
//! generated. Both run as tests too, so that CI finds what was forgotten.

mod decisions;
mod docs;
mod kept;
mod reconciliation;
mod tidy;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let mut faults = tidy::faults(&root()?)?;
            faults.extend(kept::faults(&root()?)?);
            for fault in &faults {
                eprintln!("{fault}");
            }
            if !faults.is_empty() {
                bail!("{} faults", faults.len());
            }
            Ok(())
        }
        Some("docs") => docs::write(&root()?),
        Some(_) | None => bail!("usage: cargo xtask tidy|docs"),
    }
}

/// The repository.
fn root() -> Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).context("the repository's root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let faults = tidy::faults(&root().unwrap()).unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn nothing_takes_away_what_must_be_kept() {
        let faults = kept::faults(&root().unwrap()).unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn generated_documents_are_up_to_date() {
        let stale = docs::stale(&root().unwrap()).unwrap();
        assert!(stale.is_empty(), "run `cargo xtask docs`: {stale:?}");
    }
}
