//! What reconciliation reads and keeps of the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_core::id::{DiscrepancyId, EventId, OrderId, Provider, RunId};
use holdfast_core::ledger::{Action, Entry};
use holdfast_core::limit::limited_of;
use holdfast_core::order::{Order, PaymentOutcome, Usage};
use holdfast_core::reconcile::{
    Class, Discrepancy, DiscrepancyState, Finding, LedgerSums, OrderFacts, PoolFacts, Range, RunScope,
    RunState, UsageFacts,
};
use holdfast_core::snapshot::UsageKey;
use holdfast_core::stock::BucketKey;
use holdfast_core::time::Timestamp;

use super::{ModelStore, Rows, after};
use crate::error::Error;
use crate::read::{Page, page_of};
use crate::reconcile::{
    BucketHead, Checkpoint, DiscrepancyFilter, Dispose, ODD_ROWS_MAX, OrdersAsked, OrdersOf,
    RUNS_UNFINISHED_MAX, ReconcileStore, Run, SUMMED_ENTRIES_MAX, Suspects, Unapplied, found_again,
};

/// What reconciliation keeps.
#[derive(Default)]
pub(super) struct Reconciled {
    runs: BTreeMap<RunId, Run>,
    checkpoints: BTreeMap<BucketKey, Checkpoint>,
    discrepancies: BTreeMap<DiscrepancyId, (Discrepancy, RunId)>,
}

impl Reconciled {
    pub(super) fn all(&self) -> BTreeMap<DiscrepancyId, Arc<Discrepancy>> {
        self.discrepancies.iter().map(|(id, (known, _))| (*id, Arc::new(known.clone()))).collect()
    }

    pub(super) fn repair(&mut self, repaired: Vec<Arc<Discrepancy>>) {
        for discrepancy in repaired {
            if let Some((known, _)) = self.discrepancies.get_mut(&discrepancy.id) {
                known.state = discrepancy.state;
            }
        }
    }

    fn note(&mut self, run: RunId, found: Finding, at: Timestamp) -> Discrepancy {
        let mut round = 0;
        while let Some((known, last)) = self.discrepancies.get_mut(&found.id(round)) {
            if known.state == DiscrepancyState::Open {
                *known = found_again(known.clone(), found, *last != run, at);
                *last = run;
                return known.clone();
            }
            round += 1;
        }
        let new = Discrepancy::new(found, round, at);
        self.discrepancies.insert(new.id, (new.clone(), run));
        new
    }
}

impl Rows {
    fn of_bucket(&self, bucket: BucketKey, after: u64, to: u64) -> impl Iterator<Item = &Entry> {
        let from = after.saturating_add(1);
        (from <= to)
            .then(|| self.ledger.range((bucket, from)..=(bucket, to)))
            .into_iter()
            .flatten()
            .map(|(_, e)| e)
    }

    fn facts(&self, id: OrderId) -> OrderFacts {
        let own = self.ledger.values().filter(|entry| entry.order_id == Some(id)).cloned();
        OrderFacts { id, order: self.orders.get(&id).cloned(), is_unreadable: false, entries: own.collect() }
    }
}

fn is_move(entry: &Entry) -> bool {
    matches!(entry.action, Action::TransferOut | Action::TransferIn)
}

fn is_supply(entry: &Entry) -> bool {
    matches!(entry.action, Action::Inbound | Action::Adjust)
}

#[async_trait]
impl ReconcileStore for ModelStore {
    async fn ask_run(&self, run: Run) -> Result<bool, Error> {
        let runs = &mut self.rows().reconciled.runs;
        let waiting = runs.values().filter(|run| run.state == RunState::Running).count();
        let has_room = u64::try_from(waiting).is_ok_and(|waiting| waiting < RUNS_UNFINISHED_MAX);
        if has_room {
            runs.insert(run.id, run);
        }
        Ok(has_room)
    }

    async fn save_run(&self, run: Run) -> Result<(), Error> {
        self.rows().reconciled.runs.insert(run.id, run);
        Ok(())
    }

    async fn run(&self, id: RunId) -> Result<Option<Run>, Error> {
        Ok(self.rows().reconciled.runs.get(&id).cloned())
    }

    async fn runs(&self, page: Page<RunId>) -> Result<(Vec<Run>, bool), Error> {
        let rows = self.rows();
        let runs = rows.reconciled.runs.values().rev();
        let later = runs.filter(|run| page.after.is_none_or(|after| run.id < after)).cloned();
        Ok(page_of(later.collect(), page.limit))
    }

    async fn unfinished_run(&self) -> Result<Option<Run>, Error> {
        Ok(self.rows().reconciled.runs.values().find(|run| run.state == RunState::Running).cloned())
    }

    async fn last_run_at(&self, scope: RunScope) -> Result<Option<Timestamp>, Error> {
        let rows = self.rows();
        let of_scope = rows.reconciled.runs.values().filter(|run| run.scope == scope);
        Ok(of_scope.map(|run| run.started_at).max())
    }

    async fn bucket_heads(&self, page: Page<BucketKey>) -> Result<Vec<BucketHead>, Error> {
        let rows = self.rows();
        let found = after(&rows.buckets, page.after.as_ref()).into_iter().take(page.limit);
        let head = |(key, row)| {
            let last = rows.ledger.range((key, 0)..=(key, u64::MAX)).next_back();
            BucketHead {
                row,
                last_seq: last.map_or(0, |((_, seq), _)| *seq),
                frozen: rows.pools.get(&key.pool).is_some_and(|pool| pool.frozen),
                proved: rows.reconciled.checkpoints.get(&key).copied(),
            }
        };
        Ok(found.map(head).collect())
    }

    async fn odd_pools(&self, most: usize) -> Result<Vec<PoolFacts>, Error> {
        let rows = self.rows();
        let facts = rows.pools.values().map(|pool| PoolFacts {
            pool: pool.id,
            buckets: pool.buckets,
            rows: u32::try_from(rows.buckets_of(pool.id).len()).unwrap_or(u32::MAX),
        });
        Ok(facts.filter(|pool| pool.buckets != pool.rows).take(most).collect())
    }

    async fn sum_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<LedgerSums, Error> {
        let to = to.min(after.saturating_add(SUMMED_ENTRIES_MAX));
        let mut sums = LedgerSums { to, ..LedgerSums::default() };
        for entry in self.rows().of_bucket(bucket, after, to) {
            let unowned =
                if entry.order_id.is_none() { (entry.delta.held, entry.delta.sold) } else { (0, 0) };
            sums = sums.and(LedgerSums {
                to,
                entries: 1,
                delta: entry.delta,
                unowned,
                moves: u64::from(is_move(entry)),
                supplies: u64::from(is_supply(entry)),
                covering: u64::from(entry.action == Action::Repair),
            });
        }
        Ok(sums)
    }

    async fn missing_entries(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Range>, Error> {
        let (mut missing, mut next) = (Vec::new(), after.saturating_add(1));
        let rows = self.rows();
        let there = rows.of_bucket(bucket, after, to).map(|entry| entry.seq);
        for seq in there.chain([to.saturating_add(1)]) {
            if seq > next {
                missing.push(Range { first: next, last: seq - 1 });
            }
            next = seq.saturating_add(1);
        }
        missing.truncate(ODD_ROWS_MAX);
        Ok(missing)
    }

    async fn repairs(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
        let rows = self.rows();
        let repairs = rows.of_bucket(bucket, 0, u64::MAX).filter(|entry| entry.action == Action::Repair);
        Ok(repairs.take(ODD_ROWS_MAX).cloned().collect())
    }

    async fn doubled_supplies(&self, bucket: BucketKey) -> Result<Vec<Entry>, Error> {
        let rows = self.rows();
        let mut known = BTreeSet::new();
        let again = rows.of_bucket(bucket, 0, u64::MAX).filter(|entry| {
            is_supply(entry) && !known.insert((entry.action, entry.source.clone(), entry.business_no.clone()))
        });
        Ok(again.take(ODD_ROWS_MAX).cloned().collect())
    }

    async fn moves(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<Entry>, Error> {
        Ok(self.rows().of_bucket(bucket, after, to).filter(|entry| is_move(entry)).cloned().collect())
    }

    async fn halves(&self, of: Entry) -> Result<Vec<Entry>, Error> {
        let is_half = |entry: &&Entry| {
            let is_of = is_move(entry) && (&entry.source, entry.at) == (&of.source, of.at);
            let stands_in =
                entry.action == Action::Repair && entry.covers.is_some() && entry.order_id.is_none();
            entry.business_no == of.business_no && (is_of || stands_in)
        };
        Ok(self.rows().ledger.values().filter(is_half).cloned().collect())
    }

    async fn orders_in(&self, bucket: BucketKey, after: u64, to: u64) -> Result<Vec<OrderId>, Error> {
        let rows = self.rows();
        let orders: BTreeSet<_> =
            rows.of_bucket(bucket, after, to).filter_map(|entry| entry.order_id).collect();
        Ok(orders.into_iter().collect())
    }

    async fn suspects(&self, asked: OrdersAsked) -> Result<Suspects, Error> {
        let rows = self.rows();
        let named = rows.ledger.values().filter_map(|entry| entry.order_id);
        let all: BTreeSet<OrderId> = rows.orders.keys().copied().chain(named).collect();
        let (ids, last): (Vec<OrderId>, _) = match asked.of {
            OrdersOf::Ids(ids) => (ids, None),
            OrdersOf::Page(page) => {
                let later = all.into_iter().filter(|id| page.after.is_none_or(|after| *id > after));
                let (ids, more) = page_of(later.collect(), page.limit);
                let last = ids.last().copied().filter(|_| more);
                (ids, last)
            }
        };
        let suspects: Vec<OrderFacts> = ids.iter().map(|id| rows.facts(*id)).collect();
        let counted = suspects.iter().filter_map(|facts| facts.order.clone());
        let entries: usize = suspects.iter().map(|facts| facts.entries.len()).sum();
        Ok(Suspects {
            counted: counted.filter(|order| asked.counted.contains(&order.key.campaign)).collect(),
            orders: u64::try_from(ids.len()).unwrap_or(u64::MAX),
            entries: u64::try_from(entries).unwrap_or(u64::MAX),
            suspects,
            last,
        })
    }

    async fn unapplied(&self, page: Page<(Provider, EventId)>) -> Result<Unapplied, Error> {
        let rows = self.rows();
        let (found, more) = page_of(after(&rows.payments, page.after.as_ref()), page.limit);
        let last = found.last().map(|(key, _)| key.clone()).filter(|_| more);
        let succeeded = found.into_iter().map(|(_, row)| row);
        let succeeded = succeeded.filter(|row| row.outcome == PaymentOutcome::Succeeded);
        let with_order = succeeded.map(|row| {
            let order = rows.orders.get(&row.order).cloned();
            (row, order)
        });
        Ok(Unapplied { suspects: with_order.collect(), last })
    }

    async fn usage_rows(&self, page: Page<UsageKey>) -> Result<(Vec<(UsageKey, Usage)>, bool), Error> {
        Ok(page_of(after(&self.rows().usage, page.after.as_ref()), page.limit))
    }

    async fn count_usage(&self, key: UsageKey) -> Result<UsageFacts, Error> {
        let rows = self.rows();
        let row = rows.usage.get(&key).copied().unwrap_or_default();
        let campaign = rows.campaigns.get(&key.campaign).cloned();
        let is_of = |order: &&Arc<Order>| {
            campaign.as_ref().is_some_and(|campaign| {
                order.key.campaign == campaign.id
                    && limited_of(&campaign.policy, &order.account, &order.limit_keys)
                        .any(|(limited, _)| limited == key.limited)
            })
        };
        let counted = rows.orders.values().filter(is_of).map(|order| order.usage());
        let counted = counted.fold(Usage::default(), Usage::and);
        Ok(UsageFacts { key, row, counted })
    }

    async fn save_checkpoints(&self, checkpoints: Vec<Checkpoint>) -> Result<(), Error> {
        self.rows().reconciled.checkpoints.extend(checkpoints.into_iter().map(|c| (c.bucket, c)));
        Ok(())
    }

    async fn note_findings(&self, run: RunId, findings: Vec<Finding>) -> Result<Vec<Discrepancy>, Error> {
        let now = self.clock.now();
        let mut rows = self.rows();
        Ok(findings.into_iter().map(|found| rows.reconciled.note(run, found, now)).collect())
    }

    async fn dispose(&self, dispose: Vec<Dispose>) -> Result<(), Error> {
        let mut rows = self.rows();
        for Dispose { id, state, disposition } in dispose {
            let known = rows.reconciled.discrepancies.get_mut(&id);
            if let Some((known, _)) = known.filter(|(known, _)| known.state == DiscrepancyState::Open) {
                known.state = state;
                known.disposition = disposition;
            }
        }
        Ok(())
    }

    async fn discrepancy(&self, id: DiscrepancyId) -> Result<Option<Discrepancy>, Error> {
        Ok(self.rows().reconciled.discrepancies.get(&id).map(|(known, _)| known.clone()))
    }

    async fn discrepancies(
        &self,
        filter: DiscrepancyFilter,
        page: Page<DiscrepancyId>,
    ) -> Result<(Vec<Discrepancy>, bool), Error> {
        let found = after(&self.rows().reconciled.discrepancies, page.after.as_ref()).into_iter();
        let found = found.map(|(_, (known, _))| known).filter(|known| filter.shows(known));
        Ok(page_of(found.collect(), page.limit))
    }

    async fn open_discrepancies(&self) -> Result<BTreeMap<Class, u64>, Error> {
        let mut open = BTreeMap::new();
        let rows = self.rows();
        let all = rows.reconciled.discrepancies.values().map(|(known, _)| known);
        for known in all.filter(|known| known.state == DiscrepancyState::Open) {
            *open.entry(known.found.class).or_default() += 1;
        }
        Ok(open)
    }
}
