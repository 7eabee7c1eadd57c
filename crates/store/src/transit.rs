//! Rows on their way from one store to another: their values, and a digest that tells whether they all arrived.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

/// Tables that belong to a database and not to what it holds: they do not travel.
pub const OWN_TABLES: &[&str] =
    &["authority", "schema_rule", "lease", "migration_lock", "refinery_schema_history"];

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
    fn a_digest_sees_every_row_and_no_order() {
        let all = digest(&[b"a", b"b", b"b"]);
        assert_eq!(all, digest(&[b"b", b"a", b"b"]));
        for other in [digest(&[b"a", b"b"]), digest(&[b"a", b"a", b"b"]), digest(&[b"ab", b"b"])] {
            assert_ne!(all, other);
        }
    }
}
