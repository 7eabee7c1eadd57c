//! Versions of an authority's schema.

use crate::error::Error;

/// What schema an authority has, and what this binary makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The authority's; none if it was never served from.
    pub version: Option<i32>,
    /// The newest that this binary knows.
    pub known: i32,
    /// The oldest whose binary may run on it, where its own version says so.
    pub compatible_from: Option<i32>,
}

impl Schema {
    /// Whether this binary may serve from it.
    pub fn is_usable(&self) -> bool {
        !self.is_newer() || self.compatible_from.is_some_and(|from| from <= self.known)
    }

    /// Whether a newer binary made it.
    pub fn is_newer(&self) -> bool {
        self.version.is_some_and(|version| version > self.known)
    }

    /// Refuses what this binary may not serve from.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_usable() { Ok(()) } else { Err(Error::Unavailable(self.too_new())) }
    }

    /// Refuses what this binary cannot read beside the server that has it.
    pub fn check_readable(&self) -> Result<(), Error> {
        self.check()?;
        match self.version {
            Some(version) if version < self.known => Err(Error::Unavailable(format!(
                "the schema is version {version}, this holdfast reads version {}: use the holdfast that serves from it, \
                 or serve from it with this one, which brings it up to date",
                self.known
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Why it may not.
    fn too_new(&self) -> String {
        let version = self.version.unwrap_or(0);
        let from = match self.compatible_from {
            Some(from) => format!("a holdfast that knows version {from} or later may serve from it"),
            None => "it does not say which others may serve from it".to_owned(),
        };
        let known = self.known;
        format!(
            "the schema is version {version}, this holdfast knows {known}; {from}: start a newer holdfast"
        )
    }
}

/// The number in a migration's name, `V1__initial`.
pub fn version_of(name: &str) -> Option<i32> {
    name.strip_prefix('V')?.split_once("__")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_made_is_read_only_where_it_can_be() {
        let schema = |version, compatible_from| Schema { version, known: 9, compatible_from };
        for readable in [schema(Some(9), Some(9)), schema(Some(10), Some(9)), schema(None, None)] {
            assert!(readable.check_readable().is_ok(), "{readable:?}");
        }
        for (other, says) in [
            (schema(Some(8), Some(8)), "is version 8, this holdfast reads version 9"),
            (schema(Some(10), Some(10)), "start a newer holdfast"),
            (schema(Some(10), None), "start a newer holdfast"),
        ] {
            let why = other.check_readable().unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        }
    }
}
