//! Changing what a campaign offers besides its pools.

use std::sync::Arc;

use holdfast_core::assortment::{Assortment, AssortmentChange};
use holdfast_core::campaign::Campaign;
use holdfast_core::command::{How, Via};
use holdfast_core::id::{CampaignId, Sku};
use holdfast_core::refusal::Refusal;

/// A change of a campaign's location order or of one of its bundles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutAssortment {
    /// Which campaign.
    pub campaign: CampaignId,
    /// What shall be.
    pub change: AssortmentChange,
    /// How it came in, for the trail of operators' acts.
    pub via: Option<Arc<Via>>,
}

impl PutAssortment {
    /// The SKU of which the authority must say whether it has a pool, before this is done.
    pub fn bundle(&self) -> Option<&Sku> {
        match &self.change {
            AssortmentChange::Bundle { sku, .. } => Some(sku),
            AssortmentChange::Locations { .. } => None,
        }
    }

    /// The assortment that it makes of the campaign's, the same in every store, and whether that is new.
    pub fn onto(&self, campaign: &Campaign, has_pool: bool) -> Result<(Assortment, How), Refusal> {
        let before = &campaign.assortment;
        let after = before.after(&self.change, has_pool)?;
        let is_new = self.bundle().is_some_and(|sku| !before.bundles.contains_key(sku));
        let how = if after == *before {
            How::Repeated
        } else if is_new {
            How::Created
        } else {
            How::Changed
        };
        Ok((after, how))
    }
}
