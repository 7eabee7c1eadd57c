//! Requests about reconciliation.

use holdfast_core::reconcile::RunScope;

use super::field::word;
use super::reader::Object;

/// Reads `{scope}`; without it everything is looked at.
pub(crate) fn read_reconcile(body: &mut Object<'_, '_>) -> Option<RunScope> {
    Some(body.optional("scope", word(RunScope::parse))?.unwrap_or(RunScope::Full))
}
