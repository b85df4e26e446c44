//! The options of the policies.

use crate::manifests::FailurePolicy;
use crate::policy::Settings;

/// The options of the policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VapOptions {
    /// The mode of each rule, and KubeRay's account.
    pub settings: Settings,
    /// The treatment of an object for which an expression fails, because the object is too large.
    pub failure_policy: FailurePolicy,
    /// Excluded namespaces, besides kube-system.
    pub excluded_namespaces: Vec<String>,
    /// The only namespaces whose Ray objects are checked; all, if none is named.
    pub only_namespaces: Vec<String>,
    /// Include the defaults, which need Kubernetes 1.36.
    pub defaults: bool,
}
