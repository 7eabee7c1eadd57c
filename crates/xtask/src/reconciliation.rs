//! The table of differences, from the core: it stands in two pages that are otherwise written by hand.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use holdfast_core::case::CaseAction;
use holdfast_core::reconcile::RULES;

/// The pages, and the first line of the table in each.
const PAGES: [(&str, &str); 2] = [
    ("docs/reconciliation.md", "| class | proof | disposition | remedy | a person may decide |"),
    ("docs/zh/reconciliation.md", "| 类 | 证明 | 处置 | 办法 | 人可以决定 |"),
];

/// Where the table begins and ends.
const BEGIN: &str = "<!-- from holdfast_core::reconcile::RULES by cargo xtask docs -->\n";
const END: &str = "<!-- end -->\n";

/// The pages as they should be.
pub(crate) fn pages(root: &Path) -> Result<Vec<(&'static str, String)>> {
    let page = |(path, head): &(&'static str, &str)| {
        let text = fs::read_to_string(root.join(path)).with_context(|| (*path).to_owned())?;
        let Some((before, rest)) = text.split_once(BEGIN) else { bail!("{path}: no place for the table") };
        let Some((_, after)) = rest.split_once(END) else { bail!("{path}: the table has no end") };
        Ok((*path, format!("{before}{BEGIN}{}{END}{after}", table(head))))
    };
    PAGES.iter().map(page).collect()
}

fn table(head: &str) -> String {
    let mut text = format!("{head}\n|---|---|---|---|---|\n");
    for rule in &RULES {
        let actions: Vec<_> = rule.actions.iter().copied().map(CaseAction::as_str).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | `{}` |",
            rule.class.as_str(),
            rule.proof,
            rule.disposition.as_str(),
            rule.remedy,
            actions.join("`, `")
        );
    }
    text
}
