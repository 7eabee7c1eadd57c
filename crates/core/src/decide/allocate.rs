//! What stands in the way of taking stock: limits, switches, pools that are gone.

use crate::campaign::{Campaign, CampaignStatus};
use crate::limit::{limited_of, refusal_of_limit};
use crate::order::{Line, Order, Reason, Shortage};
use crate::refusal::Refusal;
use crate::snapshot::UsageKey;

use super::Working;
use super::serve::{Asker, Standing};

impl Working {
    /// Whether the account and each key of the order may have its units besides their other orders, and one
    /// more open hold where the order becomes one.
    pub(crate) fn check_limits(
        &self,
        campaign: &Campaign,
        order: &Order,
        opens_hold: bool,
    ) -> Result<(), Refusal> {
        let units = order.lines.iter().map(Line::units).sum();
        for (limited, limits) in limited_of(&campaign.policy, &order.account, &order.limit_keys) {
            let key = UsageKey { campaign: campaign.id.clone(), limited };
            if let Some(reached) = limits.reached(self.usage(&key), units, opens_hold) {
                return Err(refusal_of_limit(&order.limit_keys, &key.limited, reached, units));
            }
        }
        Ok(())
    }

    /// Whether every line has a pool that is there and not retired.
    pub(crate) fn check_known(&self, lines: &[Line]) -> Result<(), Refusal> {
        let mut numbered = lines.iter().zip(1_u32..);
        match numbered.find(|(line, _)| self.standing(line, Asker::Anew) == Standing::Gone) {
            Some((_, line)) => Err(Refusal::UnknownSku { line }),
            None => Ok(()),
        }
    }

    /// Whether the campaign sells now, and the pools of these lines do: closed > halted > frozen > paused >
    /// not open.
    pub(crate) fn check_open(&self, campaign: &Campaign, lines: &[Line]) -> Result<(), Refusal> {
        let status = campaign.status(self.now);
        if status != CampaignStatus::Closed && self.rows.halted {
            return Err(Refusal::Halted);
        }
        if status != CampaignStatus::Closed
            && let Some(line) = self.frozen_line(lines, Asker::Anew)
        {
            return Err(Refusal::LineFrozen { line });
        }
        refusal_of_status(status).map_or(Ok(()), Err)
    }

    /// Whether one of these lines can be taken from nowhere but frozen pools.
    pub(crate) fn any_frozen(&self, lines: &[Line], asker: Asker) -> bool {
        self.frozen_line(lines, asker).is_some()
    }

    /// The first of them, by its number.
    fn frozen_line(&self, lines: &[Line], asker: Asker) -> Option<u32> {
        let mut numbered = lines.iter().zip(1..);
        numbered.find(|(line, _)| self.standing(line, asker) == Standing::Frozen).map(|(_, number)| number)
    }
}

/// What a campaign that does not sell answers.
pub fn refusal_of_status(status: CampaignStatus) -> Option<Refusal> {
    match status {
        CampaignStatus::Open => None,
        CampaignStatus::Closed => Some(Refusal::CampaignClosed),
        CampaignStatus::Frozen => Some(Refusal::Frozen),
        CampaignStatus::Paused => Some(Refusal::CampaignPaused),
        CampaignStatus::Draft | CampaignStatus::Scheduled => Some(Refusal::CampaignNotOpen),
    }
}

/// The state reason with which a queued order fails on a refusal at landing.
pub(crate) fn reason_of(refusal: &Refusal) -> (Reason, Option<Shortage>) {
    match refusal {
        Refusal::SoldOut(shortage) => (Reason::SoldOut, Some(*shortage)),
        Refusal::AccountLimit(shortage) => (Reason::AccountLimit, Some(*shortage)),
        Refusal::AccountOpenHolds { limit } => {
            (Reason::AccountOpenHolds, Some(Shortage { line: 1, requested: 1, available: *limit }))
        }
        Refusal::KeyOpenHolds(_, shortage) => (Reason::KeyOpenHolds, Some(*shortage)),
        Refusal::KeyLimit(_, shortage) => (Reason::KeyLimit, Some(*shortage)),
        Refusal::QueueTimeout => (Reason::QueueTimeout, None),
        Refusal::Cancelled => (Reason::Cancelled, None),
        Refusal::OrderMismatch(_)
        | Refusal::KeyMismatch(_)
        | Refusal::UnknownCampaign
        | Refusal::UnknownOrder
        | Refusal::UnknownPool
        | Refusal::UnknownCase
        | Refusal::UnknownApproval
        | Refusal::SamePerson
        | Refusal::UnknownSku { .. }
        | Refusal::InvalidValue { .. }
        | Refusal::CampaignClosed
        | Refusal::Halted
        | Refusal::Frozen
        | Refusal::LineFrozen { .. }
        | Refusal::CampaignPaused
        | Refusal::CampaignNotOpen
        | Refusal::QueueFull { .. }
        | Refusal::AdmissionLost
        | Refusal::AlreadySold
        | Refusal::AlreadyReleased
        | Refusal::AlreadyFailed
        | Refusal::AlreadyRefunded
        | Refusal::NotHeld
        | Refusal::NotSold
        | Refusal::HoldExpired
        | Refusal::InReview
        | Refusal::RefundExceedsSold(_)
        | Refusal::StockInUse(_)
        | Refusal::Rows(_)
        | Refusal::Conflict(_) => (Reason::CampaignClosed, None),
    }
}
