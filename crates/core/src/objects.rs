//! The Ray objects in a document, and how admission stores one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::defaults::{self, AppliedValue};
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

/// The kind, namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, if written.
    pub namespace: Option<String>,
    /// Its name or its `generateName`; empty if it has neither.
    pub name: String,
}

impl Identity {
    /// The identity of an object.
    pub fn of(object: &RayObject<'_>) -> Self {
        Self {
            kind: object.kind,
            namespace: object.namespace().map(str::to_owned),
            name: object.written_name().to_owned(),
        }
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Of files nobody has checked the names, and a terminal must not obey them.
        let harmless = |text: &str| text.replace(crate::text::is_obeyed, "\u{fffd}");
        let name = harmless(&self.name);
        match &self.namespace {
            Some(space) => write!(f, "{} {}/{name}", self.kind.name(), harmless(space)),
            None => write!(f, "{} {name}", self.kind.name()),
        }
    }
}

/// The objects in a document: the items of a `List` (or `RayClusterList`, ...), else the document
/// itself. An empty document has none.
pub fn items(document: &Value) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    unfold(String::new(), Cow::Borrowed(document), &mut items, 0);
    items
}

/// Lists may be nested, as kubectl allows, but only to a bounded depth.
const DEEPEST_LIST: usize = 8;

fn unfold<'a>(pointer: String, object: Cow<'a, Value>, unfolded: &mut Vec<Item<'a>>, depth: usize) {
    if object.is_null() {
        return;
    }
    let value = match object {
        Cow::Borrowed(value) if depth < DEEPEST_LIST => value,
        _ => return unfolded.push(Item { pointer, object }),
    };
    let text = |key| value.get(key).and_then(Value::as_str);
    let kind = text("kind").and_then(|kind| kind.strip_suffix("List"));
    let items = value.get("items").and_then(Value::as_array);
    let Some((kind, items)) = kind.zip(items) else {
        return unfolded.push(Item { pointer, object });
    };
    // Items of a typed list need not repeat its `apiVersion` and kind.
    let implied = text("apiVersion").filter(|_| !kind.is_empty());
    for (index, item) in items.iter().enumerate() {
        let item = match (item, implied) {
            (Value::Object(fields), Some(version)) if !fields.contains_key("kind") => {
                let mut fields = fields.clone();
                fields.insert("apiVersion".to_owned(), version.into());
                fields.insert("kind".to_owned(), kind.into());
                Cow::Owned(Value::Object(fields))
            }
            _ => Cow::Borrowed(item),
        };
        unfold(
            format!("{pointer}/items/{index}"),
            item,
            unfolded,
            depth + 1,
        );
    }
}

/// Stored objects by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredObjects(BTreeMap<(Kind, String), Vec<Value>>);

impl StoredObjects {
    /// Adds an object, unless it is not a Ray object. Of objects with the same identity the last
    /// one counts.
    pub fn add(&mut self, object: Value) {
        let Some(identity) = RayObject::parse(&object).map(|parsed| Identity::of(&parsed)) else {
            return;
        };
        let alike = self.0.entry((identity.kind, identity.name)).or_default();
        // kubectl applies a file from top to bottom, so that the last one is stored.
        alike.retain(|other| namespace(other) != identity.namespace.as_deref());
        alike.push(object);
    }

    /// The object that a manifest of this identity would change. A manifest may leave out its
    /// namespace (kubectl adds that of its context), and so may a stored object that was taken from
    /// a manifest. If only one side names a namespace, that decides.
    ///
    /// # Errors
    ///
    /// So many objects of the name are in different namespaces, and the manifest does not say which one it is.
    pub fn find(&self, identity: &Identity) -> Result<Option<&Value>, usize> {
        let alike = self.0.get(&(identity.kind, identity.name.clone()));
        let alike = alike.map_or(&[][..], Vec::as_slice);
        let named = identity.namespace.as_deref();
        let is = |named: Option<&str>| alike.iter().find(|other| namespace(other) == named);
        match (is(named), named, alike) {
            (Some(object), ..) | (None, None, [object]) => Ok(Some(object)),
            (None, None, [_, _, ..]) => Err(alike.len()),
            (None, Some(_), _) => Ok(is(None)),
            (None, None, []) => Ok(None),
        }
    }
}

fn namespace(object: &Value) -> Option<&str> {
    object.pointer("/metadata/namespace")?.as_str()
}

/// The object as the API server hands it to admission: where the `spec` of a manifest says null,
/// the key is gone. Nulls in lists stay.
pub fn received(object: &Value) -> Value {
    let mut received = object.clone();
    if let Some(spec) = received.get_mut("spec") {
        drop_nulls(spec, DEEPEST);
    }
    if let Some(fields) = received.as_object_mut() {
        fields.retain(|key, value| key != "spec" || !value.is_null());
    }
    received
}

/// Values nested deeper than this are not changed.
const DEEPEST: usize = 128;

fn drop_nulls(value: &mut Value, depth: usize) {
    let Some(deeper) = depth.checked_sub(1) else {
        return;
    };
    match value {
        Value::Object(fields) => {
            // Ray's definitions allow null nowhere. (Kubernetes, apiextensions,
            // `PruneNonNullableNullsWithoutDefaults`.)
            fields.retain(|_, value| !value.is_null());
            fields
                .values_mut()
                .for_each(|value| drop_nulls(value, deeper));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_nulls(item, deeper)),
        _ => {}
    }
}

/// The object with the defaults that admission fills in. `old` is the stored object if this is an
/// update.
pub fn admitted(
    object: &Value,
    old: Option<&RayObject<'_>>,
    settings: &Settings,
) -> Result<Value, json_patch::PatchError> {
    let received = received(object);
    Ok(filled_in(received.clone(), &received, old, settings)?.0)
}

/// A new object with the defaults that admission fills in, and otherwise as it is written, with its
/// nulls; and a description of them.
pub fn defaulted(
    object: &Value,
    settings: &Settings,
) -> Result<(Value, Vec<AppliedValue>), json_patch::PatchError> {
    // The API server drops nulls, so there a default adds a value where null is written.
    filled_in(object.clone(), &received(object), None, settings)
}

fn filled_in(
    mut object: Value,
    received: &Value,
    old: Option<&RayObject<'_>>,
    settings: &Settings,
) -> Result<(Value, Vec<AppliedValue>), json_patch::PatchError> {
    let Some(parsed) = RayObject::parse(received) else {
        return Ok((object, Vec::new()));
    };
    let defaulted = defaults::patch(&parsed, old, settings);
    json_patch::patch(&mut object, &defaulted.operations)?;
    Ok((object, defaulted.applied))
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
        let first = RayObject::parse(&*items[0].object).expect("a Ray object");
        assert_eq!(first.kind, Kind::RayCluster);
        assert!(RayObject::parse(&*items[1].object).is_none());
    }

    fn cluster(namespace: Option<&str>, marker: i64) -> Value {
        let mut object = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "a"}, "spec": {"marker": marker}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }

    #[test]
    fn what_is_stored_is_found_whichever_side_names_the_namespace() {
        let found = |stored: &[(Option<&str>, i64)], wanted: Option<&str>| {
            let mut all = StoredObjects::default();
            for (namespace, marker) in stored {
                all.add(cluster(*namespace, *marker));
            }
            let wanted = cluster(wanted, 0);
            let identity = Identity::of(&RayObject::parse(&wanted).unwrap());
            let marker = |object: &Value| object["spec"]["marker"].as_i64();
            all.find(&identity).map(|object| object.and_then(marker))
        };
        let (x, y) = ((Some("x"), 1), (Some("y"), 2));
        assert_eq!(found(&[x, y], Some("y")), Ok(Some(2)));
        assert_eq!(found(&[x], None), Ok(Some(1)));
        assert_eq!(found(&[(None, 3)], Some("x")), Ok(Some(3)));
        assert_eq!(found(&[x, (None, 3)], None), Ok(Some(3)));
        assert_eq!(found(&[x, y], None), Err(2));
        assert_eq!(found(&[x], Some("y")), Ok(None));
        assert_eq!(found(&[], None), Ok(None));
        assert_eq!(found(&[x, (Some("x"), 4)], None), Ok(Some(4)));
    }

    #[test]
    fn nulls_are_gone_before_admission() {
        let written = json!({"metadata": {"labels": null}, "status": null,
            "spec": {"a": null, "b": [null, {"c": null, "d": 1}], "e": {"f": null}}});
        let expected = json!({"metadata": {"labels": null}, "status": null,
            "spec": {"b": [null, {"d": 1}], "e": {}}});
        assert_eq!(received(&written), expected);
        assert_eq!(received(&json!({"spec": null})), json!({}));
    }

    #[test]
    fn an_empty_document_has_no_objects_and_a_strange_list_is_one() {
        assert_eq!(items(&Value::Null), []);
        assert_eq!(items(&json!({"kind": "List", "items": 3})).len(), 1);
    }
}
