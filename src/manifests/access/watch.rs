//! What watching needs from the API server, beside what the audit needs of Ray objects. The
//! manifests grant exactly this.

use crate::manifests::access::Access;
use crate::manifests::access::request::followed;

/// For policies, and the labels of namespaces by which they match.
pub const POLICIES: &[Access] = &[RAY_POLICIES, NAMESPACES];

const RAY_POLICIES: Access = followed("rayfit.dev", "raypolicies");
const NAMESPACES: Access = followed("", "namespaces");

/// Everything that is needed, facts included.
pub const NEEDED: &[Access] = &[
    RAY_POLICIES,
    NAMESPACES,
    followed("", "nodes"),
    followed("", "limitranges"),
    followed("", "resourcequotas"),
    followed("", "pods"),
];
