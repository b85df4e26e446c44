//! The permissions for watching policies and facts, besides those of the audit for Ray objects. The
//! manifests grant exactly these.

use crate::manifests::access::request::followed;
use crate::manifests::access::{Access, AccessScope};
use crate::policy::settings::KUBERAY_BINDING;

/// Watching policies, and the labels of namespaces that they select by.
pub const POLICIES: &[Access] = &[RAY_POLICIES, NAMESPACES];

const RAY_POLICIES: Access = followed("rayfit.dev", "raypolicies");
const NAMESPACES: Access = followed("", "namespaces");

/// All of these permissions, including those for facts.
pub const NEEDED: &[Access] = &[
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
