//! Facts as they are written in a file: native Kubernetes objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::metadata::metadata_text;
use super::{
    DEFAULT_NAMESPACE, Facts, KubernetesVersion, LimitRange, Node, Nodes, RayPod, ResourceQuota,
};
use crate::ray::{Fields, object_at};

/// The error of objects that cannot be read as facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// An entry of a list that is not an object.
    #[error("{list}[{index}] is not an object; write {kind} objects there, as kubectl prints them")]
    NotAnObject {
        /// The field of the file that holds the list.
        list: &'static str,
        /// The entry's position in the list, from 0.
        index: usize,
        /// The kind of object that belongs there.
        kind: &'static str,
    },
    /// An object of another kind than the list is for.
    #[error("{list}[{index}] is a {found}; write {kind} objects there, as kubectl prints them")]
    WrongKind {
        /// The field of the file that holds the list.
        list: &'static str,
        /// The object's position in the list, from 0.
        index: usize,
        /// The kind that the object names.
        found: String,
        /// The kind of object that belongs there.
        kind: &'static str,
    },
}

/// A file of facts as `serde` reads it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FactsFile {
    kubernetes_version: Option<KubernetesVersion>,
    #[serde(default)]
    nodes: Objects,
    #[serde(default)]
    limit_ranges: Objects,
    #[serde(default)]
    resource_quotas: Objects,
    #[serde(default)]
    namespaces: Objects,
    #[serde(default)]
    pods: Objects,
}

/// Kubernetes objects, as a list or as the `List` object that kubectl prints.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a list of Kubernetes objects, or what kubectl prints with -o json"
)]
enum Objects {
    Plain(Vec<Value>),
    Listed { items: Vec<Value> },
}

impl Default for Objects {
    fn default() -> Self {
        Self::Plain(Vec::new())
    }
}

impl Objects {
    /// The objects read one by one; an object that names its kind must be of `kind`.
    fn read<T>(
        &self,
        list: &'static str,
        kind: &'static str,
        read: impl Fn(&Fields) -> T,
    ) -> Result<Vec<T>, FactsError> {
        let (Self::Plain(items) | Self::Listed { items }) = self;
        items
            .iter()
            .enumerate()
            .map(|(index, item)| match item.as_object() {
                None => Err(FactsError::NotAnObject { list, index, kind }),
                Some(object) => match object.get("kind").and_then(Value::as_str) {
                    Some(found) if found != kind => Err(FactsError::WrongKind {
                        list,
                        index,
                        found: found.to_owned(),
                        kind,
                    }),
                    _ => Ok(read(object)),
                },
            })
            .collect()
    }

    fn by_namespace<T>(
        &self,
        list: &'static str,
        kind: &'static str,
        read: impl Fn(&Fields) -> T,
    ) -> Result<BTreeMap<String, Vec<T>>, FactsError> {
        let namespace = |object: &Fields| {
            metadata_text(object, "namespace")
                .unwrap_or(DEFAULT_NAMESPACE)
                .to_owned()
        };
        let mut map: BTreeMap<String, Vec<T>> = BTreeMap::new();
        for (namespace, item) in
            self.read(list, kind, |object| (namespace(object), read(object)))?
        {
            map.entry(namespace).or_default().push(item);
        }
        Ok(map)
    }
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let file = FactsFile::deserialize(deserializer)?;
        Self::try_from(file).map_err(D::Error::custom)
    }
}

impl TryFrom<FactsFile> for Facts {
    type Error = FactsError;

    fn try_from(file: FactsFile) -> Result<Self, FactsError> {
        Ok(Self {
            kubernetes: file.kubernetes_version,
            nodes: Nodes::new(file.nodes.read("nodes", "Node", Node::read)?).into(),
            limit_ranges: file
                .limit_ranges
                .by_namespace("limitRanges", "LimitRange", LimitRange::read)?
                .into(),
            resource_quotas: file
                .resource_quotas
                .by_namespace("resourceQuotas", "ResourceQuota", ResourceQuota::read)?
                .into(),
            namespaces: Arc::new(
                file.namespaces
                    .read("namespaces", "Namespace", labelled)?
                    .into_iter()
                    .collect(),
            ),
            pods: Arc::new(
                file.pods
                    .read("pods", "Pod", RayPod::read)?
                    .into_iter()
                    .flatten()
                    .collect(),
            ),
            objects: Arc::default(),
        })
    }
}

/// The name and the labels of an object.
fn labelled(object: &Fields) -> (String, BTreeMap<String, String>) {
    let name = metadata_text(object, "name").unwrap_or_default();
    let labels = object_at(object, "metadata").and_then(|metadata| object_at(metadata, "labels"));
    let texts = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    (name.to_owned(), texts.collect())
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
        assert_eq!(plain.nodes.iter().count(), 1);
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
