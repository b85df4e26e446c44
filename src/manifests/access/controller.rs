//! The permissions for scaling. The manifests grant exactly these.

use crate::manifests::access::request::{CREATE_LEASE, followed};
use crate::manifests::access::{Access, AccessScope};
use crate::manifests::names::LEADER_LEASE;

/// The permissions in every namespace whose clusters are scaled: bound cluster-wide, or in chosen
/// namespaces. Deleting pods is not one of them, because KubeRay does that when asked through the
/// RayCluster.
pub const CLUSTERS: &[Access] = &[
    Access {
        scope: AccessScope::Scaled,
        group: "ray.io",
        resource: "rayclusters",
        name: None,
        verbs: &["get", "list", "patch", "watch"],
    },
    Access {
        scope: AccessScope::Scaled,
        group: "",
        resource: "pods",
        name: None,
        verbs: &["list", "patch", "watch"],
    },
    Access {
        scope: AccessScope::Scaled,
        group: "",
        resource: "pods/resize",
        name: None,
        verbs: &["patch"],
    },
    // What node autoscalers say about pods that wait for a node.
    Access {
        scope: AccessScope::Scaled,
        group: "",
        resource: "events",
        name: None,
        verbs: &["list"],
    },
    Access {
        scope: AccessScope::Scaled,
        group: "events.k8s.io",
        resource: "events",
        name: None,
        verbs: &["create", "patch"],
    },
];

/// Deleting RayClusters that nobody uses and whose spec asks for that.
pub const IDLE_CLUSTERS: &[Access] = &[Access {
    scope: AccessScope::Scaled,
    group: "ray.io",
    resource: "rayclusters",
    name: None,
    verbs: &["delete"],
}];

/// Reading the headroom of Kubernetes nodes. Not granted with chosen namespaces only.
pub const NODES: &[Access] = &[followed("", "nodes")];

/// The Lease by which one replica at a time scales the clusters.
pub const LEASE: &[Access] = &[
    CREATE_LEASE,
    Access {
        scope: AccessScope::Namespace,
        group: "coordination.k8s.io",
        resource: "leases",
        name: Some(LEADER_LEASE),
        verbs: &["get", "update", "watch"],
    },
];

/// For Ray clusters with token authentication or TLS only: the Secrets that KubeRay makes for them.
/// Their names depend on those of the clusters, so the permission cannot be limited to names.
pub const RAY_AUTH: &[Access] = &[Access {
    scope: AccessScope::Scaled,
    group: "",
    resource: "secrets",
    name: None,
    verbs: &["get"],
}];
