//! What scaling needs from the API server. The manifests grant exactly this.

use crate::manifests::access::request::followed;
use crate::manifests::access::{Access, Scope};

/// In every namespace whose clusters are scaled: bound cluster-wide, or in chosen namespaces.
/// Deleting pods is not among it: KubeRay does that, when asked through the RayCluster.
pub const CLUSTERS: &[Access] = &[
    Access {
        scope: Scope::Scaled,
        group: "ray.io",
        resource: "rayclusters",
        name: None,
        verbs: &["get", "list", "patch", "watch"],
    },
    Access {
        scope: Scope::Scaled,
        group: "",
        resource: "pods",
        name: None,
        verbs: &["list", "patch", "watch"],
    },
    Access {
        scope: Scope::Scaled,
        group: "",
        resource: "pods/resize",
        name: None,
        verbs: &["patch"],
    },
    Access {
        scope: Scope::Scaled,
        group: "events.k8s.io",
        resource: "events",
        name: None,
        verbs: &["create", "patch"],
    },
];

/// What nodes have for pods that grow. Not with chosen namespaces only.
pub const NODES: &[Access] = &[followed("", "nodes")];

/// The Leases by which replicas divide clusters among them.
pub const LEASES: &[Access] = &[Access {
    scope: Scope::Namespace,
    group: "coordination.k8s.io",
    resource: "leases",
    name: None,
    verbs: &["create", "delete", "list", "update", "watch"],
}];

/// For Ray clusters with token authentication or TLS only: the Secrets that KubeRay makes for
/// them. Their names depend on the clusters', so the right cannot be limited to them.
pub const RAY_AUTH: &[Access] = &[Access {
    scope: Scope::Scaled,
    group: "",
    resource: "secrets",
    name: None,
    verbs: &["get"],
}];
