//! Where a bucket's ledger has come to a time. Times rise with the sequence, so a few looks find it without an index
//! that every entry would have to pay for.

use holdfast_core::time::Timestamp;

/// A search for the last entry before a time, one look at a time.
#[derive(Debug, Clone, Copy)]
pub struct Bisection {
    from: Timestamp,
    /// Known to be before it; 0 is before everything.
    before: u64,
    /// Known to be not before it, or beyond the ledger.
    beyond: u64,
}

impl Bisection {
    /// A search in the entries 1 to `last`.
    pub const fn new(from: Timestamp, last: u64) -> Self {
        Self { from, before: 0, beyond: last.saturating_add(1) }
    }

    /// The entry whose time must be known next; none: it is found.
    pub fn look(&self) -> Option<u64> {
        let gap = self.beyond.saturating_sub(self.before);
        (gap > 1 && self.from != super::BEGINNING).then(|| self.before.saturating_add(gap / 2))
    }

    /// Tells the time of an entry. One that is missing is passed over.
    pub fn tell(&mut self, seq: u64, at: Option<Timestamp>) {
        if at.is_none_or(|at| at < self.from) {
            self.before = seq;
        } else {
            self.beyond = seq;
        }
    }

    /// The last entry before the time, 0 if there is none.
    pub const fn last_before(&self) -> u64 {
        self.before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(times: &[i64], from: i64) -> (u64, usize) {
        let mut search = Bisection::new(Timestamp(from), times.len() as u64);
        let mut looks = 0;
        while let Some(seq) = search.look() {
            looks += 1;
            search.tell(seq, times.get(usize::try_from(seq).unwrap() - 1).copied().map(Timestamp));
        }
        (search.last_before(), looks)
    }

    #[test]
    fn the_last_entry_before_a_time_is_found_in_few_looks() {
        let times: Vec<i64> = (0..1_000).map(|n| n / 3).collect();
        for from in -1..340 {
            let expected = times.iter().filter(|at| **at < from).count() as u64;
            let (found, looks) = find(&times, from);
            assert_eq!(found, expected, "{from}");
            assert!(looks <= 10, "{looks}");
        }
        assert_eq!(find(&[], 5), (0, 0));
        assert_eq!(find(&times, i64::MIN), (0, 0), "the beginning needs no look");
    }
}
