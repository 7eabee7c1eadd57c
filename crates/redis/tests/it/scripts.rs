//! What each script does and refuses.

use holdfast_core::cache::Epoch;
use holdfast_core::id::OrderNo;
use holdfast_engine::{Accept, Answer, Applied, Cache, Seed};
use std::sync::Arc;

use crate::support::{BASE, BUCKET, Rig, key, number_of};

#[tokio::test]
async fn an_order_is_taken_counted_and_written_in_one_step() {
    let rig = Rig::open(5).await;
    let node = &rig.node;
    let answer = node.accept(&node.order_of(1, 2, "a")).await.unwrap();
    let Answer::Accepted { accepted, backlog } = answer else { panic!("{answer:?}") };
    assert_eq!((accepted.bucket, accepted.epoch, accepted.number, accepted.units), (BUCKET, Epoch(1), 1, 2));
    assert_eq!(backlog, 1);

    let position = node.position().await;
    assert!(position.is_open && position.is_whole());
    assert_eq!((position.epoch, position.applied, position.last), (Epoch(1), BASE, Some(accepted.entry)));
    assert_eq!((position.available, position.accepted, position.accepted_units), (3, 1, 2));
    assert_eq!((position.backlog, position.delivered, position.settled), (1, 0, 0));

    let landing = node.deliver_orders(9).await.pop().unwrap();
    let asked = node.order_of(1, 2, "a");
    assert_eq!((&landing.place, landing.due_at, landing.accepted), (&*asked.place, asked.due_at, accepted));
    let position = node.position().await;
    assert_eq!((position.backlog, position.delivered), (1, 1));

    node.settle(&[accepted.entry]).await;
    node.settle(&[accepted.entry]).await;
    let position = node.position().await;
    assert_eq!((position.backlog, position.delivered, position.settled), (0, 0, 1), "settled once");
    node.assert_law(5, 0).await;
}

#[tokio::test]
async fn a_number_that_is_known_takes_nothing_again() {
    let rig = Rig::open(5).await;
    let node = &rig.node;
    let first = node.take(1).await;
    // The same again, with an id and metadata of its own; then with other content: who asked compares.
    let mut again = node.order(1);
    let place = Arc::make_mut(&mut again.place);
    (place.id, place.metadata) = (holdfast_core::id::OrderId(99), Some("{}".into()));
    let known = || Answer::Known { accepted: first, order: holdfast_core::id::OrderId(1), backlog: 1 };
    assert_eq!(node.accept(&again).await, Ok(known()));
    assert_eq!(node.accept(&node.order_of(1, 2, "buyer-1")).await, Ok(known()));
    // Known comes before every refusal.
    let refused = Accept { backlog_max: 0, seen: 9, account_limit: Some(0), ..node.order(1) };
    assert_eq!(node.accept(&refused).await, Ok(known()));
    assert_eq!(node.cache.drain(BUCKET, Epoch(1)).await, Ok(Applied::Done));
    assert_eq!(node.accept(&again).await, Ok(known()));
    node.assert_law(5, 0).await;

    let order_no = |number| OrderNo::new(&number_of(number)).unwrap();
    let found = node.cache.look_up(BUCKET, Epoch(1), &order_no(1)).await;
    assert_eq!(found, Ok(Some((first, holdfast_core::id::OrderId(1)))));
    assert_eq!(node.cache.look_up(BUCKET, Epoch(1), &order_no(2)).await, Ok(None));
    assert_eq!(node.cache.look_up(BUCKET, Epoch(2), &order_no(1)).await, Ok(None), "another epoch");
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let rig = Rig::open(2).await;
    let node = &rig.node;
    node.take(1).await;
    let before = node.position().await;
    let limited =
        |account: &str, limit| Accept { account_limit: Some(limit), ..node.order_of(2, 1, account) };
    for (accept, answer) in [
        (node.order_of(2, 2, "a"), Answer::Short { available: 1 }),
        (Accept { backlog_max: 1, ..node.order(2) }, Answer::QueueFull),
        (limited("a", 0), Answer::AccountLimit),
        (Accept { epoch: Epoch(2), ..node.order(2) }, Answer::NotReady),
        (Accept { epoch: Epoch(0), ..node.order(2) }, Answer::NotReady),
        (Accept { seen: 2, ..node.order(2) }, Answer::WentBack),
        (Accept { identity: "another".into(), ..node.order(2) }, Answer::WentBack),
    ] {
        assert_eq!(node.accept(&accept).await, Ok(answer), "{accept:?}");
        assert_eq!(node.position().await, before);
    }
    // What the node has seen is what the cache is at.
    let accept = Accept { seen: 1, backlog_max: 2, ..limited("a", 1) };
    assert!(matches!(node.accept(&accept).await, Ok(Answer::Accepted { .. })));
    assert_eq!(node.position().await.available, 0);
}

#[tokio::test]
async fn an_account_has_no_more_than_its_limit_by_one_bucket() {
    let rig = Rig::open(9).await;
    let node = &rig.node;
    let accept = |number, units| Accept { account_limit: Some(3), ..node.order_of(number, units, "a") };
    for (number, units, is_let_in) in [(1, 2, true), (2, 2, false), (3, 1, true), (4, 1, false)] {
        let answer = node.accept(&accept(number, units)).await.unwrap();
        assert_eq!(matches!(answer, Answer::Accepted { .. }), is_let_in, "{number}: {answer:?}");
        assert_eq!(answer == Answer::AccountLimit, !is_let_in, "{number}: {answer:?}");
    }
    let other = Accept { account_limit: Some(3), ..node.order_of(5, 3, "b") };
    assert!(matches!(node.accept(&other).await, Ok(Answer::Accepted { .. })));
    node.assert_law(9, 0).await;
}

#[tokio::test]
async fn three_hundred_tries_at_once_of_one_account_take_one_unit_and_leave_the_rest_to_others() {
    let rig = Rig::open(100).await;
    let node = &rig.node;
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..399 {
        let account = if number < 300 { "greedy".to_owned() } else { format!("buyer-{number}") };
        let accept = Accept { account_limit: Some(1), ..node.order_of(number, 1, &account) };
        let cache = Arc::clone(&node.cache);
        tries.spawn(async move { (number < 300, cache.accept(&accept).await.unwrap()) });
    }
    let answers = tries.join_all().await;
    let accepted = |greedy: bool| {
        let of = answers.iter().filter(|(is_greedy, _)| *is_greedy == greedy);
        of.filter(|(_, answer)| matches!(answer, Answer::Accepted { .. })).count()
    };
    assert_eq!((accepted(true), accepted(false)), (1, 99));
    assert!(answers.iter().all(|(greedy, answer)| !greedy || !matches!(answer, Answer::Short { .. })));
    node.assert_law(100, 0).await;
    assert_eq!(node.position().await.available, 0);
}

#[tokio::test]
async fn what_comes_at_once_shares_a_call_and_is_answered_each_for_itself() {
    let rig = Rig::open(10).await;
    let node = &rig.node;
    // The script is there, so that it is called by its name only.
    let known = node.take(1).await;
    rig.server.command(&["CONFIG", "RESETSTAT"]).await.unwrap();
    let limited =
        |number, units, limit| Accept { account_limit: Some(limit), ..node.order_of(number, units, "a") };
    let asked = [
        node.order(2),
        node.order(1),
        node.order_of(2, 3, "another"),
        limited(3, 2, 3),
        limited(4, 2, 3),
        limited(5, 1, 3),
        node.order_of(6, 9, "b"),
        Accept { backlog_max: 4, ..node.order(7) },
        node.order_of(8, 5, "b"),
        node.order_of(9, 1, "b"),
    ];
    let mut asking = tokio::task::JoinSet::new();
    for (place, accept) in asked.into_iter().enumerate() {
        let cache = Arc::clone(&node.cache);
        asking.spawn(async move { (place, cache.accept(&accept).await.unwrap()) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    let answers: Vec<_> = answers.into_iter().map(|(_, answer)| answer).collect();
    let numbers: Vec<_> =
        answers
            .iter()
            .map(|answer| {
                if let Answer::Accepted { accepted, .. } = answer { Ok(accepted.number) } else { Err(answer) }
            })
            .collect();
    let Answer::Accepted { accepted: second, .. } = answers[0] else { panic!("{answers:?}") };
    let repeat = Answer::Known { accepted: known, order: holdfast_core::id::OrderId(1), backlog: 2 };
    let twice = Answer::Known { accepted: second, order: holdfast_core::id::OrderId(2), backlog: 2 };
    let short = |available| Answer::Short { available };
    let expected = [
        Ok(2),
        Err(&repeat),
        Err(&twice),
        Ok(3),
        Err(&Answer::AccountLimit),
        Ok(4),
        Err(&short(5)),
        Err(&Answer::QueueFull),
        Ok(5),
        Err(&short(0)),
    ];
    assert_eq!(numbers, expected);
    let stats = rig.server.command(&["INFO", "commandstats"]).await.unwrap();
    assert!(stats.contains("cmdstat_evalsha:calls=1,"), "{stats}");
    node.assert_law(10, 0).await;
    let landings = node.deliver_orders(99).await;
    let landed: Vec<_> =
        landings.iter().map(|landing| (landing.accepted.number, landing.place.id.0)).collect();
    assert_eq!(landed, [(1, 1), (2, 2), (3, 3), (4, 5), (5, 8)]);
    assert_eq!(node.accept(&limited(10, 1, 3)).await, Ok(Answer::AccountLimit), "what it had is kept");
}

#[tokio::test]
async fn without_its_stream_no_order_of_a_call_is_taken() {
    let rig = Rig::open(9).await;
    let node = &rig.node;
    let taken = node.take(1).await;
    node.deliver(1).await;
    node.settle(&[taken.entry]).await;
    rig.server.command(&["DEL", &key("stream")]).await.unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for number in [2, 1, 3, 3] {
        let (cache, accept) = (Arc::clone(&node.cache), node.order(number));
        asking.spawn(async move { (number, cache.accept(&accept).await.unwrap()) });
    }
    for (number, answer) in asking.join_all().await {
        assert_eq!(answer == Answer::WentBack, number > 1, "{number}: {answer:?}");
    }
    let known = rig.server.command(&["HLEN", &key("orders")]).await.unwrap();
    assert_eq!(known.trim(), "1");
}

#[tokio::test]
async fn a_credit_counts_from_its_own_position_only() {
    let rig = Rig::open(2).await;
    let node = &rig.node;
    assert_eq!(node.credit(BASE, BASE + 3, -5).await, Applied::Done);
    assert_eq!(node.position().await.available, -3, "others took more than the cache had");
    assert_eq!(node.accept(&node.order(1)).await, Ok(Answer::Short { available: -3 }));
    // The same again, a later one too early, one of another epoch.
    assert_eq!(node.credit(BASE, BASE + 3, -5).await, Applied::Elsewhere);
    assert_eq!(node.credit(BASE + 4, BASE + 5, 1).await, Applied::Elsewhere);
    let mut other =
        holdfast_engine::Credit { bucket: BUCKET, epoch: Epoch(2), from: BASE + 3, to: BASE + 4, units: 4 };
    assert_eq!(node.cache.credit(other).await, Ok(Applied::Elsewhere));
    other.epoch = Epoch(1);
    assert_eq!(node.cache.credit(other).await, Ok(Applied::Done));
    let position = node.position().await;
    assert_eq!((position.available, position.applied), (1, BASE + 4));
    // While it drains, too: the law is held against it then.
    assert_eq!(node.cache.drain(BUCKET, Epoch(1)).await, Ok(Applied::Done));
    assert_eq!(node.credit(BASE + 4, BASE + 5, 1).await, Applied::Done);
    assert_eq!(node.position().await.available, 2);
}

#[tokio::test]
async fn an_epoch_is_seeded_opened_and_drained_once_and_never_over_a_newer_one() {
    let rig = Rig::open(2).await;
    let (node, cache) = (&rig.node, &rig.node.cache);
    node.take(1).await;
    let seed = |epoch, base_available| Seed { bucket: BUCKET, epoch, base_seq: BASE, base_available };
    for old in [seed(Epoch(1), 2), seed(Epoch(0), 9)] {
        assert_eq!(cache.seed(old).await, Ok(Applied::Elsewhere), "{old:?}");
    }
    assert_eq!(node.position().await.accepted, 1);
    assert_eq!(cache.drain(BUCKET, Epoch(2)).await, Ok(Applied::Elsewhere));
    assert_eq!(cache.drain(BUCKET, Epoch(1)).await, Ok(Applied::Done));
    assert_eq!(cache.open(BUCKET, Epoch(1)).await, Ok(Applied::Elsewhere), "drained is for good");
    assert_eq!(node.accept(&node.order(2)).await, Ok(Answer::NotReady));

    assert_eq!(cache.seed(seed(Epoch(2), 7)).await, Ok(Applied::Done));
    assert_eq!(cache.seed(seed(Epoch(2), 7)).await, Ok(Applied::Done), "the same again");
    assert_eq!(cache.seed(seed(Epoch(2), 8)).await, Ok(Applied::Elsewhere));
    let position = node.position().await;
    assert!(!position.is_open && position.is_whole());
    assert_eq!((position.available, position.accepted, position.last), (7, 0, None));
    let accept = Accept { epoch: Epoch(2), ..node.order(1) };
    assert_eq!(node.accept(&accept).await, Ok(Answer::NotReady), "seeded is not open");
    assert_eq!(cache.open(BUCKET, Epoch(1)).await, Ok(Applied::Elsewhere));
    assert_eq!(cache.open(BUCKET, Epoch(2)).await, Ok(Applied::Done));
    assert_eq!(cache.open(BUCKET, Epoch(2)).await, Ok(Applied::Done));
    assert_eq!(cache.seed(seed(Epoch(2), 7)).await, Ok(Applied::Elsewhere), "an open one is not seeded");
    assert!(matches!(node.accept(&accept).await, Ok(Answer::Accepted { .. })), "a number of the last epoch");

    cache.forget(BUCKET, Epoch(1)).await.unwrap();
    assert_eq!(node.position().await.epoch, Epoch(2));
    cache.forget(BUCKET, Epoch(2)).await.unwrap();
    assert_eq!(cache.position(BUCKET).await, Ok(None));
    assert_eq!(rig.server.command(&["DBSIZE"]).await.unwrap(), "0");
}

#[tokio::test]
async fn numbers_beyond_what_a_script_counts_exactly_are_refused_and_change_nothing() {
    let most = (1 << 53) - 1;
    let rig = Rig::open(most).await;
    let node = &rig.node;
    node.take(1).await;
    assert_eq!(node.position().await.available, i64::try_from(most).unwrap() - 1);
    let beyond = Seed { bucket: BUCKET, epoch: Epoch(2), base_seq: u64::MAX, base_available: most + 1 };
    assert!(matches!(node.cache.seed(beyond).await, Err(holdfast_engine::CacheError::Unfit(_))));
    let credit =
        holdfast_engine::Credit { bucket: BUCKET, epoch: Epoch(1), from: BASE, to: BASE + 1, units: 2 };
    assert!(matches!(node.cache.credit(credit).await, Err(holdfast_engine::CacheError::Unfit(_))));
    rig.server.command(&["HSET", &key("cache"), "accepted_units", "9007199254740991"]).await.unwrap();
    let before = node.position().await;
    assert!(matches!(node.accept(&node.order(2)).await, Err(holdfast_engine::CacheError::Unfit(_))));
    assert_eq!(node.position().await, before);
    // A ledger position may be any: it is compared as it is written.
    assert_eq!(node.credit(BASE, u64::MAX, -1).await, Applied::Done);
    assert_eq!(node.position().await.applied, u64::MAX);
}

#[tokio::test]
async fn deployments_with_names_of_their_own_share_a_server() {
    let rig = Rig::open(1).await;
    let url = format!("{}?instance=other", rig.server.url());
    let other = crate::support::Node::open(&url, crate::support::patient(), 9).await;
    rig.node.take(1).await;
    assert_eq!(other.position().await.available, 9);
    assert_eq!(rig.node.position().await.available, 0);
}
