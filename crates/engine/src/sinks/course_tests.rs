//! The course against receivers that are told what to take. Time stands still until it is moved.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::id::{OrderId, PoolId};
use holdfast_store::{SinkKind, SinkName, SinkSettings, SinkState};

use super::*;
use crate::sinks::contract::OutEvent;

const CLOCK: Timestamp = Timestamp(1_700_000_000_000_000);

fn key(pool: u128) -> BucketKey {
    BucketKey { pool: PoolId(pool), number: 0 }
}

fn row() -> SinkRow {
    SinkRow {
        name: SinkName::new("erp").unwrap(),
        kind: SinkKind::Webhook,
        settings: SinkSettings { retry_seconds: vec![1, 5, 30], attempts_max: 3, ..SinkSettings::default() },
        secrets: Vec::new(),
        state: SinkState::Active,
        why: None,
        round: 1,
        created_at: CLOCK,
        updated_at: CLOCK,
        health: SinkHealth::default(),
        parked: 0,
        waiting: 0,
    }
}

/// A receiver, and the time.
struct World {
    course: Course,
    now: Instant,
    elapsed: Duration,
    is_up: bool,
    /// Orders that it never takes.
    hates: BTreeSet<u128>,
    ledgers: BTreeMap<BucketKey, Vec<u128>>,
    /// What it took, as (pool, sequence).
    taken: Vec<(u128, u64)>,
    requests: usize,
}

impl World {
    /// Ledgers by pool, each a list of orders, an entry an order.
    fn new(ledgers: &[(u128, &[u128])]) -> Self {
        let now = Instant::now();
        let mut world = Self {
            course: Course::new(&row(), CLOCK, now),
            now,
            elapsed: Duration::ZERO,
            is_up: true,
            hates: BTreeSet::new(),
            ledgers: BTreeMap::new(),
            taken: Vec::new(),
            requests: 0,
        };
        for (pool, orders) in ledgers {
            world.append(*pool, orders);
        }
        world
    }

    fn append(&mut self, pool: u128, orders: &[u128]) {
        let ledger = self.ledgers.entry(key(pool)).or_default();
        ledger.extend(orders);
        let ledger_seq = ledger.len() as u64;
        if !self.course.went_on(key(pool), ledger_seq) {
            self.course.lags(&Lag { bucket: key(pool), seq: 0, ledger_seq, strikes: 0 });
        }
    }

    fn event(&self, bucket: BucketKey, seq: u64) -> Arc<OutEvent> {
        let order = self.ledgers[&bucket][usize::try_from(seq).unwrap() - 1];
        Arc::new(OutEvent {
            id: format!("{}/{seq}", bucket.pool),
            kind: "test".into(),
            word: "held",
            bucket,
            seq,
            order: Some(OrderId(order)),
            at: CLOCK,
            body: Vec::new(),
        })
    }

    fn takes(&mut self, event: &OutEvent) -> bool {
        self.requests += 1;
        let is_taken = self.is_up && !self.hates.contains(&event.order.unwrap().0);
        if is_taken {
            self.taken.push((event.bucket.pool.0, event.seq));
        }
        is_taken
    }

    /// One job, as the way does it: event by event.
    fn work(&mut self, job: Job) {
        let Job { bucket, mut stand, known, probes } = job;
        while stand.read_to < known {
            stand.read_to += 1;
            if !stand.ahead.contains(&stand.read_to) {
                stand.events.push_back(self.event(bucket, stand.read_to));
            }
        }
        let (failure, probed) = (None, None);
        let mut done = Done { bucket, stand, taken: 0, failure, probed, lonely: false, unread: false };
        while let Some(first) = done.stand.events.front().cloned() {
            if self.takes(&first) {
                done.stand.events.pop_front();
                done.stand.position = first.seq;
                done.stand.settle();
                done.taken += 1;
                continue;
            }
            done.failure = Some(Failure::of_events("500"));
            if probes {
                let other = done.stand.events.iter().find(|event| event.order != first.order).cloned();
                done.probed = other.map(|other| {
                    let is_taken = self.takes(&other);
                    if is_taken {
                        done.stand.events.retain(|event| event.seq != other.seq);
                        done.stand.ahead.insert(other.seq);
                    }
                    is_taken
                });
                done.lonely = done.probed.is_none();
            }
            break;
        }
        self.course.done(done, CLOCK.plus(self.elapsed), self.now, 0.5);
    }

    /// Works until nothing can be done at this moment.
    fn settle(&mut self) {
        loop {
            let jobs = self.course.next(self.now);
            if jobs.is_empty() {
                return;
            }
            jobs.into_iter().for_each(|job| self.work(job));
        }
    }

    /// Lets time pass, from one thing to do to the next.
    fn run(&mut self, seconds: u64) {
        let end = self.elapsed + Duration::from_secs(seconds);
        loop {
            self.settle();
            let wait = self.course.next_at(self.now).map(|at| at - self.now);
            let step = wait.unwrap_or(Duration::MAX).min(end - self.elapsed);
            (self.now, self.elapsed) = (self.now + step, self.elapsed + step);
            if self.elapsed >= end {
                self.settle();
                return;
            }
        }
    }

    fn parked(&mut self) -> Vec<(u128, u64)> {
        let parked = std::mem::take(&mut self.course.parked);
        parked.iter().map(|park| (park.position.0.pool.0, park.position.1)).collect()
    }

    fn positions(&mut self) -> Vec<(u128, u64)> {
        let progress = self.course.progress();
        progress.positions.iter().map(|place| (place.bucket.pool.0, place.seq)).collect()
    }
}

#[test]
fn everything_is_delivered_once_and_in_order() {
    let mut world = World::new(&[(1, &[1, 2, 3]), (2, &[4, 5])]);
    world.settle();
    let of = |pool| world.taken.iter().filter(|(p, _)| *p == pool).map(|(_, seq)| *seq).collect::<Vec<_>>();
    assert_eq!((of(1), of(2)), (vec![1, 2, 3], vec![1, 2]));
    assert_eq!(world.positions(), [(1, 3), (2, 2)]);
    world.append(1, &[6]);
    world.settle();
    assert_eq!(world.taken.last(), Some(&(1, 4)));
}

#[test]
fn a_receiver_that_is_down_parks_nothing_and_is_left_in_peace() {
    let mut world = World::new(&[(1, &[1, 2, 3]), (2, &[4]), (3, &[5]), (4, &[6]), (5, &[7])]);
    world.is_up = false;
    world.run(3_600);
    assert_eq!((world.parked(), world.taken.len()), (vec![], 0));
    assert!(world.course.is_failing());
    // Five heads at first, then one or two requests after 1, 5, 30, 30 … seconds.
    assert!(world.requests < 5 + 2 * 125, "{}", world.requests);
    let before = world.requests;
    world.run(29);
    assert!(world.requests - before <= 2, "the waits are kept: {}", world.requests - before);
    world.is_up = true;
    world.run(40);
    assert_eq!(world.taken.len(), 7, "the backlog comes");
    assert_eq!((world.parked(), world.course.is_failing()), (vec![], false));
    let health = world.course.progress().health.unwrap();
    assert_eq!((health.failing_since, health.failures, health.next_attempt_at), (None, 0, None));
}

#[test]
fn an_order_that_is_never_taken_is_parked_and_holds_back_nobody_else() {
    let mut world = World::new(&[(1, &[1, 2, 1, 3]), (2, &[4])]);
    world.hates.insert(1);
    world.settle();
    assert!(world.taken.contains(&(2, 1)), "the other bucket goes on at once");
    for order in 10..20 {
        world.append(2, &[order]);
        world.run(10);
    }
    assert_eq!(world.taken.iter().filter(|(pool, _)| *pool == 2).count(), 11);
    world.run(300);
    for order in 20..60 {
        world.append(2, &[order]);
        world.run(10);
    }
    assert_eq!(world.parked(), [(1, 1), (1, 3)]);
    let of_one: Vec<_> = world.taken.iter().filter(|(pool, _)| *pool == 1).map(|(_, seq)| *seq).collect();
    assert_eq!(of_one, [2, 4]);
    assert!(!world.course.is_failing());
}

#[test]
fn the_only_bucket_goes_on_past_an_order_that_is_never_taken() {
    let mut world = World::new(&[(1, &[1, 1, 2, 3, 4, 5, 6, 7])]);
    world.hates.insert(1);
    world.run(600);
    assert_eq!(world.parked(), [(1, 1), (1, 2)]);
    let mut seen = BTreeSet::new();
    assert!(world.taken.iter().all(|taken| seen.insert(*taken)), "nothing twice: {:?}", world.taken);
    assert_eq!(seen.len(), 6);
    assert_eq!(world.positions(), [(1, 8)]);
}

#[test]
fn the_last_event_is_not_parked_until_something_shows_that_others_are_taken() {
    let mut world = World::new(&[(1, &[1])]);
    world.hates.insert(1);
    world.run(7_200);
    assert_eq!(world.parked(), []);
    assert!(world.course.is_failing(), "as far as anybody can tell it is down");
    // What comes next shows it, at once.
    world.append(1, &[2]);
    world.settle();
    assert_eq!((world.taken.clone(), world.course.is_failing()), (vec![(1, 2)], false));
    for order in 3..9 {
        world.append(1, &[order]);
        world.run(40);
    }
    assert_eq!(world.parked(), [(1, 1)]);
    assert_eq!(world.taken.len(), 7);
}

#[test]
fn another_bucket_is_tried_at_once_while_only_one_has_failed() {
    let mut world = World::new(&[(1, &[1])]);
    world.hates.insert(1);
    world.run(600);
    assert!(world.course.is_failing());
    world.append(2, &[2]);
    world.settle();
    assert_eq!((world.taken.clone(), world.course.is_failing()), (vec![(2, 1)], false));
}

#[test]
fn a_receiver_that_comes_back_and_stumbles_parks_nothing() {
    let mut world = World::new(&[(1, &[1, 2]), (2, &[3, 4])]);
    for _ in 0..2 {
        world.is_up = false;
        world.run(600);
        world.is_up = true;
        world.append(3, &[9]);
        world.is_up = false;
        world.run(10);
    }
    world.is_up = true;
    world.run(60);
    assert_eq!(world.parked(), []);
    let taken: BTreeSet<_> = world.taken.iter().copied().collect();
    assert_eq!(taken.len(), 6);
}

#[test]
fn a_receivers_wish_is_followed_up_to_an_hour_and_gone_ends_it() {
    let done = |failure| Done {
        bucket: key(1),
        stand: Stand { position: 0, read_to: 1, size: 1, ..Stand::default() },
        taken: 0,
        failure: Some(failure),
        probed: None,
        lonely: false,
        unread: false,
    };
    let wish =
        |seconds| Failure { retry_after: Some(Duration::from_secs(seconds)), ..Failure::of_receiver("429") };
    for (seconds, waits) in [(77, 77), (1_000_000, 3_600)] {
        let mut world = World::new(&[(1, &[1])]);
        drop(world.course.next(world.now));
        world.course.done(done(wish(seconds)), CLOCK, world.now, 0.5);
        assert_eq!(world.course.next_at(world.now), Some(world.now + Duration::from_secs(waits)));
    }
    let mut world = World::new(&[(1, &[1])]);
    drop(world.course.next(world.now));
    world.course.done(done(Failure { gone: true, ..Failure::of_receiver("410") }), CLOCK, world.now, 0.5);
    assert!(world.course.progress().disable.unwrap().contains("wants no more: 410"));
    assert!(world.course.next(world.now).is_empty());
}

#[test]
fn what_fails_together_is_one_failure() {
    let ledgers: Vec<(u128, &[u128])> = (1..=16).map(|pool| (pool, [7_u128].as_slice())).collect();
    let mut world = World::new(&ledgers);
    world.is_up = false;
    world.settle();
    assert_eq!(world.requests, 16);
    assert_eq!(world.course.health.failures, 1);
}

#[test]
fn a_receiver_that_takes_nothing_for_too_long_is_given_up() {
    let mut world = World::new(&[(1, &[1])]);
    world.course.settings.disable_after_seconds = 100;
    world.is_up = false;
    world.run(95);
    assert_eq!(world.course.disable, None);
    world.run(60);
    assert!(world.course.disable.unwrap().contains("has taken nothing since 2023-11-14T22:13"), "told");
}

#[test]
fn a_new_courier_does_not_hurry_a_failing_receiver() {
    let health = SinkHealth {
        failing_since: Some(CLOCK),
        failures: 3,
        next_attempt_at: Some(CLOCK.plus_seconds(20)),
        ..SinkHealth::default()
    };
    let now = Instant::now();
    let mut course = Course::new(&SinkRow { health, ..row() }, CLOCK, now);
    course.lags(&Lag { bucket: key(1), seq: 0, ledger_seq: 1, strikes: 0 });
    course.lags(&Lag { bucket: key(2), seq: 0, ledger_seq: 1, strikes: 0 });
    assert!(course.next(now).is_empty());
    assert_eq!(course.next(now + Duration::from_secs(20)).len(), 1, "one is enough to see");
}
