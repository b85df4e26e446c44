//! JSON that remembers which keys stood twice, unlike `serde_json::Value`, which keeps the last
//! of two and says nothing.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A JSON value; lists are read over, nothing in the annotation is one.
#[derive(Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List,
    Object(Object),
}

/// A JSON object with each key once, at its first place and with its last value, as Python's
/// `json.loads` keeps it.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) entries: Vec<(String, Json)>,
    /// The keys that stood more than once.
    pub(super) twice: Vec<String>,
}

impl Object {
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(present, _)| present == key)
    }
}

impl Json {
    /// A whole number as JSON schema takes it, 300.0 included; beyond 64 bits the nearest bound.
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
            Self::Text(text) => f.write_str(&crate::finding::shown_text(text)),
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
        // Position in `entries`, and whether the key is known to stand twice.
        let mut seen: HashMap<String, (usize, bool)> = HashMap::new();
        while let Some((key, value)) = map.next_entry::<String, Json>()? {
            let Some((position, noted)) = seen.get_mut(&key) else {
                seen.insert(key.clone(), (object.entries.len(), false));
                object.entries.push((key, value));
                continue;
            };
            if let Some(entry) = object.entries.get_mut(*position) {
                entry.1 = value;
            }
            if !std::mem::replace(noted, true) {
                object.twice.push(key);
            }
        }
        Ok(Json::Object(object))
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
