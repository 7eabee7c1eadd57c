//! Who tries what: the same rush every time.

use fastrand::Rng;

/// The rush is the same in every run; only the clock differs.
const SEED: u64 = 20_261_129;
/// How far back a buyer's second click may look for the first.
const REPEAT_WITHIN: usize = 400;
/// One buyer in so many is greedy.
const GREEDY_SHARE: u32 = 50;

/// What becomes of the payment, should the order hold stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Paid at once.
    Paid,
    /// Paid at once, and the notice comes twice.
    PaidTwiceTold,
    /// Paid when the hold is over.
    PaidLate,
    /// Never paid.
    Unpaid,
}

/// One attempt to buy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Which buyer.
    pub(super) buyer: u32,
    /// The order's number, which a repeat shares.
    pub(super) order: u32,
    /// How many units.
    pub(super) quantity: u32,
    /// Whether the buyer hangs up before the answer, and asks later.
    pub(super) hangs_up: bool,
    /// What becomes of the payment.
    pub(super) fate: Fate,
}

impl Attempt {
    /// The order number that the buyer's shop gives.
    pub(super) fn order_no(&self) -> String {
        format!("order-{:05}", self.order)
    }

    /// Whose it is.
    pub(super) fn account(&self) -> String {
        format!("buyer-{:04}", self.buyer)
    }
}

/// The attempts in the order in which they are made.
pub(super) fn attempts(count: u32, buyers: u32) -> Vec<Attempt> {
    let mut rng = Rng::with_seed(SEED);
    let mut attempts: Vec<Attempt> = Vec::new();
    for order in 0..count {
        let known = attempts.len();
        let repeated = (known > 0 && rng.u32(..100) < 15)
            .then(|| attempts.get(rng.usize(known.saturating_sub(REPEAT_WITHIN)..known)).copied())
            .flatten();
        attempts.push(match repeated {
            // The second click does not hang up, whatever the first did.
            Some(first) => Attempt { hangs_up: false, ..first },
            None => fresh(&mut rng, order, buyers),
        });
    }
    attempts
}

fn fresh(rng: &mut Rng, order: u32, buyers: u32) -> Attempt {
    let greedy = (buyers / GREEDY_SHARE).max(1);
    Attempt {
        buyer: if rng.u32(..4) == 0 { rng.u32(..greedy) } else { rng.u32(..buyers) },
        order,
        quantity: if rng.u32(..10) == 0 { 2 } else { 1 },
        hangs_up: rng.u32(..100) < 8,
        fate: match rng.u32(..100) {
            0..50 => Fate::Paid,
            50..60 => Fate::PaidTwiceTold,
            60..78 => Fate::PaidLate,
            _ => Fate::Unpaid,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rush_has_everything_in_it_and_is_the_same_every_time() {
        let rush = attempts(20_000, 5_000);
        assert_eq!(rush, attempts(20_000, 5_000));
        assert_eq!(rush.len(), 20_000);
        let share = |is: &dyn Fn(&&Attempt) -> bool| rush.iter().filter(is).count();
        let orders: std::collections::BTreeSet<u32> = rush.iter().map(|attempt| attempt.order).collect();
        assert!((2_000..4_000).contains(&(rush.len() - orders.len())), "repeats");
        assert!((1_000..2_000).contains(&share(&|a| a.hangs_up)));
        for fate in [Fate::Paid, Fate::PaidTwiceTold, Fate::PaidLate, Fate::Unpaid] {
            assert!(share(&|a| a.fate == fate) > 1_500, "{fate:?}");
        }
        assert!(rush.iter().all(|attempt| attempt.buyer < 5_000));
        assert!(attempts(1, 1).iter().all(|attempt| attempt.buyer == 0));
    }
}
