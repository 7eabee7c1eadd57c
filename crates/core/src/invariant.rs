//! The invariants, named once: tests, `verify`, the drill and reconciliation use these names.

/// What must be true of the authority at every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// INV1: every balance is at least 0, at every entry.
    NoOversell,
    /// INV2: supply = available + held + sold, per bucket, pool, campaign.
    Conservation,
    /// INV3: the sum of the ledger is the balance, sequence without gap.
    LedgerIsBalance,
    /// INV4: the sum of allocations is the balance; an order's allocations are the sum of its entries.
    AllocationsAreBalance,
    /// INV5: at most one order a key.
    OneOutcome,
    /// INV6: transitions are legal, one order event each; no order is released and sold without a retake.
    FinalIsFinal,
    /// INV7: nothing that a client was told is lost. Checked by whoever kept the answers.
    NothingLost,
    /// INV8: no account exceeds its limit.
    LimitsHold,
    /// INV9: transfers pair and sum to zero.
    TransfersPair,
    /// INV10: every order event reaches each sink. Checked by whoever reads the sinks.
    EventsComplete,
    /// INV11: usage rows are the sum of the orders.
    UsageIsOrders,
    /// INV12: each success notice ends in exactly one disposition.
    PaymentsAccounted,
    /// INV13: what a cache took is settled at most once, by a landing in its epoch.
    LandingsSettleOnce,
}

impl Invariant {
    /// Every invariant, in order of its number.
    pub const ALL: [Self; 13] = [
        Self::NoOversell,
        Self::Conservation,
        Self::LedgerIsBalance,
        Self::AllocationsAreBalance,
        Self::OneOutcome,
        Self::FinalIsFinal,
        Self::NothingLost,
        Self::LimitsHold,
        Self::TransfersPair,
        Self::EventsComplete,
        Self::UsageIsOrders,
        Self::PaymentsAccounted,
        Self::LandingsSettleOnce,
    ];

    /// Its number in the contract.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoOversell => "INV1",
            Self::Conservation => "INV2",
            Self::LedgerIsBalance => "INV3",
            Self::AllocationsAreBalance => "INV4",
            Self::OneOutcome => "INV5",
            Self::FinalIsFinal => "INV6",
            Self::NothingLost => "INV7",
            Self::LimitsHold => "INV8",
            Self::TransfersPair => "INV9",
            Self::EventsComplete => "INV10",
            Self::UsageIsOrders => "INV11",
            Self::PaymentsAccounted => "INV12",
            Self::LandingsSettleOnce => "INV13",
        }
    }

    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoOversell => "no oversell",
            Self::Conservation => "conservation",
            Self::LedgerIsBalance => "ledger is the balance",
            Self::AllocationsAreBalance => "allocations are the balance",
            Self::OneOutcome => "one outcome a key",
            Self::FinalIsFinal => "final is final",
            Self::NothingLost => "nothing acknowledged is lost",
            Self::LimitsHold => "limits hold",
            Self::TransfersPair => "transfers pair",
            Self::EventsComplete => "events are complete",
            Self::UsageIsOrders => "usage is the orders",
            Self::PaymentsAccounted => "payments are accounted",
            Self::LandingsSettleOnce => "landings settle once",
        }
    }

    /// Whether the ledger alone shows it as of a time that is past. The others need rows that say how things stand now.
    pub const fn shown_by_past(self) -> bool {
        matches!(self, Self::NoOversell | Self::Conservation | Self::LedgerIsBalance | Self::TransfersPair)
    }

    /// Whether the authority's rows alone can show it. The others need what clients or sinks saw.
    pub const fn shown_by_authority(self) -> bool {
        !matches!(self, Self::NothingLost | Self::EventsComplete)
    }
}

/// A breach of an invariant, with what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// Which.
    pub invariant: Invariant,
    /// Of what: a bucket, an order, an account.
    pub subject: String,
    /// What should be.
    pub expected: String,
    /// What is.
    pub actual: String,
}
