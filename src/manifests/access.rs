//! Namespace, account, and what the account may do.

use serde_json::{Value, json};

use super::names::{self, APP};
use super::{Certificates, Options};
use crate::audit::access as audit;
use crate::certs::access::{self as certificates, Access, Scope};
use crate::controller::access as scaling;
use crate::watch::access as watch;

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

/// Roles and bindings: exactly what the code uses.
pub fn roles(options: &Options) -> Vec<Value> {
    let mut roles = Vec::new();
    roles.extend(granted(options, "watch", Within::Cluster, watch::NEEDED));
    let audited = |scope| audit::NEEDED.iter().filter(move |need| need.scope == scope);
    let cluster = audited(Scope::Cluster);
    roles.extend(granted(options, "audit", Within::Cluster, cluster));
    let own = Within::Namespace(&options.namespace);
    let shared = audited(Scope::Namespace);
    roles.extend(granted(options, "audit-lease", own, shared));
    if options.certificates == Some(Certificates::SelfManaged) {
        let of = |scope| {
            certificates::NEEDED
                .iter()
                .filter(move |need| need.scope == scope)
        };
        let own = Within::Namespace(&options.namespace);
        roles.extend(granted(options, "certificates", own, of(Scope::Namespace)));
        roles.extend(granted(
            options,
            "ca-bundles",
            Within::Cluster,
            of(Scope::Cluster),
        ));
    }
    if options.controller {
        let own = Within::Namespace(&options.namespace);
        roles.extend(granted(options, "leases", own, scaling::LEASES));
        if options.only_namespaces.is_empty() {
            roles.extend(granted(options, "nodes", Within::Cluster, scaling::NODES));
        }
        for within in scaled(options) {
            roles.extend(granted(options, "scaling", within, scaling::CLUSTERS));
            if options.ray_auth {
                roles.extend(granted(options, "ray-auth", within, scaling::RAY_AUTH));
            }
        }
    }
    roles
}

/// Where clusters are scaled.
fn scaled(options: &Options) -> Vec<Within<'_>> {
    if options.only_namespaces.is_empty() {
        return vec![Within::Cluster];
    }
    let namespaces = options.only_namespaces.iter();
    namespaces
        .map(|namespace| Within::Namespace(namespace))
        .collect()
}

/// Where rights hold.
#[derive(Debug, Clone, Copy)]
enum Within<'a> {
    Cluster,
    Namespace(&'a str),
}

/// A role with the rights and its binding to our account.
fn granted<'a>(
    options: &Options,
    purpose: &str,
    within: Within<'_>,
    rights: impl IntoIterator<Item = &'a Access>,
) -> [Value; 2] {
    let name = format!("{APP}-{purpose}");
    let (role, metadata) = match within {
        Within::Cluster => ("ClusterRole", names::cluster_metadata(&name)),
        Within::Namespace(namespace) => ("Role", names::metadata(&name, namespace)),
    };
    let rules: Vec<Value> = rights.into_iter().map(rule).collect();
    let group = "rbac.authorization.k8s.io";
    [
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": role,
            "metadata": metadata,
            "rules": rules
        }),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": format!("{role}Binding"),
            "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": role, "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": APP, "namespace": options.namespace }]
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
