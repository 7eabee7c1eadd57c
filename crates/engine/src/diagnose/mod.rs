//! Diagnosis: what is wrong with a sale, told apart from the samples of this node and a few reads of the authority.
//! [`diagnose`] is a pure function of both, so that each finding can be shown to follow from figures.

mod facts;
mod flow;
mod rules;
mod spell;
#[cfg(test)]
mod tests;

use holdfast_core::time::Timestamp;

use crate::engine::Engine;
use crate::error::Error;
use crate::measure::Sample;

use facts::Facts;
use spell::{Spell, mean_of, peak_of, usual};

/// Samples that say how things stand now.
const NOW_SAMPLES: usize = 60;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What is found.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// Transactions wait for the locks of a row, and who has them is not slow.
    LockQueueing = "lock_queueing",
    /// Commits take long, and everything that waits for their locks with them.
    SlowCommit = "slow_commit",
    /// Transactions hold their locks for long, and it is not the commit.
    SlowTransaction = "slow_transaction",
    /// Every connection is in use.
    ConnectionsExhausted = "connections_exhausted",
    /// More comes than lanes let wait.
    Overload = "overload",
    /// The ledger has the same act of the same order twice.
    RepeatedDeduct = "repeated_deduct",
    /// Clients send what they have sent before.
    ClientRetries = "client_retries",
    /// Payments meet holds that have just ended.
    StateRace = "state_race",
    /// What was accepted is not landed, delivered or answered.
    AsyncLoss = "async_loss",
    /// Holds are over and nobody ends them.
    HoldsOverdue = "holds_overdue",
    /// Most of what is asked for is sold out.
    SoldOutStorm = "sold_out_storm",
}

impl Kind {
    /// Whether somebody should do something about it.
    pub const fn is_trouble(self) -> bool {
        match self {
            Self::SoldOutStorm => false,
            Self::LockQueueing
            | Self::SlowCommit
            | Self::SlowTransaction
            | Self::ConnectionsExhausted
            | Self::Overload
            | Self::RepeatedDeduct
            | Self::ClientRetries
            | Self::StateRace
            | Self::AsyncLoss
            | Self::HoldsOverdue => true,
        }
    }

    /// What to do next.
    pub const fn next_step(self) -> &'static str {
        match self {
            Self::LockQueueing => {
                "find who holds the row (pg_blocking_pids on PostgreSQL); if it is only the rush, give the pool more buckets \
                 or take it off the direct path"
            }
            Self::SlowCommit => {
                "look at the disk, the network and the synchronous standby of the authority; holdfast doctor names unsafe \
                 settings"
            }
            Self::SlowTransaction => {
                "look at the processors of the authority and the network to it; make batches smaller if orders are very long"
            }
            Self::ConnectionsExhausted => {
                "look for slow commits and locks first: connections run out behind them; else allow more connections, or \
                 lower max_concurrency of the hot pools"
            }
            Self::Overload => {
                "let fewer in (order_rate, max_concurrency), take the pool to the queued path, or add buckets or nodes"
            }
            Self::RepeatedDeduct => {
                "freeze the pool and run holdfast verify: this must not happen, whatever clients send"
            }
            Self::ClientRetries => {
                "look at the clients: they should wait as Retry-After says, and stop when they are answered; no stock moves \
                 twice by it"
            }
            Self::StateRace => {
                "make holds longer, let a begun payment extend them (payment_extension_seconds), or go by the provider's time \
                 (deadline_basis)"
            }
            Self::AsyncLoss => "see that a node with the role worker runs and reaches what it delivers to",
            Self::HoldsOverdue => "see that a node with the role worker runs, and that the clocks agree",
            Self::SoldOutStorm => {
                "nothing is wrong: the entry turns them away; bring stock in or close the campaign"
            }
        }
    }
}

/// A figure, with what is usual for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// How much at other times of the half hour; none if there is nothing to compare with.
    pub usual: Option<f64>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Of which kind.
    pub kind: Kind,
    /// Since when.
    pub since: Timestamp,
    /// Until when; none: it goes on.
    pub until: Option<Timestamp>,
    /// What was found, for people.
    pub text: String,
    /// The evidence.
    pub figures: Vec<Figure>,
    /// What began when: whether the entry backed up before the locks or after.
    pub timeline: Vec<(Timestamp, String)>,
}

/// What was found in the last half hour.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// When it was made.
    pub at: Timestamp,
    /// The first sample that it stands on.
    pub from: Option<Timestamp>,
    /// How many samples.
    pub samples: usize,
    /// What was found, the deepest cause first.
    pub findings: Vec<Finding>,
    /// How things stand: the last minute, beside the half hour.
    pub grounds: Vec<Figure>,
}

impl Diagnosis {
    /// Whether nothing that is wrong goes on.
    pub fn is_healthy(&self) -> bool {
        !self.findings.iter().any(|finding| finding.kind.is_trouble() && finding.until.is_none())
    }
}

/// Judges the samples of a node, the oldest first, and what the authority says.
fn diagnose(samples: &[Sample], facts: &Facts) -> Diagnosis {
    let mut findings = Vec::new();
    rules::ledger(facts, &mut findings);
    rules::locks(samples, &mut findings);
    rules::connections(samples, facts, &mut findings);
    rules::overload(samples, &mut findings);
    flow::states(samples, &mut findings);
    flow::asynchronous(samples, facts, &mut findings);
    flow::clients(samples, &mut findings);
    Diagnosis {
        at: facts.now,
        from: samples.first().map(|sample| sample.at),
        samples: samples.len(),
        findings,
        grounds: grounds(samples),
    }
}

/// How things stand.
fn grounds(samples: &[Sample]) -> Vec<Figure> {
    let (before, now) = samples.split_at(samples.len().saturating_sub(NOW_SAMPLES));
    let row =
        |name, value: f64, of: fn(&Sample) -> Option<f64>| Figure { name, value, usual: usual(before, of) };
    let count = |of: fn(&Sample) -> u64| mean_of(now, |sample| Some(as_f64(of(sample))));
    let millis = |of: fn(&Sample) -> f64| peak_of(now, of);
    vec![
        row("orders_per_second", count(|s| s.counts.placed), |s| Some(as_f64(s.counts.placed))),
        row("place_p99_ms", millis(|s| s.placing.p99_ms), |s| timed(s.placing.count, s.placing.p99_ms)),
        row("lane_age_max_ms", millis(lane_age), |s| Some(lane_age(s))),
        row("lock_wait_p99_ms", millis(|s| s.lock_wait.p99_ms), |s| {
            timed(s.lock_wait.count, s.lock_wait.p99_ms)
        }),
        row("lock_hold_mean_ms", mean_of(now, |s| timed(s.lock_hold.count, s.lock_hold.mean_ms)), |s| {
            timed(s.lock_hold.count, s.lock_hold.mean_ms)
        }),
        row("commit_mean_ms", mean_of(now, |s| timed(s.commit.count, s.commit.mean_ms)), |s| {
            timed(s.commit.count, s.commit.mean_ms)
        }),
        row("refused_per_second", count(|s| s.counts.refused), |s| Some(as_f64(s.counts.refused))),
        row("repeats_per_second", count(|s| s.counts.repeats), |s| Some(as_f64(s.counts.repeats))),
        row("turned_away_per_second", count(|s| s.counts.lane_overloads), |s| {
            Some(as_f64(s.counts.lane_overloads))
        }),
        row("queue_age_max_ms", millis(|s| s.queue_age_ms), |s| Some(s.queue_age_ms)),
        row("failed_per_second", count(|s| s.counts.failed), |s| Some(as_f64(s.counts.failed))),
    ]
}

/// A time, if anything took time.
const fn timed(count: u64, millis: f64) -> Option<f64> {
    if count == 0 { None } else { Some(millis) }
}

/// How long the oldest command of any lane waits.
fn lane_age(sample: &Sample) -> f64 {
    sample.lane_age_ms.iter().copied().fold(0.0, f64::max)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a second, for display")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

impl Spell<'_> {
    /// A finding of it.
    fn finding(&self, kind: Kind, text: String, figures: Vec<Figure>) -> Finding {
        Finding { kind, since: self.since(), until: self.until(), text, figures, timeline: Vec::new() }
    }
}

impl Engine {
    /// What was wrong in the last half hour, as this node sees it.
    pub async fn diagnose(&self) -> Result<Diagnosis, Error> {
        let facts = self.facts().await?;
        Ok(diagnose(&self.samples(), &facts))
    }
}
