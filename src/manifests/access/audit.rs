//! What the audit needs from the API server, beside what watching needs. The manifests grant
//! exactly this.

use crate::manifests::access::request::{OWN_PODS, followed};
use crate::manifests::access::{Access, Scope};
use crate::manifests::names::{AUDIT_LEASE, VALIDATING};

/// Everything that is needed.
pub const NEEDED: &[Access] = &[
    followed("ray.io", "rayclusters"),
    followed("ray.io", "rayjobs"),
    followed("ray.io", "rayservices"),
    followed("ray.io", "raycronjobs"),
    Access {
        scope: Scope::Cluster,
        group: "rayfit.dev",
        resource: "raypolicies/status",
        name: None,
        verbs: &["patch"],
    },
    Access {
        scope: Scope::Cluster,
        group: "openreports.io",
        resource: "reports",
        name: None,
        verbs: &["create", "delete", "list", "patch"],
    },
    Access {
        scope: Scope::Cluster,
        group: "admissionregistration.k8s.io",
        resource: "validatingwebhookconfigurations",
        name: Some(VALIDATING),
        verbs: &["get", "patch"],
    },
    // The name of an object that is to be made is not known to a right that is limited to names.
    Access {
        scope: Scope::Namespace,
        group: "coordination.k8s.io",
        resource: "leases",
        name: None,
        verbs: &["create"],
    },
    Access {
        scope: Scope::Namespace,
        group: "coordination.k8s.io",
        resource: "leases",
        name: Some(AUDIT_LEASE),
        verbs: &["get", "patch"],
    },
    OWN_PODS,
];
