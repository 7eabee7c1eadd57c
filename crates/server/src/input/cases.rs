//! Requests about cases.

use std::sync::Arc;

use holdfast_core::case::CaseAction;
use holdfast_core::id::Operator;

use super::campaigns::read_switch;
use super::field::word;
use super::reader::Object;

/// What a person decides on a case.
pub(crate) struct ResolveInput {
    pub(crate) action: CaseAction,
    pub(crate) operator: Operator,
    pub(crate) reason: Arc<str>,
}

/// Reads `{action, reason, operator}`.
pub(crate) fn read_resolve(body: &mut Object<'_, '_>) -> Option<ResolveInput> {
    let action = body.required("action", word(CaseAction::parse));
    let signed = read_switch(body)?;
    Some(ResolveInput { action: action?, operator: signed.operator, reason: signed.reason })
}
