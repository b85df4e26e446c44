//! The permissions for scaling. The manifests grant exactly these.

use crate::manifests::access::request::{CREATE_LEASE, followed};
use crate::manifests::access::{Access, AccessScope};
use crate::manifests::names::LEADER_LEASE;

/// The permissions in every namespace whose clusters are scaled: bound cluster-wide, or in chosen
/// namespaces. Deleting pods is not one of them, because KubeRay does that when asked through the
/// RayCluster.
pub const CLUSTERS: &[Access] = &[
    AccessScope::Scaled.may(&["get", "list", "patch", "watch"], "ray.io", "rayclusters"),
    AccessScope::Scaled.may(&["list", "patch", "watch"], "", "pods"),
    AccessScope::Scaled.may(&["patch"], "", "pods/resize"),
    // Node autoscalers write Events about pods that wait for a node.
    AccessScope::Scaled.may(&["list"], "", "events"),
    AccessScope::Scaled.may(&["create", "patch"], "events.k8s.io", "events"),
];

/// Deleting RayClusters that nobody uses and whose spec asks for that.
pub const IDLE_CLUSTERS: &[Access] =
    &[AccessScope::Scaled.may(&["delete"], "ray.io", "rayclusters")];

/// Reading the headroom of Kubernetes nodes. Not granted with chosen namespaces only.
pub const NODES: &[Access] = &[followed("", "nodes")];

/// The Lease by which one replica at a time scales the clusters.
pub const LEASE: &[Access] = &[
    CREATE_LEASE,
    AccessScope::Namespace
        .may(&["get", "update", "watch"], "coordination.k8s.io", "leases")
        .named(LEADER_LEASE),
];

/// Reading the Secrets that KubeRay makes for Ray clusters with token authentication or TLS only.
/// Their names depend on those of the clusters, so the permission cannot be limited to names.
pub const RAY_AUTH: &[Access] = &[AccessScope::Scaled.may(&["get"], "", "secrets")];
