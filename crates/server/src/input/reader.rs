//! Reads an object's fields by name. Goes on after an error, so that a client learns all of them at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use holdfast_core::id::LimitName;
use holdfast_wire::Code;

use super::field::Field;
use super::json::{Json, RAW_FIELD, push_index, push_key};
use super::metadata;
use super::report::{Fault, Located, Report};
use crate::problem::Problem;

/// Where a value stands. A list of borrowed steps: it costs nothing until an error needs its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    parent: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The whole body.
    pub(crate) const ROOT: Self = Self { parent: None, step: Step::Root };

    fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// The JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = self.parent.map(Place::pointer).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key) => push_key(&mut pointer, key),
            Step::Index(index) => push_index(&mut pointer, index),
        }
        pointer
    }
}

/// An object whose fields are read one by one.
pub(crate) struct Object<'j, 'r> {
    members: &'j [(Cow<'j, str>, Json<'j>)],
    place: Place<'r>,
    report: &'r mut Report,
    known: Vec<&'static str>,
}

impl<'j, 'r> Object<'j, 'r> {
    /// The value as an object; anything else is reported.
    pub(crate) fn new(json: &'j Json<'j>, place: Place<'r>, report: &'r mut Report) -> Option<Self> {
        if let Json::Object(members) = json {
            return Some(Self { members, place, report, known: Vec::with_capacity(8) });
        }
        report.add(Located::new(place.pointer(), Code::InvalidValue, "must be an object"));
        None
    }

    /// Reports the fields that nobody asked for. Must be called last.
    pub(crate) fn finish(self) {
        for (key, _) in self.members {
            if !self.known.contains(&&**key) {
                let pointer = self.place.key(key).pointer();
                self.report.add(Located::new(pointer, Code::UnknownField, "this field is not known"));
            }
        }
    }

    /// The value of a field; `null` is the same as absent.
    fn member(&mut self, name: &'static str) -> Option<&'j Json<'j>> {
        self.known.push(name);
        let (_, value) = self.members.iter().find(|(key, _)| key == name)?;
        (!value.is_null()).then_some(value)
    }

    /// Whether a field is there and not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(key, value)| key == name && !value.is_null())
    }

    /// Reports an error of one field.
    pub(crate) fn refuse(&mut self, name: &str, code: Code, detail: impl Into<String>) {
        self.report.add(Located::new(self.place.key(name).pointer(), code, detail));
    }

    /// Reports an error somewhere below this object.
    pub(crate) fn refuse_below(&mut self, path: &str, code: Code, detail: impl Into<String>) {
        let mut pointer = self.place.pointer();
        pointer.push_str(path);
        self.report.add(Located::new(pointer, code, detail));
    }

    /// A field that must be there.
    pub(crate) fn required<F: Field>(&mut self, name: &'static str, field: F) -> Option<F::Out> {
        let read = match self.member(name) {
            Some(json) => field.read(json),
            None => Err(Fault::new(field.code(), "is required")),
        };
        self.report.take(|| self.place.key(name).pointer(), read)
    }

    /// A field that may be absent: `Some(None)` if it is, `None` if it is wrong.
    pub(crate) fn optional<F: Field>(&mut self, name: &'static str, field: F) -> Option<Option<F::Out>> {
        match self.member(name) {
            None => Some(None),
            Some(json) => self.report.take(|| self.place.key(name).pointer(), field.read(json)).map(Some),
        }
    }

    /// A field of which `null` says something else than nothing: `Some(None)` if it is absent.
    pub(crate) fn nullable<F: Field>(
        &mut self,
        name: &'static str,
        field: F,
    ) -> Option<Option<Option<F::Out>>> {
        let is_null = self.members.iter().any(|(key, value)| key == name && value.is_null());
        let read = self.optional(name, field)?;
        Some(if is_null { Some(None) } else { read.map(Some) })
    }

    /// A field that has a default.
    pub(crate) fn defaulted<F: Field>(
        &mut self,
        name: &'static str,
        field: F,
        default: F::Out,
    ) -> Option<F::Out> {
        self.optional(name, field).map(|read| read.unwrap_or(default))
    }

    /// A field that is known but not judged, because another one that it depends on is wrong.
    pub(crate) fn ignored<T>(&mut self, name: &'static str) -> Option<Option<T>> {
        self.known.push(name);
        None
    }

    /// An object in a field that may be absent.
    pub(crate) fn object<T>(
        &mut self,
        name: &'static str,
        shape: impl FnOnce(&mut Object<'_, '_>) -> Option<T>,
    ) -> Option<Option<T>> {
        let Some(json) = self.member(name) else { return Some(None) };
        Item { json, place: self.place.key(name), report: self.report }.object(shape).map(Some)
    }

    /// An array of `count` items in a field that must be there.
    pub(crate) fn array<T>(
        &mut self,
        name: &'static str,
        count: RangeInclusive<usize>,
        read: impl FnMut(Item<'_, '_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        match self.optional_array(name, count, read)? {
            Some(items) => Some(items),
            None => {
                self.refuse(name, Code::InvalidValue, "is required");
                None
            }
        }
    }

    /// An array of `count` items in a field that may be absent.
    pub(crate) fn optional_array<T>(
        &mut self,
        name: &'static str,
        count: RangeInclusive<usize>,
        mut read: impl FnMut(Item<'_, '_>) -> Option<T>,
    ) -> Option<Option<Vec<T>>> {
        let Some(json) = self.member(name) else { return Some(None) };
        let Json::Array(items) = json else {
            self.refuse(name, Code::InvalidValue, "must be an array");
            return None;
        };
        if !count.contains(&items.len()) {
            let detail = format!("must have {} to {} items", count.start(), count.end());
            self.refuse(name, Code::InvalidValue, detail);
            return None;
        }
        let place = self.place.key(name);
        let mut values = Vec::with_capacity(items.len());
        for (index, json) in items.iter().enumerate() {
            values.extend(read(Item { json, place: place.index(index), report: self.report }));
        }
        (values.len() == items.len()).then_some(Some(values))
    }

    /// An object of at most `most` names in a field that may be absent: then it is empty.
    pub(crate) fn map<T>(
        &mut self,
        name: &'static str,
        most: usize,
        mut read: impl FnMut(Item<'_, '_>) -> Option<T>,
    ) -> Option<BTreeMap<LimitName, T>> {
        let Some(json) = self.member(name) else { return Some(BTreeMap::new()) };
        let Json::Object(members) = json else {
            self.refuse(name, Code::InvalidValue, "must be an object");
            return None;
        };
        if members.len() > most {
            self.refuse(name, Code::InvalidValue, format!("must have at most {most} names"));
            return None;
        }
        let place = self.place.key(name);
        let mut values = BTreeMap::new();
        for (key, json) in members {
            let place = place.key(key);
            let named =
                LimitName::new(key).map_err(|why| Fault::new(Code::InvalidIdentifier, why.to_string()));
            let named = self.report.take(|| place.pointer(), named);
            let value = read(Item { json, place, report: self.report });
            values.extend(named.zip(value));
        }
        (values.len() == members.len()).then_some(values)
    }

    /// The client's own object, kept as sent.
    pub(crate) fn metadata(&mut self) -> Option<Option<Arc<str>>> {
        let Some(json) = self.member(RAW_FIELD) else { return Some(None) };
        let checked = if let Json::Raw(text) = json {
            metadata::check(text)
        } else {
            Err(Located::new("", Code::InvalidValue, "is not allowed here"))
        };
        match checked {
            Ok(text) => Some(Some(text)),
            Err(Located { pointer, fault }) => {
                let pointer = self.place.key(RAW_FIELD).pointer() + &pointer;
                self.report.add(Located { pointer, fault });
                None
            }
        }
    }
}

/// One item of an array.
pub(crate) struct Item<'j, 'r> {
    json: &'j Json<'j>,
    place: Place<'r>,
    report: &'r mut Report,
}

impl Item<'_, '_> {
    /// Whether the item is an object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.json, Json::Object(_))
    }

    /// The item as an object.
    pub(crate) fn object<T>(self, shape: impl FnOnce(&mut Object<'_, '_>) -> Option<T>) -> Option<T> {
        let mut object = Object::new(self.json, self.place, self.report)?;
        let read = shape(&mut object);
        object.finish();
        read
    }

    /// The item as a plain value.
    pub(crate) fn field<F: Field>(self, field: F) -> Option<F::Out> {
        self.report.take(|| self.place.pointer(), field.read(self.json))
    }

    /// The item as an object whose errors are its own and do not spoil the others.
    pub(crate) fn alone<T>(self, shape: impl FnOnce(&mut Object<'_, '_>) -> Option<T>) -> Result<T, Problem> {
        let mut report = Report::default();
        let read = Item { json: self.json, place: self.place, report: &mut report }.object(shape);
        report.into_result(read)
    }
}
