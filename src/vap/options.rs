//! What can be chosen about the policies.

use crate::manifests::FailurePolicy;
use crate::policy::Settings;

/// What can be chosen about the policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VapOptions {
    /// How far each rule is turned on, and KubeRay's account.
    pub settings: Settings,
    /// What happens to an object for which an expression fails, because the object is too large.
    pub failure_policy: FailurePolicy,
    /// Namespaces beside kube-system that are left alone.
    pub excluded_namespaces: Vec<String>,
    /// The only namespaces whose Ray objects are judged; all, if none is named.
    pub only_namespaces: Vec<String>,
    /// With the defaults; they need Kubernetes 1.36.
    pub defaults: bool,
}

impl Default for VapOptions {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            failure_policy: FailurePolicy::Open,
            excluded_namespaces: Vec::new(),
            only_namespaces: Vec::new(),
            defaults: false,
        }
    }
}
