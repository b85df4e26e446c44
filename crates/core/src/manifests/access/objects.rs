//! The namespace, the accounts, and the permissions of each account.

use serde_json::{Value, json};

use crate::manifests::access::{Access, AccessScope, rights};
use crate::manifests::names::{APP, Component};
use crate::manifests::{Certificates, ManifestOptions, names};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Rayfit's namespace, with the pod security level that its pods satisfy.
pub fn namespace(options: &ManifestOptions) -> Value {
    // The level restricted does not allow the host network.
    let level = if options.host_network {
        "privileged"
    } else {
        "restricted"
    };
    let mut labels = Component::Admission.labels();
    for mode in ["enforce", "audit", "warn"] {
        labels[format!("pod-security.kubernetes.io/{mode}")] = json!(level);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": options.namespace, "labels": labels }
    })
}

/// The account of a Deployment's pods.
pub fn service_account(options: &ManifestOptions, component: Component) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": component.metadata(component.name(), &options.namespace)
    })
}

/// Roles and bindings: for each account exactly the permissions that its code uses.
pub fn roles(options: &ManifestOptions) -> Vec<Value> {
    let mut roles = Vec::new();
    if options.webhooks {
        roles.extend(of_admission(options));
    }
    if let Some(component) = options.scaler() {
        roles.extend(of_scaling(options, component));
    }
    roles
}

/// The permissions for serving webhooks, managing their certificates, and auditing.
fn of_admission(options: &ManifestOptions) -> Vec<Value> {
    let namespace = Some(options.namespace.as_str());
    let granted = |purpose: &str, within: Option<&str>, rights: &[Access]| {
        granted(options, Component::Admission, purpose, within, rights)
    };
    let mut roles = Vec::new();
    roles.extend(granted("watch", None, rights::WATCHES));
    let audited = |scope| scoped(rights::AUDIT, scope);
    roles.extend(granted("audit", None, &audited(AccessScope::Cluster)));
    roles.extend(granted(
        "audit-lease",
        namespace,
        &audited(AccessScope::Namespace),
    ));
    if options.certificates == Some(Certificates::SelfManaged) {
        let of = |scope| scoped(rights::CERTIFICATES, scope);
        roles.extend(granted(
            "certificates",
            namespace,
            &of(AccessScope::Namespace),
        ));
        roles.extend(granted("ca-bundles", None, &of(AccessScope::Cluster)));
    }
    // An account that scales clusters has this permission already.
    if options.initial_sizes && options.scaler() != Some(Component::Admission) {
        for within in scaled(options) {
            let needed = rights::OWNERS;
            roles.extend(granted("initial-sizes", within, needed));
        }
    }
    roles
}

/// The permissions for scaling clusters. In one process with the webhooks, the permission to read
/// policies is already among those of the webhooks.
fn of_scaling(options: &ManifestOptions, component: Component) -> Vec<Value> {
    let namespace = Some(options.namespace.as_str());
    let granted = |purpose: &str, within: Option<&str>, rights: &[Access]| {
        granted(options, component, purpose, within, rights)
    };
    let mut roles = Vec::new();
    if component == Component::Controller {
        roles.extend(granted("policies", None, rights::POLICIES));
    }
    roles.extend(granted("leader", namespace, rights::LEASE));
    if options.only_namespaces.is_empty() {
        roles.extend(granted("nodes", None, rights::NODES));
    }
    for within in scaled(options) {
        roles.extend(granted("scaling", within, rights::CLUSTERS));
        if options.ray_auth {
            roles.extend(granted("ray-auth", within, rights::RAY_AUTH));
        }
        if options.delete_idle_clusters {
            roles.extend(granted("idle-clusters", within, rights::IDLE_CLUSTERS));
        }
    }
    roles
}

fn scoped(rights: &[Access], scope: AccessScope) -> Vec<Access> {
    let of_scope = rights.iter().filter(|need| need.scope == scope);
    of_scope.copied().collect()
}

/// The namespaces whose clusters are scaled; `None` is all of them.
fn scaled(options: &ManifestOptions) -> Vec<Option<&str>> {
    if options.only_namespaces.is_empty() {
        return vec![None];
    }
    let namespaces = options.only_namespaces.iter();
    namespaces.map(|name| Some(name.as_str())).collect()
}

/// A role with the permissions, in one namespace or in all, and its binding to the account of a Deployment.
fn granted(
    options: &ManifestOptions,
    component: Component,
    purpose: &str,
    within: Option<&str>,
    rights: &[Access],
) -> [Value; 2] {
    let name = format!("{APP}-{purpose}");
    let (role, metadata) = match within {
        None => (
            "ClusterRole",
            component.cluster_metadata(&name, &options.namespace),
        ),
        Some(namespace) => ("Role", component.metadata(&name, namespace)),
    };
    let rules: Vec<Value> = rights.iter().map(|need| rule(options, need)).collect();
    [
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": role,
            "metadata": metadata,
            "rules": rules
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": format!("{role}Binding"),
            "metadata": metadata,
            "roleRef": { "apiGroup": RBAC, "kind": role, "name": metadata["name"] },
            "subjects": [{
                "kind": "ServiceAccount",
                "name": component.name(),
                "namespace": options.namespace
            }]
        }),
    ]
}

fn rule(options: &ManifestOptions, need: &Access) -> Value {
    let mut rule = json!({ "apiGroups": [need.group], "resources": [need.resource] });
    if let Some(name) = need.name {
        let name = match need.scope {
            AccessScope::Cluster if name.starts_with(APP) => {
                names::cluster_name(name, &options.namespace)
            }
            _ => name.to_owned(),
        };
        rule["resourceNames"] = json!([name]);
    }
    rule["verbs"] = json!(need.verbs);
    rule
}
