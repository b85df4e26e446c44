//! Services and network policies of Rayfit's pods.

use serde_json::{Value, json};

use super::ManifestOptions;
use super::names::{self, APP, Component};

/// Service of the webhooks.
pub fn webhook_service(options: &ManifestOptions) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names::metadata(APP, &options.namespace),
        "spec": {
            "selector": names::selector(),
            "ports": [
                // API servers call this port where a webhook configuration names none.
                { "name": "https", "port": 443, "targetPort": "webhook", "protocol": "TCP" }
            ]
        }
    })
}

/// Service of a Deployment's metrics, with the annotations that many Prometheus configurations use.
pub fn metrics_service(options: &ManifestOptions, component: Component) -> Value {
    let name = format!("{}-metrics", component.name());
    let mut metadata = component.metadata(&name, &options.namespace);
    metadata["annotations"] = json!({
        "prometheus.io/scrape": "true",
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": options.health_port.to_string()
    });
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "selector": component.labels(),
            "ports": [{
                "name": "http",
                "port": options.health_port,
                "targetPort": "health",
                "protocol": "TCP"
            }]
        }
    })
}

/// The NetworkPolicy of a Deployment's pods.
pub fn policy(options: &ManifestOptions, component: Component) -> Value {
    // Kubelets need no rule for their probes: a pod's own node always reaches it.
    let mut ingress = Vec::new();
    if component == Component::Admission {
        ingress.push(with_api_servers(options, "from", &[options.port]));
    }
    ingress.push(json!({ "from": monitoring(options), "ports": tcp(&[options.health_port]) }));
    let mut egress = vec![
        dns(),
        with_api_servers(options, "to", &options.api_server_ports),
    ];
    if options.scaler() == Some(component) {
        egress.push(json!({ "to": [heads()], "ports": tcp(&options.gcs_ports) }));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": component.metadata(component.name(), &options.namespace),
        "spec": {
            "podSelector": { "matchLabels": component.labels() },
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress
        }
    })
}

/// The ports, with the addresses of API servers as peers where they are known, otherwise with any
/// peer.
fn with_api_servers(options: &ManifestOptions, direction: &str, ports: &[u16]) -> Value {
    let mut rule = json!({ "ports": tcp(ports) });
    if !options.api_server_cidrs.is_empty() {
        let cidrs = options.api_server_cidrs.iter();
        rule[direction] = cidrs
            .map(|cidr| json!({ "ipBlock": { "cidr": cidr } }))
            .collect();
    }
    rule
}

/// The egress rule for looking names up.
fn dns() -> Value {
    json!({
        // API servers are called by the address that the kubelet puts into the environment. A name
        // is looked up only where a provider puts one there.
        "to": [{
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "kube-system" } }
        }],
        "ports": [
            { "port": 53, "protocol": "UDP" },
            { "port": 53, "protocol": "TCP" }
        ]
    })
}

/// The namespaces whose pods may read metrics.
fn monitoring(options: &ManifestOptions) -> Vec<Value> {
    let labels = options.monitoring_namespace_labels.iter();
    let namespace = |(key, value): (&str, &str)| json!({ "namespaceSelector": { "matchLabels": { key: value } } });
    labels
        .filter_map(|label| label.split_once('='))
        .map(namespace)
        .collect()
}

/// The head pods of Ray clusters, in every namespace.
fn heads() -> Value {
    json!({
        "namespaceSelector": {},
        "podSelector": { "matchLabels": { "ray.io/node-type": "head" } }
    })
}

fn tcp(ports: &[u16]) -> Vec<Value> {
    let port = |port: &u16| json!({ "port": port, "protocol": "TCP" });
    ports.iter().map(port).collect()
}
