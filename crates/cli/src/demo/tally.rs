//! What the buyers saw, counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Failures that are kept in words.
const NOTES_MAX: usize = 20;

/// Counts of the rush.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counts>);

/// What was counted.
#[derive(Debug, Default, Clone)]
pub(super) struct Counts {
    /// Attempts that have their answer.
    pub(super) answered: u64,
    /// Answers, by what they said.
    pub(super) answers: BTreeMap<&'static str, u64>,
    /// Buyers who hung up.
    pub(super) hang_ups: u64,
    /// Of them, whose order was there when they asked again.
    pub(super) hang_ups_found: u64,
    /// What the payment notices were answered, by when the buyer paid.
    pub(super) paid_in_time: BTreeMap<String, u64>,
    pub(super) paid_late: BTreeMap<String, u64>,
    /// Holds that ran out unpaid.
    pub(super) expired: u64,
    /// Orders that held stock, by the buyer's number; each is looked after once.
    pub(super) held: BTreeSet<u32>,
    /// Orders that were said to be sold.
    pub(super) sold: BTreeSet<String>,
    /// Orders that were said to have gone back.
    pub(super) released: BTreeSet<String>,
    /// Ids by order number: one number, one order.
    pub(super) ids: BTreeMap<u32, String>,
    /// What must not be.
    pub(super) breaches: Vec<String>,
    /// What got no answer or a strange one.
    pub(super) strange: Vec<String>,
}

impl Tally {
    /// The counts, to be changed.
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Counts an answer.
    pub(super) fn answer(&mut self, what: &'static str) {
        let count = self.answers.entry(what).or_default();
        *count = count.saturating_add(1);
        self.answered = self.answered.saturating_add(1);
    }

    /// How many answers said so.
    pub(super) fn answers_of(&self, what: &str) -> u64 {
        self.answers.get(what).copied().unwrap_or_default()
    }

    /// An order was shown: its number must always mean the same one. Whether it is new as a holder.
    pub(super) fn saw(&mut self, number: u32, id: &str, state: &str) -> bool {
        let known = self.ids.entry(number).or_insert_with(|| id.to_owned()).clone();
        if known != id {
            self.breach(format!("order number {number} is two orders: {known} and {id}"));
        }
        state == "held" && self.held.insert(number)
    }

    /// Notes what must not be.
    pub(super) fn breach(&mut self, what: String) {
        if self.breaches.len() < NOTES_MAX {
            self.breaches.push(what);
        }
    }

    /// Notes what got no answer or a strange one.
    pub(super) fn strange(&mut self, what: String) {
        if self.strange.len() < NOTES_MAX {
            self.strange.push(what);
        }
    }
}
