//! What must be kept for ever (requirement C6): no statement in the product deletes or replaces its rows.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Tables whose rows are never deleted. A key never becomes new again, so its order stays; the rest is the
/// evidence of what happened.
const KEPT: &[&str] = &[
    "orders",
    "ledger",
    "payment",
    "payment_claim",
    "adjustment",
    "stock_import",
    "approval",
    "campaign",
    "pool",
    "bucket",
    "cases",
    "discrepancy",
    "past_incarnation",
    "operator_action",
    "api_key",
];

/// How SQL takes rows away, with the table's name to follow.
const TAKES: &[&str] =
    &["delete from ", "drop table ", "drop table if exists ", "replace into ", "truncate "];

/// Statements that would take away what must stay.
pub(crate) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in sources(&root.join("crates"))? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        faults.extend(
            taken(product(&text))
                .into_iter()
                .map(|what| format!("{name}: {what}: its rows are kept for ever")),
        );
    }
    Ok(faults)
}

/// Sources of the product with SQL in them. Tests break things on purpose.
fn sources(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "tests" | "xtask" | "target") {
                files.extend(sources(&path)?);
            }
        } else if name.ends_with(".rs") || name.ends_with(".sql") {
            files.push(path);
        }
    }
    Ok(files)
}

/// A file without the tests at its end, which try what the database forbids.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// Every such statement in a text, in whatever way it is written over lines.
fn taken(text: &str) -> Vec<String> {
    let words: Vec<_> =
        text.split(|c: char| c.is_whitespace() || c == '\\').filter(|word| !word.is_empty()).collect();
    let flat = words.join(" ").to_lowercase();
    let mut found = Vec::new();
    for take in TAKES {
        for (at, _) in flat.match_indices(take) {
            let rest = flat.get(at + take.len()..).unwrap_or_default().trim_start_matches(['"', '`', '[']);
            let table: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if KEPT.contains(&table.as_str()) {
                found.push(format!("{take}{table}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_found_however_it_is_written() {
        for bad in [
            "DELETE FROM orders WHERE 1",
            "delete\n   from \\\n   ledger",
            "x = \"DELETE FROM payment\";",
            "INSERT OR REPLACE INTO orders VALUES (1)",
            "DROP TABLE IF EXISTS adjustment;",
            "DELETE FROM \"orders\"",
        ] {
            assert_eq!(taken(bad).len(), 1, "{bad}");
        }
        for good in
            ["DELETE FROM account_usage", "BEFORE DELETE ON ledger", "DELETE FROM orders_due", "SELECT 1"]
        {
            assert!(taken(good).is_empty(), "{good}");
        }
    }
}
