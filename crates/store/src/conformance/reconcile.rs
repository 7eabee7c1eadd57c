//! What reconciliation reads and keeps, and the command that mends.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::case::{CaseAction, CaseState};
use holdfast_core::command::{
    Accept, Command, How, OrderAction, Outcome, Repair, Signed, Transfer, TransferEnd,
};
use holdfast_core::id::{DiscrepancyId, OrderId, PoolId, RunId, TransferId};
use holdfast_core::ledger::{Action, Covers};
use holdfast_core::limit::Limited;
use holdfast_core::order::{State, Usage};
use holdfast_core::reconcile::{
    Class, Discrepancy, DiscrepancyState, Disposition, Finding, Proof, RunScope, RunState,
};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::{LockSet, UsageKey};
use holdfast_core::stock::Delta;
use holdfast_core::time::Timestamp;

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, balances, bucket, campaign_id, change, one, open_campaign, open_pool, order_of, place,
    placed, whole,
};
use crate::clock::Clock;
use crate::read::{LedgerFilter, Page};
use crate::reconcile::{
    Checkpoint, DiscrepancyFilter, Dispose, OrdersAsked, OrdersOf, RUNS_UNFINISHED_MAX, Run,
};

fn all<K>() -> Page<K> {
    Page { after: None, limit: 100 }
}

/// Buckets and sums are what was committed, a piece at a time; what was proved is kept.
pub async fn a_ledger_is_summed_piece_by_piece(store: Subject, _: TestClock) {
    open_campaign(&*store, holdfast_core::campaign::Policy::default()).await;
    open_pool(&*store, 1, 10, 2).await;
    let home = bucket(1, 0);
    for order in 1..=3 {
        one(&*store, LockSet::bucket(home), placed(place(order, "ann", &[(1, 1)]))).await;
    }
    one(&*store, LockSet::bucket(home), change(2, OrderAction::Cancel)).await;
    let transfer = Transfer {
        transfer_id: TransferId::new("t").expect("a good id"),
        from: TransferEnd { pool: PoolId(1), bucket: Some(0) },
        to: TransferEnd { pool: PoolId(1), bucket: Some(1) },
        quantity: 1,
        signed: Signed::new("ann", "even"),
    };
    one(&*store, whole(&[1]), Command::Transfer(transfer)).await;
    let heads = store.bucket_heads(all()).await.expect("read");
    assert_eq!(heads.iter().map(|head| head.row.key).collect::<Vec<_>>(), [home, bucket(1, 1)]);
    let head = heads[0];
    assert_eq!((head.last_seq, head.row.ledger_seq, head.frozen, head.proved), (6, 6, false, None));
    let whole_sum = store.sum_entries(home, 0, 6).await.expect("read");
    assert_eq!((whole_sum.to, whole_sum.entries, whole_sum.moves, whole_sum.unowned), (6, 6, 1, (0, 0)));
    assert_eq!(whole_sum.delta, Delta { available: 2, held: 2, sold: 0 });
    let pieces = [(0, 2), (2, 5), (5, 6)];
    let mut sum = holdfast_core::reconcile::LedgerSums::default();
    for (after, to) in pieces {
        sum = sum.and(store.sum_entries(home, after, to).await.expect("read"));
    }
    assert_eq!(sum, whole_sum);
    store.save_checkpoints(vec![Checkpoint { bucket: home, sums: sum }]).await.expect("write");
    store.save_checkpoints(vec![Checkpoint { bucket: home, sums: sum }]).await.expect("write");
    let page = Page { after: None, limit: 1 };
    let heads = store.bucket_heads(page).await.expect("read");
    assert_eq!(heads[0].proved, Some(Checkpoint { bucket: home, sums: sum }));
    assert_eq!(store.missing_entries(home, 0, 6).await.expect("read"), []);
    assert_eq!(store.missing_entries(home, 0, 8).await.expect("read"), [Covers { first: 7, last: 8 }]);
    let moves = store.moves(home, 0, 6).await.expect("read");
    assert_eq!(
        moves.iter().map(|entry| (entry.seq, entry.action)).collect::<Vec<_>>(),
        [(6, Action::TransferOut)]
    );
    let halves = store.halves(moves[0].clone()).await.expect("read");
    assert_eq!(halves.iter().map(|entry| entry.bucket.number).collect::<Vec<_>>(), [0, 1]);
    let orders: BTreeSet<_> = store.orders_in(home, 2, 5).await.expect("read").into_iter().collect();
    assert_eq!(orders, [2, 3].map(OrderId).into());
    assert_eq!(store.odd_pools(5).await.expect("read"), []);
    assert_eq!(store.doubled_supplies(home).await.expect("read"), []);
}

/// Orders that are right are no findings, whatever became of them; what is counted comes whole.
pub async fn orders_that_agree_are_no_suspects(store: Subject, clock: TestClock) {
    let policy = holdfast_core::campaign::Policy {
        account_limit: Some(9),
        restock_on_refund: true,
        ..holdfast_core::campaign::Policy::default()
    };
    open_campaign(&*store, policy).await;
    open_pool(&*store, 1, 10, 2).await;
    open_pool(&*store, 2, 10, 1).await;
    for order in 1..=4 {
        one(&*store, whole(&[1]), placed(place(order, "ann", &[(1, 1)]))).await;
    }
    order_of(&one(&*store, whole(&[1, 2]), placed(place(5, "bob", &[(1, 1), (2, 2)]))).await);
    one(&*store, whole(&[1]), change(1, OrderAction::Confirm)).await;
    one(&*store, whole(&[1]), change(2, OrderAction::Cancel)).await;
    one(&*store, whole(&[1]), placed(place(6, "cem", &[(1, 100)]))).await;
    let before = Timestamp(clock.now().0 - 60_000_000);
    let counted = Arc::new(BTreeSet::from([campaign_id()]));
    let ask = async |of| {
        let asked = OrdersAsked { of, overdue_before: before, counted: Arc::clone(&counted) };
        store.suspects(asked).await.expect("read")
    };
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let found = ask(OrdersOf::Page(Page { after, limit: 2 })).await;
        let wrong =
            found.suspects.iter().filter(|facts| holdfast_core::reconcile::judge(facts, before).is_some());
        assert_eq!(wrong.count(), 0, "{:?}", found.suspects);
        seen.extend(found.counted.iter().map(|order| order.id.0));
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    assert_eq!(ask(OrdersOf::Ids(vec![OrderId(3), OrderId(77)])).await.counted.len(), 1);
    clock.advance_millis(3_600_000);
    let late =
        OrdersAsked { of: OrdersOf::Page(all()), overdue_before: clock.now(), counted: Arc::default() };
    let late: Vec<u128> = store.suspects(late).await.expect("read").suspects.iter().map(|f| f.id.0).collect();
    assert!([3, 4, 5].iter().all(|held| late.contains(held)), "{late:?}");
    let key = UsageKey { campaign: campaign_id(), limited: Limited::Account("ann".parse_account()) };
    let usage = store.count_usage(key.clone()).await.expect("read");
    assert_eq!(
        (usage.row, usage.counted),
        (Usage { units: 3, open_holds: 2 }, Usage { units: 3, open_holds: 2 })
    );
    let rows = store.usage_rows(all()).await.expect("read").0;
    assert!(rows.contains(&(key, Usage { units: 3, open_holds: 2 })), "{rows:?}");
}

trait ParseAccount {
    fn parse_account(&self) -> holdfast_core::id::Account;
}

impl ParseAccount for str {
    fn parse_account(&self) -> holdfast_core::id::Account {
        holdfast_core::id::Account::new(self).expect("a good id")
    }
}

fn drift(available: i64) -> Finding {
    let home = bucket(1, 0);
    Finding {
        class: Class::BalanceDrift,
        pool: Some(home.pool),
        bucket: Some(home),
        order: None,
        position: 0,
        proof: Proof::Balance { bucket: home, difference: Delta { available, held: 0, sold: 0 } },
        expected: "5".into(),
        actual: "4".into(),
        evidence: r#"{"why":"test"}"#.into(),
    }
}

fn repair(known: &Discrepancy, accept: Accept, decides: Option<CaseAction>) -> Command {
    let signed = Signed::new("ann", "counted");
    let order = match &known.found.proof {
        Proof::Order { order, .. } => Some(*order),
        _ => None,
    };
    let usage = match &known.found.proof {
        Proof::Usage { key, .. } => Some(key.clone()),
        _ => None,
    };
    Command::Repair(Arc::new(Repair {
        id: known.id,
        accept,
        decides,
        pool: known.found.pool,
        order,
        usage,
        signed,
    }))
}

/// A difference is one however often it is found, and another one when it comes again after it was mended.
pub async fn a_difference_is_kept_once(store: Subject, clock: TestClock) {
    let note = async |run, finding| {
        store.note_findings(RunId(run), vec![finding]).await.expect("write").pop().expect("one")
    };
    let first = note(1, drift(1)).await;
    assert_eq!(
        (first.cycles, first.state, first.disposition),
        (1, DiscrepancyState::Open, Disposition::Freeze)
    );
    clock.advance_millis(1_000);
    assert_eq!(note(1, drift(1)).await.cycles, 1, "the same run");
    let second = note(2, drift(2)).await;
    assert_eq!((second.id, second.cycles, second.first_seen_at), (first.id, 2, first.first_seen_at));
    assert_eq!(second.found.proof, drift(2).proof, "what is known now holds");
    assert_eq!(store.discrepancy(first.id).await.expect("read"), Some(second.clone()));
    let gone = Dispose { id: first.id, state: DiscrepancyState::Resolved, disposition: Disposition::Freeze };
    store.dispose(vec![gone]).await.expect("write");
    let again = note(3, drift(1)).await;
    assert_ne!(again.id, first.id);
    assert_eq!((again.cycles, again.state), (1, DiscrepancyState::Open));
    let list = async |state| {
        let filter = DiscrepancyFilter { state, class: Some(Class::BalanceDrift) };
        store.discrepancies(filter, all()).await.expect("read").0.len()
    };
    assert_eq!((list(None).await, list(Some(DiscrepancyState::Open)).await), (2, 1));
    let open = store.open_discrepancies().await.expect("read");
    assert_eq!(open.into_iter().collect::<Vec<_>>(), [(Class::BalanceDrift, 1)]);
}

/// A repair is written once, with its case, whatever the balance does; what does not fit is refused.
pub async fn a_repair_is_written_once_with_its_case(store: Subject, clock: TestClock) {
    open_campaign(&*store, holdfast_core::campaign::Policy::default()).await;
    open_pool(&*store, 1, 5, 1).await;
    let locks = || whole(&[1]);
    let unknown = Discrepancy::new(drift(1), 9, clock.now());
    let refused = one(&*store, locks(), repair(&unknown, Accept::Ledger, None)).await;
    assert_eq!(refused, Outcome::refused(Refusal::UnknownCase));
    let known = store.note_findings(RunId(1), vec![drift(1)]).await.expect("write").remove(0);
    store.open_case(known.case(clock.now())).await.expect("write");
    let misfit =
        one(&*store, locks(), repair(&known, Accept::Compensate, Some(CaseAction::Compensate))).await;
    assert!(matches!(misfit, Outcome::Refused { refusal: Refusal::InvalidValue { .. }, .. }), "{misfit:?}");
    let command = repair(&known, Accept::Ledger, Some(CaseAction::AcceptLedger));
    for is_repeat in [false, true] {
        let mended = one(&*store, locks(), command.clone()).await;
        let Outcome::Repaired { discrepancy, case: Some(case), repeated } = mended else {
            panic!("{mended:?}")
        };
        assert_eq!(
            (discrepancy.state, case.state(), repeated),
            (DiscrepancyState::Repaired, CaseState::Resolved, is_repeat)
        );
    }
    assert_eq!(balances(&*store, 1).await, (6, 0, 0), "the balance moved and the ledger did not");
    let entries = store.ledger(LedgerFilter::default(), all()).await.expect("read").0;
    let last = entries.last().expect("an entry");
    assert_eq!(
        (last.seq, last.action, last.delta, &*last.actor),
        (2, Action::Repair, Delta::default(), "ann")
    );
    assert!(
        last.reason.starts_with("counted; expected 5, found 4") && last.source.starts_with("balance_drift ")
    );
    // Back again, the other way: the ledger gets what it lacks.
    let back = Finding { position: 2, ..drift(-1) };
    let known = store.note_findings(RunId(2), vec![back]).await.expect("write").remove(0);
    let mended = one(&*store, locks(), repair(&known, Accept::Balance, None)).await;
    assert!(matches!(mended, Outcome::Repaired { case: None, repeated: false, .. }), "{mended:?}");
    assert_eq!(balances(&*store, 1).await, (6, 0, 0));
    assert_clean(&*store).await;
    assert_eq!(store.audit().await.expect("read").repairs, 2, "they show for ever");
}

/// Orders, usage and covered entries are mended by what was proved of them.
pub async fn rows_are_made_what_the_ledger_says(store: Subject, _: TestClock) {
    let policy = holdfast_core::campaign::Policy {
        account_limit: Some(9),
        ..holdfast_core::campaign::Policy::default()
    };
    open_campaign(&*store, policy).await;
    open_pool(&*store, 1, 5, 1).await;
    let home = bucket(1, 0);
    order_of(&one(&*store, LockSet::bucket(home), placed(place(1, "ann", &[(1, 1)]))).await);
    let finding =
        |class, order: Option<u128>, proof| Finding { class, order: order.map(OrderId), proof, ..drift(0) };
    let stands = holdfast_core::reconcile::Stands { state: State::Held, version: 1, units: vec![(home, 1)] };
    let order = Proof::Order { order: OrderId(1), seen: 1, stands: Some(stands) };
    let key = UsageKey { campaign: campaign_id(), limited: Limited::Account("ann".parse_account()) };
    let usage = Proof::Usage { key: key.clone(), units: 2, open_holds: 0 };
    let less = Proof::Usage { key: key.clone(), units: -2, open_holds: 0 };
    let findings = vec![
        finding(Class::AllocationDrift, Some(1), order),
        Finding { pool: None, bucket: None, ..finding(Class::UsageDrift, None, usage) },
        Finding { pool: None, bucket: None, position: 1, ..finding(Class::UsageDrift, None, less) },
    ];
    let known = store.note_findings(RunId(1), findings).await.expect("write");
    let mend = async |known: &Discrepancy| {
        let locks = if known.found.pool.is_some() { whole(&[1]) } else { LockSet::default() };
        one(&*store, locks, repair(known, Accept::Ledger, None)).await
    };
    let mended = mend(&known[0]).await;
    assert!(matches!(mended, Outcome::Repaired { repeated: false, .. }), "{mended:?}");
    let order = store.order(OrderId(1)).await.expect("read").expect("an order");
    assert_eq!((order.version, order.state, order.lines[0].allocations.len()), (2, State::Held, 1));
    let row = async || store.count_usage(key.clone()).await.expect("read").row.units;
    mend(&known[1]).await;
    assert_eq!(row().await, 3);
    mend(&known[2]).await;
    assert_eq!(row().await, 1);
    assert_eq!(
        order_of(&one(&*store, LockSet::bucket(home), change(1, OrderAction::Cancel)).await).1,
        How::Changed
    );
    assert_clean(&*store).await;
    let filter = LedgerFilter { order: Some(OrderId(1)), ..LedgerFilter::default() };
    let entries = store.ledger(filter, all()).await.expect("read").0;
    let versions: Vec<_> = entries.iter().map(|entry| (entry.action, entry.order_version)).collect();
    assert_eq!(versions, [(Action::Place, Some(1)), (Action::Repair, Some(2)), (Action::Release, Some(3))]);
}

/// Runs are kept as they are asked for, the oldest is the next, and there is an end to how many wait.
pub async fn runs_wait_in_a_bounded_line(store: Subject, clock: TestClock) {
    let run = |id: u128| Run::asked(RunId(id), RunScope::Full, "ann".into(), clock.now());
    for id in 1..=u128::from(RUNS_UNFINISHED_MAX) {
        assert!(store.ask_run(run(id)).await.expect("write"));
    }
    assert!(!store.ask_run(run(99)).await.expect("write"), "too many wait");
    let mut first = store.unfinished_run().await.expect("read").expect("a run");
    assert_eq!(first, run(1));
    first.state = RunState::Done;
    first.finished_at = Some(clock.now());
    first.found.insert(Class::UsageDrift, 2);
    first.entries_read = 7;
    store.save_run(first.clone()).await.expect("write");
    assert_eq!(store.run(RunId(1)).await.expect("read"), Some(first));
    assert_eq!(store.unfinished_run().await.expect("read").map(|run| run.id), Some(RunId(2)));
    let (latest, more) = store.runs(Page { after: None, limit: 2 }).await.expect("read");
    assert_eq!((latest.iter().map(|run| run.id.0).collect::<Vec<_>>(), more), (vec![16, 15], true));
    let (rest, more) = store.runs(Page { after: Some(RunId(2)), limit: 2 }).await.expect("read");
    assert_eq!((rest.iter().map(|run| run.id.0).collect::<Vec<_>>(), more), (vec![1], false));
    assert_eq!(store.last_run_at(RunScope::Full).await.expect("read"), Some(clock.now()));
    assert_eq!(store.last_run_at(RunScope::Incremental).await.expect("read"), None);
    assert_eq!(store.discrepancy(DiscrepancyId(1)).await.expect("read"), None);
}
