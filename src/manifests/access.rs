//! Namespace, account, and what the account may do.

use serde_json::{Value, json};

use super::Options;
use super::names::{self, APP};
use crate::certs::access::{self, Access, Scope};
use crate::watch;

/// Our namespace, with the pod security level that our pods keep to.
pub fn namespace(options: &Options) -> Value {
    // The restricted level knows no host network.
    let level = if options.host_network {
        "privileged"
    } else {
        "restricted"
    };
    let mut labels = names::selector();
    for mode in ["enforce", "audit", "warn"] {
        labels[format!("pod-security.kubernetes.io/{mode}")] = json!(level);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": options.namespace, "labels": labels }
    })
}

/// The account of our pods.
pub fn service_account(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names::metadata(APP, &options.namespace)
    })
}

/// Role and binding for what every install does: watching policies and facts.
pub fn watching(options: &Options) -> Vec<Value> {
    let rules: Vec<Value> = watch::access::NEEDED.iter().map(rule).collect();
    cluster_wide(options, &format!("{APP}-watch"), &rules).into()
}

/// A `ClusterRole` of ours and its binding.
fn cluster_wide(options: &Options, name: &str, rules: &[Value]) -> [Value; 2] {
    [
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "ClusterRole",
            "metadata": names::cluster_metadata(name),
            "rules": rules
        }),
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": names::cluster_metadata(name),
            "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": name },
            "subjects": subjects(options)
        }),
    ]
}

fn subjects(options: &Options) -> Value {
    json!([{ "kind": "ServiceAccount", "name": APP, "namespace": options.namespace }])
}

const GROUP: &str = "rbac.authorization.k8s.io";

/// Roles and bindings for managing our own certificates: exactly what that code uses.
pub fn roles(options: &Options) -> Vec<Value> {
    let rules = |scope| -> Vec<Value> {
        let of_scope = access::NEEDED.iter().filter(|need| need.scope == scope);
        of_scope.map(rule).collect()
    };
    let (role, cluster_role) = (format!("{APP}-certificates"), format!("{APP}-ca-bundles"));
    let namespace = &options.namespace;
    let mut objects = vec![
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "Role",
            "metadata": names::metadata(&role, namespace),
            "rules": rules(Scope::Namespace)
        }),
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "RoleBinding",
            "metadata": names::metadata(&role, namespace),
            "roleRef": { "apiGroup": GROUP, "kind": "Role", "name": role },
            "subjects": subjects(options)
        }),
    ];
    objects.extend(cluster_wide(options, &cluster_role, &rules(Scope::Cluster)));
    objects
}

fn rule(need: &Access) -> Value {
    let mut rule = json!({ "apiGroups": [need.group], "resources": [need.resource] });
    if let Some(name) = need.name {
        rule["resourceNames"] = json!([name]);
    }
    rule["verbs"] = json!(need.verbs);
    rule
}
