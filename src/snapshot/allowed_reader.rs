//! Reading what is kept of an object directly from its text: nothing is built of the rest, which a stranger can make
//! as large as the API server allows.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::allowed::{Allowed, RAY_CLUSTER};

/// A RayCluster in an answer, reduced to what is kept of it.
#[derive(Debug)]
pub struct AllowedCluster(pub Value);

impl<'de> Deserialize<'de> for AllowedCluster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RAY_CLUSTER.deserialize(deserializer).map(Self)
    }
}

/// The same as [`Allowed::keep`], of a text.
impl<'de> DeserializeSeed<'de> for &Allowed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Allowed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if let Some(allowed) = self.below(&key) {
                kept.insert(key, entries.next_value_seed(allowed)?);
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(kept.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        match self.item() {
            Some(allowed) => {
                while let Some(item) = items.next_element_seed(allowed)? {
                    if self.has_item(&item) {
                        kept.push(item);
                    }
                }
            }
            None => while items.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(kept.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        let is_kept = matches!(self, Allowed::Plain);
        Ok(if is_kept { value } else { "" }.into())
    }
}
