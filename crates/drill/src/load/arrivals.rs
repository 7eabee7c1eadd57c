//! When orders come: by a schedule that does not wait for answers.

use fastrand::Rng;

use crate::sale::Sale;

/// The moments at which the buyers of a sale come, from its seed: independent of each other, as people are.
pub(super) struct Arrivals {
    chance: Rng,
    sale_ns: f64,
    orders_a_nanosecond: f64,
    tide: crate::scenario::Tide,
    at_ns: f64,
    buyer: u64,
}

impl Arrivals {
    pub(super) fn new(sale: &Sale) -> Self {
        Self {
            chance: Rng::with_seed(sale.seed),
            sale_ns: f64::from(sale.seconds) * 1e9,
            orders_a_nanosecond: sale.orders_a_second / 1e9,
            tide: sale.shop.tide,
            at_ns: 0.0,
            buyer: 0,
        }
    }
}

impl Iterator for Arrivals {
    /// The buyer, and when it comes, in nanoseconds since the load began.
    type Item = (u64, u64);

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "moments of a run are positive and short"
    )]
    fn next(&mut self) -> Option<(u64, u64)> {
        let thousandth = (self.at_ns * 1_000.0 / self.sale_ns) as u64;
        let rate = self.orders_a_nanosecond * f64::from(self.tide.at(thousandth)) / 100.0;
        // The time to the next of many who come independently of each other.
        self.at_ns += -(1.0 - self.chance.f64()).ln() / rate;
        if !self.at_ns.is_finite() || self.at_ns >= self.sale_ns {
            return None;
        }
        let buyer = self.buyer;
        self.buyer = buyer.saturating_add(1);
        Some((buyer, self.at_ns as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn sale(name: &str, seed: u64) -> Sale {
        Sale::new(Scenario::named(name).unwrap(), None, "c".into(), seed, (20, 500.0))
    }

    #[test]
    fn arrivals_are_the_same_for_the_same_seed_and_come_at_the_rate() {
        let arrivals: Vec<_> = Arrivals::new(&sale("hot-pool", 5)).collect();
        assert_eq!(arrivals, Arrivals::new(&sale("hot-pool", 5)).collect::<Vec<_>>());
        assert!(arrivals.len().abs_diff(10_000) < 500, "{}", arrivals.len());
        assert!(arrivals.windows(2).all(|two| two[0].1 <= two[1].1 && two[0].0 + 1 == two[1].0));
        assert!(arrivals.last().unwrap().1 < 20_000_000_000);
    }

    #[test]
    fn a_tide_moves_them() {
        let sale = sale("overload-and-drain", 5);
        let in_flood =
            Arrivals::new(&sale).filter(|(_, at)| (4_000_000_000..10_000_000_000).contains(at)).count();
        let all = Arrivals::new(&sale).count();
        assert!(in_flood * 100 / all > 90, "{in_flood} of {all}");
        assert!(
            all.abs_diff(usize::try_from(sale.orders()).unwrap()) * 20 < all,
            "{all} for {}",
            sale.orders()
        );
    }
}
