//! The Ray objects in a document, and what admission makes of one.

use std::borrow::Cow;

use serde_json::Value;

use crate::defaults::{self, Applied};
use crate::policy::Settings;
use crate::ray::{Kind, RayObject};

/// An object in a document: the document itself, or an item of the list that it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Item<'a> {
    /// The JSON pointer to it in the document.
    pub pointer: String,
    /// The object, with the `apiVersion` and `kind` that its list implies.
    pub object: Cow<'a, Value>,
}

/// What an object is called in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, if written.
    pub namespace: Option<String>,
    /// Its name, or the beginning of one that is to be made up; empty if it has neither.
    pub name: String,
}

impl Identity {
    /// The identity of an object.
    pub fn of(object: &RayObject<'_>) -> Self {
        Self {
            kind: object.kind,
            namespace: object.namespace().map(str::to_owned),
            name: object
                .name()
                .or_else(|| object.generate_name())
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        match namespace {
            Some(namespace) => write!(f, "{} {namespace}/{name}", kind.name()),
            None => write!(f, "{} {name}", kind.name()),
        }
    }
}

/// The objects in a document: the items of a `List` (or `RayClusterList`, ...), else itself.
/// A document that says nothing has none.
pub fn items(document: &Value) -> Vec<Item<'_>> {
    let mut found = Vec::new();
    unfold(String::new(), Cow::Borrowed(document), &mut found, 0);
    found
}

/// Lists in lists are taken as kubectl takes them, but not without end.
const DEEPEST_LIST: usize = 8;

fn unfold<'a>(pointer: String, object: Cow<'a, Value>, found: &mut Vec<Item<'a>>, depth: usize) {
    let listed = match &object {
        Cow::Borrowed(value) if depth < DEEPEST_LIST => list(value),
        _ => None,
    };
    match listed {
        Some((items, implied)) => {
            for (index, item) in items.iter().enumerate() {
                let item = complete(item, implied);
                unfold(format!("{pointer}/items/{index}"), item, found, depth + 1);
            }
        }
        None if object.is_null() => {}
        None => found.push(Item { pointer, object }),
    }
}

/// The `apiVersion` and kind that items of a typed list need not repeat.
type Implied<'a> = (&'a str, &'a str);

/// The items of a list, with the `apiVersion` and kind that they need not repeat.
fn list(value: &Value) -> Option<(&[Value], Option<Implied<'_>>)> {
    let kind = value.get("kind")?.as_str()?.strip_suffix("List")?;
    let items = value.get("items")?.as_array()?;
    let implied = match value.get("apiVersion").and_then(Value::as_str) {
        Some(version) if !kind.is_empty() => Some((version, kind)),
        _ => None,
    };
    Some((items, implied))
}

fn complete<'a>(item: &'a Value, implied: Option<Implied<'_>>) -> Cow<'a, Value> {
    match (item, implied) {
        (Value::Object(fields), Some((version, kind))) if !fields.contains_key("kind") => {
            let mut fields = fields.clone();
            fields.insert("apiVersion".to_owned(), version.into());
            fields.insert("kind".to_owned(), kind.into());
            Cow::Owned(Value::Object(fields))
        }
        _ => Cow::Borrowed(item),
    }
}

/// The object with the defaults that admission fills in, and what they are. `old` is what is
/// stored now if this is an update.
pub fn admitted(
    object: &Value,
    old: Option<&RayObject<'_>>,
    settings: &Settings,
) -> Result<(Value, Vec<Applied>), json_patch::PatchError> {
    let mut admitted = object.clone();
    let Some(parsed) = RayObject::parse(object) else {
        return Ok((admitted, Vec::new()));
    };
    let defaulted = defaults::patch(&parsed, old, settings);
    json_patch::patch(&mut admitted, &defaulted.operations)?;
    Ok((admitted, defaulted.applied))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_unfolded_and_their_items_completed() {
        let document = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "ray.io/v1", "kind": "RayClusterList", "items": [{"spec": {}}]},
            {"apiVersion": "v1", "kind": "Secret"},
        ]});
        let items = items(&document);
        let pointers: Vec<&str> = items.iter().map(|item| item.pointer.as_str()).collect();
        assert_eq!(pointers, ["/items/0/items/0", "/items/1"]);
        let first = RayObject::parse(&items[0].object).expect("a Ray object");
        assert_eq!(first.kind, Kind::RayCluster);
        assert!(RayObject::parse(&items[1].object).is_none());
    }

    #[test]
    fn an_empty_document_has_no_objects_and_a_strange_list_is_one() {
        assert_eq!(items(&Value::Null), []);
        assert_eq!(items(&json!({"kind": "List", "items": 3})).len(), 1);
    }
}
