//! Facts as they are written in a file: native Kubernetes objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{
    DEFAULT_NAMESPACE, Facts, KubernetesVersion, LimitRange, Node, Nodes, RayPod, ResourceQuota,
};
use crate::json::{Fields, Json};

/// A file of facts as `serde` reads it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FactsFile {
    kubernetes_version: Option<KubernetesVersion>,
    #[serde(default, deserialize_with = "items")]
    nodes: Vec<Value>,
    #[serde(default, deserialize_with = "items")]
    limit_ranges: Vec<Value>,
    #[serde(default, deserialize_with = "items")]
    resource_quotas: Vec<Value>,
    #[serde(default, deserialize_with = "items")]
    namespaces: Vec<Value>,
    #[serde(default, deserialize_with = "items")]
    pods: Vec<Value>,
}

/// Reads the items of a list, or of the `List` object that kubectl prints.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    let items = match Value::deserialize(deserializer)? {
        Value::Array(items) => Some(items),
        // `kubectl get nodes -o json` prints an object of kind `List`.
        Value::Object(mut list) => match list.remove("items") {
            Some(Value::Array(items)) => Some(items),
            _ => None,
        },
        _ => None,
    };
    let expected = "expected a list of Kubernetes objects, or what kubectl prints with -o json";
    items.ok_or_else(|| D::Error::custom(expected))
}

/// Reads objects one by one. One that names its kind must be of `kind`, which belongs into the field `list`.
fn read<T>(
    items: &[Value],
    (list, kind): (&str, &str),
    read: impl Fn(Fields<'_>) -> T,
) -> Result<Vec<T>, String> {
    let wrong = |index, what: &str| {
        format!("{list}[{index}] is {what}; write {kind} objects there, as kubectl prints them")
    };
    let read = |(index, item): (usize, &Value)| {
        let object = Json::from(item)
            .as_object()
            .ok_or_else(|| wrong(index, "not an object"))?;
        match object.get("kind").and_then(Json::as_str) {
            Some(other) if other != kind => Err(wrong(index, &format!("a {other}"))),
            _ => Ok(read(object)),
        }
    };
    items.iter().enumerate().map(read).collect()
}

fn by_namespace<T>(
    items: &[Value],
    place: (&str, &str),
    one: impl Fn(Fields<'_>) -> T,
) -> Result<BTreeMap<String, Vec<T>>, String> {
    let mut map: BTreeMap<String, Vec<T>> = BTreeMap::new();
    let named = |object: Fields<'_>| {
        let metadata = object.below("metadata");
        let namespace = metadata.text("namespace").unwrap_or(DEFAULT_NAMESPACE);
        (namespace.to_owned(), one(object))
    };
    for (namespace, item) in read(items, place, named)? {
        map.entry(namespace).or_default().push(item);
    }
    Ok(map)
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let file = FactsFile::deserialize(deserializer)?;
        facts(&file).map_err(D::Error::custom)
    }
}

fn facts(file: &FactsFile) -> Result<Facts, String> {
    let limit_ranges = ("limitRanges", "LimitRange");
    let quotas = ("resourceQuotas", "ResourceQuota");
    let namespaces = read(&file.namespaces, ("namespaces", "Namespace"), labelled)?;
    let pods = read(&file.pods, ("pods", "Pod"), RayPod::read)?;
    Ok(Facts {
        kubernetes: file.kubernetes_version,
        nodes: Nodes::new(read(&file.nodes, ("nodes", "Node"), Node::read)?).into(),
        limit_ranges: by_namespace(&file.limit_ranges, limit_ranges, LimitRange::read)?.into(),
        resource_quotas: by_namespace(&file.resource_quotas, quotas, ResourceQuota::read)?.into(),
        namespaces: Arc::new(namespaces.into_iter().collect()),
        pods: Arc::new(pods.into_iter().flatten().collect()),
        objects: Arc::default(),
    })
}

/// The name and the labels of an object.
fn labelled(object: Fields<'_>) -> (String, BTreeMap<String, String>) {
    let metadata = object.below("metadata");
    let name = metadata.text("name").unwrap_or_default();
    (name.to_owned(), metadata.below("labels").texts().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts(value: Value) -> Result<Facts, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_lists_and_what_kubectl_prints() {
        let node = json!({"kind": "Node", "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}});
        let plain = facts(json!({"kubernetesVersion": "1.35", "nodes": [node]})).unwrap();
        let listed = facts(json!({"kubernetesVersion": "1.35",
            "nodes": {"apiVersion": "v1", "kind": "List", "items": [node], "metadata": {}}}));
        assert_eq!(plain.nodes.all().len(), 1);
        assert_eq!(Ok(plain), listed);
    }

    #[test]
    fn sorts_by_namespace() {
        let facts = facts(json!({
            "limitRanges": [{"metadata": {"name": "a", "namespace": "x"}}, {"metadata": {}}],
            "resourceQuotas": [{"metadata": {"name": "q", "namespace": "x"}}],
        }))
        .unwrap();
        assert_eq!(facts.limit_ranges_in("x").len(), 1);
        assert_eq!(facts.limit_ranges_in(DEFAULT_NAMESPACE).len(), 1);
        assert_eq!(facts.resource_quotas_in("x").len(), 1);
        assert!(facts.resource_quotas_in("y").is_empty());
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let wrong_kind = facts(json!({"nodes": [{"kind": "Node"}, {"kind": "Pod"}]}));
        assert!(wrong_kind.unwrap_err().contains("nodes[1] is a Pod"));
        let no_object = facts(json!({"limitRanges": [1]}));
        assert!(no_object.unwrap_err().contains("limitRanges[0]"));
        assert!(facts(json!({"kubernetesVersion": "new"})).is_err());
        assert!(facts(json!({"node": []})).is_err());
    }
}
