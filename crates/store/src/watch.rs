//! Who watches an audit.

use holdfast_core::ledger::Entry;

/// Is told while an audit reads. `()` looks away.
pub trait AuditWatch: Send {
    /// So many entries were read, of about so many.
    fn progress(&mut self, read: u64, of: u64);

    /// An entry: of every bucket all of them, in order of (pool, bucket, sequence).
    fn entry(&mut self, entry: &Entry);
}

impl AuditWatch for () {
    fn progress(&mut self, _: u64, _: u64) {}

    fn entry(&mut self, _: &Entry) {}
}
