//! Rows on their way from one store to another: their values, and a digest that tells whether they all arrived.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

/// Tables that belong to a database and not to what it holds: they do not travel.
pub const OWN_TABLES: &[&str] =
    &["authority", "schema_rule", "lease", "migration_lock", "refinery_schema_history"];

/// Tables in which a campaign has rows, those that others refer to first, and which rows those are, by its id as the one
/// parameter.
pub const CAMPAIGN_TABLES: &[(&str, &str)] = &[
    ("campaign", "id = $1"),
    ("pool", "campaign_id = $1"),
    ("bucket", "pool IN (SELECT id FROM pool WHERE campaign_id = $1)"),
    ("cache_bucket", "pool IN (SELECT id FROM pool WHERE campaign_id = $1)"),
    ("orders", "campaign_id = $1"),
    ("ledger", "pool IN (SELECT id FROM pool WHERE campaign_id = $1)"),
    ("payment", "order_id IN (SELECT id FROM orders WHERE campaign_id = $1)"),
    ("payment_claim", "order_id IN (SELECT id FROM orders WHERE campaign_id = $1)"),
    ("account_usage", "campaign_id = $1"),
    ("key_usage", "campaign_id = $1"),
    ("adjustment", "pool IN (SELECT id FROM pool WHERE campaign_id = $1)"),
    (
        "transfer",
        "(from_pool IN (SELECT id FROM pool WHERE campaign_id = $1) \
         OR to_pool IN (SELECT id FROM pool WHERE campaign_id = $1))",
    ),
    ("stock_import", "campaign_id = $1"),
    ("approval", "campaign_id = $1"),
    ("operator_action", "campaign_id = $1"),
    (
        "discrepancy",
        "(order_id IN (SELECT id FROM orders WHERE campaign_id = $1) \
         OR pool IN (SELECT id FROM pool WHERE campaign_id = $1))",
    ),
    (
        "cases",
        "(order_id IN (SELECT id FROM orders WHERE campaign_id = $1) \
         OR pool IN (SELECT id FROM pool WHERE campaign_id = $1))",
    ),
];

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// None.
    Null,
    /// A number, or a truth as 0 or 1.
    Integer(i64),
    /// Text.
    Text(String),
    /// Bytes, or an id of 16.
    Bytes(Vec<u8>),
}

/// What a set of rows comes to, in whatever order they are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest {
    /// How many.
    pub rows: u64,
    sum: u128,
}

impl Digest {
    /// Adds a row. It guards against mistakes, not against somebody who means harm: both stores are trusted.
    pub fn add(&mut self, row: &[u8]) {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            hasher.write(row);
            hasher.finish()
        };
        let hash = u128::from(half(0)) << 64 | u128::from(half(1));
        self.rows = self.rows.saturating_add(1);
        self.sum = self.sum.wrapping_add(hash);
    }

    /// Adds a row by its values.
    pub fn add_cells(&mut self, cells: &[Cell]) {
        let mut row = Vec::new();
        for cell in cells {
            let (kind, bytes): (u8, &[u8]) = match cell {
                Cell::Null => (0, &[]),
                Cell::Integer(number) => (1, &number.to_be_bytes()),
                Cell::Text(text) => (2, text.as_bytes()),
                Cell::Bytes(bytes) => (3, bytes),
            };
            row.push(kind);
            row.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            row.extend_from_slice(bytes);
        }
        self.add(&row);
    }

    /// The digest as text.
    pub fn text(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(rows: &[&[u8]]) -> Digest {
        let mut digest = Digest::default();
        rows.iter().for_each(|row| digest.add(row));
        digest
    }

    #[test]
    fn values_do_not_run_into_one_another() {
        let of = |cells: &[Cell]| {
            let mut digest = Digest::default();
            digest.add_cells(cells);
            digest
        };
        let text = |text: &str| Cell::Text(text.into());
        assert_eq!(of(&[text("a"), Cell::Integer(1)]), of(&[text("a"), Cell::Integer(1)]));
        assert_ne!(of(&[text("ab"), text("c")]), of(&[text("a"), text("bc")]));
        assert_ne!(of(&[Cell::Null]), of(&[text("")]));
        assert_ne!(of(&[Cell::Bytes(b"a".to_vec())]), of(&[text("a")]));
    }

    #[test]
    fn a_digest_sees_every_row_and_no_order() {
        let all = digest(&[b"a", b"b", b"b"]);
        assert_eq!(all, digest(&[b"b", b"a", b"b"]));
        for other in [digest(&[b"a", b"b"]), digest(&[b"a", b"a", b"b"]), digest(&[b"ab", b"b"])] {
            assert_ne!(all, other);
        }
    }
}
