//! Effects of KubeRay's CRDs on a manifest: fields that it drops, and values for which it refuses the object.
//!
//! In: an object as it is written, and the version of KubeRay. Out: its deviations from the CRD, in the order of
//! the object. Invariants: an object that was read from an API server has none; metadata and status are not
//! looked at.

mod table;

use crate::json::{Fields, Json};
use crate::path::FieldPath;
use crate::ray::RayVersion;
use crate::text::nearest;
use crate::yaml::template_hint;
use table::{FieldTable, KubeRayRelease, SchemaField, SchemaType, later, release};

/// The fault of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaFault {
    /// The CRD has no such field, so it is dropped; the remedy, if what was meant can be guessed.
    Unknown(Option<String>),
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

/// Compares `object` with the CRD of its kind: the places that deviate, each with its fault. An object of an API
/// version that this KubeRay does not have has no deviations.
pub fn deviations(object: Fields<'_>, kuberay: RayVersion) -> Vec<(FieldPath, SchemaFault)> {
    let (kind, version) = (object.text("kind"), object.text("apiVersion"));
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
        deviations: Vec::new(),
    };
    if let Some(root) = table.of_kind(&kind) {
        walk.object(root, object, &FieldPath::default());
    }
    walk.deviations
}

struct SchemaWalk<'a> {
    table: &'static FieldTable,
    kuberay: RayVersion,
    kind: &'a str,
    /// The objects around the place, outermost first.
    around: Vec<(FieldPath, &'static SchemaType)>,
    deviations: Vec<(FieldPath, SchemaFault)>,
}

impl SchemaWalk<'_> {
    fn value(&mut self, expected: &'static SchemaType, value: Json<'_>, path: FieldPath) {
        let wrong = match (expected, value) {
            (SchemaType::Any, _)
            | (SchemaType::Boolean, Json::Bool(_))
            | (SchemaType::Number, Json::Number(_))
            | (SchemaType::Quantity, Json::String(_)) => None,
            (SchemaType::Text(allowed), Json::String(text)) => {
                let is_allowed = allowed.is_empty() || allowed.contains(&text);
                (!is_allowed && !is_placeholder(value))
                    .then(|| SchemaFault::NotAllowed(allowed.clone()))
            }
            (SchemaType::Integer { least, is_short }, Json::Number(number)) if is_whole(number) => {
                let is_too_large = number
                    .as_f64()
                    .is_some_and(|number| number.abs() > f64::from(i32::MAX));
                least
                    .filter(|least| number.as_i64().is_some_and(|number| number < *least))
                    .map(SchemaFault::TooSmall)
                    .or_else(|| (*is_short && is_too_large).then_some(SchemaFault::TooLarge))
            }
            (SchemaType::Quantity, Json::Number(number)) if is_whole(number) => None,
            (SchemaType::List(item), Json::Array(items)) => {
                let item = self.table.get(*item);
                for (index, value) in items.iter().enumerate() {
                    let name = |key| value.get(key).and_then(Json::as_str);
                    let path = path.clone();
                    let path = match name("groupName").or_else(|| name("name")) {
                        Some(name) => path.item(index, name),
                        None => path.index(index),
                    };
                    self.value(item, value, path);
                }
                None
            }
            (SchemaType::Map(item), Json::Object(fields)) => {
                let item = self.table.get(*item);
                // The API server drops nulls of objects and maps before it looks at types.
                for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                    self.value(item, value, path.clone().key(key.to_owned()));
                }
                None
            }
            (SchemaType::Object(_), Json::Object(fields)) => {
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
        self.deviations.extend(wrong.map(|fault| (path, fault)));
    }

    fn object(&mut self, expected: &'static SchemaType, fields: Fields<'_>, path: &FieldPath) {
        self.around.push((path.clone(), expected));
        for (key, value) in fields.iter() {
            let place = path.clone().key(key.to_owned());
            match expected.field(key) {
                Some(_) if value.is_null() => {}
                Some(field) => self.value(self.table.get(field.value), value, place),
                None => {
                    let fault = SchemaFault::Unknown(self.remedy(key, value));
                    self.deviations.push((place, fault));
                }
            }
        }
        let is_absent = |field: &&SchemaField| fields.get(field.name).is_none_or(Json::is_null);
        let required = expected.fields().iter().filter(|field| field.is_required);
        for field in required.filter(is_absent) {
            let place = path.clone().key(field.name);
            self.deviations.push((place, SchemaFault::Missing));
        }
        self.around.pop();
    }

    /// The remedy for the field `key` of the innermost object, by its probable meaning.
    fn remedy(&self, key: &str, value: Json<'_>) -> Option<String> {
        let (path, here) = self.around.last()?;
        let names = || here.fields().iter().map(|field| field.name);
        // The surest guess first: all fields inside exist here, as with a `spec` inside of a `spec`.
        let inside = value.as_object().filter(|inside| !inside.is_empty());
        if inside.is_some_and(|inside| inside.keys().all(|key| here.field(key).is_some())) {
            return Some("Move the fields in it one level up, and remove it.".to_owned());
        }
        // KubeRay's name of a field of Ray's cluster launcher.
        let name = match key {
            "minWorkers" | "min_workers" => "minReplicas",
            "maxWorkers" | "max_workers" => "maxReplicas",
            "idleTimeoutMinutes" | "idle_timeout_minutes" => "idleTimeoutSeconds",
            _ => "",
        };
        let name = Some(name).filter(|name| here.field(name).is_some());
        if let Some(name) = name.or_else(|| nearest(key, names())) {
            return Some(format!("Write {name}, if that is meant."));
        }
        // The first later version of KubeRay that has the field.
        let has_it = |(_, table): &&'static KubeRayRelease| {
            let place = table.at(self.kind, path);
            place.is_some_and(|place| place.field(key).is_some())
        };
        if let Some((version, _)) = later(self.kuberay).find(has_it) {
            return Some(format!(
                "Use KubeRay {}.{} or later, or remove it.",
                version.major, version.minor
            ));
        }
        let move_to = |place: FieldPath| format!("Move it to {place}, if that is meant.");
        let outer = self.around.iter().rev().skip(1);
        let mut outer = outer.filter(|(path, _)| !path.segments().is_empty());
        if let Some((path, _)) = outer.find(|(_, around)| around.field(key).is_some()) {
            return Some(move_to(path.clone().key(key.to_owned())));
        }
        let has_it = |field: &&SchemaField| self.table.get(field.value).field(key).is_some();
        let inner = here.fields().iter().find(has_it)?;
        let place = path.clone().key(inner.name).key(key.to_owned());
        Some(move_to(place))
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

fn type_of(value: Json<'_>) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "true or false",
        Json::Number(number) if is_whole(number) => "an integer",
        Json::Number(_) => "a fraction",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// Recognizes an integer as the API server does, which takes 2.0 for one.
fn is_whole(number: &serde_json::Number) -> bool {
    number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Recognizes a text that is replaced before the manifest is applied: `${REPLICAS}`, `{{ .replicas }}`.
fn is_placeholder(value: Json<'_>) -> bool {
    let text = value.as_str().unwrap_or_default();
    template_hint(text).is_some() || text.contains("$(")
}
