//! Unsold stock of closed campaigns, on its way to the pool that was named when they were closed: at once as far as
//! that goes in a moment, and by a pass that workers make again and again, which finds the rest and what comes back
//! later. Both send the same command, which moves what there is under the locks: it is no harm if they meet.

use std::time::Duration;

use holdfast_core::command::{Command, MoveUnsold, Outcome, Signed};
use holdfast_core::id::{CampaignId, MoveId, PoolId};
use holdfast_core::snapshot::LockSet;
use holdfast_store::{Page, PoolFilter};
use tokio::time::MissedTickBehavior;

use crate::engine::Engine;
use crate::error::Error;
use crate::lanes::LaneKey;

/// Pools that are read at a time.
const PAGE: usize = 200;
/// Most buckets that one transaction empties: the pool that takes is locked meanwhile.
const BUCKETS_MAX: usize = 200;
/// Most pools that one pass reads. A campaign counts as some: to begin with one is a read, too.
const PASS_POOLS_MAX: usize = 1_000;
const CAMPAIGN_COUNTS: usize = 20;
/// How long whoever closes a campaign waits for its stock to move; workers do the rest.
const CLOSING: Duration = Duration::from_secs(2);

/// A closed campaign, part of which was looked at.
#[derive(Debug)]
struct Open {
    campaign: CampaignId,
    to: PoolId,
    after: Option<PoolId>,
}

/// Where the passes of a worker stand: each goes on where the one before ended.
#[derive(Debug, Default)]
pub struct UnsoldPasses {
    within: Option<Open>,
    after: Option<CampaignId>,
}

impl Engine {
    /// The worker.
    pub(crate) async fn run_unsold(&self) {
        let mut ticks = tokio::time::interval(self.shared.config.unsold_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut passes = UnsoldPasses::default();
        while !self.is_draining() {
            ticks.tick().await;
            if let Err(error) = self.unsold_pass(&mut passes).await {
                tracing::warn!(%error, "unsold stock could not be moved; trying on");
            }
        }
    }

    /// One pass, bounded by what it reads. A campaign that cannot be worked on stops no other.
    pub async fn unsold_pass(&self, passes: &mut UnsoldPasses) -> Result<(), Error> {
        let mut read = 0_usize;
        while read < PASS_POOLS_MAX {
            let mut open = match passes.within.take() {
                Some(open) => open,
                None => {
                    let page = Page { after: passes.after.take(), limit: 1 };
                    let found = self.store().closed_into(None, page).await?.pop();
                    // After the last one the next pass begins anew.
                    let Some((campaign, to)) = found else { return Ok(()) };
                    Open { campaign, to, after: None }
                }
            };
            passes.after = Some(open.campaign.clone());
            let (pools, last) = self.move_page(&open).await?;
            read = read.saturating_add(pools).saturating_add(CAMPAIGN_COUNTS);
            open.after = last;
            passes.within = last.is_some().then_some(open);
        }
        Ok(())
    }

    /// After a campaign was closed: what can be moved in a moment.
    pub(crate) async fn move_after_closing(&self, campaign: &CampaignId) {
        let all = async {
            let page = Page { after: None, limit: 1 };
            let found = self.store().closed_into(Some(campaign.clone()), page).await?.pop();
            let Some((campaign, to)) = found else { return Ok(()) };
            let mut open = Open { campaign, to, after: None };
            loop {
                (_, open.after) = self.move_page(&open).await?;
                if open.after.is_none() {
                    return Ok::<(), Error>(());
                }
            }
        };
        match tokio::time::timeout(CLOSING, all).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, %campaign, "unsold stock is left to the workers"),
            Err(_) => tracing::info!(%campaign, "there is much unsold stock; workers move the rest"),
        }
    }

    /// Moves what one page of a campaign's pools has to give. How many pools it read, and after which one the next
    /// page begins.
    async fn move_page(&self, open: &Open) -> Result<(usize, Option<PoolId>), Error> {
        let filter = PoolFilter { campaign: Some(open.campaign.clone()), ..PoolFilter::default() };
        let (rows, more) = self.store().pools(filter, Page { after: open.after, limit: PAGE }).await?;
        let buckets = rows.iter().filter(|row| !row.pool.frozen).flat_map(|row| &row.buckets);
        let giving: Vec<_> = buckets.filter(|bucket| bucket.available > 0).map(|bucket| bucket.key).collect();
        for from in giving.chunks(BUCKETS_MAX) {
            let locks = LockSet { buckets: from.iter().copied().collect(), pools: [open.to].into() };
            let unsold = MoveUnsold {
                id: MoveId(self.shared.ids.next()),
                from: from.to_vec(),
                to: open.to,
                signed: Signed::new("closing", "the campaign is closed"),
            };
            let outcome = self.settle(LaneKey::Node, Command::MoveUnsold(unsold), locks).await?;
            if let Outcome::Refused { refusal, .. } = outcome {
                tracing::warn!(?refusal, campaign = %open.campaign, to = %open.to, "unsold stock stays");
            }
        }
        Ok((rows.len(), rows.last().filter(|_| more).map(|row| row.pool.id)))
    }
}
