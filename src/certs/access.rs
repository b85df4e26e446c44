//! What managing certificates needs from the API server. The manifests grant exactly this.

use crate::manifests::names::{MUTATING, OWN_SECRET, VALIDATING};

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// In our namespace, or cluster-wide.
    pub scope: Scope,
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The resource, in plural.
    pub resource: &'static str,
    /// The only object of that resource, if there is only one.
    pub name: Option<&'static str>,
    /// The verbs.
    pub verbs: &'static [&'static str],
}

/// Where a right holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In our own namespace.
    Namespace,
    /// In the whole cluster.
    Cluster,
    /// In the namespaces whose clusters are scaled: all, or those that were chosen.
    Scaled,
}

const WEBHOOKS: &str = "admissionregistration.k8s.io";

/// Everything that is needed. A watch of one object by its name can be limited to that name; a
/// list of pods cannot.
pub const NEEDED: &[Access] = &[
    Access {
        scope: Scope::Namespace,
        group: "",
        resource: "secrets",
        name: Some(OWN_SECRET),
        verbs: &["get", "update", "watch"],
    },
    Access {
        scope: Scope::Namespace,
        group: "",
        resource: "pods",
        name: None,
        verbs: &["list"],
    },
    Access {
        scope: Scope::Cluster,
        group: WEBHOOKS,
        resource: "mutatingwebhookconfigurations",
        name: Some(MUTATING),
        verbs: &["get", "patch", "watch"],
    },
    Access {
        scope: Scope::Cluster,
        group: WEBHOOKS,
        resource: "validatingwebhookconfigurations",
        name: Some(VALIDATING),
        verbs: &["get", "patch", "watch"],
    },
];
