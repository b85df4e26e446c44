//! Parsing raw objects into trees, limited to the fields that are read.
//!
//! Half of a typical object is never read: managed fields, volumes, probes. Parsing that into a
//! tree costs more than everything else that is done with the object, so it is replaced by a
//! fingerprint: the key is present and a change is noticed, but not what has changed.

use std::cell::Cell;
use std::fmt;
use std::hash::{Hash as _, Hasher as _};

use rayfit_core::hash;
use rayfit_core::ray::Fields;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::review::{ReviewError, json_fault};

/// The memory that trees may use. A text of seven megabytes can be constructed so that its tree
/// takes hundreds: `[[]],` is five bytes of text, but two lists.
#[derive(Debug)]
pub struct TreeBudget {
    /// The bytes that are left; none once more than that was asked for.
    remaining: Cell<Option<usize>>,
}

/// The size of a value within its parent, in bytes. The factor is for lists, which grow by
/// doubling.
const VALUE: usize = 2 * size_of::<Value>();

/// The additional size of an entry of a map, with its key.
const ENTRY: usize = 64;

/// The size of the findings in a group: about half a dozen.
const FOUND: usize = 4 << 10;

/// The entries or values that each map or list is counted with, however few it has.
const FIRST_ENTRIES: usize = 7;
const FIRST_VALUES: usize = 4;

impl TreeBudget {
    /// A limit in bytes.
    pub fn of(all: usize) -> Self {
        Self {
            remaining: Cell::new(Some(all)),
        }
    }

    fn take<E: de::Error>(&self, bytes: usize) -> Result<(), E> {
        let remaining = self.remaining.get();
        let remaining = remaining.and_then(|remaining| remaining.checked_sub(bytes));
        self.remaining.set(remaining);
        remaining
            .map(drop)
            .ok_or_else(|| E::custom("too many values"))
    }
}

/// Parses the object in a field of a review, if there is `budget` left for its tree.
pub fn read(
    raw: &RawValue,
    field: &'static str,
    detail: Detail,
    budget: &TreeBudget,
) -> Result<Value, ReviewError> {
    let reader = TreeReader { detail, budget };
    reader
        .deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
        .map_err(|error| {
            if budget.remaining.get().is_none() {
                ReviewError::TooMuch(field)
            } else {
                ReviewError::Object(field, json_fault(&error))
            }
        })
}

/// The fields of the object in a field of a review, parsed as [`read`] does.
pub fn read_fields(
    raw: &RawValue,
    field: &'static str,
    detail: Detail,
    budget: &TreeBudget,
) -> Result<Fields, ReviewError> {
    match read(raw, field, detail, budget)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(ReviewError::NotAnObject(field)),
    }
}

/// The part of a value that is parsed. Within an object that is judged, it follows from the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// The fields of an object that rules and defaults read. RF306, about clusters whose pods are replaced at every
    /// change, only compares the rest.
    Judged,
    /// The part of its metadata that is read.
    Metadata,
    /// The part of its annotations that is read.
    Annotations,
    /// The part of its spec that is read, above the pod templates.
    Spec,
    /// The part of a pod template that is read.
    Template,
    /// The part of a pod's spec that is read.
    PodSpec,
    /// The part of a container that is read.
    Container,
    /// The part of a container's environment that is read.
    Env,
    /// The part of a pod template's metadata that is read.
    PodMetadata,
    /// Nothing.
    Unread,
}

impl Detail {
    /// The detail of the value at `key`. Items of a list have that of the list.
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Judged, "status")
            | (Self::Metadata, "managedFields")
            | (Self::Annotations, "kubectl.kubernetes.io/last-applied-configuration")
            | (Self::PodMetadata, "annotations" | "labels")
            | (Self::Env, "valueFrom") => Self::Unread,
            (Self::PodSpec, key) if POD_SPEC.contains(&key) => Self::Unread,
            (Self::Container, key) if CONTAINER.contains(&key) => Self::Unread,
            (Self::Judged, "metadata") => Self::Metadata,
            (Self::Metadata, "annotations") => Self::Annotations,
            (Self::Judged, "spec") => Self::Spec,
            (Self::Spec, "template") => Self::Template,
            (Self::Spec, key) if SPEC.contains(&key) => Self::Spec,
            (Self::Template, "spec") => Self::PodSpec,
            (Self::Template, "metadata") => Self::PodMetadata,
            (Self::PodSpec, "containers" | "initContainers") => Self::Container,
            (Self::Container, "env") => Self::Env,
            _ => Self::Whole,
        }
    }
}

/// The keys that lead to the pod templates in the specs of all kinds.
const SPEC: &[&str] = &[
    "headGroupSpec",
    "jobTemplate",
    "rayClusterConfig",
    "rayClusterSpec",
    "workerGroupSpecs",
];

/// The keys of a pod's spec that no rule and no default reads.
const POD_SPEC: &[&str] = &[
    "dnsConfig",
    "ephemeralContainers",
    "hostAliases",
    "readinessGates",
    "schedulingGates",
    "securityContext",
    "topologySpreadConstraints",
    "volumes",
];

/// The keys of a container that no rule and no default reads.
const CONTAINER: &[&str] = &[
    "envFrom",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "securityContext",
    "startupProbe",
    "volumeDevices",
    "volumeMounts",
];

/// Parses a value and counts its memory. serde's own `Value` is not used here,
/// because it would not count.
#[derive(Clone, Copy)]
struct TreeReader<'r> {
    detail: Detail,
    budget: &'r TreeBudget,
}

impl<'de> DeserializeSeed<'de> for TreeReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.detail == Detail::Unread {
            let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
            // A fingerprint, which is equal for equal texts. What KubeRay takes for absent stays as it is.
            return Ok(match raw.get() {
                "null" => Value::Null,
                "[]" => Value::Array(Vec::new()),
                text => {
                    let mut hasher = hash::comparing();
                    text.hash(&mut hasher);
                    hasher.finish().into()
                }
            });
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.budget.take(match self.detail {
            Detail::Spec => FIRST_ENTRIES * (VALUE / 2 + ENTRY) + FOUND,
            _ => FIRST_ENTRIES * (VALUE / 2 + ENTRY),
        })?;
        let Some(mut key) = entries.next_key::<String>()? else {
            return Ok(Map::new().into());
        };
        // Most objects here have one to three keys, and each reserved place is more memory to go through.
        let mut map = Map::with_capacity(3);
        loop {
            if map.len() >= FIRST_ENTRIES {
                self.budget.take(VALUE + ENTRY)?;
            }
            let detail = self.detail.below(&key);
            let value = entries.next_value_seed(TreeReader { detail, ..self })?;
            map.insert(key, value);
            match entries.next_key()? {
                Some(next) => key = next,
                None => return Ok(map.into()),
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            let taken = if list.is_empty() { FIRST_VALUES } else { 1 };
            self.budget.take(taken * VALUE)?;
            list.push(item);
        }
        Ok(list.into())
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
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in(text: &str, detail: Detail, bytes: usize) -> Result<Value, ReviewError> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        read(&raw, "object", detail, &TreeBudget::of(bytes))
    }

    #[test]
    fn what_is_small_as_text_and_large_as_a_tree_is_refused_while_it_is_read() {
        for item in ["[[]],", "{},", "{\"\":0},", "0,", "[0],", "\"\","] {
            let text = format!("{{\"spec\":[{}0]}}", item.repeat(100_000));
            for detail in [Detail::Whole, Detail::Judged] {
                let refused = read_in(&text, detail, 10 << 20).unwrap_err();
                assert!(
                    matches!(refused, ReviewError::TooMuch(_)),
                    "{item}: {refused}"
                );
            }
        }
    }

    #[test]
    fn no_key_has_a_meaning_of_its_own() {
        let text = r#"{"$serde_json::private::RawValue":"[[],[]]"}"#;
        let tree = read_in(text, Detail::Whole, 10 << 10).unwrap();
        assert_eq!(tree["$serde_json::private::RawValue"], "[[],[]]");
    }
}
