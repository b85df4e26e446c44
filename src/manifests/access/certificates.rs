//! The permissions for managing certificates. The manifests grant exactly these.

use crate::manifests::access::{Access, AccessScope};
use crate::manifests::names::{MUTATING, OWN_SECRET, VALIDATING};

const WEBHOOKS: &str = "admissionregistration.k8s.io";

/// All of these permissions. A watch of one object by its name can be limited to that name.
pub const NEEDED: &[Access] = &[
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
