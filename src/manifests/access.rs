//! Namespace, account, and what the account may do.

use serde_json::{Value, json};

use super::Options;
use super::names::{self, APP};
use crate::certs::access::{self, Access, Scope};

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

/// The account of our pods. Without certificates of our own it has no rights beyond those of
/// every account.
pub fn service_account(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names::metadata(APP, &options.namespace)
    })
}

/// Roles and bindings for managing our own certificates: exactly what that code uses.
pub fn roles(options: &Options) -> Vec<Value> {
    let rules = |scope| -> Vec<Value> {
        let of_scope = access::NEEDED.iter().filter(|need| need.scope == scope);
        of_scope.map(rule).collect()
    };
    let (role, cluster_role) = (format!("{APP}-certificates"), format!("{APP}-ca-bundles"));
    let namespace = &options.namespace;
    let group = "rbac.authorization.k8s.io";
    let subjects = json!([{ "kind": "ServiceAccount", "name": APP, "namespace": namespace }]);
    vec![
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "Role",
            "metadata": names::metadata(&role, namespace),
            "rules": rules(Scope::Namespace)
        }),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "RoleBinding",
            "metadata": names::metadata(&role, namespace),
            "roleRef": { "apiGroup": group, "kind": "Role", "name": role },
            "subjects": subjects
        }),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRole",
            "metadata": names::cluster_metadata(&cluster_role),
            "rules": rules(Scope::Cluster)
        }),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": names::cluster_metadata(&cluster_role),
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": cluster_role },
            "subjects": subjects
        }),
    ]
}

fn rule(need: &Access) -> Value {
    let mut rule = json!({ "apiGroups": [need.group], "resources": [need.resource] });
    if let Some(name) = need.name {
        rule["resourceNames"] = json!([name]);
    }
    rule["verbs"] = json!(need.verbs);
    rule
}
