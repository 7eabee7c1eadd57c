//! Words of the wire in a history that is kept.

macro_rules! as_word {
    ($($module:ident: $type:ty;)*) => {$(
        pub(super) mod $module {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            pub(crate) fn serialize<S: Serializer>(value: &$type, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(value.as_str())
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                <$type>::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no word here")))
            }
        }
    )*};
}

macro_rules! as_some_word {
    ($($module:ident: $type:ty;)*) => {$(
        pub(super) mod $module {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            pub(crate) fn serialize<S: Serializer>(value: &Option<$type>, out: S) -> Result<S::Ok, S::Error> {
                match value {
                    Some(value) => out.serialize_str(value.as_str()),
                    None => out.serialize_none(),
                }
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$type>, D::Error> {
                let Some(text) = Option::<std::borrow::Cow<'de, str>>::deserialize(from)? else { return Ok(None) };
                let word = <$type>::parse(&text);
                word.map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is no word here")))
            }
        }
    )*};
}

as_word! {
    code: holdfast_wire::Code;
    state: holdfast_core::order::State;
}

as_some_word! {
    some_code: holdfast_wire::Code;
    some_disposition: holdfast_core::order::Disposition;
}
