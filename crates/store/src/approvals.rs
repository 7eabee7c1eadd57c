//! Which requests for a second person a list shows.

use holdfast_core::approval::{Approval, ApprovalState};
use holdfast_core::id::CampaignId;
use holdfast_core::time::Timestamp;

use crate::keys::Scope;

/// Which requests a list shows, in order of their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// That stand so at a time.
    pub state: Option<(ApprovalState, Timestamp)>,
    /// Of this campaign.
    pub campaign: Option<CampaignId>,
    /// Of campaigns in this scope.
    pub scope: Scope,
}

impl ApprovalFilter {
    /// Judges one request; the model store uses it.
    pub fn shows(&self, approval: &Approval) -> bool {
        self.scope.allows(&approval.campaign)
            && self.campaign.as_ref().is_none_or(|campaign| *campaign == approval.campaign)
            && self.state.is_none_or(|(state, now)| approval.state(now) == state)
    }
}
