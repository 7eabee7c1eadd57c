//! JSON, strictly: one pass of `serde_json` into a tree of our own that keeps what types would lose
//! (duplicate keys, whether a number was written as an integer) and knows where it stands.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use holdfast_wire::Code;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::report::{Fault, Located};

/// Deepest nesting of arrays and objects.
pub(crate) const DEPTH_MAX: usize = 32;
/// From this many keys on, an object's keys are looked up by hash: a body of keys must not cost a square.
const KEYS_SCANNED_MAX: usize = 16;

/// The field whose value is kept as it was sent, so it is not read into the tree.
pub(crate) const RAW_FIELD: &str = "metadata";

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number written as an integer that fits 64 bits.
    Integer(i128),
    /// Any other number: `1.0`, `1e0`, `-0`, `1e400`.
    Number,
    /// A string.
    String(Cow<'a, str>),
    /// A string that is no text: it holds a lone surrogate.
    NoText,
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object, in the order in which it was written.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    /// The text of a value that is kept as sent.
    Raw(&'a str),
}

impl Json<'_> {
    /// Whether it is `null`, which is the same as absent.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Json::Null | Json::Raw("null"))
    }

    /// A string's text.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Json::String(text) = self { Some(text) } else { None }
    }

    /// An integer's value.
    pub(crate) fn integer(&self) -> Option<i128> {
        if let Json::Integer(value) = self { Some(*value) } else { None }
    }
}

/// One step of a pointer.
#[derive(Debug, Clone)]
enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

/// Where the parser stands and what it found.
#[derive(Debug, Default)]
struct Tracker<'a> {
    path: Vec<Step<'a>>,
    fault: Option<Located>,
    /// Whether fields named [`RAW_FIELD`] of the body or of `orders` are left as text.
    keeps_raw: bool,
    /// Whether each value is taken apart by itself, so that one that nothing can stand for does not spoil
    /// the whole.
    one_by_one: bool,
}

impl Tracker<'_> {
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) => push_key(&mut pointer, key),
                Step::Index(index) => push_index(&mut pointer, *index),
            }
        }
        pointer
    }

    /// Whether the value that comes now is kept as text: `/metadata`, or `/orders/{i}/metadata`.
    fn is_raw(&self) -> bool {
        self.keeps_raw
            && match self.path.as_slice() {
                [Step::Key(key)] => key == RAW_FIELD,
                [Step::Key(list), Step::Index(_), Step::Key(key)] => list == "orders" && key == RAW_FIELD,
                _ => false,
            }
    }

    fn fail<E: serde::de::Error>(&mut self, code: Code, detail: impl Into<String>) -> E {
        self.fault = Some(Located::new(self.pointer(), code, detail));
        E::custom("refused")
    }
}

/// Adds a key to a pointer, escaped after RFC 6901.
pub(crate) fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Adds an index to a pointer.
pub(crate) fn push_index(pointer: &mut String, index: usize) {
    pointer.push('/');
    pointer.push_str(&index.to_string());
}

/// Parses a body. Fields that are kept as sent stay text.
pub(crate) fn parse(bytes: &[u8]) -> Result<Json<'_>, Located> {
    let mut tracker = Tracker { keeps_raw: true, ..Tracker::default() };
    let error = match parse_all(bytes, &mut tracker) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    if tracker.fault.is_none() {
        // The grammar may be good and one value not: that is the fault of its field, and of no other.
        let mut again = Tracker { keeps_raw: true, one_by_one: true, ..Tracker::default() };
        match parse_all(bytes, &mut again) {
            Ok(json) => return Ok(json),
            Err(_) => tracker.fault = again.fault,
        }
    }
    Err(refused(tracker, &error, Code::MalformedJson))
}

fn parse_all<'a>(bytes: &'a [u8], tracker: &mut Tracker<'a>) -> serde_json::Result<Json<'a>> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let json = Seed(tracker).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(json)
}

/// Parses the text of one value whose grammar is known to be good.
fn parse_one<'a>(text: &'a str, tracker: &mut Tracker<'a>) -> serde_json::Result<Json<'a>> {
    let parsed = serde_json::Deserializer::from_str(text).deserialize_any(Seed(tracker));
    match text.as_bytes().first() {
        Some(b'"') => Ok(parsed.unwrap_or(Json::NoText)),
        Some(b'-' | b'0'..=b'9') => Ok(parsed.unwrap_or(Json::Number)),
        Some(_) | None => parsed,
    }
}

/// Parses the text of a value whose grammar is already known to be good. So what fails here is a string
/// or a number that no text or number can stand for.
pub(crate) fn parse_kept(text: &str) -> Result<Json<'_>, Located> {
    let mut tracker = Tracker::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = Seed(&mut tracker).deserialize(&mut deserializer);
    parsed.map_err(|error| refused(tracker, &error, Code::InvalidValue))
}

fn refused(tracker: Tracker<'_>, error: &serde_json::Error, code: Code) -> Located {
    let pointer = tracker.pointer();
    tracker.fault.unwrap_or_else(|| Located { pointer, fault: Fault::new(code, error.to_string()) })
}

/// Deserialises one value, knowing where it stands.
struct Seed<'t, 'a>(&'t mut Tracker<'a>);

impl<'a> DeserializeSeed<'a> for Seed<'_, 'a> {
    type Value = Json<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Json<'a>, D::Error> {
        if self.0.is_raw() {
            return <&RawValue>::deserialize(deserializer).map(|raw| Json::Raw(raw.get()));
        }
        if self.0.one_by_one {
            let raw = <&RawValue>::deserialize(deserializer)?;
            return parse_one(raw.get(), self.0).map_err(serde::de::Error::custom);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Seed<'_, 'a> {
    type Value = Json<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'a>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'a>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'a>, E> {
        Ok(Json::Integer(i128::from(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'a>, E> {
        Ok(Json::Integer(i128::from(value)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json<'a>, E> {
        Ok(Json::Number)
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'a>, E> {
        Ok(Json::String(Cow::Owned(value.to_owned())))
    }

    fn visit_borrowed_str<E>(self, value: &'a str) -> Result<Json<'a>, E> {
        Ok(Json::String(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Json<'a>, A::Error> {
        let tracker = self.0;
        if tracker.path.len() >= DEPTH_MAX {
            return Err(tracker.fail(Code::InvalidValue, "nested too deep"));
        }
        let mut array = Vec::new();
        loop {
            tracker.path.push(Step::Index(array.len()));
            let Some(item) = items.next_element_seed(Seed(&mut *tracker))? else { break };
            tracker.path.pop();
            array.push(item);
        }
        tracker.path.pop();
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<Json<'a>, A::Error> {
        let tracker = self.0;
        if tracker.path.len() >= DEPTH_MAX {
            return Err(tracker.fail(Code::InvalidValue, "nested too deep"));
        }
        let mut object: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        let mut many = HashSet::new();
        while let Some(Key(key)) = members.next_key::<Key<'a>>()? {
            let is_known = if object.len() < KEYS_SCANNED_MAX {
                object.iter().any(|(known, _)| *known == key)
            } else {
                if many.is_empty() {
                    many.extend(object.iter().map(|(known, _)| known.clone()));
                }
                !many.insert(key.clone())
            };
            tracker.path.push(Step::Key(key.clone()));
            if is_known {
                return Err(tracker.fail(Code::DuplicateField, "the key stands twice in this object"));
            }
            let value = members.next_value_seed(Seed(&mut *tracker))?;
            tracker.path.pop();
            object.push((key, value));
        }
        Ok(Json::Object(object))
    }
}

/// An object's key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(value.to_owned()))
            }

            fn visit_borrowed_str<E: serde::de::Error>(self, value: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(value))
            }
        }

        deserializer.deserialize_str(KeyVisitor).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (Code, String) {
        fault_of(text.as_bytes())
    }

    fn fault_of(bytes: &[u8]) -> (Code, String) {
        let located = parse(bytes).expect_err("refused");
        (located.fault.code, located.pointer)
    }

    #[test]
    fn duplicate_keys_are_refused_where_they_stand() {
        assert_eq!(fault(r#"{"a":1,"a":2}"#), (Code::DuplicateField, "/a".into()));
        assert_eq!(fault(r#"{"a":1,"\u0061":2}"#), (Code::DuplicateField, "/a".into()));
        assert_eq!(
            fault(r#"{"l":[{},{"x":{"b/c":1,"b/c":1}}]}"#),
            (Code::DuplicateField, "/l/1/x/b~1c".into())
        );
        let mut many: Vec<String> = (0..100).map(|n| format!(r#""k{n}":{n}"#)).collect();
        assert!(parse(format!("{{{}}}", many.join(",")).as_bytes()).is_ok());
        for again in [3, 15, 16, 17, 98] {
            many.push(format!(r#""k{again}":0"#));
            assert_eq!(
                fault(&format!("{{{}}}", many.join(","))),
                (Code::DuplicateField, format!("/k{again}"))
            );
            many.pop();
        }
    }

    #[test]
    fn only_numbers_written_as_integers_are_integers() {
        let parsed = |text: &str| parse(text.as_bytes()).map(|json| format!("{json:?}")).ok();
        assert_eq!(parsed("18446744073709551615"), Some("Integer(18446744073709551615)".into()));
        assert_eq!(parsed("-9223372036854775808"), Some("Integer(-9223372036854775808)".into()));
        assert_eq!(parsed("0"), Some("Integer(0)".into()));
        for other in ["1.0", "1e0", "-0", "18446744073709551616", "-9223372036854775809", "0.1", "1e400"] {
            assert_eq!(parsed(other), Some("Number".into()), "{other}");
        }
        for bad in ["01", "+1", "1.", ".5", "0x1", "NaN", "Infinity", "1_000"] {
            assert_eq!(fault(bad).0, Code::MalformedJson, "{bad}");
        }
    }

    #[test]
    fn malformed_text_is_refused_with_the_pointer_reached() {
        assert_eq!(fault(""), (Code::MalformedJson, String::new()));
        assert_eq!(fault("{\"a\":[1,{\"b\":tru}]}"), (Code::MalformedJson, "/a/1/b".into()));
        assert_eq!(fault("{} {}"), (Code::MalformedJson, String::new()));
        assert_eq!(fault("{\"a\":1,}"), (Code::MalformedJson, String::new()));
        assert_eq!(fault("[1,]").0, Code::MalformedJson);
        assert_eq!(fault("{'a':1}").0, Code::MalformedJson);
        assert_eq!(fault("// c\n{}").0, Code::MalformedJson);
        assert_eq!(fault("\u{feff}{}").0, Code::MalformedJson);
        assert_eq!(fault_of(b"{\"a\":\"\xff\"}"), (Code::MalformedJson, "/a".into()));
        assert_eq!(fault_of(b"{\"a\":\"\xed\xa0\x80\"}"), (Code::MalformedJson, "/a".into()));
        assert_eq!(fault("{\"a\":\"\u{1}\"}"), (Code::MalformedJson, "/a".into()));
    }

    #[test]
    fn a_string_that_is_no_text_does_not_spoil_the_rest() {
        for lone in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\ud800x""#] {
            let body = format!(r#"{{"a":[{lone}],"metadata":{{ }},"b":{{"c":"d","n":1e400}}}}"#);
            let Ok(Json::Object(members)) = parse(body.as_bytes()) else { panic!("an object: {lone}") };
            assert_eq!(members[0].1, Json::Array(vec![Json::NoText]), "{lone}");
            assert_eq!(members[1].1, Json::Raw("{ }"));
            let inner = vec![("c".into(), Json::String("d".into())), ("n".into(), Json::Number)];
            assert_eq!(members[2].1, Json::Object(inner));
            // A key has to be text, or it names nothing; and no other fault hides behind one.
            assert_eq!(fault(&format!(r#"{{{lone}:1}}"#)).0, Code::MalformedJson, "{lone}");
            assert_eq!(fault(&format!(r#"{{"a":{lone},"b":[{{"c":1,"c":1}}]}}"#)).1, "/b/0/c");
            assert_eq!(fault(&format!(r#"{{"a":{lone},"b":tru}}"#)), (Code::MalformedJson, "/a".into()));
        }
        assert_eq!(parse(br#""\ud83d\ude00""#), Ok(Json::String("\u{1f600}".into())));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(fault(&nested(DEPTH_MAX + 1)).0, Code::InvalidValue);
        assert_eq!(fault(&"[".repeat(100_000)).0, Code::InvalidValue);
        let objects = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(parse(objects(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(fault(&objects(DEPTH_MAX + 1)).1, "/a".repeat(DEPTH_MAX));
    }

    #[test]
    fn metadata_stays_text() {
        let body = br#"{"x":{"metadata":1},"metadata": {"a" : [ 1.50 ]} ,"orders":[{"metadata":{ }}]}"#;
        let Ok(Json::Object(members)) = parse(body) else { panic!("an object") };
        assert_eq!(members[1].1, Json::Raw(r#"{"a" : [ 1.50 ]}"#));
        assert!(format!("{:?}", members[0].1).contains("Integer(1)"));
        assert!(format!("{:?}", members[2].1).contains(r#"Raw("{ }")"#));
    }
}
