//! Mending a proved difference. Nobody sends numbers: what is done follows from what was proved, as it is stored. It is
//! the only command after which what an entry says and what a balance did may differ, and the entry says why.

use std::sync::Arc;

use crate::case::{CaseAction, CaseState, Resolution};
use crate::command::{Accept, Outcome, Repair};
use crate::id::{Operator, OrderId};
use crate::ledger::{Action, Covers, Entry};
use crate::order::{Order, Reason, State};
use crate::reconcile::{Discrepancy, DiscrepancyState, LostEvent, Proof, Stands};
use crate::refusal::Refusal;
use crate::snapshot::UsageKey;
use crate::stock::{Bucket, BucketKey, Delta};

use super::effects::set_due;
use super::{Blocked, Working, blocked};

/// Longest text of an entry, in bytes: who reads the ledger needs the outline, the rest stands with the difference.
const TEXT_BYTES_MAX: usize = 1_000;

const DOES_NOT_FIT: Refusal =
    Refusal::InvalidValue { pointer: String::new(), why: "does not fit what was proved of this difference" };

/// What one bucket's entry says, and what its balance does.
struct Mended {
    bucket: BucketKey,
    balance: Delta,
    entry: Delta,
    covers: Option<Covers>,
    event: Option<LostEvent>,
    half_of: Option<Arc<str>>,
}

impl Mended {
    /// An entry that says nothing and moves nothing yet.
    const fn at(bucket: BucketKey) -> Self {
        let none = Delta { available: 0, held: 0, sold: 0 };
        Self { bucket, balance: none, entry: none, covers: None, event: None, half_of: None }
    }
}

/// Why nothing was mended.
enum Unmended {
    Refused(Refusal),
    Blocked(Blocked),
}

impl From<Blocked> for Unmended {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

impl From<Refusal> for Unmended {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Working {
    pub(super) fn repair(&mut self, repair: &Repair) -> Outcome {
        let Some(known) = self.rows.discrepancies.get(&repair.id).cloned() else {
            return Outcome::refused(Refusal::UnknownCase);
        };
        let case = self.rows.cases.get(&known.case_id()).cloned();
        if let Some(action) = repair.decides {
            let Some(case) = &case else { return Outcome::refused(Refusal::UnknownCase) };
            match &case.resolution {
                Some(decided) if decided.action == action => {
                    return Outcome::Repaired {
                        discrepancy: known,
                        case: Some(Arc::new(case.clone())),
                        repeated: true,
                    };
                }
                Some(_) => return Outcome::refused(Refusal::Conflict("the case was resolved otherwise")),
                None => {}
            }
        }
        if known.state != DiscrepancyState::Open {
            return match repair.decides {
                Some(_) => {
                    Outcome::refused(Refusal::Conflict("the difference is gone: there is nothing to mend"))
                }
                None => Outcome::Repaired { discrepancy: known, case: None, repeated: true },
            };
        }
        match self.mend(repair, &known) {
            Ok(()) => self.keep_repaired(repair, &known),
            Err(Unmended::Refused(refusal)) => Outcome::refused(refusal),
            Err(Unmended::Blocked(why)) => blocked(why),
        }
    }

    /// The difference and its case, as they are kept.
    fn keep_repaired(&mut self, repair: &Repair, known: &Discrepancy) -> Outcome {
        let discrepancy =
            Arc::new(Discrepancy { state: DiscrepancyState::Repaired, ..Discrepancy::clone(known) });
        self.rows.discrepancies.insert(repair.id, Arc::clone(&discrepancy));
        self.repaired.push(Arc::clone(&discrepancy));
        let case =
            self.rows.cases.get(&known.case_id()).filter(|case| case.state() == CaseState::Open).cloned();
        let case = case.zip(Operator::new(&repair.signed.actor).ok()).map(|(mut case, operator)| {
            // Mended by itself, its case has nothing left to decide.
            let action = repair.decides.unwrap_or(CaseAction::Acknowledge);
            let reason = Arc::clone(&repair.signed.reason);
            case.resolution = Some(Resolution { action, operator, reason, at: self.now });
            self.rows.cases.insert(case.id, case.clone());
            let case = Arc::new(case);
            self.resolved_cases.push(Arc::clone(&case));
            case
        });
        Outcome::Repaired { discrepancy, case, repeated: false }
    }

    fn mend(&mut self, repair: &Repair, known: &Discrepancy) -> Result<(), Unmended> {
        match (&known.found.proof, repair.accept) {
            (Proof::Balance { bucket, difference }, Accept::Ledger) => {
                let mended = Mended { balance: *difference, ..Mended::at(*bucket) };
                self.write_mended(repair, known, vec![mended])
            }
            (Proof::Balance { bucket, difference }, Accept::Balance) => {
                // Held and sold units are of orders, which say nothing of these.
                if difference.held != 0 || difference.sold != 0 {
                    return Err(DOES_NOT_FIT.into());
                }
                let entry = Delta::supply(difference.available.saturating_neg());
                self.write_mended(repair, known, vec![Mended { entry, ..Mended::at(*bucket) }])
            }
            (Proof::Entries { bucket, covers, delta, event, half_of }, Accept::Balance) => {
                let (covers, half_of) = (Some(*covers), half_of.clone());
                let mended = Mended { entry: *delta, covers, event: *event, half_of, ..Mended::at(*bucket) };
                self.write_mended(repair, known, vec![mended])
            }
            (Proof::Alone { deltas, covers, order }, Accept::Compensate) => {
                let event = order.map(|order| LostEvent { order, version: None, from: None, to: None });
                let mended = deltas.iter().map(|(bucket, delta)| Mended {
                    balance: *delta,
                    entry: *delta,
                    covers: *covers,
                    event,
                    ..Mended::at(*bucket)
                });
                self.write_mended(repair, known, mended.collect())
            }
            (Proof::Order { order, seen, stands }, Accept::Ledger) => {
                self.mend_order(repair, known, (*order, *seen), stands.as_ref())
            }
            (Proof::Usage { key, units, open_holds }, Accept::Ledger) => {
                self.mend_usage(key, *units, *open_holds);
                Ok(())
            }
            (
                Proof::Balance { .. }
                | Proof::Entries { .. }
                | Proof::Alone { .. }
                | Proof::Order { .. }
                | Proof::Usage { .. }
                | Proof::Seen,
                Accept::Ledger | Accept::Balance | Accept::Compensate,
            ) => Err(DOES_NOT_FIT.into()),
        }
    }

    /// Writes all of it, or nothing.
    fn write_mended(
        &mut self,
        repair: &Repair,
        known: &Discrepancy,
        mended: Vec<Mended>,
    ) -> Result<(), Unmended> {
        let after = mended.iter().map(|mended| self.bucket_after(mended.bucket, mended.balance));
        let after: Vec<Bucket> = after.collect::<Result<_, Blocked>>()?;
        for (after, mended) in after.into_iter().zip(mended) {
            let entry = self.entry_of(repair, known, &after, &mended);
            self.append(after, entry);
        }
        Ok(())
    }

    /// The bucket after its next entry, which comes behind whatever stands in its ledger.
    fn bucket_after(&self, key: BucketKey, balance: Delta) -> Result<Bucket, Blocked> {
        let Some(row) = self.rows.buckets.get(&key) else { return Err(Blocked::Elsewhere(vec![key.pool])) };
        let end = self.rows.ledger_ends.get(&key).copied().unwrap_or(0).max(row.ledger_seq);
        let row = Bucket { ledger_seq: end, ..*row };
        row.after(balance, self.now).map_err(|_| Blocked::Impossible)
    }

    fn entry_of(&self, repair: &Repair, known: &Discrepancy, after: &Bucket, mended: &Mended) -> Entry {
        let found = &known.found;
        let order = mended.event.map(|event| event.order);
        let of_order = order.and_then(|order| self.order(order));
        let business_no = of_order.map(|order| Arc::from(order.key.order_no.as_str()));
        let business_no = business_no.or_else(|| mended.half_of.clone());
        let business_no = business_no.unwrap_or_else(|| repair.id.to_string().into());
        let reason = format!("{}; expected {}, found {}", repair.signed.reason, found.expected, found.actual);
        Entry {
            bucket: after.key,
            seq: after.ledger_seq,
            at: self.now,
            order_id: order,
            business_no,
            action: Action::Repair,
            delta: mended.entry,
            settled: 0,
            from_state: mended.event.and_then(|event| event.from),
            to_state: mended.event.and_then(|event| event.to),
            order_version: mended.event.and_then(|event| event.version),
            source: format!("{} {}", found.class.as_str(), repair.id).into(),
            actor: Arc::clone(&repair.signed.actor),
            reason: cut(&reason).into(),
            covers: mended.covers,
        }
    }

    /// The order's row is made what its entries say; one of which they say nothing has failed.
    fn mend_order(
        &mut self,
        repair: &Repair,
        known: &Discrepancy,
        (id, seen): (OrderId, u32),
        stands: Option<&Stands>,
    ) -> Result<(), Unmended> {
        let order = self.order(id).ok_or(Refusal::UnknownOrder)?;
        if order.version != seen {
            return Err(Refusal::Conflict("the order has changed since; it is compared again").into());
        }
        let mut after = Order::clone(&order);
        let Some((stands, home)) = stands.zip(order.home) else {
            after.state = State::Failed;
            after.reason = Some(Reason::Operator);
            after.home = None;
            after.due_at = None;
            after.version = after.version.saturating_add(1);
            after.updated_at = self.now;
            after.lines.iter_mut().for_each(|line| line.allocations.clear());
            self.count_usage(Some(&order), &after);
            self.store_silently(&order, after);
            return Ok(());
        };
        allocate_anew(&mut after, stands)?;
        let version = stands.version.saturating_add(1);
        let (from, to) = (Some(stands.state), Some(stands.state));
        let event = LostEvent { order: id, version: Some(version), from, to };
        let mended = Mended { event: Some(event), ..Mended::at(home) };
        self.write_mended(repair, known, vec![mended])?;
        after.state = stands.state;
        after.version = version;
        after.updated_at = self.now;
        let policy = self.policy_of(&order.key.campaign);
        set_due(&mut after, &order, &policy, self.now);
        self.count_usage(Some(&order), &after);
        self.store_silently(&order, after);
        Ok(())
    }

    fn mend_usage(&mut self, key: &UsageKey, units: i64, open_holds: i64) {
        let usage = self.rows.usage.entry(key.clone()).or_default();
        // A row that was changed once more meanwhile is found again.
        usage.units = usage.units.saturating_add_signed(units);
        usage.open_holds = usage.open_holds.saturating_add_signed(open_holds);
        self.dirty_usage.insert(key.clone());
    }
}

/// Gives the lines what stands, where it is plain which line that is: no two of them may take from the same pool.
fn allocate_anew(order: &mut Order, stands: &Stands) -> Result<(), Refusal> {
    let has_stock = match stands.state {
        State::Held | State::InReview | State::Sold | State::Refunded => true,
        State::Queued | State::Released | State::Failed => false,
    };
    let pools: Vec<_> = order.pools().collect();
    let distinct: std::collections::BTreeSet<_> = pools.iter().collect();
    let is_plain = distinct.len() == pools.len() && order.lines.iter().all(|line| line.made_of.is_none());
    if has_stock && !is_plain {
        return Err(Refusal::Conflict("which line has which units cannot be told from the ledger"));
    }
    for line in &mut order.lines {
        let before = std::mem::take(&mut line.allocations);
        if !has_stock {
            continue;
        }
        for (bucket, units) in stands.units.iter().filter(|(bucket, _)| bucket.pool == line.pool) {
            let restocked = before.iter().find(|a| a.bucket == *bucket).map_or(0, |a| a.restocked);
            let quantity = units.saturating_add(restocked);
            line.allocations.push(crate::order::Allocation { bucket: *bucket, quantity, restocked });
        }
        let sum = line.allocations.iter().map(|a| a.quantity).sum::<u64>();
        line.quantity = u32::try_from(sum).unwrap_or(u32::MAX);
        line.refunded = line.refunded.min(line.quantity);
    }
    Ok(())
}

/// A text that is not too long, cut between characters.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}
