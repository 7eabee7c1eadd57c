//! The model's orders by when they end.

use holdfast_core::id::OrderId;
use holdfast_core::time::Timestamp;

use super::Rows;
use crate::read::{DueOrder, ENDS_WITHIN_SECONDS, OpenEnds, Page};

impl Rows {
    pub(super) fn open_ends(&self, now: Timestamp, most: u64) -> OpenEnds {
        let mut ends: Vec<Timestamp> = self.orders.values().filter_map(|order| order.due_at).collect();
        ends.sort_unstable();
        ends.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let count = |most: Timestamp| ends.iter().take_while(|end| **end <= most).count();
        let within = ENDS_WITHIN_SECONDS.map(|seconds| {
            let away = std::time::Duration::from_secs(u64::from(seconds));
            u64::try_from(count(now.plus(away))).unwrap_or(u64::MAX)
        });
        let all = u64::try_from(ends.len()).unwrap_or(u64::MAX);
        OpenEnds { all, within, earliest: ends.first().copied() }
    }

    pub(super) fn due(&self, now: Timestamp, page: &Page<(Timestamp, OrderId)>) -> Vec<DueOrder> {
        let mut due: Vec<DueOrder> = self
            .orders
            .values()
            .filter_map(|order| {
                let due_at = order.due_at.filter(|due| *due <= now)?;
                Some(DueOrder { id: order.id, home: order.home?, due_at })
            })
            .filter(|due| page.after.is_none_or(|after| (due.due_at, due.id) > after))
            .collect();
        due.sort_unstable_by_key(|due| (due.due_at, due.id));
        due.truncate(page.limit);
        due
    }
}
