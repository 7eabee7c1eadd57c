//! Order events (订单事件) as they are told to other systems. They are read off the ledger: nothing is written for
//! them, so an event exists exactly if its entry does.

use crate::campaign::spelled;
use crate::ledger::{Action, Entry};
use crate::order::State;

/// What an order event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OrderEventKind {
    /// The order was taken in and waits; nothing is held for it.
    Queued,
    /// Its units are held.
    Held,
    /// Its units are held and somebody must decide.
    InReview,
    /// Its units are sold.
    Sold,
    /// Everything was refunded.
    Refunded,
    /// Its units went back.
    Released,
    /// It never held anything and never will.
    Failed,
    /// It has fewer units than before, in the same state.
    Reduced,
    /// A part was refunded, and the rest stays sold.
    PartlyRefunded,
    /// Something else about it changed, in the same state: a payment was begun or told, the end of its hold moved.
    Changed,
}

spelled! {
    OrderEventKind {
        Queued = "queued", Held = "held", InReview = "in_review", Sold = "sold", Refunded = "refunded",
        Released = "released", Failed = "failed", Reduced = "reduced", PartlyRefunded = "partly_refunded",
        Changed = "changed",
    }
}

impl OrderEventKind {
    const fn of_state(state: State) -> Self {
        match state {
            State::Queued => Self::Queued,
            State::Held => Self::Held,
            State::InReview => Self::InReview,
            State::Sold => Self::Sold,
            State::Refunded => Self::Refunded,
            State::Released => Self::Released,
            State::Failed => Self::Failed,
        }
    }

    /// What a change that left the state as it was is told as.
    const fn within_a_state(action: Action) -> Self {
        match action {
            Action::Reduce => Self::Reduced,
            Action::Refund => Self::PartlyRefunded,
            Action::Opening
            | Action::Place
            | Action::Land
            | Action::Confirm
            | Action::Release
            | Action::Inbound
            | Action::Adjust
            | Action::TransferOut
            | Action::TransferIn
            | Action::Retake
            | Action::OrderEvent
            | Action::Repair => Self::Changed,
        }
    }

    /// What an entry tells of an order; none if it carries no order event.
    pub fn of(entry: &Entry) -> Option<Self> {
        entry.order_version?;
        let to = entry.to_state?;
        Some(if entry.from_state == Some(to) {
            Self::within_a_state(entry.action)
        } else {
            Self::of_state(to)
        })
    }
}

/// The id of the event that an entry carries, the same however often it is delivered. The time is part of it, because
/// an authority that was restored from a backup numbers on from there: it gives a number twice, but never at the same
/// time.
pub fn event_id(entry: &Entry) -> String {
    format!("{}/{}/{}/{}", entry.bucket.pool, entry.bucket.number, entry.seq, entry.at.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{OrderId, PoolId};
    use crate::stock::{BucketKey, Delta};
    use crate::time::Timestamp;

    fn entry(action: Action, from: Option<State>, to: Option<State>, version: Option<u32>) -> Entry {
        Entry {
            bucket: BucketKey { pool: PoolId(1), number: 2 },
            seq: 3,
            at: Timestamp(4),
            order_id: Some(OrderId(5)),
            business_no: "no-1".into(),
            action,
            delta: Delta::default(),
            settled: 0,
            from_state: from,
            to_state: to,
            order_version: version,
            source: "no-1".into(),
            actor: "shop".into(),
            reason: "".into(),
            covers: None,
        }
    }

    #[test]
    fn an_event_is_told_by_the_change_of_the_state() {
        let held = Some(State::Held);
        for (action, from, to, kind) in [
            (Action::Place, None, held, "held"),
            (Action::Place, None, Some(State::Queued), "queued"),
            (Action::Land, Some(State::Queued), Some(State::Failed), "failed"),
            (Action::Confirm, held, Some(State::Sold), "sold"),
            (Action::Retake, Some(State::Released), Some(State::Sold), "sold"),
            (Action::OrderEvent, Some(State::InReview), held, "held"),
            (Action::OrderEvent, held, held, "changed"),
            (Action::Reduce, held, held, "reduced"),
            (Action::Refund, Some(State::Sold), Some(State::Sold), "partly_refunded"),
            (Action::Refund, Some(State::Sold), Some(State::Refunded), "refunded"),
        ] {
            let told = OrderEventKind::of(&entry(action, from, to, Some(1)));
            assert_eq!(told.map(OrderEventKind::as_str), Some(kind), "{action:?} {from:?} {to:?}");
        }
        for state in State::ALL {
            assert_eq!(OrderEventKind::of_state(*state).as_str(), state.as_str());
        }
    }

    #[test]
    fn an_entry_that_carries_no_version_is_no_event() {
        assert_eq!(OrderEventKind::of(&entry(Action::Release, None, None, None)), None);
        assert_eq!(OrderEventKind::of(&entry(Action::Inbound, None, None, None)), None);
    }

    #[test]
    fn an_id_names_the_entry_and_its_time() {
        let id = event_id(&entry(Action::Place, None, Some(State::Held), Some(1)));
        assert_eq!(id, "00000000-0000-0000-0000-000000000001/2/3/4");
    }
}
