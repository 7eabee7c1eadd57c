//! The SQL stays within what other engines that speak PostgreSQL understand too, or at least do not misunderstand.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that one of them lacks, or has as something that does nothing, and why they are not needed.
const FORBIDDEN: &[(&str, &str)] = &[
    ("pg_advisory", "a no-op elsewhere: a row is locked instead"),
    ("pg_try_advisory", "a no-op elsewhere: a row is locked instead"),
    ("LISTEN ", "not through poolers, and one lock for all commits"),
    ("NOTIFY", "not through poolers, and one lock for all commits"),
    ("LOCK TABLE", "not everywhere"),
    ("SKIP LOCKED", "what is skipped would not be decided"),
    ("DEFERRABLE", "not everywhere"),
    ("EXCLUDE USING", "not everywhere"),
    ("GENERATED ", "not everywhere"),
    ("INHERITS", "not everywhere"),
    ("CREATE DOMAIN", "not everywhere"),
    ("CREATE EXTENSION", "not everywhere"),
    (" SERIALIZABLE", "built on locks and conditional writes instead"),
    (" SERIAL", "a sequence has gaps and no order of commits"),
    ("nextval", "a sequence has gaps and no order of commits"),
    ("CREATE SEQUENCE", "a sequence has gaps and no order of commits"),
    (" now()", "frozen at the start of the transaction: the clock is read after the locks"),
    ("(now()", "frozen at the start of the transaction: the clock is read after the locks"),
    ("CURRENT_TIMESTAMP", "frozen at the start of the transaction: the clock is read after the locks"),
    ("pg_current_snapshot", "not comparable between servers"),
    ("pg_current_xact", "not comparable between servers"),
    ("pg_xact_status", "not everywhere: the keys tell"),
    ("txid_", "not comparable between servers"),
    ("xmin", "not comparable between servers"),
    ("ctid", "moves"),
    ("TIMESTAMPTZ", "times are microseconds"),
    ("JSONB", "the JSON in a row is text, written and read by us"),
    ("int4range", "not everywhere"),
    ("int8range", "not everywhere"),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "sql" || extension == "rs") {
            found.push(path);
        }
    }
}

/// Every file of the crate that has SQL in it, without comments.
fn sources() -> Vec<(PathBuf, String)> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&crate_folder.join("src"), &mut found);
    files(&crate_folder.join("migrations"), &mut found);
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("--");
    let code = |path: &PathBuf| {
        fs::read_to_string(path).unwrap().lines().filter(is_code).collect::<Vec<_>>().join("\n")
    };
    found.into_iter().map(|path| (path.clone(), code(&path))).collect()
}

#[test]
fn no_statement_uses_what_other_engines_lack() {
    let sources = sources();
    assert!(sources.iter().any(|(path, _)| path.ends_with("V4__initial.sql")), "the files are found");
    for (path, text) in &sources {
        for (word, why) in FORBIDDEN {
            assert!(!text.contains(word), "{}: {word}: {why}", path.display());
        }
    }
}

/// At most one statement that writes a table within one statement: some engines refuse more.
#[test]
fn a_statement_writes_each_table_once() {
    for (path, text) in sources() {
        for statement in text.split("Sql::new(").skip(1) {
            let statement = statement.split(");\n").next().unwrap();
            for table in ["bucket", "orders", "ledger", "account_usage", "authority", "operator_action"] {
                let writes = [format!("UPDATE {table} "), format!("INSERT INTO {table} ")];
                let count: usize = writes.iter().map(|write| statement.matches(write.as_str()).count()).sum();
                assert!(count <= 1, "{}: {table} is written {count} times in {statement}", path.display());
            }
        }
    }
}

/// Rows of a sharded engine are found by the start of their key: a sale's, a pool's or an order's own.
#[test]
fn every_table_has_a_primary_key() {
    let sql = include_str!("../../migrations/V4__initial.sql");
    let tables = sql.split("CREATE TABLE ").skip(1);
    assert_eq!(tables.clone().count(), 14);
    for table in tables {
        let body = table.split(";\n").next().unwrap();
        assert!(body.contains("PRIMARY KEY"), "{body}");
    }
}
