//! Stock files: whole or not at all, once, and counts judged by the ledger of their time.

use std::sync::Arc;

use holdfast_core::campaign::Policy;
use holdfast_core::command::{Adjust, AdjustmentKind, Command, OrderAction, Outcome};
use holdfast_core::id::{AdjustmentId, ImportId, Location, PoolId, Sku};
use holdfast_core::import::{
    Basis, Counted, Import, ImportCounts, ImportMode, ImportRow, RowDone, RowFault, RowRefusal,
};
use holdfast_core::ledger::Action;
use holdfast_core::order::Shortage;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::PoolSwitch;
use holdfast_core::time::Timestamp;

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, balances, bucket, campaign_id, change, one, open_campaign, open_pool, place, placed,
    signed, whole,
};
use crate::acts::ActFilter;
use crate::contract::Store;
use crate::read::{LedgerFilter, Page};

/// A row about the pool that the suite opens under this number; the header is line 1.
fn row(line: u64, pool: u128, quantity: u64, counted: Option<Counted>) -> ImportRow {
    let sku = Sku::new(&format!("SKU-{pool}")).expect("a good id");
    let location = Location::new("main").expect("a good id");
    ImportRow { line, sku, location, quantity, counted, new_pool: PoolId(pool) }
}

fn import(id: &str, mode: ImportMode, rows: Vec<ImportRow>) -> Import {
    // Any digest does that differs where the rows do.
    let mut digest = [0; 32];
    for row in &rows {
        digest[0] ^= u8::try_from(row.quantity % 251).expect("small");
    }
    let id = ImportId::new(id).expect("a good id");
    Import { id, campaign: campaign_id(), mode, digest, rows, dry_run: false, signed: signed() }
}

/// Runs an import as the engine does: what it names must be locked the second time.
async fn run(store: &dyn Store, import: &Import) -> Outcome {
    let command = || Command::Import(Arc::new(import.clone()));
    match one(store, LockSet::default(), command()).await {
        Outcome::Elsewhere(pools) => {
            let locks = LockSet { pools: pools.into_iter().collect(), ..LockSet::default() };
            one(store, locks, command()).await
        }
        outcome => outcome,
    }
}

fn faults(outcome: Outcome) -> Vec<(u64, RowRefusal)> {
    match outcome {
        Outcome::Refused { refusal: Refusal::Rows(faults), recorded: false, .. } => {
            faults.into_iter().map(|RowFault { line, why }| (line, why)).collect()
        }
        other => panic!("not refused row by row: {other:?}"),
    }
}

fn counts(outcome: &Outcome) -> (u64, u64, u64) {
    match outcome {
        Outcome::Imported { counts: ImportCounts { opened, unchanged, adjusted, .. }, .. } => {
            (*opened, *unchanged, *adjusted)
        }
        other => panic!("not imported: {other:?}"),
    }
}

async fn entries(store: &dyn Store) -> usize {
    store.ledger(LedgerFilter::default(), Page { after: None, limit: 500 }).await.expect("ledger").0.len()
}

/// One bad row, and nothing of the file is done; the same file again changes nothing; a dry run changes nothing.
pub async fn a_stock_file_is_applied_whole_and_once(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 3).await;
    let opening = vec![row(2, 1, 10, None), row(3, 2, 7, None), row(4, 3, 0, None)];
    let dry = Import { dry_run: true, ..import("i0", ImportMode::Open, opening.clone()) };
    assert_eq!(counts(&run(&*store, &dry).await), (2, 1, 0));
    assert_eq!(entries(&*store).await, 3, "only looked");
    let file = import("i1", ImportMode::Open, opening);
    let done = run(&*store, &file).await;
    assert_eq!(counts(&done), (2, 1, 0));
    let Outcome::Imported { rows, repeated: false, .. } = done else { panic!("{done:?}") };
    let told: Vec<_> = rows.iter().map(|row| (row.line, row.pool.0, row.done, row.delta)).collect();
    assert_eq!(told, [(2, 1, RowDone::Unchanged, 0), (3, 2, RowDone::Opened, 7), (4, 3, RowDone::Opened, 0)]);
    let again = run(&*store, &file).await;
    assert!(matches!(again, Outcome::Imported { repeated: true, .. }) && counts(&again) == (2, 1, 0));
    let other = import("i1", ImportMode::Inbound, vec![row(2, 1, 4, None)]);
    let Outcome::Refused { refusal: Refusal::KeyMismatch(fields), .. } = run(&*store, &other).await else {
        panic!("bound to its content")
    };
    assert_eq!(fields, ["/query/mode", "/lines"]);
    // What is open is never changed by opening.
    let other = import("i2", ImportMode::Open, vec![row(2, 9, 1, None), row(3, 2, 8, None)]);
    let why = RowRefusal::OpenedOtherwise { opening: 7, supply: 7 };
    assert_eq!(faults(run(&*store, &other).await), [(3, why)]);
    let inbound = vec![row(2, 1, 5, None), row(3, 9, 5, None), row(4, 3, 0, None), row(5, 8, 1, None)];
    let bad = run(&*store, &import("i3", ImportMode::Inbound, inbound)).await;
    assert_eq!(faults(bad), [(3, RowRefusal::UnknownSku), (5, RowRefusal::UnknownSku)]);
    assert_eq!(balances(&*store, 1).await, (10, 0, 0));
    let inbound = import("i4", ImportMode::Inbound, vec![row(2, 1, 5, None), row(3, 3, 0, None)]);
    for _ in 0..2 {
        assert_eq!(counts(&run(&*store, &inbound).await), (0, 1, 1));
        assert_eq!(balances(&*store, 1).await, (15, 0, 0));
    }
    let page = Page { after: None, limit: 100 };
    let (acts, _) = store.acts(ActFilter::default(), page).await.expect("acts");
    assert_eq!(acts.iter().filter(|act| act.action == "import_stock").count(), 2);
    assert_clean(&*store).await;
}

fn counted(pool: u128, quantity: u64, at: Timestamp, basis: Basis) -> Vec<ImportRow> {
    vec![row(2, pool, quantity, Some(Counted { at, basis }))]
}

/// A count is held against what the ledger says of its time: what was sold, held or brought since stays as it is.
pub async fn a_count_is_judged_by_the_ledger_of_its_time(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    let take = async |order, quantity| {
        one(&*store, whole(&[1]), placed(place(order, "ann", &[(1, quantity)]))).await;
    };
    take(1, 3).await;
    one(&*store, whole(&[1]), change(1, OrderAction::Confirm)).await;
    let before = store.now();
    clock.advance_millis(1_000);
    let then = store.now();
    clock.advance_millis(1_000);
    // After the count two more are held and four come in.
    take(2, 2).await;
    let adjust = |id: &str, delta, kind| {
        let adjustment_id = AdjustmentId::new(id).expect("a good id");
        Command::Adjust(Adjust {
            adjustment_id,
            pool: PoolId(1),
            delta,
            kind,
            bucket: None,
            signed: signed(),
        })
    };
    one(&*store, whole(&[1]), adjust("a1", 4, AdjustmentKind::Inbound)).await;
    // Seven were unsold then; six were found. On hand there were ten, two of the three sold had left: eight.
    let unsold = import("c1", ImportMode::Count, counted(1, 6, then, Basis::Unsold));
    let dry = Import { dry_run: true, ..unsold.clone() };
    let Outcome::Imported { rows, .. } = run(&*store, &dry).await else { panic!("judged") };
    assert_eq!((rows[0].done, rows[0].delta), (RowDone::Adjusted, -1));
    let on_hand = counted(1, 8, then, Basis::OnHand { shipped: 2 });
    let exact = Import { dry_run: true, ..import("c2", ImportMode::Count, on_hand) };
    assert_eq!(counts(&run(&*store, &exact).await), (0, 1, 0));
    for _ in 0..2 {
        assert_eq!(counts(&run(&*store, &unsold).await), (0, 0, 1));
        assert_eq!(balances(&*store, 1).await, (8, 2, 3), "one less than 9 available");
    }
    let page = Page { after: None, limit: 100 };
    let (entries, _) = store.ledger(LedgerFilter::default(), page).await.expect("ledger");
    let entry = entries.iter().find(|entry| entry.action == Action::Adjust).expect("an adjustment");
    assert_eq!((&*entry.business_no, &*entry.source, entry.delta.available), ("c1", "import", -1));
    assert!(entry.reason.ends_with("7 expected"), "{}", entry.reason);
    assert_clean(&*store).await;
    let why = async |id: &str, quantity, at, basis| {
        let file = import(id, ImportMode::Count, counted(1, quantity, at, basis));
        faults(run(&*store, &file).await).remove(0).1
    };
    // The difference that this count tells of is mended already.
    assert_eq!(why("c3", 6, then, Basis::Unsold).await, RowRefusal::CorrectedSince(entry.at));
    let now = store.now();
    assert_eq!(why("c4", 6, now.plus_seconds(1), Basis::Unsold).await, RowRefusal::CountedInFuture);
    let early = before.minus_millis(1);
    assert_eq!(why("c5", 6, early, Basis::Unsold).await, RowRefusal::CountedBeforeOpening);
    let shipped = RowRefusal::ShippedMoreThanSold { sold: 3 };
    assert_eq!(why("c6", 6, now, Basis::OnHand { shipped: 4 }).await, shipped);
    // Two are held: they cannot be counted away.
    let short = RowRefusal::StockInUse(Shortage { line: 0, requested: 9, available: 8 });
    assert_eq!(why("c7", 1, now, Basis::Unsold).await, short);
    super::pools::set(&*store, 1, PoolSwitch::Freeze).await;
    assert_eq!(why("c8", 9, now, Basis::Unsold).await, RowRefusal::Frozen);
    assert_eq!(one(&*store, LockSet::bucket(bucket(1, 0)), Command::Import(Arc::new(unsold))).await, {
        let counts = ImportCounts { rows: 1, units: 6, opened: 0, unchanged: 0, adjusted: 1 };
        Outcome::Imported { counts, rows: Vec::new(), repeated: true }
    });
    assert_clean(&*store).await;
}
