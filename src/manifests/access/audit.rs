//! The permissions of the audit, besides those of the watches. The manifests grant exactly these.

use crate::manifests::access::request::{CREATE_LEASE, followed};
use crate::manifests::access::{Access, AccessScope};
use crate::manifests::names::{AUDIT_LEASE, VALIDATING};

/// All of these permissions.
pub const NEEDED: &[Access] = &[
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
            "admissionregistration.k8s.io",
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
