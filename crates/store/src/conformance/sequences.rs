//! Every pair and triple of what may arrive at an order, each arrival doubled, on the store and on the model.
//!
//! Sequences in which time passes at the same places run side by side, each on an order of its own: so many
//! share a commit. Those in which the campaign is switched at the same places share a campaign and its pool.

use std::collections::BTreeMap;

use holdfast_core::campaign::{Policy, Switch};
use holdfast_core::command::{Command, OpenPool};
use holdfast_core::id::{CampaignId, Operator, OrderId};
use holdfast_core::time::Timestamp;

use super::arrivals::{Arrival, HOLD_SECONDS, order, policies, sequences};
use super::behaviour::{Subject, TestClock};
use super::rows::{assert_same, assert_same_campaign, cases};
use super::support::{assert_clean, change, commit, placed, pool_command, whole};
use crate::clock::Clock;
use crate::contract::{PutCampaign, Store, SwitchCampaign};
use crate::model::ModelStore;

/// Most commands of a commit.
const BATCH: usize = 2_000;
/// Longer than any hold and its grace.
const BEYOND_SECONDS: u32 = 1_000;

/// Sequences that share a campaign and its pool.
struct Group {
    campaign: CampaignId,
    pool: u128,
    policy: Policy,
    /// Which switch is set before which arrival.
    switches: Vec<Option<Arrival>>,
    orders: Vec<(u128, Vec<Arrival>)>,
}

struct Both<'a> {
    store: &'a dyn Store,
    model: &'a dyn Store,
}

/// Whatever arrives at an order, in whatever order and doubled, does what it does on the model, whose answers are
/// held against the table elsewhere.
pub async fn whatever_arrives_in_whatever_order_is_answered_as_the_model_does(
    store: Subject,
    clock: TestClock,
) {
    let (mut next, mut expected_cases) = (1, Vec::new());
    for (waits, groups) in by_times() {
        // The model reads all that it has for every batch: it is fast while it has little.
        let model = ModelStore::new(clock.clone());
        let both = Both { store: &*store, model: &model };
        let groups = groups_of(groups, &mut next);
        both.run(&clock, &waits, &groups).await;
        for group in &groups {
            assert_same_campaign(&*store, &model, &group.campaign).await;
        }
        expected_cases.extend(cases(&model).await);
        assert_clean(&model).await;
    }
    assert!(next > 4_000, "{next}");
    expected_cases.sort_unstable_by_key(|case| case.id);
    assert_same(&cases(&*store).await, &expected_cases);
    assert_clean(&*store).await;
}

type Places = Vec<Option<Arrival>>;

/// All sequences by the places where time passes, then by those where the campaign is switched.
fn by_times() -> BTreeMap<Places, BTreeMap<Places, Vec<Vec<Arrival>>>> {
    let mut all: BTreeMap<Places, BTreeMap<Places, Vec<Vec<Arrival>>>> = BTreeMap::new();
    for sequence in sequences() {
        let at = |chosen: fn(Arrival) -> bool| -> Places {
            sequence.iter().map(|arrival| Some(*arrival).filter(|a| chosen(*a))).collect()
        };
        let (waits, switches) = (at(Arrival::waits), at(|arrival| arrival.switch().is_some()));
        all.entry(waits).or_default().entry(switches).or_default().push(sequence);
    }
    all
}

/// Gives campaigns, pools and orders to the groups. Where nothing is switched every policy is tried, else they take
/// turns.
fn groups_of(groups: BTreeMap<Places, Vec<Vec<Arrival>>>, next: &mut u128) -> Vec<Group> {
    let mut made = Vec::new();
    for (turn, (switches, sequences)) in groups.into_iter().enumerate() {
        let never = switches.iter().all(Option::is_none);
        for (number, policy) in policies().into_iter().enumerate() {
            if !never && number != turn % policies().len() {
                continue;
            }
            let pool = *next;
            let orders = sequences.iter().cloned().zip(pool..).map(|(sequence, id)| (id, sequence)).collect();
            *next += sequences.len() as u128;
            let campaign = CampaignId::new(&format!("c{pool}")).expect("a good id");
            made.push(Group { campaign, pool, policy, switches: switches.clone(), orders });
        }
    }
    made
}

impl Group {
    fn opening(&self) -> Command {
        let Command::OpenPool(open) = pool_command(self.pool, 1_000_000, 2) else { unreachable!() };
        Command::OpenPool(OpenPool { campaign: self.campaign.clone(), ..open })
    }

    fn places(&self) -> Vec<Command> {
        self.orders.iter().map(|(id, _)| placed(order(&self.campaign, *id, self.pool))).collect()
    }

    /// What arrives at each order at one place of its sequence; nothing where the campaign is switched.
    fn commands(&self, place: usize, placed_at: Timestamp) -> Vec<Command> {
        let command = |(id, sequence): &(u128, Vec<Arrival>)| {
            let action = sequence[place].action(&id.to_string(), placed_at)?;
            Some(change(*id, action))
        };
        self.orders.iter().filter_map(command).collect()
    }
}

impl Both<'_> {
    async fn run(&self, clock: &TestClock, waits: &Places, groups: &[Group]) {
        let placed_at = clock.now();
        for group in groups {
            self.put(group).await;
        }
        self.commit(groups, |group| vec![group.opening()]).await;
        self.commit(groups, Group::places).await;
        for (at, wait) in waits.iter().enumerate() {
            let seconds = match wait {
                Some(Arrival::LatePayment) => HOLD_SECONDS + 1,
                Some(_) => BEYOND_SECONDS,
                None => 0,
            };
            clock.set(clock.now().max(placed_at.plus_seconds(seconds)));
            for group in groups {
                if let Some(switch) = group.switches[at].and_then(Arrival::switch) {
                    self.switch(group, switch).await;
                    self.switch(group, switch).await;
                }
            }
            self.commit(groups, |group| group.commands(at, placed_at)).await;
            self.commit(groups, |group| group.commands(at, placed_at)).await;
        }
        // And everything once more, in the same order, from the place on.
        self.commit(groups, Group::places).await;
        for at in 0..waits.len() {
            self.commit(groups, |group| group.commands(at, placed_at)).await;
        }
    }

    async fn put(&self, group: &Group) {
        for store in [self.store, self.model] {
            let put = PutCampaign {
                id: group.campaign.clone(),
                name: "Sequences".into(),
                starts_at: None,
                ends_at: None,
                policy: group.policy.clone(),
                via: None,
            };
            store.put_campaign(put).await.expect("put");
        }
        self.switch(group, Switch::Open).await;
    }

    /// A closed campaign is neither paused nor opened again: both must say so.
    async fn switch(&self, group: &Group, switch: Switch) {
        let mut answers = Vec::new();
        for store in [self.store, self.model] {
            let set = SwitchCampaign {
                unsold_to: None,
                id: group.campaign.clone(),
                switch,
                operator: Operator::new("operator").expect("a good id"),
                reason: "test".into(),
                via: None,
            };
            let answer = store.switch_campaign(set).await.expect("store");
            answers.push(answer.map(|campaign| campaign.switches));
        }
        assert_eq!(answers[0], answers[1], "{switch:?} of {:?}", group.campaign);
    }

    /// Commits to both, many commands at a time, and holds the answers of one against those of the other.
    async fn commit(&self, groups: &[Group], commands: impl Fn(&Group) -> Vec<Command>) {
        let all: Vec<(u128, Command)> =
            groups.iter().flat_map(|group| commands(group).into_iter().map(|c| (group.pool, c))).collect();
        for batch in all.chunks(BATCH) {
            let pools: Vec<u128> = batch.iter().map(|(pool, _)| *pool).collect();
            let there = |command: &Command| !matches!(command, Command::OpenPool(_));
            let commands: Vec<Command> = batch.iter().map(|(_, command)| command.clone()).collect();
            let locks = if commands.iter().all(there) { whole(&pools) } else { whole(&[]) };
            let actual = commit(self.store, locks.clone(), commands.clone()).await;
            let expected = commit(self.model, locks, commands.clone()).await;
            for ((command, actual), expected) in commands.iter().zip(actual).zip(expected) {
                assert_eq!(actual, expected, "{command:?} in {:?}", sequence_of(groups, command));
            }
        }
    }
}

/// For people who read a failure.
fn sequence_of(groups: &[Group], command: &Command) -> Option<Vec<Arrival>> {
    let id = match command {
        Command::Place(place) => place.id,
        Command::Order(command) => command.order,
        _ => return None,
    };
    let mut orders = groups.iter().flat_map(|group| &group.orders);
    orders.find(|(number, _)| OrderId(*number) == id).map(|(_, sequence)| sequence.clone())
}
