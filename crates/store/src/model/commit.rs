//! What a commit of the model reads and writes.

use holdfast_core::command::Command;
use holdfast_core::id::PoolId;
use holdfast_core::import::Since;
use holdfast_core::ledger::Action;
use holdfast_core::snapshot::{Changes, LockSet, Needs, Snapshot};
use holdfast_core::time::Timestamp;

use super::Rows;
use crate::error::Error;

impl Rows {
    /// Every row that a batch may need.
    pub(super) fn snapshot(&self, locks: &LockSet, commands: &[Command]) -> Snapshot {
        let needs = Needs::of(commands);
        let mut rows = Snapshot { campaigns: self.campaigns.clone(), ..Snapshot::default() };
        rows.halted = self.own.halted();
        rows.pools.clone_from(&self.pools);
        for (id, pool) in &self.pools {
            rows.pool_addresses.insert((pool.campaign.clone(), pool.sku.clone(), pool.location.clone()), *id);
        }
        let addressed = needs.pool_addresses.iter().filter_map(|(campaign, sku, location)| {
            let address = ((*campaign).clone(), (*sku).clone(), (*location).clone());
            rows.pool_addresses.get(&address).copied()
        });
        let whole: Vec<PoolId> = locks.pools.iter().copied().chain(addressed).collect();
        for (key, bucket) in &self.buckets {
            if whole.contains(&key.pool) || locks.buckets.contains(key) {
                rows.buckets.insert(*key, *bucket);
            }
        }
        rows.orders.clone_from(&self.orders);
        rows.order_keys.clone_from(&self.order_keys);
        rows.usage.clone_from(&self.usage);
        rows.queue_lengths = self.queue_lengths(&needs.queues);
        rows.adjustments.clone_from(&self.adjustments);
        rows.transfers.clone_from(&self.transfers);
        rows.imports.clone_from(&self.imports);
        rows.approvals.clone_from(&self.approvals);
        rows.caches.clone_from(&self.caches);
        rows.landed = self.landings().collect();
        rows.discrepancies = self.reconciled.all();
        rows.cases = self.own.all();
        for key in rows.buckets.keys().filter(|_| !needs.discrepancies.is_empty()) {
            let last = self.ledger.range((*key, 0)..=(*key, u64::MAX)).next_back();
            rows.ledger_ends.extend(last.map(|((key, seq), _)| (*key, *seq)));
        }
        rows.since = rows
            .counts_of(commands)
            .into_iter()
            .map(|(pool, at)| ((pool, at), self.since(pool, at)))
            .collect();
        for (key, row) in &self.payments {
            rows.events.insert(key.clone(), row.order);
        }
        rows.claims.clone_from(&self.claims);
        rows
    }

    /// What happened to a pool after a moment.
    fn since(&self, pool: PoolId, at: Timestamp) -> Since {
        let mut since = Since::default();
        for entry in self.ledger.values().filter(|entry| entry.bucket.pool == pool) {
            if entry.at <= at {
                since.was_open = true;
                continue;
            }
            since.change = since.change.and(entry.delta);
            if matches!(entry.action, Action::Adjust | Action::Repair) {
                since.corrected_at = since.corrected_at.max(Some(entry.at));
            }
        }
        since
    }

    /// The conditions that a database would check.
    fn check(&self, changes: &Changes) -> Result<(), Error> {
        for change in &changes.buckets {
            if self.buckets.get(&change.bucket.key).map(|b| b.ledger_seq) != change.base_seq {
                return Err(unexpected("bucket"));
            }
        }
        for change in &changes.orders {
            if self.orders.get(&change.order.id).map(|o| o.version) != change.base_version {
                return Err(unexpected("order"));
            }
            if change.base_version.is_none() && self.order_keys.contains_key(&change.order.key) {
                return Err(unexpected("order key"));
            }
        }
        for entry in &changes.entries {
            if self.ledger.contains_key(&(entry.bucket, entry.seq)) {
                return Err(unexpected("ledger entry"));
            }
        }
        for transfer in &changes.transfers {
            if self.transfers.contains_key(&transfer.transfer_id) {
                return Err(unexpected("transfer"));
            }
        }
        for row in &changes.payments {
            if self.payments.contains_key(&(row.provider.clone(), row.event_id.clone())) {
                return Err(unexpected("payment event"));
            }
        }
        for claim in &changes.claims {
            if self.claims.contains_key(&(claim.provider.clone(), claim.payment_id.clone())) {
                return Err(unexpected("payment claim"));
            }
        }
        self.check_caches(&changes.caches, &changes.entries)
    }

    /// Applies changes, each on the condition that a database would check.
    pub(super) fn apply(&mut self, changes: Changes) -> Result<(), Error> {
        self.check(&changes)?;
        let Changes {
            orders,
            entries,
            buckets,
            pools,
            changed_pools,
            weights,
            usage,
            payments,
            claims,
            adjustments,
            cases,
            transfers,
            imports,
            approvals,
            decided_approvals,
            caches,
            repaired,
            resolved_cases,
        } = changes;
        self.reconciled.repair(repaired);
        resolved_cases.into_iter().for_each(|case| self.own.decided(&case));
        self.write_caches(caches);
        for pool in pools.into_iter().chain(changed_pools) {
            self.catalog.pool_changed(pool.id);
            self.pools.insert(pool.id, pool);
        }
        self.buckets.extend(buckets.into_iter().map(|change| (change.bucket.key, change.bucket)));
        for (key, weight) in weights {
            self.buckets.get_mut(&key).ok_or_else(|| unexpected("bucket weight"))?.weight = weight;
        }
        self.order_keys.extend(orders.iter().map(|change| (change.order.key.clone(), change.order.id)));
        self.orders.extend(orders.into_iter().map(|change| (change.order.id, change.order)));
        self.ledger.extend(entries.into_iter().map(|entry| ((entry.bucket, entry.seq), entry)));
        self.usage.extend(usage);
        self.payments
            .extend(payments.into_iter().map(|row| ((row.provider.clone(), row.event_id.clone()), row)));
        self.claims.extend(claims.into_iter().map(|claim| ((claim.provider, claim.payment_id), claim.order)));
        cases.into_iter().for_each(|case| self.own.open(case));
        self.adjustments.extend(adjustments.into_iter().map(|adjust| (adjust.adjustment_id.clone(), adjust)));
        let asked = approvals.into_iter().chain(decided_approvals);
        self.approvals.extend(asked.map(|approval| (approval.key.clone(), approval)));
        self.imports.extend(imports.into_iter().map(|import| (import.id.clone(), import)));
        self.transfers.extend(transfers.into_iter().map(|transfer| (transfer.transfer_id.clone(), transfer)));
        Ok(())
    }
}

fn unexpected(what: &str) -> Error {
    Error::Data(format!("unexpected row: {what}"))
}
