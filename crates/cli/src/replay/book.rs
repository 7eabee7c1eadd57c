//! What each customer has bought and not yet given back: returns are matched against it.

use std::collections::HashMap;

/// Units of one order line that are sold and not refunded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SoldLine {
    /// The place of its invoice in the file, and of the line in it: higher is newer.
    age: (usize, u32),
    /// The server's id of the order.
    order_id: String,
    /// The number of the order.
    order_no: String,
    /// What could still be given back.
    left: u32,
}

/// Units to refund on one order, for one row of a return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The server's id of the order.
    pub(crate) order_id: String,
    /// The number of the order.
    pub(crate) order_no: String,
    /// Line numbers from 1, with units.
    pub(crate) lines: Vec<(u32, u32)>,
}

impl Taken {
    /// All units.
    pub(crate) fn units(&self) -> u64 {
        self.lines.iter().map(|(_, units)| u64::from(*units)).sum()
    }
}

/// Sold lines by customer and SKU.
#[derive(Debug, Default)]
pub(crate) struct Book {
    sold: HashMap<(String, String), Vec<SoldLine>>,
}

impl Book {
    /// Notes a sold line.
    pub(crate) fn sell(&mut self, order: (usize, &str, &str), account: &str, line: (u32, &str, u32)) {
        let (rank, order_id, order_no) = order;
        let (number, sku, units) = line;
        let lines = self.sold.entry((account.to_owned(), sku.to_owned())).or_default();
        let age = (rank, number);
        // Invoices in flight together may be sold in any order; their age is that of the file.
        let at = lines.partition_point(|other| other.age < age);
        lines.insert(
            at,
            SoldLine { age, order_id: order_id.to_owned(), order_no: order_no.to_owned(), left: units },
        );
    }

    /// Takes up to `units` of what the customer bought, newest first, gathered by order; and how
    /// many units found no line.
    pub(crate) fn take(&mut self, account: &str, sku: &str, units: u32) -> (Vec<Taken>, u32) {
        let mut wanted = units;
        let mut taken: Vec<Taken> = Vec::new();
        let lines = self.sold.get_mut(&(account.to_owned(), sku.to_owned()));
        for line in lines.into_iter().flatten().rev() {
            let part = line.left.min(wanted);
            if part == 0 {
                continue;
            }
            line.left = line.left.saturating_sub(part);
            wanted = wanted.saturating_sub(part);
            match taken.last_mut().filter(|last| last.order_id == line.order_id) {
                Some(last) => last.lines.push((line.age.1, part)),
                None => taken.push(Taken {
                    order_id: line.order_id.clone(),
                    order_no: line.order_no.clone(),
                    lines: vec![(line.age.1, part)],
                }),
            }
        }
        (taken, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Book {
        let mut book = Book::default();
        // Sold out of turn, as it happens with several in flight.
        book.sell((4, "id-4", "no-4"), "ann", (1, "cup", 3));
        book.sell((1, "id-1", "no-1"), "ann", (1, "cup", 5));
        book.sell((1, "id-1", "no-1"), "ann", (2, "Cup", 5));
        book.sell((4, "id-4", "no-4"), "ann", (7, "cup", 2));
        book.sell((2, "id-2", "no-2"), "bob", (1, "cup", 9));
        book
    }

    #[test]
    fn a_return_takes_the_newest_lines_first_and_gathers_them_by_order() {
        let (taken, unmatched) = book().take("ann", "cup", 7);
        let expected = [
            Taken { order_id: "id-4".into(), order_no: "no-4".into(), lines: vec![(7, 2), (1, 3)] },
            Taken { order_id: "id-1".into(), order_no: "no-1".into(), lines: vec![(1, 2)] },
        ];
        assert_eq!((taken.as_slice(), unmatched), (expected.as_slice(), 0));
        assert_eq!(taken[0].units(), 5);
    }

    #[test]
    fn what_was_given_back_is_not_given_back_again() {
        let mut book = book();
        assert_eq!(book.take("ann", "cup", 9).1, 0);
        let (taken, unmatched) = book.take("ann", "cup", 4);
        assert_eq!((taken.len(), taken[0].units(), unmatched), (1, 1, 3));
        assert_eq!(book.take("ann", "cup", 1), (vec![], 1));
    }

    #[test]
    fn another_customer_or_spelling_matches_nothing() {
        assert_eq!(book().take("eve", "cup", 2), (vec![], 2));
        assert_eq!(book().take("ann", "CUP", 2), (vec![], 2));
    }
}
