//! Services and network policies of Rayfit's pods.

use serde_json::{Value, json};

use super::ManifestOptions;
use super::names::{APP, Component};

/// Service of the webhooks.
pub fn webhook_service(options: &ManifestOptions) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": Component::Admission.metadata(APP, &options.namespace),
        "spec": {
            "selector": Component::Admission.labels(),
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
    let labels = options.monitoring_namespace_labels.iter();
    let namespaces: Vec<Value> = labels
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| json!({ "namespaceSelector": { "matchLabels": { key: value } } }))
        .collect();
    ingress.push(json!({ "from": namespaces, "ports": tcp(&[options.health_port]) }));
    // API servers are called by the address that the kubelet puts into the environment. A name is
    // looked up only where a provider puts one there.
    let name_servers = json!({ "matchLabels": { "kubernetes.io/metadata.name": "kube-system" } });
    let mut egress = vec![
        json!({
            "to": [{ "namespaceSelector": name_servers }],
            "ports": [{ "port": 53, "protocol": "UDP" }, { "port": 53, "protocol": "TCP" }]
        }),
        with_api_servers(options, "to", &options.api_server_ports),
    ];
    if options.scaler() == Some(component) {
        // Head pods of Ray clusters are in every namespace.
        let heads = json!({
            "namespaceSelector": {},
            "podSelector": { "matchLabels": { "ray.io/node-type": "head" } }
        });
        egress.push(json!({ "to": [heads], "ports": tcp(&options.gcs_ports) }));
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

fn tcp(ports: &[u16]) -> Vec<Value> {
    let port = |port: &u16| json!({ "port": port, "protocol": "TCP" });
    ports.iter().map(port).collect()
}
