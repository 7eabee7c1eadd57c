//! Pools that change while they sell, and stock that moves.

use std::sync::Arc;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{ChangePool, Command, How, OrderAction, Outcome, Sweep, Transfer, TransferEnd};
use holdfast_core::id::{Operator, PoolId, SweepId, TransferId};
use holdfast_core::ledger::Action;
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_core::stock::{CacheFallback, Path, PoolSwitch, Routing};

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, balances, bucket, campaign_id, change, commit, one, open_campaign, open_pool, order_of,
    place, placed, pool_command, signed, switch, whole,
};
use crate::acts::ActFilter;
use crate::catalog::CATALOG_PAGE_MAX;
use crate::contract::{Store, SwitchPool};
use crate::read::{LedgerFilter, Page};

pub(super) fn transfer(
    id: &str,
    from: (u128, Option<u32>),
    to: (u128, Option<u32>),
    quantity: u64,
) -> Command {
    let end = |(pool, bucket)| TransferEnd { pool: PoolId(pool), bucket };
    let transfer_id = TransferId::new(id).expect("a good id");
    Command::Transfer(Transfer { transfer_id, from: end(from), to: end(to), quantity, signed: signed() })
}

pub(super) fn sweep(id: u128, pool: u128, bucket: Option<u32>) -> Command {
    Command::Sweep(Sweep { id: SweepId(id), pool: PoolId(pool), bucket, signed: signed() })
}

/// A change of a pool that changes nothing yet.
pub(super) fn no_change(pool: u128) -> ChangePool {
    ChangePool {
        pool: PoolId(pool),
        path: None,
        routing: None,
        weights: None,
        buckets: None,
        max_concurrency: None,
        cache_fallback: None,
        signed: signed(),
    }
}

async fn available(store: &dyn Store, pool: u128) -> Vec<u64> {
    let row = store.pool(PoolId(pool)).await.expect("read").expect("a pool");
    row.buckets.iter().map(|bucket| bucket.available).collect()
}

pub(super) async fn set(store: &dyn Store, pool: u128, switch: PoolSwitch) {
    let operator = Operator::new("olga").expect("a good id");
    let set = SwitchPool { id: PoolId(pool), switch, operator, reason: "look".into(), via: None };
    store.switch_pool(set).await.expect("store").expect("a pool");
}

/// Settings, weights and buckets read back, balances stay, and every new bucket has its opening.
pub async fn a_pool_changes_while_it_sells(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 5, 1).await;
    order_of(&one(&*store, whole(&[1]), placed(place(1, "ann", &[(1, 2)]))).await);
    let wanted = ChangePool {
        path: Some(Path::Direct),
        routing: Some(Routing::AccountHash),
        weights: Some(vec![0, 3, 1]),
        buckets: Some(3),
        max_concurrency: Some(Some(0)),
        cache_fallback: Some(CacheFallback::Refuse),
        ..no_change(1)
    };
    for how in [How::Changed, How::Repeated] {
        let outcome = one(&*store, whole(&[1]), Command::ChangePool(wanted.clone())).await;
        let row = store.pool(PoolId(1)).await.expect("read").expect("a pool");
        assert_eq!(outcome, Outcome::Pool { pool: row.pool, buckets: row.buckets, how });
    }
    let row = store.pool(PoolId(1)).await.expect("read").expect("a pool");
    let pool = &row.pool;
    assert_eq!((pool.path, pool.routing, pool.buckets), (Path::Direct, Routing::AccountHash, 3));
    assert_eq!((pool.max_concurrency, pool.cache_fallback), (Some(0), CacheFallback::Refuse));
    assert_eq!((pool.opening.buckets, pool.opening.path), (1, Path::Batched), "what it was opened with");
    assert_eq!(
        row.buckets.iter().map(|b| (b.weight, b.ledger_seq)).collect::<Vec<_>>(),
        [(0, 2), (3, 1), (1, 1)]
    );
    // A balance that changes keeps the weight, and what is not named stays.
    one(&*store, whole(&[1]), change(1, OrderAction::Cancel)).await;
    let off = ChangePool { max_concurrency: Some(None), ..no_change(1) };
    one(&*store, whole(&[1]), Command::ChangePool(off)).await;
    let row = store.pool(PoolId(1)).await.expect("read").expect("a pool");
    assert_eq!((row.pool.max_concurrency, row.pool.path), (None, Path::Direct));
    assert_eq!(
        row.buckets.iter().map(|b| (b.weight, b.available)).collect::<Vec<_>>(),
        [(0, 5), (3, 0), (1, 0)]
    );
    // The same opening is still a repeat.
    let again = one(&*store, LockSet::default(), pool_command(1, 5, 1)).await;
    assert!(matches!(again, Outcome::Pool { how: How::Repeated, .. }), "{again:?}");
    let smaller = ChangePool { buckets: Some(2), ..no_change(1) };
    let outcome = one(&*store, whole(&[1]), Command::ChangePool(smaller)).await;
    assert!(matches!(outcome, Outcome::Refused { refusal: Refusal::InvalidValue { .. }, .. }), "{outcome:?}");
    assert_clean(&*store).await;
}

/// The bucket that was the whole pool is not the whole pool any more.
pub async fn a_bucket_alone_never_says_sold_out_of_a_grown_pool(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 1, 1).await;
    let grown = ChangePool { buckets: Some(2), ..no_change(1) };
    one(&*store, whole(&[1]), Command::ChangePool(grown)).await;
    one(&*store, whole(&[1]), transfer("t1", (1, Some(0)), (1, Some(1)), 1)).await;
    let wanted = placed(place(1, "ann", &[(1, 1)]));
    let outcome = one(&*store, LockSet::bucket(bucket(1, 0)), wanted.clone()).await;
    assert_eq!(outcome, Outcome::Miss(vec![PoolId(1)]));
    order_of(&one(&*store, LockSet::bucket(bucket(1, 1)), wanted).await);
    assert_clean(&*store).await;
}

/// A transfer is applied once, in pairs, and only of what is available.
pub async fn a_transfer_moves_stock_once_and_in_pairs(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 7, 3).await;
    open_pool(&*store, 2, 0, 1).await;
    let wanted = transfer("t1", (1, None), (2, None), 5);
    for repeated in [false, true] {
        let outcome = one(&*store, whole(&[1, 2]), wanted.clone()).await;
        assert_eq!(outcome, Outcome::Transferred { repeated });
    }
    assert_eq!((available(&*store, 1).await, available(&*store, 2).await), (vec![0, 0, 2], vec![5]));
    let page = Page { after: None, limit: 100 };
    let (entries, _) = store.ledger(LedgerFilter::default(), page).await.expect("ledger");
    let moved = entries.iter().filter(|entry| &*entry.business_no == "t1");
    let moved: Vec<_> = moved.map(|e| (e.bucket.pool.0, e.action, e.delta.available)).collect();
    let (out, into) = (Action::TransferOut, Action::TransferIn);
    assert_eq!(moved, [(1, out, -3), (1, out, -2), (2, into, 3), (2, into, 2)]);
    let other = one(&*store, whole(&[1, 2]), transfer("t1", (1, None), (2, Some(0)), 4)).await;
    let Outcome::Refused { refusal: Refusal::KeyMismatch(fields), .. } = other else { panic!("{other:?}") };
    assert_eq!(fields, ["/to/bucket", "/quantity"]);
    let short = one(&*store, whole(&[1, 2]), transfer("t2", (1, None), (2, None), 3)).await;
    assert!(matches!(short, Outcome::Refused { refusal: Refusal::StockInUse(_), .. }), "{short:?}");
    let unknown = one(&*store, whole(&[1]), transfer("t3", (1, None), (9, None), 1)).await;
    assert_eq!(unknown, Outcome::refused(Refusal::UnknownPool));
    set(&*store, 1, PoolSwitch::Freeze).await;
    let frozen = one(&*store, whole(&[1, 2]), transfer("t4", (1, None), (2, None), 1)).await;
    assert_eq!(frozen, Outcome::refused(Refusal::Frozen));
    let back = one(&*store, whole(&[1, 2]), transfer("t5", (2, None), (1, Some(2)), 1)).await;
    assert_eq!(back, Outcome::Transferred { repeated: false });
    assert_clean(&*store).await;
}

/// Transfers and orders at the same time: nothing is lost and nothing is made.
pub async fn transfers_under_load_keep_the_law(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 60, 3).await;
    open_pool(&*store, 2, 60, 2).await;
    let mut tasks = Vec::new();
    for task in 0..12_u128 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            let (from, to) = if task % 2 == 0 { (1, 2) } else { (2, 1) };
            let commands = vec![
                placed(place(1 + task * 2, "ann", &[(from, 1)])),
                transfer(&format!("t{task}"), (from, None), (to, None), 1 + task as u64),
                placed(place(2 + task * 2, "ann", &[(to, 2)])),
                sweep(1_000 + task, from, None),
            ];
            commit(&*store, whole(&[1, 2]), commands).await
        }));
    }
    for task in tasks {
        for outcome in task.await.expect("no panic") {
            assert!(!matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
        }
    }
    let (one, two) = (balances(&*store, 1).await, balances(&*store, 2).await);
    assert_eq!((one.0 + two.0, one.1 + two.1), (120 - 36, 36));
    assert_clean(&*store).await;
}

/// A sweep gathers what is scattered, once.
pub async fn a_sweep_gathers_fragments(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 6, 3).await;
    for how in [How::Changed, How::Repeated] {
        let outcome = one(&*store, whole(&[1]), sweep(7, 1, None)).await;
        assert!(matches!(outcome, Outcome::Pool { how: was, .. } if was == how), "{outcome:?}");
    }
    assert_eq!(available(&*store, 1).await, [6, 0, 0]);
    let (order, _) =
        order_of(&one(&*store, LockSet::bucket(bucket(1, 0)), placed(place(1, "ann", &[(1, 6)]))).await);
    assert_eq!(order.lines[0].allocations.len(), 1);
    assert_clean(&*store).await;
}

/// A retired pool sells nothing, and what it holds goes on.
pub async fn a_retired_pool_sells_nothing(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 5, 1).await;
    let locks = LockSet::bucket(bucket(1, 0));
    let first = placed(place(1, "ann", &[(1, 1)]));
    order_of(&one(&*store, locks.clone(), first.clone()).await);
    for _ in 0..2 {
        set(&*store, 1, PoolSwitch::Retire).await;
    }
    let row = store.pool(PoolId(1)).await.expect("read").expect("a pool");
    assert!(row.pool.retired && !row.pool.frozen);
    let outcome = one(&*store, locks.clone(), placed(place(2, "ann", &[(1, 1)]))).await;
    assert_eq!(outcome, Outcome::refused(Refusal::UnknownSku { line: 1 }));
    assert_eq!(order_of(&one(&*store, locks.clone(), first).await).1, How::Repeated);
    one(&*store, locks, change(1, OrderAction::Cancel)).await;
    assert_eq!(balances(&*store, 1).await, (5, 0, 0));
    let filter = ActFilter { subject: Some(format!("pool {}", PoolId(1))), ..ActFilter::default() };
    let (acts, _) = store.acts(filter, Page { after: None, limit: 9 }).await.expect("read");
    assert_eq!(acts.iter().map(|act| act.action.as_str()).collect::<Vec<_>>(), ["retire", "open_pool"]);
    assert_clean(&*store).await;
}

/// What operators did to pools is in the trail, once.
pub async fn changes_of_pools_are_in_the_trail(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 6, 2).await;
    open_pool(&*store, 2, 0, 1).await;
    let direct = ChangePool { path: Some(Path::Direct), max_concurrency: Some(Some(8)), ..no_change(1) };
    for _ in 0..2 {
        one(&*store, whole(&[1]), Command::ChangePool(direct.clone())).await;
        one(&*store, whole(&[1, 2]), transfer("t1", (1, None), (2, None), 2)).await;
        one(&*store, whole(&[1]), sweep(7, 1, None)).await;
    }
    let filter = ActFilter { subject: Some(format!("pool {}", PoolId(1))), ..ActFilter::default() };
    let (acts, _) = store.acts(filter, Page { after: None, limit: 9 }).await.expect("read");
    let told: Vec<_> = acts.iter().map(|act| (act.action.as_str(), act.detail.as_str())).collect();
    let (sweep, to) = (format!("sweep {}", SweepId(7)), format!("2 to pool {}, transfer t1", PoolId(2)));
    let opened = "SKU-1 at main, supply 6, buckets 2";
    assert_eq!(
        told,
        [
            ("sweep", sweep.as_str()),
            ("transfer", to.as_str()),
            ("change_pool", "path direct, max_concurrency 8"),
            ("open_pool", opened),
        ]
    );
}

/// Whoever asks is told what changed since, each row once and as it is now; balances are no change.
pub async fn the_catalog_tells_what_changed_since(store: Subject, _: TestClock) {
    let start = store.catalog(None).await.expect("read");
    assert_eq!((start.campaigns.len(), start.pools.len(), start.more), (0, 0, false));
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 6, 2).await;
    let first = store.catalog(Some(start.version)).await.expect("read");
    let names = |changes: &crate::catalog::CatalogChanges| {
        let campaigns: Vec<_> = changes.campaigns.iter().map(|c| c.id.to_string()).collect();
        (campaigns, changes.pools.iter().map(|row| row.pool.id.0).collect::<Vec<_>>())
    };
    assert_eq!(names(&first), (vec![campaign_id().to_string()], vec![1]));
    assert!(first.version > start.version && first.campaigns[0].switches.opened);
    assert_eq!(first.pools[0], store.pool(PoolId(1)).await.expect("read").expect("a pool"));
    // An order changes nothing of it, nor does what is set already.
    one(&*store, whole(&[1]), placed(place(1, "ann", &[(1, 1)]))).await;
    one(&*store, whole(&[1]), Command::ChangePool(no_change(1))).await;
    set(&*store, 1, PoolSwitch::Unfreeze).await;
    let same = store.catalog(Some(first.version)).await.expect("read");
    assert_eq!((same.version, names(&same)), (first.version, (vec![], vec![])));
    let mut version = first.version;
    let weights = |weights| Command::ChangePool(ChangePool { weights: Some(weights), ..no_change(1) });
    for step in 0..3 {
        match step {
            0 => set(&*store, 1, PoolSwitch::Freeze).await,
            1 => drop(one(&*store, whole(&[1]), weights(vec![1, 2])).await),
            _ => switch(&*store, Switch::Pause).await,
        }
        let changes = store.catalog(Some(version)).await.expect("read");
        let expected = if step == 2 { (vec![campaign_id().to_string()], vec![]) } else { (vec![], vec![1]) };
        assert_eq!(names(&changes), expected, "step {step}");
        assert!(changes.version > version);
        version = changes.version;
    }
    // Many changes come page by page, and none is left out.
    let last = 2 + CATALOG_PAGE_MAX as u128;
    for pool in 2..=last {
        open_pool(&*store, pool, 1, 1).await;
    }
    let (mut seen, mut pages) = (Vec::new(), 0);
    loop {
        let changes = store.catalog(Some(version)).await.expect("read");
        seen.extend(names(&changes).1);
        (version, pages) = (changes.version, pages + 1);
        if !changes.more {
            break;
        }
    }
    assert_eq!((seen, pages), ((2..=last).collect::<Vec<_>>(), 2));
    assert_eq!(store.catalog(None).await.expect("read").version, version);
}
