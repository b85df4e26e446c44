//! What is known of the Kubernetes cluster around an object. Rules that need a fact are silent
//! without it.

use serde::Deserialize;

/// What is known of the cluster; every part may be unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// The API server's version.
    pub kubernetes: Option<KubernetesVersion>,
}

/// A minor version of Kubernetes; ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct KubernetesVersion {
    /// The 1 of 1.35.
    pub major: u32,
    /// The 35 of 1.35.
    pub minor: u32,
}
