//! One sale of a scenario: who its buyers are and what each does, all from its seed.

use crate::deployment::Kind;
use crate::scenario::{Buyers, Fates, Scenario, Shop, Tide};

/// Units of a pool are at least so many, so that there is something to sell in the shortest run.
const UNITS_MIN: u64 = 20;
/// The longest that a buyer who hangs up waits before that, in milliseconds.
const HANG_UP_MS_MAX: u32 = 20;

/// A sale: everything that is known of it before it begins.
#[derive(Debug, Clone)]
pub(crate) struct Sale {
    /// The campaign, of this sale alone.
    pub(crate) campaign: String,
    /// What all chances come from.
    pub(crate) seed: u64,
    /// How long orders come, in seconds.
    pub(crate) seconds: u32,
    /// How many come in a second, at ordinary tide.
    pub(crate) orders_a_second: f64,
    /// What is sold.
    pub(crate) shop: Shop,
    /// Who buys.
    pub(crate) buyers: Buyers,
    /// What the pools sell, each with its path.
    pub(crate) goods: Vec<Good>,
}

/// What a pool sells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Good {
    /// The SKU.
    pub(crate) sku: String,
    /// The path of its pool.
    pub(crate) path: &'static str,
    /// The buckets of its pool.
    pub(crate) buckets: u32,
    /// Their weights; empty: all the same.
    pub(crate) weights: &'static [u32],
    /// How many units there are.
    pub(crate) units: u64,
}

/// What becomes of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Paid in time.
    Paid,
    /// The same, and the notice comes twice at once, and again later.
    PaidDoubled,
    /// The payment fails.
    PaymentFailed,
    /// The payment fails, and the second succeeds.
    SecondPayment,
    /// Paid when the hold ends.
    PaidAtEnd,
    /// Paid when the hold is over.
    PaidLate,
    /// Cancelled.
    Cancelled,
    /// Paid and cancelled at once.
    Raced,
    /// Nothing: it runs out.
    Unpaid,
}

/// What one buyer wants and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Intent {
    /// Which buyer, from 0.
    pub(crate) buyer: u64,
    /// The account's number.
    pub(crate) account: u64,
    /// Which of the goods.
    pub(crate) good: usize,
    /// How many units.
    pub(crate) quantity: u32,
    /// What becomes of the hold.
    pub(crate) fate: Fate,
    /// Whether the order is repeated when it has its answer.
    pub(crate) repeats: bool,
    /// Whether it is sent twice at once.
    pub(crate) at_once: bool,
    /// Whether its number is used for something else.
    pub(crate) alters: bool,
    /// After how many milliseconds the buyer hangs up, if so.
    pub(crate) hangs_up_ms: Option<u32>,
    /// Whether the buyer does not ask again when nothing is known.
    pub(crate) gives_up: bool,
    /// Whether the buyer looks the order up after each answer.
    pub(crate) looks: bool,
    /// How long the buyer thinks, in milliseconds.
    pub(crate) think_ms: u32,
    /// The node that is asked first: a number whose rest is taken.
    pub(crate) node: u32,
}

impl Sale {
    /// A sale of a scenario on a deployment of this kind.
    pub(crate) fn new(
        scenario: &Scenario,
        kind: Option<Kind>,
        campaign: String,
        seed: u64,
        (seconds, orders_a_second): (u32, f64),
    ) -> Self {
        let (shop, buyers) = (scenario.shop, scenario.buyers);
        let mut sale = Self { campaign, seed, seconds, orders_a_second, shop, buyers, goods: Vec::new() };
        let pools = shop.pools_on(kind);
        let (count, asked) = (pools.len(), sale.units_asked());
        sale.goods = pools
            .into_iter()
            .enumerate()
            .map(|(number, (pool, path))| Good {
                sku: format!("GOOD-{number}"),
                path,
                buckets: pool.buckets,
                weights: pool.weights,
                units: share_of(asked, shop, number, count).max(UNITS_MIN),
            })
            .collect();
        sale
    }

    /// How many orders will come, about.
    pub(crate) fn orders(&self) -> u64 {
        whole(self.orders_a_second * f64::from(self.seconds) * mean(self.shop.tide))
    }

    /// How many accounts buy.
    pub(crate) fn accounts(&self) -> u64 {
        (self.orders().saturating_mul(self.shop.accounts_percent.into()) / 100).max(1)
    }

    /// All units together.
    pub(crate) fn stock(&self) -> u64 {
        self.goods.iter().map(|good| good.units).sum()
    }

    /// How many units will be asked for, about.
    fn units_asked(&self) -> u64 {
        let most = u64::from(self.shop.quantity_max);
        self.orders().saturating_mul(most.saturating_add(1)) / 2
    }

    /// The key of a buyer's order. Keys that follow each other are far from each other, as those of many shops are.
    pub(crate) fn order_no(&self, buyer: u64) -> String {
        format!("{:016x}{buyer:016x}", self.chance(buyer, 1).u64(..))
    }

    /// Whose key it is, if it is of this sale.
    pub(crate) fn buyer_of(&self, order_no: &str) -> Option<u64> {
        let buyer = u64::from_str_radix(order_no.get(16..)?, 16).ok()?;
        (self.order_no(buyer) == order_no).then_some(buyer)
    }

    /// The name of an account.
    pub(crate) fn account(number: u64) -> String {
        format!("buyer-{number}")
    }

    /// The name of the first or the second payment of a buyer's order.
    pub(crate) fn payment(&self, buyer: u64, is_second: bool) -> String {
        format!("{}:{buyer}{}", self.campaign, if is_second { ":2" } else { "" })
    }

    /// What a buyer wants and does: the same whenever it is asked.
    pub(crate) fn intent(&self, buyer: u64) -> Intent {
        let mut chance = self.chance(buyer, 2);
        let who = self.buyers;
        let is_hot = self.goods.len() < 2 || chance.u32(..100) < self.shop.hot_percent;
        let good = if is_hot { 0 } else { chance.usize(1..self.goods.len()) };
        let mut one_in = |thousandths: u16| chance.u16(..1_000) < thousandths;
        let (repeats, at_once, alters) = (one_in(who.repeat), one_in(who.at_once), one_in(who.alter));
        let (hangs_up, gives_up, looks) = (one_in(who.hang_up), one_in(who.give_up), one_in(who.look));
        Intent {
            buyer,
            account: chance.u64(..self.accounts()),
            good,
            quantity: chance.u32(1..=self.shop.quantity_max.max(1)),
            fate: fate(who.fates, chance.u16(..1_000)),
            repeats,
            at_once,
            alters,
            hangs_up_ms: hangs_up.then(|| chance.u32(..=HANG_UP_MS_MAX)),
            gives_up,
            looks,
            think_ms: chance.u32(..=who.think_ms_max),
            node: chance.u32(..),
        }
    }

    /// Chances of one buyer, for one purpose.
    fn chance(&self, buyer: u64, purpose: u64) -> fastrand::Rng {
        let of_buyer = buyer.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        fastrand::Rng::with_seed(
            self.seed.wrapping_add(purpose.wrapping_mul(0xd1b5_4a32_d192_ed03)) ^ of_buyer,
        )
    }
}

/// The fate that a die with a thousand sides says.
fn fate(fates: Fates, die: u16) -> Fate {
    let table = [
        (fates.paid, Fate::Paid),
        (fates.paid_doubled, Fate::PaidDoubled),
        (fates.payment_failed, Fate::PaymentFailed),
        (fates.second_payment, Fate::SecondPayment),
        (fates.paid_at_end, Fate::PaidAtEnd),
        (fates.paid_late, Fate::PaidLate),
        (fates.cancelled, Fate::Cancelled),
        (fates.raced, Fate::Raced),
    ];
    let mut left = die;
    for (share, fate) in table {
        match left.checked_sub(share) {
            Some(rest) => left = rest,
            None => return fate,
        }
    }
    Fate::Unpaid
}

/// The units of a pool: what is asked of it, and of that what the shop has.
fn share_of(asked: u64, shop: Shop, number: usize, pools: usize) -> u64 {
    let of_hot = if pools < 2 { 100 } else { u64::from(shop.hot_percent) };
    let others = u64::try_from(pools.saturating_sub(1)).unwrap_or(1).max(1);
    let percent = if number == 0 { of_hot } else { 100_u64.saturating_sub(of_hot) / others };
    asked.saturating_mul(percent).saturating_mul(shop.stock_percent.into()) / 10_000
}

/// The mean of a tide, as a factor.
fn mean(tide: Tide) -> f64 {
    let sum: u64 = (0..1_000).map(|thousandth| u64::from(tide.at(thousandth))).sum();
    f64::from(u32::try_from(sum).unwrap_or(u32::MAX)) / 100_000.0
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of orders, which is positive"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(name: &str, seed: u64) -> Sale {
        Sale::new(Scenario::named(name).unwrap(), Some(Kind::PostgresRedis), "c".into(), seed, (10, 300.0))
    }

    #[test]
    fn a_sale_is_the_same_for_the_same_seed_and_another_for_another() {
        let intents = |seed| (0..500).map(|buyer| sale("sale-day", seed).intent(buyer)).collect::<Vec<_>>();
        assert_eq!(intents(7), intents(7));
        assert_ne!(intents(7), intents(8));
    }

    #[test]
    fn a_key_names_its_buyer_and_no_other_sale_s() {
        let (sale, other) = (sale("duplicates", 1), sale("duplicates", 2));
        for buyer in [0, 1, 77, u64::MAX] {
            let key = sale.order_no(buyer);
            assert_eq!((key.len(), sale.buyer_of(&key)), (32, Some(buyer)));
            assert_eq!(other.buyer_of(&key), None);
        }
        for strange in ["", "x", "é", &"0".repeat(32), &"z".repeat(32)] {
            assert_eq!(sale.buyer_of(strange), None, "{strange}");
        }
    }

    #[test]
    fn shares_come_out_as_they_are_said() {
        let sale = sale("duplicates", 3);
        let intents: Vec<Intent> = (0..20_000).map(|buyer| sale.intent(buyer)).collect();
        let thousandths = |is: &dyn Fn(&Intent) -> bool| intents.iter().filter(|i| is(i)).count() / 20;
        let near = |found: usize, said: usize| assert!(found.abs_diff(said) < 20, "{found} for {said}");
        near(thousandths(&|i| i.repeats), 700);
        near(thousandths(&|i| i.hangs_up_ms.is_some()), 300);
        near(thousandths(&|i| i.good == 0), 700);
        near(thousandths(&|i| i.fate == Fate::PaidDoubled), 400);
        near(thousandths(&|i| i.fate == Fate::Unpaid), 200);
        assert!(intents.iter().all(|i| (1..=sale.shop.quantity_max).contains(&i.quantity)));
        assert!(intents.iter().all(|i| i.account < sale.accounts() && i.good < sale.goods.len()));
    }

    #[test]
    fn stock_follows_what_will_be_asked() {
        let short = sale("last-units", 1);
        let asked = short.units_asked();
        assert!(short.stock() * 100 / asked <= 16, "{} of {asked}", short.stock());
        assert_eq!(short.goods.len(), 3);
        let overload = sale("overload-and-drain", 1);
        assert!(overload.orders() > 3_000, "the tide counts: {}", overload.orders());
    }
}
