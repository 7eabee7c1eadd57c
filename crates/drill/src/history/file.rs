//! A history as a file: JSON Lines, first what was drilled, then an exchange a line.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::Exchange;
use crate::outcome::{Environment, Parameters, Window};

/// The form of the file.
const FORM: &str = "holdfast drill history 1";

/// What a history belongs to: with it, it can be judged again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The scenario.
    pub scenario: String,
    /// The campaign in which it was bought.
    pub campaign: String,
    /// When it began, RFC 3339.
    pub began_at: String,
    /// What was drilled.
    pub environment: Environment,
    /// With what.
    pub parameters: Parameters,
    /// When what was broken.
    pub windows: Vec<Window>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    form: String,
    asked: Asked,
}

/// Writes a history.
pub fn write(path: &Path, asked: &Asked, exchanges: &[Exchange]) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut out = BufWriter::new(file);
    serde_json::to_writer(&mut out, &Head { form: FORM.to_owned(), asked: asked.clone() })?;
    out.write_all(b"\n")?;
    write_lines(out, exchanges).with_context(|| path.display().to_string())
}

/// Writes exchanges alone: a share that another process puts together with the rest.
pub(crate) fn write_exchanges(path: &Path, exchanges: &[Exchange]) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    write_lines(BufWriter::new(file), exchanges).with_context(|| path.display().to_string())
}

fn write_lines(mut out: impl Write, exchanges: &[Exchange]) -> Result<()> {
    for exchange in exchanges {
        serde_json::to_writer(&mut out, exchange)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Reads what [`write_exchanges`] wrote.
pub(crate) fn read_exchanges(path: &Path) -> Result<Vec<Exchange>> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    read_lines(BufReader::new(file).lines(), path)
}

fn read_lines(lines: impl Iterator<Item = std::io::Result<String>>, path: &Path) -> Result<Vec<Exchange>> {
    let mut exchanges = Vec::new();
    for (number, line) in lines.enumerate() {
        let at = || format!("{}, exchange {}", path.display(), number.saturating_add(1));
        exchanges.push(serde_json::from_str(&line?).with_context(at)?);
    }
    Ok(exchanges)
}

/// Reads one back.
pub fn read(path: &Path) -> Result<(Asked, Vec<Exchange>)> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    let mut lines = BufReader::new(file).lines();
    let wrong = || format!("{} is not a history of a drill", path.display());
    let head = lines.next().with_context(wrong)??;
    let head: Head = serde_json::from_str(&head).with_context(wrong)?;
    ensure!(
        head.form == FORM,
        "{}: its form is {:?}, and this version reads {FORM:?}",
        path.display(),
        head.form
    );
    Ok((head.asked, read_lines(lines, path)?))
}
