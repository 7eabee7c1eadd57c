//! What the authority tells of caches: what a bucket's ledger credits its cache with.

/// The credits of a bucket's ledger entries after a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credits {
    /// The last of the entries; the position asked about if there are none.
    pub to: u64,
    /// The sum of what became available and what was settled; below 0: more was taken than came back.
    pub units: i64,
}
