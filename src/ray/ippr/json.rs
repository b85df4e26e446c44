//! JSON that remembers which keys were written more than once, unlike `serde_json::Value`, which
//! keeps the last value and says nothing.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A JSON value. The items of lists are not kept, because nothing in the annotation is a list.
#[derive(Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List,
    Object(Object),
}

/// A JSON object with each key once, at its first position and with its last value, as Python's
/// `json.loads` keeps it.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) entries: Vec<(String, Json)>,
    /// The keys that were written more than once.
    pub(super) twice: Vec<String>,
}

impl Object {
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(present, _)| present == key)
    }
}

impl Json {
    /// A whole number as JSON schema accepts it, 300.0 included. A number beyond 64 bits reads as
    /// the nearest bound.
    pub(super) fn as_integer(&self) -> Option<i64> {
        let Self::Number(number) = self else {
            return None;
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a saturating cast is meant"
        )]
        number.as_i64().or_else(|| {
            number
                .as_f64()
                .filter(|float| float.fract() == 0.0)
                .map(|float| float as i64)
        })
    }

    pub(super) fn is_fraction(&self) -> bool {
        matches!(self, Self::Number(_)) && self.as_integer().is_none()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(&crate::text::shown_text(text)),
            Self::List => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Json::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut object = Object::default();
        let mut seen = SeenText::default();
        while let Some((key, value)) = map.next_entry::<String, Json>()? {
            let Some(position) = seen.position(&key, &object.entries) else {
                object.entries.push((key, value));
                continue;
            };
            if let Some(entry) = object.entries.get_mut(position) {
                entry.1 = value;
            }
            if seen.twice.insert(position) {
                object.twice.push(key);
            }
        }
        Ok(Json::Object(object))
    }
}

/// The number of keys that are compared one by one. That is faster than hashing them, and nearly
/// all objects of an annotation are a group with three keys.
const FEW: usize = 8;

/// The keys of an object that were read so far.
#[derive(Default)]
struct SeenText {
    /// The position of each key, once there are [`FEW`] keys or more.
    positions: HashMap<String, usize>,
    /// The positions whose keys are known to be written more than once.
    twice: HashSet<usize>,
}

impl SeenText {
    /// The position of `key` in `entries`. A key that is not there is about to be added.
    fn position(&mut self, key: &str, entries: &[(String, Json)]) -> Option<usize> {
        if entries.len() < FEW {
            return entries.iter().position(|(present, _)| present == key);
        }
        // An annotation has room for tens of thousands of keys, and its author would keep the
        // webhook busy if each were compared with all others.
        if self.positions.is_empty() {
            let all = entries.iter().enumerate();
            self.positions = all.map(|(n, (key, _))| (key.clone(), n)).collect();
        }
        let position = self.positions.get(key).copied();
        if position.is_none() {
            self.positions.insert(key.to_owned(), entries.len());
        }
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_noted_once_and_keeps_its_last_value() {
        let Ok(Json::Object(object)) = serde_json::from_str(r#"{"a":1,"b":2,"a":3,"a":4}"#) else {
            panic!("no object");
        };
        assert_eq!(object.twice, ["a"]);
        assert_eq!(object.entries.len(), 2);
        assert_eq!(object.entries[0].1.as_integer(), Some(4));
    }

    #[test]
    fn many_keys_are_distinguished_as_few_are() {
        let keys: Vec<String> = (0..40).map(|n| format!("k{}", n % 20)).collect();
        let text: Vec<String> = keys.iter().map(|key| format!("\"{key}\":1")).collect();
        let json = serde_json::from_str(&format!("{{{}}}", text.join(",")));
        let Ok(Json::Object(object)) = json else {
            panic!("no object");
        };
        let found: Vec<&String> = object.entries.iter().map(|(key, _)| key).collect();
        assert_eq!(found, keys[..20].iter().collect::<Vec<_>>());
        assert_eq!(object.twice, keys[..20]);
    }

    #[test]
    fn integers_as_json_schema_takes_them() {
        let integer = |text: &str| serde_json::from_str::<Json>(text).unwrap().as_integer();
        assert_eq!(integer("300.0"), Some(300));
        assert_eq!(integer("-1"), Some(-1));
        assert_eq!(integer("1e300"), Some(i64::MAX));
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("true"), None);
        assert_eq!(integer("\"1\""), None);
    }
}
