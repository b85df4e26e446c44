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
    Access {
        scope: AccessScope::Cluster,
        group: "rayfit.dev",
        resource: "raypolicies/status",
        name: None,
        verbs: &["patch"],
    },
    Access {
        scope: AccessScope::Cluster,
        group: "openreports.io",
        resource: "reports",
        name: None,
        verbs: &["create", "delete", "list", "patch"],
    },
    Access {
        scope: AccessScope::Cluster,
        group: "admissionregistration.k8s.io",
        resource: "validatingwebhookconfigurations",
        name: Some(VALIDATING),
        verbs: &["get", "patch"],
    },
    CREATE_LEASE,
    Access {
        scope: AccessScope::Namespace,
        group: "coordination.k8s.io",
        resource: "leases",
        name: Some(AUDIT_LEASE),
        verbs: &["get", "patch"],
    },
    // Rayfit's own pods. Unlike a watch of one object, a list cannot be limited to names.
    Access {
        scope: AccessScope::Namespace,
        group: "",
        resource: "pods",
        name: None,
        verbs: &["list"],
    },
];
