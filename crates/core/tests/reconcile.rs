//! Faults planted in the rows of an authority: each is found as what it is and as nothing else, mended by its command,
//! and gone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_core::campaign::Policy;
use holdfast_core::case::{CaseAction, CaseState};
use holdfast_core::command::{Accept, Command, OrderAction, Outcome, Repair, Signed, Transfer, TransferEnd};
use holdfast_core::id::{OrderId, TransferId};
use holdfast_core::ledger::{Action, Covers, Entry};
use holdfast_core::order::{Order, State, Usage};
use holdfast_core::reconcile::{
    BucketFacts, Class, Discrepancy, DiscrepancyState, Doubled, Facts, Finding, LedgerSums, OrderFacts,
    PoolFacts, UsageFacts, classify, judge, knows, rule_of,
};
use holdfast_core::refusal::Refusal;
use holdfast_core::stock::{Bucket, BucketKey, Delta};
use holdfast_core::time::Timestamp;

use support::Authority;
use support::build::*;

/// Held over two buckets, sold, released, and one that came by a transfer.
fn sale() -> Authority {
    let mut db = Authority::new(Policy { account_limit: Some(40), ..Policy::default() });
    db.open_pool("A", 30, 2);
    db.open_pool("B", 5, 1);
    db.send(&adjust("j1", "B", 5, None));
    db.send(&placed(1, &[("A", 20), ("B", 1)]));
    for (number, quantity) in [(2, 2), (3, 1), (4, 1)] {
        db.send(&placed(number, &[("A", quantity)]));
    }
    db.send(&paid(2, "e2", "p2"));
    db.send(&on_order(3, OrderAction::Cancel));
    let (from, to) = (
        TransferEnd { pool: pool_id("B"), bucket: None },
        TransferEnd { pool: pool_id("A"), bucket: Some(1) },
    );
    let transfer_id = TransferId::new("t1").unwrap();
    db.send(&Command::Transfer(Transfer { transfer_id, from, to, quantity: 3, signed: signed() }));
    assert_eq!(found(&db), [], "nothing is wrong yet");
    db
}

fn covered(entries: &[Entry]) -> Vec<Covers> {
    entries.iter().filter_map(|entry| entry.covers).collect()
}

fn is_covered(covers: &[Covers], seq: u64) -> bool {
    covers.iter().any(|covers| (covers.first..=covers.last).contains(&seq))
}

fn bucket_facts(db: &Authority, row: &Bucket) -> BucketFacts {
    let entries = db.entries.get(&row.key).cloned().unwrap_or_default();
    let last_seq = entries.last().map_or(0, |last| last.seq);
    let end = last_seq.max(row.ledger_seq);
    let covers = covered(&entries);
    let there: BTreeSet<u64> = entries.iter().map(|entry| entry.seq).collect();
    let missing = (1..=end).filter(|seq| !there.contains(seq) && !is_covered(&covers, *seq));
    let mut known = BTreeSet::new();
    let supplies = entries.iter().filter(|e| matches!(e.action, Action::Inbound | Action::Adjust));
    let doubled = supplies.filter(|e| !known.insert((e.source.clone(), e.business_no.clone())));
    let unowned = entries.iter().filter(|e| e.order_id.is_none() && e.action != Action::Repair);
    BucketFacts {
        row: *row,
        last_seq,
        sums: LedgerSums {
            to: end,
            entries: u64::try_from(entries.len()).unwrap(),
            delta: entries.iter().fold(Delta::default(), |sum, entry| sum.and(entry.delta)),
            unowned: unowned.fold((0, 0), |sum, e| (sum.0 + e.delta.held, sum.1 + e.delta.sold)),
            ..LedgerSums::default()
        },
        gaps: missing.map(|seq| Covers { first: seq, last: seq }).collect(),
        doubled: doubled.filter(|e| !is_covered(&covers, e.seq)).cloned().map(Doubled).collect(),
        repaired_seq: entries.iter().filter(|e| e.action == Action::Repair).map(|e| e.seq).max().unwrap_or(0),
    }
}

/// What the two halves of one move have in common: source, number, time, units.
type Move = (Arc<str>, Arc<str>, Timestamp, u64);

/// Halves without their others; a repair stands for the half that it covers.
fn unpaired(db: &Authority) -> Vec<Entry> {
    let mut halves: BTreeMap<Move, Vec<Entry>> = BTreeMap::new();
    for entries in db.entries.values() {
        let covers = covered(entries);
        let moves = entries.iter().filter(|e| matches!(e.action, Action::TransferOut | Action::TransferIn));
        for entry in moves.filter(|e| !is_covered(&covers, e.seq)) {
            let units = entry.delta.available.unsigned_abs();
            let key = (entry.source.clone(), entry.business_no.clone(), entry.at, units);
            halves.entry(key).or_default().push(entry.clone());
        }
    }
    let alone = halves.into_values().filter(|both| both.len() % 2 == 1).map(|both| both[0].clone());
    let stands_in = |entry: &&Entry| entry.covers.is_some() && entry.order_id.is_none();
    let repairs: Vec<_> = db.entries.values().flatten().filter(stands_in).collect();
    let is_mended = |half: &Entry| {
        repairs.iter().any(|repair| {
            repair.business_no == half.business_no && repair.delta.available == -half.delta.available
        })
    };
    alone.filter(|half| !is_mended(half)).collect()
}

/// What is wrong, read as a run reads it.
fn found(db: &Authority) -> Vec<Finding> {
    let mut facts = Facts::default();
    facts.buckets =
        db.buckets.values().map(|row| bucket_facts(db, row)).filter(|facts| !facts.is_clean()).collect();
    let named = db.entries.values().flatten().filter_map(|entry| entry.order_id);
    let ids: BTreeSet<OrderId> = db.orders.keys().copied().chain(named).collect();
    for id in ids {
        let order = OrderFacts {
            id,
            order: db.orders.get(&id).cloned(),
            is_unreadable: false,
            entries: db.entries_of(id),
        };
        let before = Timestamp(db.clock.0 - 60_000_000);
        facts.orders.extend(judge(&order, before).map(|fault| (order, fault)));
    }
    facts.unpaired = unpaired(db);
    for pool in db.pools.values() {
        let rows = u32::try_from(db.buckets.keys().filter(|key| key.pool == pool.id).count()).unwrap();
        if rows != pool.buckets {
            facts.pools.push(PoolFacts { pool: pool.id, buckets: pool.buckets, rows });
        }
    }
    for row in &db.payments {
        let order = db.orders.get(&row.order);
        if !order.is_some_and(|order| knows(order, row)) {
            facts.unapplied.push((row.clone(), order.map_or("absent", |order| order.state.as_str())));
        }
    }
    for (key, row) in &db.usage {
        let counted = db.orders.values().map(|order| order.usage()).fold(Usage::default(), |sum, own| {
            Usage { units: sum.units + own.units, open_holds: sum.open_holds + own.open_holds }
        });
        if counted != *row {
            facts.usage.push(UsageFacts { key: key.clone(), row: *row, counted });
        }
    }
    classify(&facts)
}

/// The one thing that is wrong.
#[track_caller]
fn only(db: &Authority, class: Class) -> Finding {
    let mut found = found(db);
    assert_eq!(found.iter().map(|finding| finding.class).collect::<Vec<_>>(), [class], "{found:#?}");
    found.pop().unwrap()
}

/// Keeps a finding with its case, and mends it as a person who decides so.
fn decide(db: &mut Authority, finding: Finding, action: CaseAction) -> Outcome {
    let known = Arc::new(Discrepancy::new(finding, 0, db.clock));
    let case = known.case(db.clock);
    db.cases.insert(case.id, case);
    db.discrepancies.insert(known.id, Arc::clone(&known));
    let repair = command(&known, action);
    let locks = db.all_pools();
    let outcome = db.commit(&locks, std::slice::from_ref(&repair)).pop().unwrap();
    let again = db.commit(&locks, &[repair]).pop().unwrap();
    if let Outcome::Repaired { repeated, .. } = &outcome {
        assert!(!repeated && matches!(again, Outcome::Repaired { repeated: true, .. }), "{again:?}");
    }
    outcome
}

fn command(known: &Discrepancy, action: CaseAction) -> Command {
    use holdfast_core::reconcile::Proof;
    let (order, usage) = match &known.found.proof {
        Proof::Order { order, .. } => (Some(*order), None),
        Proof::Entries { event: Some(event), .. } => (Some(event.order), None),
        Proof::Usage { key, .. } => (None, Some(key.clone())),
        Proof::Balance { .. } | Proof::Entries { .. } | Proof::Alone { .. } | Proof::Seen => (None, None),
    };
    Command::Repair(Arc::new(Repair {
        id: known.id,
        accept: action.accepts().unwrap_or(Accept::Ledger),
        decides: Some(action),
        pool: known.found.pool,
        order,
        usage,
        signed: Signed::new("pia", "looked"),
    }))
}

/// Found as this class alone, mended as suggested, and then nothing is wrong and every invariant holds.
#[track_caller]
fn is_found_and_mended(mut db: Authority, class: Class) -> Authority {
    let finding = only(&db, class);
    assert_eq!(finding.id(0), finding.identity());
    assert_ne!(finding.id(1), finding.identity());
    let (id, action) = (finding.identity(), class.case_kind().suggested());
    assert_eq!(rule_of(class).actions[0], action);
    let outcome = decide(&mut db, finding, action);
    let Outcome::Repaired { discrepancy, case: Some(case), .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((discrepancy.id, discrepancy.state), (id, DiscrepancyState::Repaired));
    assert_eq!((case.state(), case.resolution.as_ref().unwrap().action), (CaseState::Resolved, action));
    assert_eq!(found(&db), []);
    let report = db.audit();
    assert!(report.is_clean(), "{:#?}", report.breaches);
    db
}

fn edit(db: &mut Authority, number: u32, change: impl FnOnce(&mut Order)) {
    let mut order = db.order(order_id(number)).clone();
    change(&mut order);
    db.orders.insert(order.id, Arc::new(order));
}

fn ledger(db: &mut Authority, key: BucketKey) -> &mut Vec<Entry> {
    db.entries.get_mut(&key).unwrap()
}

/// Takes an entry away, whatever it told.
fn remove(db: &mut Authority, is_it: impl Fn(&Entry) -> bool) -> Entry {
    let mut taken = None;
    for entries in db.entries.values_mut() {
        if let Some(at) = entries.iter().position(&is_it) {
            taken = Some(entries.remove(at));
            break;
        }
    }
    taken.expect("an entry")
}

#[test]
fn a_balance_that_was_changed_is_drift() {
    for (available, held) in [(1, 0), (0, 1)] {
        let mut db = sale();
        let row = db.buckets.get_mut(&bucket("A", 1)).unwrap();
        (row.available, row.held) = (row.available + available, row.held + held);
        let db = is_found_and_mended(db, Class::BalanceDrift);
        let repair = db.entries[&bucket("A", 1)].last().unwrap();
        assert_eq!((repair.action, repair.delta), (Action::Repair, Delta::default()));
        assert_eq!(db.audit().repairs, 1);
    }
}

#[test]
fn a_count_may_be_accepted_where_no_order_is_concerned() {
    let mut db = sale();
    db.buckets.get_mut(&bucket("B", 0)).unwrap().available -= 2;
    let finding = only(&db, Class::BalanceDrift);
    let before = db.buckets[&bucket("B", 0)].available;
    assert!(matches!(decide(&mut db, finding, CaseAction::AcceptBalance), Outcome::Repaired { .. }));
    assert_eq!(db.buckets[&bucket("B", 0)].available, before);
    assert!(found(&db).is_empty() && db.audit().is_clean());
    db.buckets.get_mut(&bucket("B", 0)).unwrap().held += 1;
    let finding = only(&db, Class::BalanceDrift);
    let refused = decide(&mut db, finding, CaseAction::AcceptBalance);
    assert!(matches!(refused, Outcome::Refused { refusal: Refusal::InvalidValue { .. }, .. }), "{refused:?}");
}

#[test]
fn a_row_that_was_put_back_is_drift() {
    let mut db = sale();
    let now = db.buckets[&bucket("A", 1)];
    let last = db.entries[&bucket("A", 1)].last().unwrap().clone();
    let available = now.available.checked_add_signed(-last.delta.available).unwrap();
    let old = Bucket { available, ledger_seq: now.ledger_seq - 1, ..now };
    db.buckets.insert(old.key, old);
    let db = is_found_and_mended(db, Class::BalanceDrift);
    assert_eq!(db.buckets[&old.key].available, now.available);
}

/// Whether an entry is the one that is removed.
type Fault = Box<dyn Fn(&Entry) -> bool>;

#[test]
fn an_entry_that_was_removed_is_missing_and_nothing_else() {
    let of = |number: u32, to: State| {
        move |entry: &Entry| entry.order_id == Some(order_id(number)) && entry.to_state == Some(to)
    };
    let beside = |entry: &Entry| entry.order_id == Some(order_id(1)) && entry.order_version.is_none();
    let supply = |entry: &Entry| entry.action == Action::Inbound || entry.action == Action::Adjust;
    let half = |entry: &Entry| entry.action == Action::TransferIn;
    let faults: Vec<Fault> = vec![
        Box::new(of(1, State::Held)),
        Box::new(of(2, State::Held)),
        Box::new(of(2, State::Sold)),
        Box::new(of(3, State::Released)),
        Box::new(of(4, State::Held)),
        Box::new(beside),
        Box::new(supply),
        Box::new(half),
    ];
    for (number, fault) in faults.iter().enumerate() {
        let mut db = sale();
        let removed = remove(&mut db, fault);
        let db = is_found_and_mended(db, Class::EntryMissing);
        let repair =
            db.entries[&removed.bucket].iter().find(|entry| entry.covers.is_some()).expect("a repair");
        assert_eq!(repair.delta, removed.delta, "fault {number}");
        assert_eq!((repair.order_id, repair.order_version), (removed.order_id, removed.order_version));
        assert_eq!(
            (repair.from_state, repair.to_state),
            (removed.from_state, removed.to_state),
            "fault {number}"
        );
    }
}

#[test]
fn an_entry_that_is_there_twice_is_a_duplicate() {
    for is_counted in [true, false] {
        for take in [Some(2), None] {
            let mut db = sale();
            let key = if take.is_some() { bucket("A", 0) } else { bucket("B", 0) };
            let entries = ledger(&mut db, key);
            let is_it = |e: &&Entry| match take {
                Some(number) => e.order_id == Some(order_id(number)),
                None => e.action == Action::Inbound || e.action == Action::Adjust,
            };
            let Some(twin) = entries.iter().find(is_it).cloned() else { continue };
            let seq = entries.last().unwrap().seq + 1;
            entries.push(Entry { seq, ..twin });
            if is_counted {
                db.buckets.get_mut(&key).unwrap().ledger_seq = seq;
            }
            let db = is_found_and_mended(db, Class::EntryDuplicate);
            let repair = db.entries[&key].last().unwrap();
            assert_eq!(repair.covers, Some(Covers { first: seq, last: seq }));
        }
    }
}

#[test]
fn an_order_that_the_ledger_does_not_know_has_no_stock() {
    let mut db = sale();
    let mut orphan = db.order(order_id(4)).clone();
    (orphan.id, orphan.key) = (order_id(77), order_key(77));
    db.orders.insert(orphan.id, Arc::new(orphan));
    db.usage
        .values_mut()
        .for_each(|usage| (usage.units, usage.open_holds) = (usage.units + 1, usage.open_holds + 1));
    let db = is_found_and_mended(db, Class::OrderWithoutStock);
    assert_eq!(db.order(order_id(77)).state, State::Failed);
}

#[test]
fn stock_of_an_order_that_is_gone_comes_back() {
    for number in [1, 2, 3] {
        let mut db = sale();
        let units = db.order(order_id(number)).usage();
        db.orders.remove(&order_id(number));
        db.payments.retain(|row| row.order != order_id(number));
        db.claims.retain(|_, order| *order != order_id(number));
        db.usage.values_mut().for_each(|usage| {
            (usage.units, usage.open_holds) =
                (usage.units - units.units, usage.open_holds - units.open_holds);
        });
        let (available, ..) = db.totals(pool_id("A"));
        let finding = only(&db, Class::StockWithoutOrder);
        assert!(matches!(decide(&mut db, finding, CaseAction::Compensate), Outcome::Repaired { .. }));
        let back = match number {
            1 => 20,
            2 => 2,
            _ => 0,
        };
        assert_eq!(db.totals(pool_id("A")).0, available + back);
        assert_eq!(found(&db), []);
        assert!(db.audit().is_clean(), "{:#?}", db.audit().breaches);
    }
}

#[test]
fn an_order_row_follows_its_entries() {
    let faults: [fn(&mut Order); 3] = [
        |order| order.state = State::Released,
        |order| order.version += 3,
        |order| order.lines[0].allocations[0].quantity += 1,
    ];
    for fault in faults {
        let mut db = sale();
        edit(&mut db, 4, fault);
        // What the row counts for moved with it.
        let counted = db.orders.values().map(|order| order.usage()).collect::<Vec<_>>();
        db.usage.values_mut().for_each(|usage| {
            usage.units = counted.iter().map(|own| own.units).sum();
            usage.open_holds = counted.iter().map(|own| own.open_holds).sum();
        });
        let db = is_found_and_mended(db, Class::AllocationDrift);
        let order = db.order(order_id(4));
        assert_eq!((order.state, order.lines[0].quantity), (State::Held, 1));
    }
    let mut db = sale();
    edit(&mut db, 4, |order| order.version += 3);
    let finding = only(&db, Class::AllocationDrift);
    edit(&mut db, 4, |order| order.version += 1);
    let late = decide(&mut db, finding, CaseAction::AcceptLedger);
    assert!(matches!(late, Outcome::Refused { refusal: Refusal::Conflict(_), .. }), "{late:?}");
}

#[test]
fn half_of_a_transfer_is_moved_back() {
    let mut db = sale();
    let key = bucket("A", 1);
    let entry = db.entries[&key].iter().find(|e| e.action == Action::TransferIn).unwrap().clone();
    let row = db.buckets.get_mut(&key).unwrap();
    row.ledger_seq += 1;
    row.available -= 2;
    let (seq, delta) = (row.ledger_seq, Delta::supply(-2));
    let alone = Entry { seq, action: Action::TransferOut, business_no: "half".into(), delta, ..entry };
    ledger(&mut db, key).push(alone);
    let db = is_found_and_mended(db, Class::TransferUnpaired);
    assert_eq!(db.entries[&key].last().unwrap().delta, Delta::supply(2));
}

#[test]
fn what_is_safe_is_found_by_class() {
    let mut db = sale();
    db.usage.values_mut().for_each(|usage| usage.units += 4);
    is_found_and_mended(db, Class::UsageDrift);
    let mut db = sale();
    let late = Timestamp(db.clock.0 - 3_600_000_000);
    edit(&mut db, 4, |order| (order.hold_ends_at, order.due_at) = (Some(late), None));
    only(&db, Class::HoldOverdue);
    let mut db = sale();
    edit(&mut db, 2, |order| order.payments.clear());
    only(&db, Class::PaidNotApplied);
    let mut db = sale();
    db.pools.get_mut(&pool_id("A")).unwrap().buckets = 3;
    only(&db, Class::BucketSumOff);
}

#[test]
fn a_payment_whose_order_knows_nothing_of_it_is_applied_when_it_is_told_again() {
    let mut db = sale();
    let told = paid(4, "e4", "p4");
    let mut lost = db.clone();
    lost.send(&told);
    // Only the row of the payment was kept.
    db.payments = lost.payments;
    db.claims = lost.claims;
    only(&db, Class::PaidNotApplied);
    assert!(matches!(db.send(&told), Outcome::Order { .. }));
    assert_eq!(db.order(order_id(4)).state, State::Sold);
    assert_eq!(found(&db), []);
}

#[test]
fn several_faults_are_several_findings() {
    let mut db = sale();
    remove(&mut db, |entry| entry.order_id == Some(order_id(4)));
    db.buckets.get_mut(&bucket("B", 0)).unwrap().available += 9;
    db.usage.values_mut().for_each(|usage| usage.open_holds += 1);
    let classes: Vec<Class> = found(&db).iter().map(|finding| finding.class).collect();
    assert_eq!(classes, [Class::EntryMissing, Class::BalanceDrift, Class::UsageDrift]);
}
