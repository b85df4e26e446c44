//! The permissions of each account, by what they are for. The manifests grant exactly these.

use crate::manifests::access::{Access, AccessScope};
use crate::manifests::names::{AUDIT_LEASE, LEADER_LEASE, MUTATING, OWN_SECRET, VALIDATING};
use crate::policy::settings::KUBERAY_BINDING;

const WEBHOOKS: &str = "admissionregistration.k8s.io";

/// Following the objects of a resource in the whole cluster.
const fn followed(group: &'static str, resource: &'static str) -> Access {
    AccessScope::Cluster.may(&["list", "watch"], group, resource)
}

/// Creating a Lease. A right to create cannot be limited to a name, because that is not known when it is checked.
const CREATE_LEASE: Access =
    AccessScope::Namespace.may(&["create"], "coordination.k8s.io", "leases");

/// Watching policies, and the labels of namespaces that they select by.
pub const POLICIES: &[Access] = &[RAY_POLICIES, NAMESPACES];

const RAY_POLICIES: Access = followed("rayfit.dev", "raypolicies");
const NAMESPACES: Access = followed("", "namespaces");

/// Watching policies and facts, besides the Ray objects that the audit watches.
pub const WATCHES: &[Access] = &[
    RAY_POLICIES,
    NAMESPACES,
    followed("", "nodes"),
    followed("", "limitranges"),
    followed("", "resourcequotas"),
    followed("", "pods"),
    // The account of KubeRay's operator.
    AccessScope::Cluster
        .may(&["get"], "rbac.authorization.k8s.io", "clusterrolebindings")
        .named(KUBERAY_BINDING),
];

/// Auditing, besides following what the webhooks follow.
pub const AUDIT: &[Access] = &[
    followed("ray.io", "rayclusters"),
    followed("ray.io", "rayjobs"),
    followed("ray.io", "rayservices"),
    followed("ray.io", "raycronjobs"),
    AccessScope::Cluster.may(&["patch"], "rayfit.dev", "raypolicies/status"),
    AccessScope::Cluster.may(
        &["create", "delete", "list", "patch"],
        "openreports.io",
        "reports",
    ),
    AccessScope::Cluster
        .may(
            &["get", "patch"],
            WEBHOOKS,
            "validatingwebhookconfigurations",
        )
        .named(VALIDATING),
    CREATE_LEASE,
    AccessScope::Namespace
        .may(&["get", "patch"], "coordination.k8s.io", "leases")
        .named(AUDIT_LEASE),
    // Rayfit's own pods. Unlike a watch of one object, a list cannot be limited to names.
    AccessScope::Namespace.may(&["list"], "", "pods"),
];

/// Managing certificates. A watch of one object by its name can be limited to that name.
pub const CERTIFICATES: &[Access] = &[
    AccessScope::Namespace
        .may(&["get", "update", "watch"], "", "secrets")
        .named(OWN_SECRET),
    AccessScope::Cluster
        .may(
            &["get", "patch", "watch"],
            WEBHOOKS,
            "mutatingwebhookconfigurations",
        )
        .named(MUTATING),
    AccessScope::Cluster
        .may(
            &["get", "patch", "watch"],
            WEBHOOKS,
            "validatingwebhookconfigurations",
        )
        .named(VALIDATING),
];

/// Reading the RayCluster that owns a new pod, in every namespace whose clusters are scaled. The lists and watches of
/// the audit are not enough: they can be behind by the moment in which the RayCluster was changed.
pub const OWNERS: &[Access] = &[AccessScope::Scaled.may(&["get"], "ray.io", "rayclusters")];

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
