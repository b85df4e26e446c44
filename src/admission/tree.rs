//! Raw objects into trees, as far as they are looked at.
//!
//! Half of a typical object is of no interest: who manages which field, volumes, probes. Reading
//! that into a tree costs more than everything else that is done with it, so in its place stands a
//! fingerprint: the key is there, and a change is seen, but not what the change is.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How much of an object is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// What rules and defaults look at. Only RF306, about clusters whose pods are replaced at
    /// every change, looks at the rest.
    Judged,
    /// That, and the environment of workers: DF09 looks at it, in groups that grow.
    WithEnvironment,
}

/// Reads an object.
pub fn read(raw: &RawValue, detail: Detail) -> Result<Value, serde_json::Error> {
    match detail {
        Detail::Whole => serde_json::from_str(raw.get()),
        Detail::Judged | Detail::WithEnvironment => {
            let env = detail == Detail::WithEnvironment;
            Place::Root { env }.deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
        }
    }
}

/// Where in an object a value stands, as far as something is left out there; and whether the
/// environment of containers is looked at there: that of heads always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root {
        env: bool,
    },
    Metadata,
    Annotations,
    /// In the spec, above the pod templates.
    Spec {
        env: bool,
    },
    Template {
        env: bool,
    },
    PodSpec {
        env: bool,
    },
    Container {
        env: bool,
    },
    /// Nothing is left out from here on.
    Kept,
    /// Left out.
    Unread,
}

impl Place {
    /// The place of the value at `key`. Items of a list are in the same place as the list.
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root { .. }, "status")
            | (Self::Metadata, "managedFields")
            | (Self::Annotations, "kubectl.kubernetes.io/last-applied-configuration")
            | (Self::Template { .. }, "metadata")
            | (Self::Container { env: false }, "env") => Self::Unread,
            (Self::PodSpec { .. }, key) if POD_SPEC.contains(&key) => Self::Unread,
            (Self::Container { .. }, key) if CONTAINER.contains(&key) => Self::Unread,
            (Self::Root { .. }, "metadata") => Self::Metadata,
            (Self::Metadata, "annotations") => Self::Annotations,
            (Self::Root { env }, "spec") => Self::Spec { env },
            (Self::Spec { .. }, "headGroupSpec") => Self::Spec { env: true },
            (Self::Spec { env }, "template") => Self::Template { env },
            (Self::Spec { env }, key) if SPEC.contains(&key) => Self::Spec { env },
            (Self::Template { env }, "spec") => Self::PodSpec { env },
            (Self::PodSpec { env }, "containers" | "initContainers") => Self::Container { env },
            _ => Self::Kept,
        }
    }
}

/// The ways through a spec to its pod templates, of every kind, beside `headGroupSpec`.
const SPEC: &[&str] = &[
    "jobTemplate",
    "rayClusterConfig",
    "rayClusterSpec",
    "workerGroupSpecs",
];

/// What no rule and no default looks at in a pod's spec.
const POD_SPEC: &[&str] = &[
    "dnsConfig",
    "ephemeralContainers",
    "hostAliases",
    "imagePullSecrets",
    "readinessGates",
    "schedulingGates",
    "securityContext",
    "topologySpreadConstraints",
    "volumes",
];

/// What no rule and no default looks at in a container.
const CONTAINER: &[&str] = &[
    "envFrom",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "securityContext",
    "startupProbe",
    "volumeDevices",
    "volumeMounts",
];

/// Stands for a text: equal texts have equal ones.
fn fingerprint(raw: &RawValue) -> Value {
    let mut hasher = DefaultHasher::new();
    raw.get().hash(&mut hasher);
    hasher.finish().into()
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Self::Kept => serde::Deserialize::deserialize(deserializer),
            Self::Unread => {
                let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
                Ok(fingerprint(raw))
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

/// A value in a place below which something is left out.
impl<'de> Visitor<'de> for Place {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        // What stands here has mostly four to seven keys: one allocation instead of two or three.
        let mut map = Map::with_capacity(7);
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self.below(&key))?;
            map.insert(key, value);
        }
        Ok(map.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
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
