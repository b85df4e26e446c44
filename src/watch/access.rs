//! What watching needs from the API server, beside what the audit needs of Ray objects. The
//! manifests grant exactly this.

use crate::certs::access::{Access, Scope};

const LOOK: &[&str] = &["list", "watch"];

const fn look(group: &'static str, resource: &'static str) -> Access {
    Access {
        scope: Scope::Cluster,
        group,
        resource,
        name: None,
        verbs: LOOK,
    }
}

/// Everything that is needed.
pub const NEEDED: &[Access] = &[
    look("rayfit.dev", "raypolicies"),
    look("", "namespaces"),
    look("", "nodes"),
    look("", "limitranges"),
    look("", "resourcequotas"),
    look("", "pods"),
];
