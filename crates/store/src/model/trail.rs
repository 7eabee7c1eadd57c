//! The model's keys and the trail of operators' acts.

use std::collections::BTreeMap;

use holdfast_core::id::{CampaignId, Operator};
use holdfast_core::time::Timestamp;

use super::Rows;
use crate::acts::{About, Act, ActFilter, ActId, ActRow};
use crate::keys::{CreateKey, KeyId, KeyRefusal, KeyRow, LIVE_KEYS_MAX, RevokeKey, Role};
use crate::read::{Page, page_of};

/// The keys, and what was done by whom.
#[derive(Default)]
pub(super) struct Trail {
    keys: BTreeMap<KeyId, KeyRow>,
    acts: Vec<ActRow>,
}

impl Trail {
    pub(super) fn record(&mut self, act: &Act, campaign: Option<CampaignId>, now: Timestamp) {
        let id = u64::try_from(self.acts.len()).unwrap_or(u64::MAX).saturating_add(1);
        self.acts.push(ActRow {
            id: ActId(id),
            at: now,
            actor: act.actor().to_owned(),
            operator: Operator::new(&act.operator).ok(),
            action: act.action.to_owned(),
            subject: act.about.subject(),
            campaign,
            reason: act.reason.to_string(),
            detail: act.detail.clone(),
            request_id: act.via.as_ref().map(|via| via.request_id.to_string()),
        });
    }

    pub(super) fn acts(&self, filter: &ActFilter, page: &Page<ActId>) -> (Vec<ActRow>, bool) {
        let before = |act: &&ActRow| page.after.is_none_or(|after| act.id < after);
        let found = self.acts.iter().rev().filter(before).filter(|act| filter.shows(act));
        page_of(found.cloned().collect(), page.limit)
    }

    pub(super) fn live(&self, now: Timestamp) -> Vec<KeyRow> {
        self.keys.values().filter(|key| key.is_live(now)).cloned().collect()
    }

    fn live_admins(&self, now: Timestamp) -> usize {
        self.keys.values().filter(|key| key.role == Role::Admin && key.is_live(now)).count()
    }

    pub(super) fn create(&mut self, create: CreateKey, now: Timestamp) -> Result<KeyRow, KeyRefusal> {
        if self.keys.contains_key(&create.id) {
            return Err(KeyRefusal::Taken);
        }
        if self.live(now).len() >= LIVE_KEYS_MAX {
            return Err(KeyRefusal::TooMany);
        }
        let via = create.via.clone();
        let key = create.into_row(now);
        self.keys.insert(key.id.clone(), key.clone());
        self.record(&Act::create_key(&key, via.as_ref()), None, now);
        Ok(key)
    }

    pub(super) fn create_first(&mut self, create: CreateKey, now: Timestamp) -> bool {
        self.live_admins(now) == 0 && self.create(create, now).is_ok()
    }

    pub(super) fn revoke(&mut self, revoke: &RevokeKey, now: Timestamp) -> Result<KeyRow, KeyRefusal> {
        let admins = self.live_admins(now);
        let key = self.keys.get_mut(&revoke.id).ok_or(KeyRefusal::Unknown)?;
        if key.revoked_at.is_some() {
            return Ok(key.clone());
        }
        if key.role == Role::Admin && key.is_live(now) && admins == 1 {
            return Err(KeyRefusal::LastAdmin);
        }
        key.revoked_at = Some(now);
        let key = key.clone();
        self.record(&Act::revoke_key(&key, revoke.via.as_ref()), None, now);
        Ok(key)
    }

    pub(super) fn key(&self, id: &KeyId) -> Option<KeyRow> {
        self.keys.get(id).cloned()
    }

    pub(super) fn keys(&self, page: &Page<KeyId>) -> (Vec<KeyRow>, bool) {
        let found = super::after(&self.keys, page.after.as_ref()).into_iter().map(|(_, key)| key);
        page_of(found.collect(), page.limit)
    }
}

impl Rows {
    pub(super) fn record(&mut self, act: &Act, now: Timestamp) {
        let campaign = match &act.about {
            About::Campaign(id) | About::Order(_, id) => Some(id.clone()),
            About::Pool(id) => self.pools.get(id).map(|pool| pool.campaign.clone()),
            About::Case(_) | About::Key(_) | About::Sink(_) => None,
        };
        self.trail.record(act, campaign, now);
    }
}
