//! What the keeper of a bucket's cache does next: a pure function from what the authority has and what the
//! cache says to one step. Each step is idempotent, so whoever repeats it, or dies in the middle, does no harm.
//!
//! The way of an epoch: the authority opens it with a base, the cache is seeded with the base, credits bring it
//! to now, it is compared with the law, it accepts; on doubt the authority drains it, the cache stops, what the
//! stream has is landed, the authority closes it. The law is what makes the comparison possible without a
//! freeze: see [`holdfast_core::cache`].

use std::sync::Arc;

use holdfast_core::cache::{CacheBucket, Epoch, EpochState};

use holdfast_metrics::Drained;

use super::contract::Position;

/// What the cache's server said when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which server it is.
    pub(crate) identity: Arc<str>,
    /// What it has of the bucket.
    pub(crate) position: Option<Position>,
}

/// What is known before the next step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight<'s> {
    /// The bucket's row; none: it never had an epoch.
    pub(crate) row: Option<&'s CacheBucket>,
    /// Whether the pool is on the cached path and its campaign sells.
    pub(crate) is_wanted: bool,
    /// What the server said; none: it cannot be asked.
    pub(crate) seen: Option<&'s Seen>,
    /// Whether it has been asked in vain for longer than anybody waits.
    pub(crate) is_given_up: bool,
    /// Whether the server may be relied on.
    pub(crate) is_fit: bool,
    /// Whether credits were applied up to the bucket's last entry, or so near that the next will be soon.
    pub(crate) is_credited: bool,
    /// What the law says must be available at the position's ledger position; none: not worked out.
    pub(crate) lawful: Option<i64>,
}

/// Why an epoch is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The pool left the cached path, or its campaign is closed.
    NotWanted,
    /// Another server, or the same after a restart.
    OtherServer,
    /// Keys are gone, or belong to another epoch.
    KeysGone,
    /// It is behind what has landed.
    WentBack,
    /// Entries are gone that never landed.
    EntriesGone,
    /// Its figures break the law.
    Unlawful,
    /// It loses what it takes.
    Unfit,
    /// It has not answered for too long.
    Silent,
}

impl Doubt {
    /// As it is counted.
    pub(crate) const fn label(self) -> Drained {
        match self {
            Self::NotWanted => Drained::NotWanted,
            Self::OtherServer => Drained::OtherServer,
            Self::KeysGone => Drained::KeysGone,
            Self::WentBack => Drained::WentBack,
            Self::EntriesGone => Drained::EntriesGone,
            Self::Unlawful => Drained::Unlawful,
            Self::Unfit => Drained::Unfit,
            Self::Silent => Drained::Silent,
        }
    }

    /// For the record.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NotWanted => "the pool left the cached path, or its campaign is closed",
            Self::OtherServer => "another server answers",
            Self::KeysGone => "its keys are gone",
            Self::WentBack => "it is behind what has landed",
            Self::EntriesGone => "entries are gone that never landed",
            Self::Unlawful => "its figures break the law",
            Self::Unfit => "it may lose what it takes",
            Self::Silent => "it does not answer",
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing to do now.
    Rest,
    /// The authority opens an epoch on this server, and the cache is seeded with its base.
    Open(Epoch, Arc<str>),
    /// The cache begins to accept.
    Accept,
    /// The authority drains the epoch.
    Drain(Doubt),
    /// The cache stops accepting.
    Stop,
    /// The authority closes the epoch.
    Close,
    /// The cache forgets what it has of the bucket, up to this epoch.
    Forget(Epoch),
}

/// The next step.
pub(crate) fn next_step(sight: &Sight<'_>) -> Step {
    match sight.row {
        None => without_epoch(Epoch::default(), sight),
        Some(row) => match row.state {
            EpochState::Open => of_open(row, sight),
            EpochState::Draining => of_draining(row, sight),
            EpochState::Closed => without_epoch(row.epoch, sight),
        },
    }
}

fn of_open(row: &CacheBucket, sight: &Sight<'_>) -> Step {
    if !sight.is_wanted {
        return Step::Drain(Doubt::NotWanted);
    }
    let Some(seen) = sight.seen else {
        return if sight.is_given_up { Step::Drain(Doubt::Silent) } else { Step::Rest };
    };
    if seen.identity != row.identity {
        return Step::Drain(Doubt::OtherServer);
    }
    if !sight.is_fit {
        return Step::Drain(Doubt::Unfit);
    }
    // Who opens an epoch seeds it at once. If nothing of it is found, nobody can tell whether it was never
    // seeded or is lost, and seeding it again would sell again what it had taken.
    let Some(position) = seen.position.as_ref().filter(|position| position.epoch == row.epoch) else {
        return Step::Drain(Doubt::KeysGone);
    };
    if position.accepted < row.landed {
        return Step::Drain(Doubt::WentBack);
    }
    if !position.is_whole() {
        return Step::Drain(Doubt::EntriesGone);
    }
    match sight.lawful {
        Some(lawful) if lawful != position.available => Step::Drain(Doubt::Unlawful),
        Some(_) if !position.is_open && sight.is_credited => Step::Accept,
        Some(_) | None => Step::Rest,
    }
}

fn of_draining(row: &CacheBucket, sight: &Sight<'_>) -> Step {
    let Some(seen) = sight.seen else {
        return if sight.is_given_up { Step::Close } else { Step::Rest };
    };
    match seen.position.as_ref().filter(|position| position.epoch == row.epoch) {
        // What it had is lost.
        None => Step::Close,
        Some(position) if position.is_open => Step::Stop,
        Some(position) if position.backlog > 0 => Step::Rest,
        Some(_) => Step::Close,
    }
}

fn without_epoch(last: Epoch, sight: &Sight<'_>) -> Step {
    let Some(seen) = sight.seen else { return Step::Rest };
    let in_cache = seen.position.as_ref().map(|position| position.epoch);
    if sight.is_wanted && sight.is_fit {
        // A cache that outlived its authority may know later epochs than the authority does.
        return Step::Open(last.max(in_cache.unwrap_or_default()).next(), Arc::clone(&seen.identity));
    }
    match in_cache {
        Some(epoch) if epoch <= last => Step::Forget(epoch),
        Some(_) | None => Step::Rest,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_core::id::PoolId;
    use holdfast_core::stock::BucketKey;
    use holdfast_core::time::Timestamp;

    use super::*;

    fn row(state: EpochState) -> CacheBucket {
        CacheBucket {
            key: BucketKey { pool: PoolId(1), number: 0 },
            epoch: Epoch(3),
            state,
            identity: Arc::from("a"),
            base_seq: 10,
            base_available: 100,
            landed: 4,
            changed_at: Timestamp(0),
        }
    }

    fn position() -> Position {
        Position {
            epoch: Epoch(3),
            is_open: true,
            available: 90,
            accepted: 6,
            accepted_units: 10,
            applied: 12,
            last: None,
            backlog: 2,
            delivered: 0,
            settled: 4,
        }
    }

    fn seen(identity: &str, position: Option<Position>) -> Seen {
        Seen { identity: Arc::from(identity), position }
    }

    fn step(row: Option<&CacheBucket>, seen: Option<&Seen>) -> Step {
        next_step(&sight(row, seen))
    }

    fn sight<'s>(row: Option<&'s CacheBucket>, seen: Option<&'s Seen>) -> Sight<'s> {
        Sight {
            row,
            is_wanted: true,
            seen,
            is_given_up: false,
            is_fit: true,
            is_credited: true,
            lawful: Some(90),
        }
    }

    #[test]
    fn every_doubt_drains_an_open_epoch() {
        let open = row(EpochState::Open);
        let good = seen("a", Some(position()));
        assert_eq!(step(Some(&open), Some(&good)), Step::Rest);
        let elsewhere = |change: fn(&mut Position)| {
            let mut position = position();
            change(&mut position);
            step(Some(&open), Some(&seen("a", Some(position))))
        };
        assert_eq!(elsewhere(|p| p.epoch = Epoch(2)), Step::Drain(Doubt::KeysGone));
        assert_eq!(elsewhere(|p| p.accepted = 3), Step::Drain(Doubt::WentBack));
        assert_eq!(elsewhere(|p| p.backlog = 1), Step::Drain(Doubt::EntriesGone));
        assert_eq!(elsewhere(|p| p.available = 91), Step::Drain(Doubt::Unlawful));
        assert_eq!(step(Some(&open), Some(&seen("a", None))), Step::Drain(Doubt::KeysGone));
        assert_eq!(step(Some(&open), Some(&seen("b", Some(position())))), Step::Drain(Doubt::OtherServer));
        let sight = sight(Some(&open), Some(&good));
        assert_eq!(next_step(&Sight { is_wanted: false, ..sight }), Step::Drain(Doubt::NotWanted));
        assert_eq!(next_step(&Sight { is_fit: false, ..sight }), Step::Drain(Doubt::Unfit));
        assert_eq!(next_step(&Sight { seen: None, ..sight }), Step::Rest);
        assert_eq!(next_step(&Sight { seen: None, is_given_up: true, ..sight }), Step::Drain(Doubt::Silent));
    }

    #[test]
    fn an_epoch_accepts_only_after_it_was_compared() {
        let open = row(EpochState::Open);
        let seeded = seen("a", Some(Position { is_open: false, ..position() }));
        let sight = sight(Some(&open), Some(&seeded));
        assert_eq!(next_step(&Sight { lawful: None, ..sight }), Step::Rest);
        assert_eq!(next_step(&Sight { is_credited: false, ..sight }), Step::Rest);
        assert_eq!(next_step(&sight), Step::Accept);
    }

    #[test]
    fn a_drained_epoch_is_closed_when_nothing_of_it_is_left_to_land() {
        let draining = row(EpochState::Draining);
        let with = |is_open, backlog| {
            step(Some(&draining), Some(&seen("b", Some(Position { is_open, backlog, ..position() }))))
        };
        assert_eq!(with(true, 2), Step::Stop);
        assert_eq!(with(false, 2), Step::Rest);
        assert_eq!(with(false, 0), Step::Close);
        assert_eq!(step(Some(&draining), Some(&seen("b", None))), Step::Close);
        assert_eq!(step(Some(&draining), None), Step::Rest);
        let given_up = Sight { is_given_up: true, ..sight(Some(&draining), None) };
        assert_eq!(next_step(&given_up), Step::Close);
    }

    #[test]
    fn a_new_epoch_is_later_than_all_that_the_authority_and_the_cache_know() {
        let closed = row(EpochState::Closed);
        let open = |epoch| Step::Open(Epoch(epoch), Arc::from("b"));
        assert_eq!(step(None, Some(&seen("b", None))), open(1));
        assert_eq!(step(Some(&closed), Some(&seen("b", None))), open(4));
        let later = seen("b", Some(Position { epoch: Epoch(7), ..position() }));
        assert_eq!(step(Some(&closed), Some(&later)), open(8));
        assert_eq!(step(Some(&closed), None), Step::Rest);
        let unwanted =
            |seen: Seen| next_step(&Sight { is_wanted: false, ..sight(Some(&closed), Some(&seen)) });
        assert_eq!(unwanted(seen("b", Some(position()))), Step::Forget(Epoch(3)));
        assert_eq!(unwanted(later), Step::Rest);
        assert_eq!(unwanted(seen("b", None)), Step::Rest);
    }
}
