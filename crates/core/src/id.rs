//! Identifiers. Ids that clients make are exact text; ids that Holdfast makes are 128-bit numbers
//! shown as UUID text.

use std::fmt;
use std::sync::Arc;

/// Longest identifier that a client may make, in characters.
pub const TEXT_ID_CHARS_MAX: usize = 128;

/// Why a text is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// The text has no characters.
    #[error("must not be empty")]
    Empty,
    /// The text has more than [`TEXT_ID_CHARS_MAX`] characters.
    #[error("must have at most 128 characters")]
    TooLong,
    /// The text has a control character (NUL included).
    #[error("must not hold control characters")]
    Control,
    /// The text begins or ends with white space.
    #[error("must not begin or end with white space")]
    OuterSpace,
}

/// Checks a text against the rule for identifiers that clients make: 1–128 characters, no control
/// characters, no white space (Unicode's) at either end. Compared exactly, never normalised.
pub fn check_text_id(text: &str) -> Result<(), InvalidId> {
    if text.is_empty() {
        return Err(InvalidId::Empty);
    }
    if text.len() > TEXT_ID_CHARS_MAX && text.chars().count() > TEXT_ID_CHARS_MAX {
        return Err(InvalidId::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(InvalidId::Control);
    }
    if text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return Err(InvalidId::OuterSpace);
    }
    Ok(())
}

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a text that keeps the rule of [`check_text_id`].
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                check_text_id(text).map(|()| Self(Arc::from(text)))
            }

            /// The text as the client wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    )*};
}

text_id! {
    /// A campaign (活动), named by the operator.
    CampaignId,
    /// An order's business number: the idempotency key of a purchase, per campaign.
    OrderNo,
    /// Whose limit an order counts against.
    Account,
    /// A stock keeping unit, exact text.
    Sku,
    /// Where stock is; `main` when the client names none.
    Location,
    /// A payment attempt, per order.
    AttemptId,
    /// A refund, per order.
    RefundId,
    /// A stock adjustment, global.
    AdjustmentId,
    /// A transfer of stock, global.
    TransferId,
    /// An imported stock file, global.
    ImportId,
    /// A decision of an operator on an order, per order.
    DecisionId,
    /// A payment provider.
    Provider,
    /// A provider's event, per provider.
    EventId,
    /// A provider's payment, per provider.
    PaymentId,
    /// Who did it: an operator's name.
    Operator,
    /// The name of a key that orders carry and a policy may limit: `device`, `address`.
    LimitName,
    /// A key that an order carries, as the client sent it. It is hashed before it is kept.
    LimitKey,
}

/// The location of whoever names none, and the whole location order of a campaign that has set none.
pub const MAIN_LOCATION: &str = "main";

impl Location {
    /// [`MAIN_LOCATION`].
    pub fn main() -> Self {
        Self(Arc::from(MAIN_LOCATION))
    }
}

macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let n = self.0;
                write!(
                    f,
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    n >> 96,
                    (n >> 80) & 0xffff,
                    (n >> 64) & 0xffff,
                    (n >> 48) & 0xffff,
                    n & 0xffff_ffff_ffff
                )
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

number_id! {
    /// An order, made by Holdfast.
    OrderId,
    /// A pool, made by Holdfast.
    PoolId,
    /// A sweep of a pool, made by Holdfast.
    SweepId,
    /// A move of unsold stock, made by Holdfast.
    MoveId,
    /// A case, made by Holdfast.
    CaseId,
    /// A difference that reconciliation found, made by Holdfast of what it is about.
    DiscrepancyId,
    /// A run of reconciliation, made by Holdfast.
    RunId,
    /// A key that an order carries, hashed: what it was cannot be read from it.
    HashedKey,
    /// An authority from its first start, or from the restore that made it, to the next.
    Incarnation,
}

/// The idempotency key of a purchase: the client's order number in its campaign.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderKey {
    /// The campaign that scopes the number.
    pub campaign: CampaignId,
    /// The client's number.
    pub order_no: OrderNo,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_exact_and_bounded() {
        for good in ["a", "A/B", "A%2FB", "..", "a?b#c", "é", "O'Neil", "0017", "a b", "+1", "\u{200f}x"] {
            assert_eq!(Sku::new(good).map(|s| s.as_str().to_owned()), Ok(good.to_owned()), "{good:?}");
        }
        assert_eq!(Sku::new(""), Err(InvalidId::Empty));
        assert_eq!(Sku::new(&"é".repeat(128)).map(|_| ()), Ok(()));
        assert_eq!(Sku::new(&"é".repeat(129)), Err(InvalidId::TooLong));
        for control in ["\0", "a\0b", "a\tb", "\u{85}", "a\u{7f}"] {
            assert_eq!(Sku::new(control), Err(InvalidId::Control), "{control:?}");
        }
        for outer in [" a", "a ", "\u{a0}a", "a\u{3000}", " "] {
            assert_eq!(Sku::new(outer), Err(InvalidId::OuterSpace), "{outer:?}");
        }
    }

    #[test]
    fn number_ids_are_shown_as_uuid_text() {
        assert_eq!(
            OrderId(0x0193_7a5e_0000_7000_8000_0000_0000_00ff).to_string(),
            "01937a5e-0000-7000-8000-0000000000ff"
        );
    }
}
