//! Cases: what needs a person.

use std::sync::Arc;

use crate::cache::Accepted;
use crate::campaign::spelled;
use crate::command::Accept;
use crate::id::{CaseId, Operator, OrderId, PoolId};
use crate::ledger::Entry;
use crate::order::{Notice, Order};
use crate::reconcile::{Class, rule_of};
use crate::refusal::Refusal;
use crate::stock::Bucket;
use crate::time::Timestamp;

/// What a case is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKind {
    /// The authority stands on older data than it once had: it was restored, or a file was put back.
    Incarnation,
    /// An order's number came again with other content while the order holds or bought stock.
    OrderMismatch,
    /// A payment succeeded for an order that was paid before.
    ChargedTwice,
    /// A payment of an order that has ended is under review: it was not applied, and may have to go back.
    PaymentUnderReview,
    /// A hold whose time is over cannot be ended: its rows contradict each other.
    HoldOverdue,
    /// What a cache accepted cannot be read or landed: its units are settled, its buyer has no order.
    PoisonEntry,
    /// The ledger of a bucket has entries beyond the bucket's own sequence: its row was put back or changed from outside.
    LedgerAhead,
    /// Entries are missing in a ledger. This and the next are differences that reconciliation proved.
    EntryMissing,
    /// A ledger tells the same twice.
    EntryDuplicate,
    /// A balance is not the sum of its ledger.
    BalanceDrift,
    /// A pool has not the buckets that it says.
    BucketSumOff,
    /// Half of a transfer stands alone.
    TransferUnpaired,
    /// An order says that it has stock of which the ledger knows nothing.
    OrderWithoutStock,
    /// The ledger tells of an order that is not there.
    StockWithoutOrder,
    /// An order's row is not what its entries say.
    AllocationDrift,
    /// A payment that succeeded could not be applied again.
    PaidNotApplied,
    /// A usage row could not be mended.
    UsageDrift,
    /// A cache had more than the ledger lets it have, again and again.
    CacheAhead,
    /// A cache had less than the ledger lets it have, again and again.
    CacheBehind,
    /// Accepted orders have no entry to land from, again and again.
    EntryUnlanded,
    /// An event does not reach a sink.
    EventStuck,
}

/// Whether somebody still has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseState {
    /// It waits for a person.
    Open,
    /// A person has decided.
    Resolved,
}

/// What a person may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseAction {
    /// The loss is known and accepted; go on.
    Acknowledge,
    /// What the ledger says holds: the row that differs is made so.
    AcceptLedger,
    /// What the rows say holds: the ledger gets what it lacks.
    AcceptBalance,
    /// What has no other half is moved back.
    Compensate,
}

spelled! {
    CaseKind {
        Incarnation = "incarnation", OrderMismatch = "order_mismatch", ChargedTwice = "charged_twice",
        PaymentUnderReview = "payment_under_review", HoldOverdue = "hold_overdue",
        PoisonEntry = "poison_entry", LedgerAhead = "ledger_ahead", EntryMissing = "entry_missing",
        EntryDuplicate = "entry_duplicate", BalanceDrift = "balance_drift", BucketSumOff = "bucket_sum_off",
        TransferUnpaired = "transfer_unpaired", OrderWithoutStock = "order_without_stock",
        StockWithoutOrder = "stock_without_order", AllocationDrift = "allocation_drift",
        PaidNotApplied = "paid_not_applied", UsageDrift = "usage_drift", CacheAhead = "cache_ahead",
        CacheBehind = "cache_behind", EntryUnlanded = "entry_unlanded", EventStuck = "event_stuck",
    }
    CaseState { Open = "open", Resolved = "resolved" }
    CaseAction {
        Acknowledge = "acknowledge", AcceptLedger = "accept_ledger", AcceptBalance = "accept_balance",
        Compensate = "compensate",
    }
}

impl CaseAction {
    /// Which side of a difference it lets hold; none: it mends nothing.
    pub const fn accepts(self) -> Option<Accept> {
        match self {
            Self::Acknowledge => None,
            Self::AcceptLedger => Some(Accept::Ledger),
            Self::AcceptBalance => Some(Accept::Balance),
            Self::Compensate => Some(Accept::Compensate),
        }
    }
}

impl CaseKind {
    /// Whether nothing may be sold while it is open. Holds, payments, cancels and releases go on.
    pub const fn halts(self) -> bool {
        matches!(self, Self::Incarnation)
    }

    /// What it is a case of, where reconciliation raised it.
    pub const fn class(self) -> Option<Class> {
        Some(match self {
            Self::Incarnation
            | Self::OrderMismatch
            | Self::ChargedTwice
            | Self::PaymentUnderReview
            | Self::PoisonEntry
            | Self::LedgerAhead => return None,
            Self::HoldOverdue => Class::HoldOverdue,
            Self::EntryMissing => Class::EntryMissing,
            Self::EntryDuplicate => Class::EntryDuplicate,
            Self::BalanceDrift => Class::BalanceDrift,
            Self::BucketSumOff => Class::BucketSumOff,
            Self::TransferUnpaired => Class::TransferUnpaired,
            Self::OrderWithoutStock => Class::OrderWithoutStock,
            Self::StockWithoutOrder => Class::StockWithoutOrder,
            Self::AllocationDrift => Class::AllocationDrift,
            Self::PaidNotApplied => Class::PaidNotApplied,
            Self::UsageDrift => Class::UsageDrift,
            Self::CacheAhead => Class::CacheAhead,
            Self::CacheBehind => Class::CacheBehind,
            Self::EntryUnlanded => Class::EntryUnlanded,
            Self::EventStuck => Class::EventStuck,
        })
    }

    /// What a person may decide.
    pub fn actions(self) -> &'static [CaseAction] {
        self.class().map_or(&[CaseAction::Acknowledge], |class| rule_of(class).actions)
    }

    /// What is suggested to the person.
    pub fn suggested(self) -> CaseAction {
        self.actions().first().copied().unwrap_or(CaseAction::Acknowledge)
    }

    /// Whether the action fits the case.
    pub fn allows(self, action: CaseAction) -> bool {
        self.actions().contains(&action)
    }
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What.
    pub action: CaseAction,
    /// Who.
    pub operator: Operator,
    /// Why.
    pub reason: Arc<str>,
    /// When.
    pub at: Timestamp,
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its id.
    pub id: CaseId,
    /// What it is about.
    pub kind: CaseKind,
    /// The pool concerned.
    pub pool: Option<PoolId>,
    /// The order concerned.
    pub order: Option<OrderId>,
    /// What is known, as a JSON object.
    pub evidence: Arc<str>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// What was decided; none while it is open.
    pub resolution: Option<Resolution>,
}

impl Case {
    /// A case that nobody has decided yet.
    pub const fn open(id: CaseId, kind: CaseKind, evidence: Arc<str>, opened_at: Timestamp) -> Self {
        Self { id, kind, pool: None, order: None, evidence, opened_at, resolution: None }
    }

    /// The case of an order whose number came again with other content.
    pub fn order_mismatch(order: &Order, fields: &[String], at: Timestamp) -> Self {
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        Self::of_order(CaseKind::OrderMismatch, order, &format!(r#","fields":[{}]"#, fields.join(",")), at)
    }

    /// The case of an order that was paid once more.
    pub fn charged_twice(order: &Order, notice: &Notice, at: Timestamp) -> Self {
        let mut more = format!(
            r#","provider":{},"payment_id":{},"event_id":{}"#,
            quoted(notice.provider.as_str()),
            quoted(notice.payment_id.as_str()),
            quoted(notice.event_id.as_str())
        );
        if let (Some(amount), Some(currency)) = (notice.amount_minor, &notice.currency) {
            more += &format!(r#","amount_minor":{amount},"currency":{}"#, quoted(currency));
        }
        Self::of_order(CaseKind::ChargedTwice, order, &more, at)
    }

    /// The case of an order that has ended with payments that nobody judged.
    pub fn payment_under_review(order: &Order, at: Timestamp) -> Self {
        let reviewed = order.payments.iter().filter(|payment| payment.is_under_review());
        let payments: Vec<String> = reviewed
            .map(|payment| {
                let (provider, id) = (&payment.notice.provider, &payment.notice.payment_id);
                format!(
                    r#"{{"provider":{},"payment_id":{}}}"#,
                    quoted(provider.as_str()),
                    quoted(id.as_str())
                )
            })
            .collect();
        let more = format!(r#","payments":[{}]"#, payments.join(","));
        Self::of_order(CaseKind::PaymentUnderReview, order, &more, at)
    }

    /// The case of an order that cannot be ended though its time is over. Its row may not be readable, so only what
    /// the scan knows of it is told.
    pub fn hold_overdue(order: OrderId, pool: PoolId, due_at: Timestamp, why: &str, at: Timestamp) -> Self {
        let evidence = format!(r#"{{"due_at":"{due_at}","why":{}}}"#, quoted(&printable(why)));
        let id = id_of(CaseKind::HoldOverdue, order);
        let open = Self::open(id, CaseKind::HoldOverdue, evidence.into(), at);
        Self { order: Some(order), pool: Some(pool), ..open }
    }

    /// The case of a stream entry that cannot be landed.
    pub fn poison_entry(accepted: &Accepted, why: &str, at: Timestamp) -> Self {
        let Accepted { bucket, epoch, entry, number, units } = accepted;
        let evidence = format!(
            r#"{{"bucket":{},"epoch":{epoch},"entry":"{entry}","number":{number},"units":{units},"why":{}}}"#,
            bucket.number,
            quoted(&printable(why))
        );
        let open = Self::open(id_of_entry(accepted), CaseKind::PoisonEntry, evidence.into(), at);
        Self { pool: Some(bucket.pool), ..open }
    }

    /// The case of a bucket whose ledger goes on beyond its row: the first entry there, and the last one's number.
    /// The same row and the same last entry are the same case, whoever finds them.
    pub fn ledger_ahead(bucket: &Bucket, first: &Entry, last_seq: u64, at: Timestamp) -> Self {
        let Bucket { key, available, held, sold, ledger_seq, .. } = bucket;
        let evidence = format!(
            r#"{{"bucket":{},"ledger_seq":{ledger_seq},"available":{available},"held":{held},"sold":{sold},"last_entry":{last_seq},"first_beyond":{{"seq":{},"at":"{}","action":"{}","business_no":{}}}}}"#,
            key.number,
            first.seq,
            first.at,
            first.action.as_str(),
            quoted(&printable(&first.business_no))
        );
        let named = [key.pool.0, u128::from(key.number), u128::from(*ledger_seq), u128::from(last_seq)];
        let millis = u64::try_from(first.at.0 / 1_000).unwrap_or(0);
        let open = Self::open(id_of_facts(millis, &named), CaseKind::LedgerAhead, evidence.into(), at);
        Self { pool: Some(key.pool), ..open }
    }

    /// A case about an order. Its id is made of the order's and the kind, so that an order has one case of
    /// a kind, whoever raises it and however often.
    fn of_order(kind: CaseKind, order: &Order, more: &str, at: Timestamp) -> Self {
        let id = id_of(kind, order.id);
        let evidence = format!(
            r#"{{"campaign_id":{},"order_no":{},"account":{},"state":"{}","version":{}{more}}}"#,
            quoted(order.key.campaign.as_str()),
            quoted(order.key.order_no.as_str()),
            quoted(order.account.as_str()),
            order.state.as_str(),
            order.version
        );
        Self { order: Some(order.id), ..Self::open(id, kind, evidence.into(), at) }
    }

    /// Whether somebody still has to act.
    pub const fn state(&self) -> CaseState {
        match self.resolution {
            None => CaseState::Open,
            Some(_) => CaseState::Resolved,
        }
    }

    /// Whether it stops all sales now.
    pub const fn halts(&self) -> bool {
        self.kind.halts() && matches!(self.state(), CaseState::Open)
    }

    /// Takes a decision. The same action again is a repeat: the first decision stands, with its reason.
    /// Whether the case has changed.
    pub fn resolve(&mut self, resolution: Resolution) -> Result<bool, Refusal> {
        if !self.kind.allows(resolution.action) {
            return Err(Refusal::InvalidValue {
                pointer: "/action".into(),
                why: "does not fit this kind of case",
            });
        }
        match &self.resolution {
            Some(known) if known.action == resolution.action => Ok(false),
            Some(_) => Err(Refusal::Conflict("the case was resolved otherwise")),
            None => {
                self.resolution = Some(resolution);
                Ok(true)
            }
        }
    }
}

/// The id of an order's case of a kind.
const fn id_of(kind: CaseKind, order: OrderId) -> CaseId {
    let mark = match kind {
        CaseKind::Incarnation => 0,
        CaseKind::OrderMismatch => 1,
        CaseKind::ChargedTwice => 2,
        CaseKind::HoldOverdue => 3,
        CaseKind::PoisonEntry => 4,
        CaseKind::LedgerAhead => 5,
        CaseKind::PaymentUnderReview => 6,
        // Cases of reconciliation have the numbers of their differences.
        CaseKind::EntryMissing
        | CaseKind::EntryDuplicate
        | CaseKind::BalanceDrift
        | CaseKind::BucketSumOff
        | CaseKind::TransferUnpaired
        | CaseKind::OrderWithoutStock
        | CaseKind::StockWithoutOrder
        | CaseKind::AllocationDrift
        | CaseKind::PaidNotApplied
        | CaseKind::UsageDrift
        | CaseKind::CacheAhead
        | CaseKind::CacheBehind
        | CaseKind::EntryUnlanded
        | CaseKind::EventStuck => 7,
    };
    // Above the random half of an id, where ids of orders differ by the clock only.
    CaseId(order.0 ^ (mark << ORDER_CASE_SHIFT))
}

/// Where the kind stands in the id of an order's case.
const ORDER_CASE_SHIFT: u32 = 64;

/// The id of a stream entry's case.
fn id_of_entry(accepted: &Accepted) -> CaseId {
    let Accepted { bucket, epoch, entry, .. } = accepted;
    let named = [
        bucket.pool.0,
        u128::from(bucket.number),
        u128::from(epoch.0),
        u128::from(entry.millis),
        u128::from(entry.number),
    ];
    id_of_facts(entry.millis, &named)
}

/// The id of a case, the same whoever raises it.
fn id_of_facts(millis: u64, named: &[u128]) -> CaseId {
    CaseId(hashed_id(u128::from(millis), named))
}

/// Where the time stands in an id.
pub(crate) const TIME_SHIFT: u32 = 80;

/// An id for what is the same whoever finds it: a time, as in every id, then a hash of what names it (FNV-1a, which
/// will not change).
pub(crate) fn hashed_id(millis: u128, named: &[u128]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = named.iter().flat_map(|part| part.to_be_bytes());
    let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    millis << TIME_SHIFT | hash & ((1 << TIME_SHIFT) - 1)
}

/// A text without control characters.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Any text as JSON.
pub(crate) fn quoted_text(text: &str) -> String {
    quoted(&printable(text))
}

/// A text as JSON. Identifiers and pointers hold no control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_stands() {
        let mut case = Case::open(CaseId(1), CaseKind::Incarnation, "{}".into(), Timestamp(1));
        assert!(case.halts());
        let decide = |reason: &str| Resolution {
            action: CaseAction::Acknowledge,
            operator: Operator::new("ann").unwrap(),
            reason: reason.into(),
            at: Timestamp(2),
        };
        assert_eq!(case.resolve(decide("first")), Ok(true));
        assert_eq!(case.resolve(decide("second")), Ok(false));
        assert_eq!(case.resolution, Some(decide("first")));
        assert_eq!((case.state(), case.halts()), (CaseState::Resolved, false));
    }

    #[test]
    fn words_read_back() {
        for kind in CaseKind::ALL {
            assert_eq!(CaseKind::parse(kind.as_str()), Some(*kind));
            assert!(kind.allows(kind.suggested()), "what is suggested is allowed");
        }
        for state in CaseState::ALL {
            assert_eq!(CaseState::parse(state.as_str()), Some(*state));
        }
    }
}
