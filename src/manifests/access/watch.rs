//! What watching needs from the API server, beside what the audit needs of Ray objects. The
//! manifests grant exactly this.

use crate::manifests::access::{Access, Scope};

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

/// For policies, and the labels of namespaces by which they match.
pub const POLICIES: &[Access] = &[RAY_POLICIES, NAMESPACES];

const RAY_POLICIES: Access = look("rayfit.dev", "raypolicies");
const NAMESPACES: Access = look("", "namespaces");

/// Everything that is needed, facts included.
pub const NEEDED: &[Access] = &[
    RAY_POLICIES,
    NAMESPACES,
    look("", "nodes"),
    look("", "limitranges"),
    look("", "resourcequotas"),
    look("", "pods"),
];
