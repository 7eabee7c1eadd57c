//! Several nodes on one authority.

use std::sync::Arc;

use holdfast_core::campaign::Policy;
use holdfast_core::command::{Command, How, OrderAction, Outcome, Transfer, TransferEnd};
use holdfast_core::id::{PoolId, TransferId};
use holdfast_core::refusal::Refusal;
use holdfast_core::snapshot::LockSet;
use holdfast_store::{CreateKey, KeyId, Role, Scope, Store};
use holdfast_testkit::{Database, PgBouncer, PoolMode, Postgres};

use crate::support::{
    assert_clean, bucket, change, commit, is_held, lane, node, place, pool, put, shop, signed, try_node,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_migrate_once() {
    let database = Database::shared().await.unwrap();
    let url = database.url();
    let opening = (0..4).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { try_node(&url).await })
    });
    let nodes: Vec<_> = futures_util::future::join_all(opening.collect::<Vec<_>>()).await;
    for node in &nodes {
        assert!(matches!(node, Ok(Ok(_))), "{:?}", node.as_ref().map(|n| n.as_ref().err().cloned()));
    }
    let applied = "SELECT count(*), count(DISTINCT version) FROM refinery_schema_history";
    let (rows, versions) = database
        .sql(applied)
        .await
        .unwrap()
        .split_once('|')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(rows, versions);
}

/// The last units go to exactly as many, on whichever node, in whichever bucket.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_sell_together_exactly_what_there_is() {
    let database = Database::shared().await.unwrap();
    let nodes = [node(&database.url()).await, node(&database.url()).await, node(&database.url()).await];
    shop(&*nodes[0], Policy::default(), 100, 4).await;
    let mut tasks = Vec::new();
    for task in 0..12_u128 {
        let store = Arc::clone(&nodes[usize::try_from(task % 3).unwrap()]);
        tasks.push(tokio::spawn(async move {
            let mut held = 0;
            for batch in 0..4 {
                let first = 1 + task * 100 + batch * 5;
                let commands = (first..first + 5).map(|number| place(number, number, "ann")).collect();
                let outcomes = lane(&*store, LockSet::pool(PoolId(1)), commands).await;
                held += outcomes.iter().filter(|outcome| is_held(outcome)).count();
            }
            held
        }));
    }
    let mut held = 0;
    for task in tasks {
        held += task.await.unwrap();
    }
    assert_eq!(held, 100);
    assert_clean(&*nodes[0]).await;
}

/// The same new key on two nodes, in two buckets: one order, and both are told of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_races_on_two_nodes_is_one_order() {
    let database = Database::shared().await.unwrap();
    let (one, two) = (node(&database.url()).await, node(&database.url()).await);
    shop(&*one, Policy::default(), 1_000, 2).await;
    for round in 0..20_u128 {
        let numbers = || (0..10).map(move |n| 1 + round * 10 + n);
        let first: Vec<_> = numbers().map(|n| place(n, n, "ann")).collect();
        let second: Vec<_> = numbers().rev().map(|n| place(1_000_000 + n, n, "ann")).collect();
        let (a, b) = tokio::join!(lane(&*one, bucket(0), first), lane(&*two, bucket(1), second));
        let mut created = 0;
        for (left, right) in a.iter().zip(b.iter().rev()) {
            let (Outcome::Order { order: left, how: l, .. }, Outcome::Order { order: right, how: r, .. }) =
                (left, right)
            else {
                panic!("{left:?} {right:?}")
            };
            assert_eq!(left.id, right.id);
            created += [l, r].into_iter().filter(|how| **how == How::Created).count();
        }
        assert_eq!(created, 10);
    }
    assert_clean(&*one).await;
}

/// The same act by its own key on two nodes that lock different pools: one of them is the act, the other is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_that_races_on_two_nodes_is_one_act() {
    let database = Database::shared().await.unwrap();
    let (one, two) = (node(&database.url()).await, node(&database.url()).await);
    shop(&*one, Policy::default(), 1_000, 1).await;
    for number in 2..=4 {
        commit(&*one, LockSet::default(), vec![pool(number, 1_000, 1)]).await.unwrap();
    }
    for round in 0..20 {
        let command = |from: u128| {
            let end = |pool| TransferEnd { pool: PoolId(pool), bucket: None };
            let transfer_id = TransferId::new(&format!("t{round}")).unwrap();
            let (from, to) = (end(from), end(from + 1));
            vec![Command::Transfer(Transfer { transfer_id, from, to, quantity: 1, signed: signed() })]
        };
        let locks =
            |from: u128| LockSet { pools: [PoolId(from), PoolId(from + 1)].into(), ..LockSet::default() };
        let (a, b) = tokio::join!(lane(&*one, locks(1), command(1)), lane(&*two, locks(3), command(3)));
        let outcomes = [&a[0], &b[0]];
        let is_done = |outcome: &&&Outcome| matches!(outcome, Outcome::Transferred { .. });
        let is_told = |outcome: &&&Outcome| {
            matches!(outcome, Outcome::Refused { refusal: Refusal::KeyMismatch(_), .. })
        };
        assert_eq!(outcomes.iter().filter(is_done).count(), 1, "{outcomes:?}");
        assert_eq!(outcomes.iter().filter(is_told).count(), 1, "{outcomes:?}");
    }
    assert_clean(&*one).await;
}

/// An account's limit holds however many nodes and buckets it buys from at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_over_nodes_and_buckets() {
    let database = Database::shared().await.unwrap();
    let (one, two) = (node(&database.url()).await, node(&database.url()).await);
    shop(&*one, Policy { account_limit: Some(3), ..Policy::default() }, 1_000, 2).await;
    for round in 0..10_u128 {
        let account = format!("account-{round}");
        let commands = |from: u128| (from..from + 4).map(|n| place(n, n, &account)).collect::<Vec<_>>();
        let from = 1 + round * 100;
        let (a, b) =
            tokio::join!(lane(&*one, bucket(0), commands(from)), lane(&*two, bucket(1), commands(from + 50)));
        let held = a.iter().chain(&b).filter(|outcome| is_held(outcome)).count();
        assert_eq!(held, 3, "{a:?} {b:?}");
    }
    assert_clean(&*one).await;
}

/// While accounts are counted for a limit that is new, no batch slips in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_comes_while_nodes_sell_counts_every_order() {
    let database = Database::shared().await.unwrap();
    let (one, two) = (node(&database.url()).await, node(&database.url()).await);
    shop(&*one, Policy::default(), 10_000, 2).await;
    let selling = tokio::spawn({
        let two = Arc::clone(&two);
        async move {
            for number in 1..200_u128 {
                let locks = bucket(u32::try_from(number % 2).unwrap());
                lane(&*two, locks, vec![place(number, number, &format!("account-{}", number % 7))]).await;
                if number % 3 == 0 {
                    lane(&*two, LockSet::pool(PoolId(1)), vec![change(number, OrderAction::Cancel)]).await;
                }
            }
        }
    });
    for limit in [Some(1_000), None, Some(2_000), None, Some(3_000)] {
        put(&*one, Policy { account_limit: limit, ..Policy::default() }).await;
        assert_clean(&*one).await;
    }
    selling.await.unwrap();
    assert_clean(&*one).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_one_first_key() {
    let database = Database::shared().await.unwrap();
    let nodes = [node(&database.url()).await, node(&database.url()).await, node(&database.url()).await];
    let first = |number: u8| CreateKey {
        id: KeyId::new(&format!("{number:016}")).unwrap(),
        name: "first".into(),
        role: Role::Admin,
        scope: Scope::All,
        secret_sha256: [number; 32],
        expires_at: None,
        via: None,
    };
    let (a, b, c) = tokio::join!(
        nodes[0].create_first_key(first(1)),
        nodes[1].create_first_key(first(2)),
        nodes[2].create_first_key(first(3))
    );
    let made = [a, b, c].into_iter().filter(|made| *made.as_ref().unwrap()).count();
    assert_eq!((made, nodes[0].live_keys().await.unwrap().len()), (1, 1));
}

/// A pooler that gives each transaction another session, and knows no prepared statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_work_through_a_pooler_in_transaction_mode() {
    let server = Postgres::start().await.unwrap();
    server.create_database("shop").await.unwrap();
    let pooler = PgBouncer::start(&server, PoolMode::Transaction).await.unwrap();
    let url = format!("{}?statements=unnamed", pooler.url("shop"));
    let (one, two) = (node(&url).await, node(&url).await);
    shop(&*one, Policy { account_limit: Some(50), ..Policy::default() }, 60, 2).await;
    let sell = |store: Arc<holdfast_postgres::PostgresStore>, from: u128| async move {
        for number in from..from + 40 {
            lane(&*store, LockSet::pool(PoolId(1)), vec![place(number, number, "ann")]).await;
            store.order(holdfast_core::id::OrderId(number)).await.unwrap();
        }
    };
    tokio::join!(sell(Arc::clone(&one), 1), sell(two, 101));
    let row = one.pool(PoolId(1)).await.unwrap().unwrap();
    assert_eq!(row.buckets.iter().map(|bucket| bucket.held).sum::<u64>(), 50, "the account's limit");
    let outcome = commit(&*one, LockSet::pool(PoolId(1)), vec![place(999, 999, "ann")]).await.unwrap();
    assert!(matches!(&outcome[0], Outcome::Refused { refusal: Refusal::AccountLimit(_), .. }), "{outcome:?}");
    assert_clean(&*one).await;
}
