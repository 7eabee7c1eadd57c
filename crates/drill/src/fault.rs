//! What a scenario breaks.

use crate::deployment::Kind;

/// A fault that lasts from its beginning to its end, or that happens at once and has no end of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A node dies at once (kill -9), and is started again at the end.
    KillNode,
    /// A node stands still (SIGSTOP) for longer than every lease.
    PauseNode,
    /// Whoever lands queued and cached orders stands still.
    PauseWorker,
    /// The authority dies at once, and is started again on what is on its disk.
    KillAuthority,
    /// The authority stands still.
    PauseAuthority,
    /// The authority's primary dies, and its synchronous standby takes over.
    FailOverAuthority,
    /// Every connection to the authority is cut, once.
    CutAuthority,
    /// Answers of the authority to commits are lost after the commit.
    LoseCommitAnswers,
    /// Every connection to the cache is cut, once.
    CutCache,
    /// The cache stands still.
    PauseCache,
    /// The cache loses everything (FLUSHALL).
    WipeCache,
    /// The cache comes back as it was some time before.
    RestoreCache,
    /// The cache's primary dies, and a replica takes over without the last writes.
    FailOverCache,
    /// Entries that were delivered are delivered again.
    RepeatDeliveries,
    /// The clock of a node is set forward, and back at the end.
    StepClock,
    /// Every flush of the authority's disk is late.
    SlowDisk,
    /// The authority's disk is full.
    FillDisk,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 17] = [
        Self::KillNode,
        Self::PauseNode,
        Self::PauseWorker,
        Self::KillAuthority,
        Self::PauseAuthority,
        Self::FailOverAuthority,
        Self::CutAuthority,
        Self::LoseCommitAnswers,
        Self::CutCache,
        Self::PauseCache,
        Self::WipeCache,
        Self::RestoreCache,
        Self::FailOverCache,
        Self::RepeatDeliveries,
        Self::StepClock,
        Self::SlowDisk,
        Self::FillDisk,
    ];

    /// Its name in commands and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KillNode => "kill-node",
            Self::PauseNode => "pause-node",
            Self::PauseWorker => "pause-worker",
            Self::KillAuthority => "kill-authority",
            Self::PauseAuthority => "pause-authority",
            Self::FailOverAuthority => "fail-over-authority",
            Self::CutAuthority => "cut-authority",
            Self::LoseCommitAnswers => "lose-commit-answers",
            Self::CutCache => "cut-cache",
            Self::PauseCache => "pause-cache",
            Self::WipeCache => "wipe-cache",
            Self::RestoreCache => "restore-cache",
            Self::FailOverCache => "fail-over-cache",
            Self::RepeatDeliveries => "repeat-deliveries",
            Self::StepClock => "step-clock",
            Self::SlowDisk => "slow-disk",
            Self::FillDisk => "fill-disk",
        }
    }

    /// The fault with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether a deployment of this kind has what it breaks.
    pub const fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::KillNode | Self::PauseNode | Self::StepClock | Self::SlowDisk | Self::FillDisk => true,
            Self::KillAuthority
            | Self::PauseAuthority
            | Self::FailOverAuthority
            | Self::CutAuthority
            | Self::LoseCommitAnswers
            // Where the node is the only one, it is the worker, and there is a fault of its own for that.
            | Self::PauseWorker => kind.has_many_nodes(),
            Self::CutCache
            | Self::PauseCache
            | Self::WipeCache
            | Self::RestoreCache
            | Self::FailOverCache
            | Self::RepeatDeliveries => kind.has_cache(),
        }
    }
}
