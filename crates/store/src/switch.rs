//! Setting a switch of a campaign.

use holdfast_core::campaign::{Campaign, Switch};
use holdfast_core::id::PoolId;
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::Pool;
use holdfast_core::time::Timestamp;

use crate::contract::SwitchCampaign;

const POINTER: &str = "/unsold_to";

impl SwitchCampaign {
    /// The pool of which the authority must say what it is and of which campaign, before this is done.
    pub fn target(&self, campaign: &Campaign) -> Option<PoolId> {
        let is_close = self.switch == Switch::Close;
        self.unsold_to.filter(|to| is_close && campaign.unsold_to != Some(*to))
    }

    /// The campaign that it makes of the one before, the same in every store; none if nothing changes. `target` is
    /// the pool that was asked for, with its campaign.
    pub fn onto(
        &self,
        campaign: &Campaign,
        target: Option<&(Pool, Campaign)>,
        now: Timestamp,
    ) -> Result<Option<Campaign>, Refusal> {
        let switches = campaign.switches.after(self.switch).ok_or(Refusal::CampaignClosed)?;
        let mut after = Campaign { switches, ..campaign.clone() };
        if let Some(to) = self.target(campaign) {
            check_target(campaign, target)?;
            after.unsold_to = Some(to);
        }
        if self.switch == Switch::Warm {
            after.warm_asked_at = Some(now);
        }
        let is_changed = after != *campaign;
        after.updated_at = now;
        Ok(is_changed.then_some(after))
    }
}

/// Whether unsold stock may go there. A campaign that is closed already takes none: so it never goes in a circle.
fn check_target(campaign: &Campaign, target: Option<&(Pool, Campaign)>) -> Result<(), Refusal> {
    let invalid = |why| Err(Refusal::InvalidValue { pointer: POINTER.into(), why });
    if campaign.unsold_to.is_some() {
        return Err(Refusal::Conflict("the campaign gives its unsold stock to another pool already"));
    }
    match target {
        None => invalid("must be a pool that is there"),
        Some((pool, _)) if pool.retired => invalid("must be a pool that sells: this one is retired"),
        Some((_, of)) if of.id == campaign.id => invalid("must be a pool of another campaign"),
        Some((_, of)) if of.switches.closed => invalid("must be a pool of a campaign that is not closed"),
        // Whoever closes would move any number of units without the second person whom transfers want.
        Some((_, of)) if of.policy.approval_threshold.or(campaign.policy.approval_threshold).is_some() => {
            Err(Refusal::Conflict("transfers want a second person here: close without it, and send them"))
        }
        Some(_) => Ok(()),
    }
}
