//! Effects of KubeRay's CRDs on a manifest: fields that it drops, and values for which it refuses the object.
//!
//! In: an object as it is written, and the version of KubeRay. Out: its deviations from the CRD, in the order of
//! the object. Invariants: an object that was read from an API server has none; metadata and status are not
//! looked at.

mod table;

use serde_json::Value;

use crate::path::FieldPath;
use crate::ray::{Fields, RayVersion, text_at};
use crate::text::nearest;
use crate::yaml::template_hint;
use table::{FieldTable, KubeRayRelease, SchemaField, SchemaType, later, release};

/// A place at which an object is not as its CRD wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    /// The place.
    pub path: FieldPath,
    /// The fault there.
    pub fault: SchemaFault,
}

/// The fault of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaFault {
    /// The CRD has no such field, so it is dropped.
    Unknown(Option<Hint>),
    /// A required field is absent.
    Missing,
    /// Another type is required.
    WrongType {
        /// The type of the value.
        found: &'static str,
        /// The type of the field.
        expected: &'static str,
    },
    /// Only these values are allowed.
    NotAllowed(Vec<&'static str>),
    /// The value is less than this.
    TooSmall(i64),
    /// The number needs more than 32 bits.
    TooLarge,
}

/// The probable meaning of a field that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// A field of another name at the same place.
    Name(&'static str),
    /// The same field at another place.
    Place(FieldPath),
    /// The fields inside belong to the object around it.
    Unfold,
    /// The field, from this version of KubeRay on.
    Later(RayVersion),
}

/// Compares `object` with the CRD of its kind. An object of an API version that this KubeRay does not have has
/// no deviations.
pub fn deviations(object: &Fields, kuberay: RayVersion) -> Vec<Deviation> {
    let (kind, version) = (text_at(object, "kind"), text_at(object, "apiVersion"));
    let (Some(kind), Some((_, version))) = (kind, version.and_then(|v| v.split_once('/'))) else {
        return Vec::new();
    };
    let kind = format!("{kind}/{version}");
    let (_, table) = release(kuberay);
    let mut walk = SchemaWalk {
        table,
        kuberay,
        kind: &kind,
        around: Vec::new(),
        found: Vec::new(),
    };
    if let Some(root) = table.of_kind(&kind) {
        walk.object(root, object, &FieldPath::default());
    }
    walk.found
}

struct SchemaWalk<'a> {
    table: &'static FieldTable,
    kuberay: RayVersion,
    kind: &'a str,
    /// The objects around the place, outermost first.
    around: Vec<(FieldPath, &'static SchemaType)>,
    found: Vec<Deviation>,
}

impl SchemaWalk<'_> {
    fn value(&mut self, expected: &'static SchemaType, value: &Value, path: FieldPath) {
        let wrong = match (expected, value) {
            (SchemaType::Any, _)
            | (SchemaType::Boolean, Value::Bool(_))
            | (SchemaType::Number, Value::Number(_))
            | (SchemaType::Quantity, Value::String(_)) => None,
            (SchemaType::Text(allowed), Value::String(text)) => {
                let is_allowed = allowed.is_empty() || allowed.contains(&text.as_str());
                (!is_allowed && !is_placeholder(value))
                    .then(|| SchemaFault::NotAllowed(allowed.clone()))
            }
            (SchemaType::Integer { least, is_short }, Value::Number(number))
                if is_whole(number) =>
            {
                let is_too_large = number
                    .as_f64()
                    .is_some_and(|number| number.abs() > f64::from(i32::MAX));
                least
                    .filter(|least| number.as_i64().is_some_and(|number| number < *least))
                    .map(SchemaFault::TooSmall)
                    .or_else(|| (*is_short && is_too_large).then_some(SchemaFault::TooLarge))
            }
            (SchemaType::Quantity, Value::Number(number)) if is_whole(number) => None,
            (SchemaType::List(item), Value::Array(items)) => {
                let item = self.table.get(*item);
                for (index, value) in items.iter().enumerate() {
                    let name = |key| value.get(key).and_then(Value::as_str);
                    let path = path.clone();
                    let path = match name("groupName").or_else(|| name("name")) {
                        Some(name) => path.item(index, name),
                        None => path.index(index),
                    };
                    self.value(item, value, path);
                }
                None
            }
            (SchemaType::Map(item), Value::Object(fields)) => {
                let item = self.table.get(*item);
                // The API server drops nulls of objects and maps before it looks at types.
                for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                    self.value(item, value, path.clone().key(key.clone()));
                }
                None
            }
            (SchemaType::Object(_), Value::Object(fields)) => {
                self.object(expected, fields, &path);
                None
            }
            // A text to be replaced before the manifest is applied has no type yet.
            _ if is_placeholder(value) => None,
            _ => Some(SchemaFault::WrongType {
                found: type_of(value),
                expected: expected.name(),
            }),
        };
        self.found
            .extend(wrong.map(|fault| Deviation { path, fault }));
    }

    fn object(&mut self, expected: &'static SchemaType, fields: &Fields, path: &FieldPath) {
        self.around.push((path.clone(), expected));
        for (key, value) in fields {
            let place = path.clone().key(key.clone());
            match expected.field(key) {
                Some(_) if value.is_null() => {}
                Some(field) => self.value(self.table.get(field.value), value, place),
                None => {
                    let fault = SchemaFault::Unknown(self.hint(key, value));
                    self.found.push(Deviation { path: place, fault });
                }
            }
        }
        let is_absent = |field: &&SchemaField| fields.get(field.name).is_none_or(Value::is_null);
        let required = expected.fields().iter().filter(|field| field.is_required);
        for field in required.filter(is_absent) {
            self.found.push(Deviation {
                path: path.clone().key(field.name),
                fault: SchemaFault::Missing,
            });
        }
        self.around.pop();
    }

    /// The probable meaning of the field `key` of the innermost object.
    fn hint(&self, key: &str, value: &Value) -> Option<Hint> {
        let (path, here) = self.around.last()?;
        let names = || here.fields().iter().map(|field| field.name);
        let inside = value.as_object().filter(|inside| !inside.is_empty());
        if inside.is_some_and(|inside| inside.keys().all(|key| here.field(key).is_some())) {
            return Some(Hint::Unfold);
        }
        // KubeRay's name of a field of Ray's cluster launcher.
        let name = match key {
            "minWorkers" | "min_workers" => "minReplicas",
            "maxWorkers" | "max_workers" => "maxReplicas",
            "idleTimeoutMinutes" | "idle_timeout_minutes" => "idleTimeoutSeconds",
            _ => "",
        };
        if !name.is_empty() && here.field(name).is_some() {
            return Some(Hint::Name(name));
        }
        if let Some(name) = nearest(key, names()) {
            return Some(Hint::Name(name));
        }
        if let Some(version) = self.since(path, key) {
            return Some(Hint::Later(version));
        }
        let outer = self.around.iter().rev().skip(1);
        let mut outer = outer.filter(|(path, _)| !path.segments().is_empty());
        if let Some((path, _)) = outer.find(|(_, around)| around.field(key).is_some()) {
            return Some(Hint::Place(path.clone().key(key.to_owned())));
        }
        let has_it = |field: &&SchemaField| self.table.get(field.value).field(key).is_some();
        let inner = here.fields().iter().find(has_it)?;
        Some(Hint::Place(
            path.clone().key(inner.name).key(key.to_owned()),
        ))
    }

    /// The first later version of KubeRay that has the field `key` at `path`.
    fn since(&self, path: &FieldPath, key: &str) -> Option<RayVersion> {
        let has_it = |table: &&'static KubeRayRelease| table.1.at(self.kind, path)?.field(key);
        let first = later(self.kuberay).find(|release| has_it(release).is_some());
        first.map(|(version, _)| *version)
    }
}

impl SchemaType {
    /// The type as messages name it.
    fn name(&self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Text(_) => "a string",
            Self::Integer { .. } => "an integer",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Quantity => "a string or an integer",
            Self::List(_) => "a list",
            Self::Map(_) | Self::Object(_) => "an object",
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if is_whole(number) => "an integer",
        Value::Number(_) => "a fraction",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether the API server takes the number for an integer, as it does 2.0.
fn is_whole(number: &serde_json::Number) -> bool {
    number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Whether a text is to be replaced before the manifest is applied: `${REPLICAS}`, `{{ .replicas }}`.
fn is_placeholder(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    template_hint(text).is_some() || text.contains("$(")
}
