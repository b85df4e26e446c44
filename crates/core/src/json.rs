//! A borrowed view of JSON, whoever holds it: a [`Value`], or slices into which a text was read.
//!
//! A review is read into slices that lie one behind the other and borrow the texts of its body, which takes a fifth of
//! the time of a [`Value`]; all else holds a [`Value`], which is viewed as it is. Rules see no difference.
//! No value is sure to have the type that it should have, so each one is asked for as the type that is wanted.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Number, Value};

/// A JSON value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(&'a Number),
    /// A string.
    String(&'a str),
    /// A list.
    Array(Items<'a>),
    /// An object.
    Object(Fields<'a>),
}

impl<'a> From<&'a Value> for Json<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(text),
            Value::Array(items) => Self::Array(items.as_slice().into()),
            Value::Object(fields) => Self::Object(fields.into()),
        }
    }
}

/// Equal to a string of the same text.
impl PartialEq<&str> for Json<'_> {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == Some(*text)
    }
}

impl<'a> Json<'a> {
    /// True for `null`.
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value, if it is a whole number within the bounds of an `i64`.
    pub fn as_i64(self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The value, if it is a number, as the nearest `f64`.
    pub fn as_f64(self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// The value, if it is a number.
    pub fn as_number(self) -> Option<&'a Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The value, if it is a string.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value, if it is a list.
    pub fn as_array(self) -> Option<Items<'a>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The value, if it is an object.
    pub fn as_object(self) -> Option<Fields<'a>> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The value at `key`, if this is an object that has the key.
    pub fn get(self, key: &str) -> Option<Self> {
        self.as_object()?.get(key)
    }

    /// A copy that borrows nothing.
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.to_owned()),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => Value::Object(fields.to_map().into_owned()),
        }
    }
}

/// Writes the value as JSON.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

/// The fields of a JSON object. Of several with one key, the last one counts.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(HeldFields<'a>);

#[derive(Debug, Clone, Copy)]
enum HeldFields<'a> {
    Map(&'a Map<String, Value>),
    /// Above [`SEARCHED`], sorted by key.
    Read(&'a [(&'a str, Json<'a>)]),
}

/// The most fields that are looked through in their order.
const SEARCHED: usize = 24;

impl Default for Fields<'_> {
    fn default() -> Self {
        Self(HeldFields::Read(&[]))
    }
}

impl<'a> From<&'a Map<String, Value>> for Fields<'a> {
    fn from(fields: &'a Map<String, Value>) -> Self {
        Self(HeldFields::Map(fields))
    }
}

/// A value that is no object reads as an empty one.
impl<'a> From<&'a Value> for Fields<'a> {
    fn from(value: &'a Value) -> Self {
        Json::from(value).as_object().unwrap_or_default()
    }
}

impl<'a> From<&'a mut [(&'a str, Json<'a>)]> for Fields<'a> {
    fn from(entries: &'a mut [(&'a str, Json<'a>)]) -> Self {
        if entries.len() > SEARCHED {
            entries.sort_by_key(|(key, _)| *key);
        }
        Self(HeldFields::Read(entries))
    }
}

/// Equal whatever the order of the fields is.
impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.iter()).all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<'a> Fields<'a> {
    /// The number of fields.
    pub fn len(self) -> usize {
        match self.0 {
            HeldFields::Map(map) => map.len(),
            HeldFields::Read(entries) => entries.len(),
        }
    }

    /// True for an object without fields.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value at `key`.
    pub fn get(self, key: &str) -> Option<Json<'a>> {
        let entries = match self.0 {
            HeldFields::Map(map) => return map.get(key).map(Json::from),
            HeldFields::Read(entries) => entries,
        };
        let at = if entries.len() > SEARCHED {
            let behind = entries.partition_point(|(name, _)| *name <= key);
            behind.checked_sub(1).filter(|at| entries[*at].0 == key)
        } else {
            entries.iter().rposition(|(name, _)| *name == key)
        };
        at.map(|at| entries[at].1)
    }

    /// True if there is a value at `key`, were it `null`.
    pub fn contains_key(self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The keys and values, in the order of the fields.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        let (map, read) = match self.0 {
            HeldFields::Map(map) => (Some(map), [].as_slice()),
            HeldFields::Read(entries) => (None, entries),
        };
        let map = map.into_iter().flatten();
        let map = map.map(|(key, value)| (key.as_str(), Json::from(value)));
        map.chain(read.iter().copied())
    }

    /// The keys whose values are strings, with these, in the order of the fields.
    pub fn texts(self) -> impl Iterator<Item = (String, String)> {
        let text =
            |(key, value): (&str, Json<'_>)| Some((key.to_owned(), value.as_str()?.to_owned()));
        self.iter().filter_map(text)
    }

    /// The keys, in the order of the fields.
    pub fn keys(self) -> impl Iterator<Item = &'a str> {
        self.iter().map(|(key, _)| key)
    }

    /// The value at `key`, if it is an object.
    pub fn object(self, key: &str) -> Option<Self> {
        self.get(key)?.as_object()
    }

    /// The fields of the object at `key`. An absent value, or one of another type, reads as an empty object.
    #[must_use]
    pub fn below(self, key: &str) -> Self {
        self.object(key).unwrap_or_default()
    }

    /// The object that `path` leads to.
    pub fn object_in(self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self, |fields, key| fields.object(key))
    }

    /// The list at `key`. An absent value, or one of another type, reads as an empty list.
    pub fn list(self, key: &str) -> Items<'a> {
        self.get(key).and_then(Json::as_array).unwrap_or_default()
    }

    /// The value at `key`, if it is a string.
    pub fn text(self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    /// The value at `key`, if it is a string that is not empty.
    pub fn filled(self, key: &str) -> Option<&'a str> {
        self.text(key).filter(|text| !text.is_empty())
    }

    /// True where `true` stands at `key`.
    pub fn is_true(self, key: &str) -> bool {
        self.get(key) == Some(Json::Bool(true))
    }

    /// The fields as a map: a copy, unless they are held as one.
    pub fn to_map(self) -> Cow<'a, Map<String, Value>> {
        if let HeldFields::Map(map) = self.0 {
            return Cow::Borrowed(map);
        }
        let owned = |(key, value): (&str, Json<'_>)| (key.to_owned(), value.to_value());
        Cow::Owned(self.iter().map(owned).collect())
    }
}

/// The items of a JSON list, in their order.
#[derive(Debug, Clone, Copy)]
pub struct Items<'a>(HeldItems<'a>);

#[derive(Debug, Clone, Copy)]
enum HeldItems<'a> {
    Values(&'a [Value]),
    Read(&'a [Json<'a>]),
}

impl Default for Items<'_> {
    fn default() -> Self {
        Self(HeldItems::Read(&[]))
    }
}

impl<'a> From<&'a [Value]> for Items<'a> {
    fn from(items: &'a [Value]) -> Self {
        Self(HeldItems::Values(items))
    }
}

impl<'a> From<&'a [Json<'a>]> for Items<'a> {
    fn from(items: &'a [Json<'a>]) -> Self {
        Self(HeldItems::Read(items))
    }
}

impl PartialEq for Items<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a> Items<'a> {
    /// The number of items.
    pub fn len(self) -> usize {
        match self.0 {
            HeldItems::Values(items) => items.len(),
            HeldItems::Read(items) => items.len(),
        }
    }

    /// True for an empty list.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The item at that position, from 0.
    pub fn get(self, index: usize) -> Option<Json<'a>> {
        match self.0 {
            HeldItems::Values(items) => items.get(index).map(Json::from),
            HeldItems::Read(items) => items.get(index).copied(),
        }
    }

    /// The items, in their order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Json<'a>> + ExactSizeIterator + Clone {
        (0..self.len()).map(move |index| self.get(index).unwrap_or(Json::Null))
    }

    /// The items that are objects, in their order.
    pub fn objects(self) -> impl DoubleEndedIterator<Item = Fields<'a>> + Clone {
        self.iter().filter_map(Json::as_object)
    }
}
