//! Importing a stock file: every row is judged first, and only if none is refused anything changes.

use std::sync::Arc;

use crate::command::Outcome;
use crate::id::PoolId;
use crate::import::{
    Basis, Counted, Import, ImportCounts, ImportMode, ImportRow, Imported, RowDone, RowFault, RowRefusal,
    RowReport,
};
use crate::ledger::Action;
use crate::refusal::Refusal;
use crate::stock::{BALANCE_MAX, Bucket, Opening, Path, Pool, Routing};

use super::stock::{signed, spread};
use super::{Blocked, Deltas, Note, Working, blocked};

/// What a row is going to do.
enum Step {
    Open(Pool),
    Nothing(PoolId),
    Adjust { pool: PoolId, deltas: Deltas, delta: i64, note: Note },
}

impl Step {
    fn report(&self, line: u64) -> RowReport {
        let (pool, done, delta) = match self {
            Self::Open(pool) => (pool.id, RowDone::Opened, signed(pool.opening.supply)),
            Self::Nothing(pool) => (*pool, RowDone::Unchanged, 0),
            Self::Adjust { pool, delta, .. } => (*pool, RowDone::Adjusted, *delta),
        };
        RowReport { line, pool, done, delta }
    }
}

impl Working {
    pub(super) fn import(&mut self, import: &Import) -> Outcome {
        if let Some(known) = self.rows.imports.get(&import.id) {
            let fields = mismatch(import, known);
            if !fields.is_empty() {
                return Outcome::refused(Refusal::KeyMismatch(fields));
            }
            return Outcome::Imported { counts: known.counts, rows: Vec::new(), repeated: true };
        }
        if !self.rows.campaigns.contains_key(&import.campaign) {
            return Outcome::refused(Refusal::UnknownCampaign);
        }
        let pools: Vec<Option<PoolId>> = import.rows.iter().map(|row| self.pool_of(import, row)).collect();
        let unlocked: Vec<PoolId> =
            pools.iter().flatten().copied().filter(|pool| !self.is_complete(*pool)).collect();
        if !unlocked.is_empty() {
            return Outcome::Elsewhere(unlocked);
        }
        let (mut steps, mut faults) = (Vec::with_capacity(pools.len()), Vec::new());
        for (row, pool) in import.rows.iter().zip(pools) {
            match self.judge(import, row, pool) {
                Ok(step) => steps.push((row.line, step)),
                Err(why) => faults.push(RowFault { line: row.line, why }),
            }
        }
        if !faults.is_empty() {
            return Outcome::refused(Refusal::Rows(faults));
        }
        let rows: Vec<RowReport> = steps.iter().map(|(line, step)| step.report(*line)).collect();
        let counts = counted(import, &rows);
        if !import.dry_run {
            for (_, step) in steps {
                if let Err(why) = self.take(import, step) {
                    return blocked(why);
                }
            }
            let (id, campaign, digest) = (import.id.clone(), import.campaign.clone(), import.digest);
            let (mode, at, signed) = (import.mode, self.now, import.signed.clone());
            let imported = Imported { id, campaign, mode, digest, counts, at, signed };
            self.rows.imports.insert(imported.id.clone(), imported.clone());
            self.new_imports.push(imported);
        }
        Outcome::Imported { counts, rows, repeated: false }
    }

    fn pool_of(&self, import: &Import, row: &ImportRow) -> Option<PoolId> {
        let address = (import.campaign.clone(), row.sku.clone(), row.location.clone());
        self.rows.pool_addresses.get(&address).copied()
    }

    /// What a row would do. Changes nothing.
    fn judge(&self, import: &Import, row: &ImportRow, pool: Option<PoolId>) -> Result<Step, RowRefusal> {
        match import.mode {
            ImportMode::Open => self.judge_opening(import, row, pool),
            ImportMode::Inbound => {
                let pool = pool.ok_or(RowRefusal::UnknownSku)?;
                let note = note(import, Action::Inbound, None);
                self.judge_change(import, pool, signed(row.quantity), note)
            }
            ImportMode::Count => {
                let pool = pool.ok_or(RowRefusal::UnknownSku)?;
                let Some(count) = row.counted else { return Err(RowRefusal::CountedBeforeOpening) };
                let expected = self.expected(pool, count)?;
                let told = format!("counted {} at {}, {expected} expected", row.quantity, count.at);
                let delta = signed(row.quantity).saturating_sub(expected);
                self.judge_change(import, pool, delta, note(import, Action::Adjust, Some(&told)))
            }
        }
    }

    /// A pool that was or is as the row says is left as it is; another supply is no opening.
    fn judge_opening(
        &self,
        import: &Import,
        row: &ImportRow,
        pool: Option<PoolId>,
    ) -> Result<Step, RowRefusal> {
        let Some(pool) = pool else {
            if self.campaign(&import.campaign).is_some_and(|campaign| campaign.assortment.is_bundle(&row.sku))
            {
                return Err(RowRefusal::Bundle);
            }
            if row.quantity > BALANCE_MAX {
                return Err(RowRefusal::TooMuch);
            }
            let (supply, path, routing) = (row.quantity, Path::default(), Routing::default());
            let opening = Opening { supply, buckets: 1, path, routing };
            let (campaign, sku, location) = (import.campaign.clone(), row.sku.clone(), row.location.clone());
            return Ok(Step::Open(Pool::opened(row.new_pool, campaign, sku, location, opening)));
        };
        let opening = self.rows.pools.get(&pool).map_or(0, |pool| pool.opening.supply);
        let supply = self.locked_buckets(pool).map(Bucket::supply).sum();
        if row.quantity == opening || row.quantity == supply {
            return Ok(Step::Nothing(pool));
        }
        Err(RowRefusal::OpenedOtherwise { opening, supply })
    }

    fn judge_change(
        &self,
        import: &Import,
        pool: PoolId,
        delta: i64,
        note: Note,
    ) -> Result<Step, RowRefusal> {
        if delta == 0 {
            return Ok(Step::Nothing(pool));
        }
        let threshold = self.campaign(&import.campaign).and_then(|c| c.policy.approval_threshold);
        if let Some(threshold) = threshold.filter(|most| delta.unsigned_abs() > *most) {
            return Err(RowRefusal::NeedsApproval { threshold });
        }
        if delta < 0 && self.lets_nothing_out(pool) {
            return Err(RowRefusal::Frozen);
        }
        let deltas = spread(self.pool_buckets(pool), delta).map_err(RowRefusal::StockInUse)?;
        self.balances_after(&deltas).map_err(|_| RowRefusal::TooMuch)?;
        Ok(Step::Adjust { pool, deltas, delta, note })
    }

    /// How many units a count should have found, as the ledger tells of its time.
    fn expected(&self, pool: PoolId, count: Counted) -> Result<i64, RowRefusal> {
        if count.at > self.now {
            return Err(RowRefusal::CountedInFuture);
        }
        let since = self.rows.since.get(&(pool, count.at)).copied().unwrap_or_default();
        if !since.was_open {
            return Err(RowRefusal::CountedBeforeOpening);
        }
        if let Some(at) = since.corrected_at {
            return Err(RowRefusal::CorrectedSince(at));
        }
        let sum = |units: fn(&Bucket) -> u64| signed(self.locked_buckets(pool).map(units).sum());
        let unsold = sum(|bucket| bucket.available)
            .saturating_add(sum(|bucket| bucket.held))
            .saturating_sub(since.change.available.saturating_add(since.change.held));
        match count.basis {
            Basis::Unsold => Ok(unsold),
            Basis::OnHand { shipped } => {
                let sold = sum(|bucket| bucket.sold).saturating_sub(since.change.sold);
                if signed(shipped) > sold {
                    let sold = u64::try_from(sold).unwrap_or(0);
                    return Err(RowRefusal::ShippedMoreThanSold { sold });
                }
                Ok(unsold.saturating_add(sold).saturating_sub(signed(shipped)))
            }
        }
    }

    /// Does what was judged.
    fn take(&mut self, import: &Import, step: Step) -> Result<(), Blocked> {
        match step {
            Step::Open(pool) => self.open_new(pool, &import.signed),
            Step::Nothing(_) => Ok(()),
            Step::Adjust { deltas, note, .. } => {
                self.post(&deltas, &note, &Arc::from(import.id.as_str()), None)
            }
        }
    }
}

fn note(import: &Import, action: Action, told: Option<&str>) -> Note {
    let reason = match told {
        None => Arc::clone(&import.signed.reason),
        Some(told) if import.signed.reason.is_empty() => Arc::from(told),
        Some(told) => format!("{}: {told}", import.signed.reason).into(),
    };
    Note {
        action,
        source: Arc::from("import"),
        actor: Arc::clone(&import.signed.actor),
        reason,
        settles: None,
    }
}

fn counted(import: &Import, rows: &[RowReport]) -> ImportCounts {
    let count = |done: RowDone| rows.iter().map(|row| u64::from(row.done == done)).sum();
    ImportCounts {
        rows: rows.iter().map(|_| 1).sum(),
        units: import.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.quantity)),
        opened: count(RowDone::Opened),
        unchanged: count(RowDone::Unchanged),
        adjusted: count(RowDone::Adjusted),
    }
}

fn mismatch(sent: &Import, kept: &Imported) -> Vec<String> {
    let differs = [
        (sent.campaign != kept.campaign, "/query/campaign_id"),
        (sent.mode != kept.mode, "/query/mode"),
        (sent.digest != kept.digest, "/lines"),
    ];
    differs.into_iter().filter(|(differs, _)| *differs).map(|(_, pointer)| pointer.to_owned()).collect()
}
