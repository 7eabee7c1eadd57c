//! Kinds of fields: what a value must be, and the code if it is not.

use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::Arc;

use holdfast_core::id::{
    Account, AdjustmentId, AttemptId, CampaignId, DecisionId, EventId, ImportId, InvalidId, LimitKey,
    Location, Operator, OrderId, OrderNo, PaymentId, PoolId, Provider, RefundId, Sku, TransferId,
};
use holdfast_core::stock::QUANTITY_MAX;
use holdfast_wire::Code;
use uuid::Uuid;

use super::json::Json;
use super::report::Fault;

/// Longest free text (a reason), in characters.
pub(crate) const TEXT_CHARS_MAX: usize = 500;

/// A kind of field.
pub(crate) trait Field {
    /// What it gives.
    type Out;

    /// The code of an error, also if the field is missing.
    fn code(&self) -> Code;

    /// Reads a value that is not `null`.
    fn read(&self, json: &Json<'_>) -> Result<Self::Out, Fault>;
}

/// An identifier that clients make.
pub(crate) trait TextId: Sized {
    /// Takes a text that keeps the rule.
    fn from_text(text: &str) -> Result<Self, InvalidId>;
}

macro_rules! text_ids {
    ($($name:ident),*) => {$(
        impl TextId for $name {
            fn from_text(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }
    )*};
}

text_ids!(
    Account,
    AdjustmentId,
    AttemptId,
    CampaignId,
    DecisionId,
    EventId,
    ImportId,
    LimitKey,
    Location,
    Operator,
    OrderNo,
    PaymentId,
    Provider,
    RefundId,
    Sku,
    TransferId
);

/// An identifier that Holdfast makes: UUID text in its usual form.
pub(crate) fn number_id(text: &str) -> Option<u128> {
    (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten().map(|uuid| uuid.as_u128())
}

/// An order's id.
pub(crate) fn order_id_of(text: &str) -> Option<OrderId> {
    number_id(text).map(OrderId)
}

/// A pool's id.
pub(crate) fn pool_id_of(text: &str) -> Option<PoolId> {
    number_id(text).map(PoolId)
}

fn text_of<'t>(json: &'t Json<'_>, code: Code) -> Result<&'t str, Fault> {
    json.text().ok_or_else(|| {
        let holds_surrogate = *json == Json::NoText;
        Fault::new(code, if holds_surrogate { "must not hold lone surrogates" } else { "must be a string" })
    })
}

/// A [`TextId`].
pub(crate) struct Id<T>(PhantomData<T>);

/// An identifier that clients make.
pub(crate) fn id<T: TextId>() -> Id<T> {
    Id(PhantomData)
}

impl<T: TextId> Field for Id<T> {
    type Out = T;

    fn code(&self) -> Code {
        Code::InvalidIdentifier
    }

    fn read(&self, json: &Json<'_>) -> Result<T, Fault> {
        T::from_text(text_of(json, self.code())?).map_err(|why| Fault::new(self.code(), why.to_string()))
    }
}

/// The id of an order.
pub(crate) struct OrderIdField;

impl Field for OrderIdField {
    type Out = OrderId;

    fn code(&self) -> Code {
        Code::InvalidIdentifier
    }

    fn read(&self, json: &Json<'_>) -> Result<OrderId, Fault> {
        order_id_of(text_of(json, self.code())?).ok_or_else(|| Fault::new(self.code(), "must be a UUID"))
    }
}

/// The id of a pool.
pub(crate) struct PoolIdField;

impl Field for PoolIdField {
    type Out = PoolId;

    fn code(&self) -> Code {
        Code::InvalidIdentifier
    }

    fn read(&self, json: &Json<'_>) -> Result<PoolId, Fault> {
        pool_id_of(text_of(json, self.code())?).ok_or_else(|| Fault::new(self.code(), "must be a UUID"))
    }
}

/// An integer in bounds.
pub(crate) struct Integer<N> {
    bounds: RangeInclusive<N>,
    code: Code,
}

/// Units of a line.
pub(crate) fn quantity() -> Integer<u32> {
    quantity_in(1..=QUANTITY_MAX)
}

/// Units in bounds.
pub(crate) fn quantity_in<N>(bounds: RangeInclusive<N>) -> Integer<N> {
    Integer { bounds, code: Code::InvalidQuantity }
}

/// A number that is no quantity.
pub(crate) fn integer<N>(bounds: RangeInclusive<N>) -> Integer<N> {
    Integer { bounds, code: Code::InvalidValue }
}

impl<N: TryFrom<i128> + PartialOrd + std::fmt::Display> Field for Integer<N> {
    type Out = N;

    fn code(&self) -> Code {
        self.code
    }

    fn read(&self, json: &Json<'_>) -> Result<N, Fault> {
        let value = json.integer().and_then(|value| N::try_from(value).ok());
        let value = value.filter(|value| self.bounds.contains(value));
        value.ok_or_else(|| {
            let (least, most) = (self.bounds.start(), self.bounds.end());
            Fault::new(self.code, format!("must be an integer from {least} to {most}"))
        })
    }
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Field for Flag {
    type Out = bool;

    fn code(&self) -> Code {
        Code::InvalidValue
    }

    fn read(&self, json: &Json<'_>) -> Result<bool, Fault> {
        let Json::Bool(value) = json else { return Err(Fault::new(self.code(), "must be true or false")) };
        Ok(*value)
    }
}

/// Free text for people.
pub(crate) struct Text {
    chars_max: usize,
}

/// Free text of 1 to `chars_max` characters, without control characters.
pub(crate) const fn text(chars_max: usize) -> Text {
    Text { chars_max }
}

impl Field for Text {
    type Out = Arc<str>;

    fn code(&self) -> Code {
        Code::InvalidValue
    }

    fn read(&self, json: &Json<'_>) -> Result<Arc<str>, Fault> {
        let text = text_of(json, self.code())?;
        if text.is_empty() || text.chars().nth(self.chars_max).is_some() {
            return Err(Fault::new(self.code(), format!("must have 1 to {} characters", self.chars_max)));
        }
        if text.chars().any(char::is_control) {
            return Err(Fault::new(self.code(), "must not hold control characters"));
        }
        Ok(Arc::from(text))
    }
}

/// A word of a closed vocabulary.
pub(crate) struct Word<T> {
    parse: fn(&str) -> Option<T>,
}

/// A word of a closed vocabulary.
pub(crate) const fn word<T>(parse: fn(&str) -> Option<T>) -> Word<T> {
    Word { parse }
}

impl<T> Field for Word<T> {
    type Out = T;

    fn code(&self) -> Code {
        Code::InvalidValue
    }

    fn read(&self, json: &Json<'_>) -> Result<T, Fault> {
        let text = text_of(json, self.code())?;
        (self.parse)(text).ok_or_else(|| Fault::new(self.code(), "is not one of the allowed words"))
    }
}

/// An ISO 4217 currency: three upper-case letters.
pub(crate) struct Currency;

impl Field for Currency {
    type Out = Arc<str>;

    fn code(&self) -> Code {
        Code::InvalidValue
    }

    fn read(&self, json: &Json<'_>) -> Result<Arc<str>, Fault> {
        let text = text_of(json, self.code())?;
        if text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()) {
            return Ok(Arc::from(text));
        }
        Err(Fault::new(self.code(), "must be three upper-case letters"))
    }
}

/// An amount in a currency's minor unit, not negative.
pub(crate) const AMOUNT: RangeInclusive<i64> = 0..=i64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn read<F: Field>(field: F, text: &str) -> Result<F::Out, Code> {
        let json = super::super::json::parse(text.as_bytes()).expect("JSON");
        field.read(&json).map_err(|fault| fault.code)
    }

    #[test]
    fn quantities_are_integers_in_bounds() {
        assert_eq!(read(quantity(), "1"), Ok(1));
        assert_eq!(read(quantity(), "1000000"), Ok(1_000_000));
        for bad in ["0", "-1", "1000001", "1.0", "1e0", "-0", "\"1\"", "true", "[]", "99999999999999999999"] {
            assert_eq!(read(quantity(), bad), Err(Code::InvalidQuantity), "{bad}");
        }
        assert_eq!(read(quantity_in(0..=10_u64.pow(12)), "1000000000000"), Ok(10_u64.pow(12)));
        assert_eq!(read(integer(1..=256_u32), "257"), Err(Code::InvalidValue));
        assert_eq!(read(integer(AMOUNT), "9223372036854775807"), Ok(i64::MAX));
        assert_eq!(read(integer(AMOUNT), "9223372036854775808"), Err(Code::InvalidValue));
    }

    #[test]
    fn identifiers_are_exact() {
        assert_eq!(read(id::<Sku>(), r#""A/B\u00e9""#).map(|sku| sku.to_string()), Ok("A/Bé".into()));
        for bad in [r#""""#, r#"" a""#, r#""a\u00a0""#, r#""a\u0000b""#, r#""a\tb""#, "17", "{}", "true"] {
            assert_eq!(read(id::<Sku>(), bad).err(), Some(Code::InvalidIdentifier), "{bad}");
        }
        let long = format!("\"{}\"", "x".repeat(129));
        assert_eq!(read(id::<Sku>(), &long).err(), Some(Code::InvalidIdentifier));
    }

    #[test]
    fn number_ids_have_one_form() {
        assert!(order_id_of("01937a5e-0000-7000-8000-0000000000ff").is_some());
        for bad in ["", "17", "01937a5e000070008000000000000 0ff", "{01937a5e-0000-7000-8000-0000000000ff}"] {
            assert!(order_id_of(bad).is_none(), "{bad}");
        }
        assert!(order_id_of("01937a5e000070008000000000000000ff").is_none());
        assert!(order_id_of("urn:uuid:01937a5e-0000-7000-8000-0000000000ff").is_none());
    }

    #[test]
    fn texts_words_and_currencies() {
        assert!(read(text(3), r#""äöü""#).is_ok());
        for bad in [r#""""#, r#""äöüx""#, r#""a\nb""#, "1"] {
            assert_eq!(read(text(3), bad).err(), Some(Code::InvalidValue), "{bad}");
        }
        assert!(read(Currency, r#""EUR""#).is_ok());
        for bad in [r#""eur""#, r#""EURO""#, r#""E1R""#, r#""ÄÖ""#] {
            assert_eq!(read(Currency, bad).err(), Some(Code::InvalidValue), "{bad}");
        }
    }
}
