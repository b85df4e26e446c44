//! What is known of the Kubernetes cluster around an object. Rules that need a fact are silent
//! without it.
//!
//! Facts are made of native Kubernetes objects, from a watch or from a file of this form, whose
//! lists may also be what `kubectl get nodes -o json` prints:
//!
//! ```yaml
//! kubernetesVersion: "1.35"
//! nodes: []           # Node objects
//! limitRanges: []     # LimitRange objects, of any namespaces
//! resourceQuotas: []  # ResourceQuota objects, of any namespaces
//! namespaces: []      # Namespace objects, for policies that go by their labels
//! pods: []            # Pod objects of Ray clusters
//! ```

mod file;
pub mod limits;
pub mod node;
mod objects;
pub mod pods;
pub mod scheduling;
mod version;

pub use file::FactsError;
pub use limits::{LimitRange, ResourceQuota};
pub use node::{Node, Nodes};
pub use objects::{Objects, StoredObject};
pub use pods::{Pods, RayPod};
pub use version::{KubernetesVersion, NoKubernetesVersion};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::ray::{Fields, text_at};

/// What is known of the cluster; every part may be unknown. The parts are shared: a copy with one
/// part replaced costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "file::FactsFile")]
pub struct Facts {
    /// The API server's version.
    pub kubernetes: Option<KubernetesVersion>,
    /// The nodes; none if they are unknown.
    pub nodes: Arc<Nodes>,
    /// The limit ranges, by namespace.
    pub limit_ranges: Arc<BTreeMap<String, Vec<LimitRange>>>,
    /// The resource quotas, by namespace.
    pub resource_quotas: Arc<BTreeMap<String, Vec<ResourceQuota>>>,
    /// The labels of namespaces, by namespace.
    pub namespaces: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    /// The pods of Ray clusters.
    pub pods: Arc<Pods>,
    /// The stored Ray objects.
    pub objects: Arc<Objects>,
}

/// The namespace of objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

impl Facts {
    /// A label of a namespace; none if the namespace is not known.
    pub fn namespace_label(&self, namespace: &str, label: &str) -> Option<&str> {
        self.namespaces
            .get(namespace)?
            .get(label)
            .map(String::as_str)
    }

    /// The limit ranges of a namespace.
    pub fn limit_ranges_in(&self, namespace: &str) -> &[LimitRange] {
        self.limit_ranges.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// The resource quotas of a namespace.
    pub fn resource_quotas_in(&self, namespace: &str) -> &[ResourceQuota] {
        self.resource_quotas
            .get(namespace)
            .map_or(&[], Vec::as_slice)
    }
}

/// `metadata.<key>` of a Kubernetes object.
fn metadata_text<'a>(object: &'a Fields, key: &str) -> Option<&'a str> {
    text_at(object.get("metadata")?.as_object()?, key)
}
