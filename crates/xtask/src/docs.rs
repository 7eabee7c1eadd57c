//! Documents that are generated from the code, so that they cannot drift.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use holdfast_core::invariant::Invariant;
use holdfast_core::order::State;
use holdfast_core::table::{Code, Mark, Stock, TABLE, Then, Trigger, When, rules};

use crate::{decisions, reconciliation};

/// Path and text of each.
fn documents(root: &Path) -> Result<Vec<(&'static str, String)>> {
    let mut documents = vec![("docs/states.md", states())];
    documents.extend(decisions::pages()?);
    documents.extend(reconciliation::pages(root)?);
    Ok(documents)
}

/// Writes every document. Those of the server are written by its own test, which also keeps them: looking
/// into the server would make every chore wait for its build.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (path, text) in documents(root)? {
        fs::write(root.join(path), text).with_context(|| path.to_owned())?;
    }
    let test = ["test", "--quiet", "--package", "holdfast-server", "--lib", "the_documents_are_what"];
    let mut command = Command::new(env!("CARGO"));
    command.args(test).env("HOLDFAST_UPDATE_DOCS", "1").current_dir(root);
    let status = command.status().context("cargo test")?;
    if !status.success() {
        bail!("the server's documents were not written");
    }
    Ok(())
}

/// The documents that are not as the code says.
#[cfg(test)]
pub(crate) fn stale(root: &Path) -> Result<Vec<&'static str>> {
    let mut stale = Vec::new();
    for (path, text) in documents(root)? {
        if fs::read_to_string(root.join(path)).with_context(|| path.to_owned())? != text {
            stale.push(path);
        }
    }
    Ok(stale)
}

fn states() -> String {
    let mut text = String::from(
        "# States and commands\n\n\
         Generated from `holdfast_core::table` by `cargo xtask docs`; do not edit.\n\n\
         Rows are read top down, the first match wins. *End* is the end of the hold; *grace* follows it\n\
         (`release_grace_ms`, or `notice_grace_seconds` with `deadline_basis: provider_paid_at`). A repeat with\n\
         the same key (order number, attempt, event, refund) is found before the table is asked: nothing moves,\n\
         the order is answered as it stands now; the same key with other content is refused.\n\n\
         ## Placing\n\n\
         | state | command | when | result | stock |\n|---|---|---|---|---|\n\
         | — | place | stock taken, `capture: hold` | held | available→held |\n\
         | — | place | stock taken, `capture: immediate` | sold | available→sold |\n\
         | — | place | queued path | queued | none |\n\
         | — | place | `sold_out` or `account_limit` by the authority | failed, recorded for the key | none |\n\
         | — | place | any other refusal | no trace; the same key may be tried again | none |\n\n\
         ## Everything after\n\n\
         | state | command | when | result | stock | answer |\n|---|---|---|---|---|---|\n",
    );
    for rule in TABLE {
        let from = if rule.from.len() == State::ALL.len() {
            "any other".to_owned()
        } else {
            rule.from.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (result, stock, answer) = cells(rule.then);
        let _ = writeln!(
            text,
            "| {from} | {} | {} | {result} | {stock} | {answer} |",
            rule.on.as_str(),
            rule.when.text()
        );
    }
    text.push_str(
        "\n## What is refused\n\n\
         The answer to a command that no condition lets through: a code, `again` (200, the order as it stands),\n\
         or `–` where the last row above does not refuse.\n\n| command |",
    );
    for state in State::ALL {
        let _ = write!(text, " {} |", state.as_str());
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(State::ALL.len()));
    text.push('\n');
    for trigger in Trigger::ALL {
        let _ = write!(text, "| {} |", trigger.as_str());
        for state in State::ALL {
            let _ = write!(text, " {} |", last_answer(*state, *trigger));
        }
        text.push('\n');
    }
    text.push_str("\n## Invariants\n\n| number | name | shown by |\n|---|---|---|\n");
    for invariant in Invariant::ALL {
        let by =
            if invariant.shown_by_authority() { "`holdfast verify`" } else { "tests that keep every answer" };
        let _ = writeln!(text, "| {} | {} | {by} |", invariant.code(), invariant.name());
    }
    text
}

fn cells(then: Then) -> (String, &'static str, String) {
    match then {
        Then::Go { to, stock, reason, mark, disposition } => {
            let mut result = to.map_or("as it was", State::as_str).to_owned();
            if let Some(reason) = reason {
                let _ = write!(result, "({})", reason.as_str());
            }
            result.push_str(match mark {
                Mark::No => "",
                Mark::ThisPayment => ", refund due",
                Mark::Recorded => ", what was paid for it and not applied is refund due",
                Mark::Clear => ", no refund due",
            });
            (result, stock.text(), disposition.map_or_else(String::new, |d| format!("*{}*", d.as_str())))
        }
        Then::Record(disposition) => {
            ("as it was".into(), Stock::Stays.text(), format!("*{}*", disposition.as_str()))
        }
        Then::Again => ("as it was".into(), Stock::Stays.text(), "200 again".into()),
        Then::NotDue => ("as it was".into(), Stock::Stays.text(), "nothing is due".into()),
        Then::Refuse(code) => ("refused".into(), Stock::Stays.text(), format!("`{}`", code.text())),
        Then::RefuseRefundDue(code) => {
            ("refused, refund due".into(), Stock::Stays.text(), format!("`{}`", code.text()))
        }
    }
}

fn last_answer(state: State, trigger: Trigger) -> String {
    let last = rules(state, trigger).into_iter().rfind(|rule| rule.when == When::Always);
    match last.map(|rule| rule.then) {
        Some(Then::Refuse(Code::AlreadyFailed)) => "`already_failed` or `cancelled`".into(),
        Some(Then::Refuse(code) | Then::RefuseRefundDue(code)) => format!("`{}`", code.text()),
        Some(Then::Again) => "again".into(),
        Some(Then::Go { .. } | Then::Record(_) | Then::NotDue) | None => "–".into(),
    }
}
