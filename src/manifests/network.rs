//! How our pods are reached, and what they may reach.

use serde_json::{Value, json};

use super::Options;
use super::names::{self, APP};

/// Service of the webhooks. API servers call port 443 of it unless told otherwise.
pub fn webhook_service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names::metadata(APP, &options.namespace),
        "spec": {
            "selector": names::selector(),
            "ports": [
                { "name": "https", "port": 443, "targetPort": "webhook", "protocol": "TCP" }
            ]
        }
    })
}

/// Service of the metrics, with the annotations that many Prometheus set-ups go by.
pub fn metrics_service(options: &Options) -> Value {
    let mut metadata = names::metadata(&format!("{APP}-metrics"), &options.namespace);
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
            "selector": names::selector(),
            "ports": [{
                "name": "http",
                "port": options.health_port,
                "targetPort": "health",
                "protocol": "TCP"
            }]
        }
    })
}

/// In: our two ports, from anywhere, since nobody knows the addresses of API servers and kubelets.
/// Out: DNS, the ports of API servers and, to scale them, the GCS of Ray heads; nothing else.
pub fn policy(options: &Options) -> Value {
    let tcp = |ports: &[u16]| -> Vec<Value> {
        let port = |port: &u16| json!({ "port": port, "protocol": "TCP" });
        ports.iter().map(port).collect()
    };
    let mut egress = vec![
        json!({ "ports": [
            { "port": 53, "protocol": "UDP" },
            { "port": 53, "protocol": "TCP" }
        ] }),
        json!({ "ports": tcp(&options.api_server_ports) }),
    ];
    if options.controller {
        let heads = json!({
            "namespaceSelector": {},
            "podSelector": { "matchLabels": { "ray.io/node-type": "head" } }
        });
        egress.push(json!({ "to": [heads], "ports": tcp(&options.gcs_ports) }));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names::metadata(APP, &options.namespace),
        "spec": {
            "podSelector": { "matchLabels": names::selector() },
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{ "ports": tcp(&[options.port, options.health_port]) }],
            "egress": egress
        }
    })
}
