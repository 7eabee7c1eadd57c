//! What the books say.

use holdfast_core::campaign::Policy;
use holdfast_core::command::{Adjust, AdjustmentKind, Command, OrderAction, Outcome};
use holdfast_core::id::{AdjustmentId, CampaignId, OrderId, PoolId, RefundId};
use holdfast_core::order::{Refund, RefundLine, State};
use holdfast_core::stock::BucketKey;

use super::behaviour::{Subject, TestClock};
use super::support::{
    assert_clean, bucket, campaign_id, change, one, open_campaign, open_pool, order_of, place, placed,
    signed, whole,
};
use crate::clock::Clock;
use crate::read::{LedgerFilter, Page};
use crate::settlement::{Settlement, SettlementUnits};

async fn adjust(store: &Subject, id: &str, pool: u128, delta: i64, kind: AdjustmentKind) {
    let command = Command::Adjust(Adjust {
        adjustment_id: AdjustmentId::new(id).expect("a good id"),
        pool: PoolId(pool),
        delta,
        kind,
        bucket: None,
        signed: signed(),
    });
    let outcome = one(&**store, whole(&[pool]), command).await;
    assert!(matches!(outcome, Outcome::Adjusted { .. }), "{outcome:?}");
}

async fn refund(store: &Subject, order: u128, id: &str, lines: &[(u32, u32)], restock: bool) -> State {
    let lines = lines.iter().map(|(line, quantity)| RefundLine { line: *line, quantity: *quantity });
    let action = OrderAction::Refund(Refund {
        refund_id: RefundId::new(id).expect("a good id"),
        lines: lines.collect(),
        restock: Some(restock),
        reason: "test".into(),
    });
    order_of(&one(&**store, whole(&[1, 2]), change(order, action)).await).0.state
}

async fn settlement(store: &Subject) -> Settlement {
    store.settlement(campaign_id()).await.expect("read").expect("a campaign")
}

/// Every figure is the sum that one makes by hand, and supply is where it should be.
pub async fn a_settlement_is_what_the_rows_add_up_to(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 100, 3).await;
    open_pool(&*store, 2, 40, 1).await;
    adjust(&store, "in-1", 1, 30, AdjustmentKind::Inbound).await;
    adjust(&store, "in-2", 1, 5, AdjustmentKind::Inbound).await;
    adjust(&store, "count", 1, -7, AdjustmentKind::Adjust).await;
    adjust(&store, "found", 2, 2, AdjustmentKind::Adjust).await;
    // 1 holds, 2 and 3 are sold, 4 is released, 5 is refused.
    for (order, lines) in [
        (1, vec![(1, 4)]),
        (2, vec![(1, 10), (2, 6)]),
        (3, vec![(2, 5)]),
        (4, vec![(1, 3)]),
        (5, vec![(2, 99)]),
    ] {
        one(&*store, whole(&[1, 2]), placed(place(order, "ann", &lines))).await;
    }
    for order in [2, 3] {
        let sold = order_of(&one(&*store, whole(&[1, 2]), change(order, OrderAction::Confirm)).await).0;
        assert_eq!(sold.state, State::Sold);
    }
    one(&*store, whole(&[1, 2]), change(4, OrderAction::Cancel)).await;
    // Of order 2 the home is in pool 1; a refund in pool 2 alone leaves no stock entry there unless it
    // puts stock back.
    assert_eq!(refund(&store, 2, "r1", &[(1, 2)], true).await, State::Sold);
    assert_eq!(refund(&store, 2, "r2", &[(2, 1)], false).await, State::Sold);
    assert_eq!(refund(&store, 2, "r3", &[(1, 1), (2, 3)], true).await, State::Sold);
    assert_eq!(refund(&store, 3, "r1", &[(1, 5)], false).await, State::Refunded);
    let read = settlement(&store).await;
    let first = SettlementUnits {
        opening: 100,
        inbound: 35,
        adjusted: -7,
        available: 128 - 4 - 10 + 3,
        held: 4,
        sold: 10 - 3,
        refunded_restocked: 3,
        ..SettlementUnits::default()
    };
    let second = SettlementUnits {
        opening: 40,
        adjusted: 2,
        available: 42 - 6 - 5 + 3,
        sold: 11 - 3,
        refunded_restocked: 3,
        refunded_kept: 6,
        ..SettlementUnits::default()
    };
    let shown: Vec<_> = read.pools.iter().map(|pool| (pool.pool.id, pool.units)).collect();
    assert_eq!(shown, [(PoolId(1), first), (PoolId(2), second)]);
    assert_eq!((read.units.opening, read.units.inbound, read.units.adjusted), (140, 35, -5));
    let supply = read.units.opening + read.units.inbound + read.units.adjusted + read.units.moved;
    assert_eq!(supply, (read.units.available + read.units.held + read.units.sold) as i64);
    assert_eq!((read.units.refunded_restocked, read.units.refunded_kept), (6, 6));
    assert_eq!(read.as_of, clock.now());
    assert_positions(&store, &read).await;
    let nobody = CampaignId::new("none").expect("a good id");
    assert_eq!(store.settlement(nobody).await.expect("read"), None);
    let ahead = store.ledgers_ahead(vec![PoolId(1), PoolId(2)]).await;
    assert_eq!(ahead.expect("read"), [], "every row is as new as its ledger");
    assert_clean(&*store).await;
}

/// The positions are the last entries of the ledger, and their sum is its length.
async fn assert_positions(store: &Subject, read: &Settlement) {
    let page = Page { after: None, limit: 1_000 };
    let (entries, _) = store.ledger(LedgerFilter::default(), page).await.expect("read");
    assert_eq!(read.entries, entries.len() as u64);
    for pool in &read.pools {
        for (number, seq) in &pool.positions {
            let key = BucketKey { pool: pool.pool.id, number: *number };
            let last = entries.iter().filter(|entry| entry.bucket == key).map(|entry| entry.seq).max();
            assert_eq!(last, Some(*seq), "{key:?}");
        }
    }
}

/// Each version of an order has its place in the ledger.
pub async fn a_version_of_an_order_has_a_position(store: Subject, _: TestClock) {
    open_campaign(&*store, Policy::default()).await;
    open_pool(&*store, 1, 10, 1).await;
    let locks = whole(&[1]);
    for order in [1, 2] {
        one(&*store, locks.clone(), placed(place(order, "ann", &[(1, 1)]))).await;
    }
    one(&*store, locks.clone(), change(1, OrderAction::Confirm)).await;
    let position = async |order, version| store.order_position(OrderId(order), version).await.expect("read");
    assert_eq!(position(1, 1).await, Some((bucket(1, 0), 2)));
    assert_eq!(position(2, 1).await, Some((bucket(1, 0), 3)));
    assert_eq!(position(1, 2).await, Some((bucket(1, 0), 4)));
    assert_eq!(position(1, 3).await, None);
    one(&*store, locks, placed(place(3, "ann", &[(1, 11)]))).await;
    assert_eq!(position(3, 1).await, None, "refused at once: no entry");
}
