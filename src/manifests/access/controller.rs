//! The permissions for scaling. The manifests grant exactly these.

use crate::manifests::access::request::followed;
use crate::manifests::access::{Access, AccessScope};
use crate::manifests::names::HEARTBEAT;

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

/// The Leases with which replicas divide the clusters.
pub const LEASES: &[Access] = &[Access {
    scope: AccessScope::Namespace,
    group: "coordination.k8s.io",
    resource: "leases",
    name: None,
    verbs: &["create", "delete", "list", "update", "watch"],
}];

/// For sidecars that stand by, whose accounts are those of their clusters: reading the one Lease that
/// says that a replica is there.
pub const HEARTBEATS: &[Access] = &[Access {
    scope: AccessScope::Namespace,
    group: "coordination.k8s.io",
    resource: "leases",
    name: Some(HEARTBEAT),
    verbs: &["get"],
}];

/// For Ray clusters with token authentication or TLS only: the Secrets that KubeRay makes for them.
/// Their names depend on those of the clusters, so the permission cannot be limited to names.
pub const RAY_AUTH: &[Access] = &[Access {
    scope: AccessScope::Scaled,
    group: "",
    resource: "secrets",
    name: None,
    verbs: &["get"],
}];
