//! JSON objects that remember which keys were written more than once, unlike `serde_json::Value`, which
//! keeps the last value and says nothing.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hash::HashMap;
use crate::text::shown_text;

/// A JSON object with each key once, at its first position and with its last value, as Python's
/// `json.loads` keeps it.
#[derive(Debug, Default)]
pub(super) struct JsonObject<'a> {
    pub(super) entries: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// The keys that were written more than once.
    pub(super) twice: Vec<Cow<'a, str>>,
}

impl<'a> JsonObject<'a> {
    /// The object in a JSON text; `None` in a text of another kind.
    pub(super) fn parse(text: &'a str) -> serde_json::Result<Option<Self>> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text).map(Some);
        }
        serde_json::from_str::<Value>(text).map(|_| None)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(present, _)| present == key)
    }
}

/// A key, which is copied only if it has escapes.
#[derive(Deserialize)]
struct JsonKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for JsonObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self::default())
    }
}

/// An empty object takes in what is read.
impl<'de> Visitor<'de> for JsonObject<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        // An annotation has room for tens of thousands of keys, and its author would keep the
        // webhook busy if each were compared with all others.
        let mut places = HashMap::default();
        while let Some((JsonKey(key), value)) = map.next_entry::<_, &RawValue>()? {
            let place = places.entry(key.clone());
            let (place, is_twice) = place.or_insert((self.entries.len(), false));
            match self.entries.get_mut(*place) {
                None => self.entries.push((key, value)),
                Some(entry) => {
                    entry.1 = value;
                    if !std::mem::replace(is_twice, true) {
                        self.twice.push(key);
                    }
                }
            }
        }
        Ok(self)
    }
}

/// A whole number as JSON schema accepts it, 300.0 included. A number beyond 64 bits reads as
/// the nearest bound.
pub(super) fn integer(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else {
        return None;
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a saturating cast is meant"
    )]
    number.as_i64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0);
        float.map(|float| float as i64)
    })
}

/// A value as messages show it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => shown_text(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_noted_once_and_keeps_its_last_value() {
        let object = JsonObject::parse(r#"{"a":1,"b":2,"a":3,"a":4}"#)
            .unwrap()
            .unwrap();
        assert_eq!(object.twice, ["a"]);
        assert_eq!(object.entries.len(), 2);
        assert_eq!(object.entries[0].1.get(), "4");
    }

    #[test]
    fn many_keys_are_distinguished_as_few_are() {
        let keys: Vec<String> = (0..40).map(|n| format!("k{}", n % 20)).collect();
        let text: Vec<String> = keys.iter().map(|key| format!("\"{key}\":1")).collect();
        let text = format!("{{{}}}", text.join(","));
        let object = JsonObject::parse(&text).unwrap().unwrap();
        let found: Vec<&str> = object.entries.iter().map(|(key, _)| &**key).collect();
        assert_eq!(found, keys[..20].iter().collect::<Vec<_>>());
        assert_eq!(object.twice, keys[..20]);
    }

    #[test]
    fn integers_as_json_schema_takes_them() {
        let integer = |text: &str| integer(&serde_json::from_str(text).unwrap());
        assert_eq!(integer("300.0"), Some(300));
        assert_eq!(integer("-1"), Some(-1));
        assert_eq!(integer("1e300"), Some(i64::MAX));
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("true"), None);
        assert_eq!(integer("\"1\""), None);
    }
}
