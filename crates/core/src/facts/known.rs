//! Facts about a Kubernetes cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::limits::{LimitRange, ResourceQuota};
use super::node::Nodes;
use super::objects::Objects;
use super::pods::Pods;
use super::version::KubernetesVersion;

/// Facts about the cluster; every part may be unknown. The parts are shared: a copy with one part
/// replaced costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
