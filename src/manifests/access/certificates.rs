//! The permissions for managing certificates. The manifests grant exactly these.

use crate::manifests::access::{Access, AccessScope};
use crate::manifests::names::{MUTATING, OWN_SECRET, VALIDATING};

const WEBHOOKS: &str = "admissionregistration.k8s.io";

/// All of these permissions. A watch of one object by its name can be limited to that name.
pub const NEEDED: &[Access] = &[
    Access {
        scope: AccessScope::Namespace,
        group: "",
        resource: "secrets",
        name: Some(OWN_SECRET),
        verbs: &["get", "update", "watch"],
    },
    Access {
        scope: AccessScope::Cluster,
        group: WEBHOOKS,
        resource: "mutatingwebhookconfigurations",
        name: Some(MUTATING),
        verbs: &["get", "patch", "watch"],
    },
    Access {
        scope: AccessScope::Cluster,
        group: WEBHOOKS,
        resource: "validatingwebhookconfigurations",
        name: Some(VALIDATING),
        verbs: &["get", "patch", "watch"],
    },
];
