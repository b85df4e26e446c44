//! The pods.

use serde_json::{Map, Value, json};

use super::names::{self, APP, CERTIFICATE_FOLDER, ISSUED_SECRET, OWN_SECRET};
use super::{Certificates, Options};

/// Who runs in the container: the customary `nonroot`.
const USER: u32 = 65532;

/// Keeps one pod running while nodes are drained. With a single pod it would block every drain.
pub fn disruption_budget(options: &Options) -> Option<Value> {
    (options.replicas() > 1).then(|| {
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": names::metadata(APP, &options.namespace),
            "spec": { "minAvailable": 1, "selector": { "matchLabels": names::selector() } }
        })
    })
}

/// The Deployment.
pub fn deployment(options: &Options) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names::metadata(APP, &options.namespace),
        "spec": {
            "replicas": options.replicas(),
            "revisionHistoryLimit": 3,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": rolling_update(options) },
            "selector": { "matchLabels": names::selector() },
            "template": {
                "metadata": {
                    "labels": names::selector(),
                    "annotations": { "kubectl.kubernetes.io/default-container": APP }
                },
                "spec": pod(options)
            }
        }
    })
}

/// In the node's network a new pod may find no node whose ports are free until an old one goes.
fn rolling_update(options: &Options) -> Value {
    if options.host_network {
        json!({ "maxUnavailable": 1, "maxSurge": 0 })
    } else {
        json!({ "maxUnavailable": 0, "maxSurge": 1 })
    }
}

fn pod(options: &Options) -> Value {
    let mut pod = json!({
        "serviceAccountName": APP,
        // On SIGTERM a pod serves for 10 s more, until every node has heard that it goes, and
        // then lets calls finish for up to 30 s.
        "terminationGracePeriodSeconds": 45,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" }
        },
        "affinity": { "podAntiAffinity": anti_affinity() },
        "topologySpreadConstraints": [
            spread("topology.kubernetes.io/zone"),
            spread("kubernetes.io/hostname")
        ],
        "containers": [container(options)]
    });
    for (key, value) in pod_extras(options) {
        pod[key] = value;
    }
    pod
}

fn pod_extras(options: &Options) -> Map<String, Value> {
    let mut extras = Map::new();
    if let Some(class) = &options.priority_class {
        extras.insert("priorityClassName".to_owned(), json!(class));
    }
    if options.host_network {
        extras.insert("hostNetwork".to_owned(), json!(true));
        extras.insert("dnsPolicy".to_owned(), json!("ClusterFirstWithHostNet"));
    }
    if options.certificates == Some(Certificates::CertManager) {
        // Optional, so that the pods can start before cert-manager has filled it.
        let secret = json!({ "secretName": ISSUED_SECRET, "optional": true, "defaultMode": 0o440 });
        extras.insert(
            "volumes".to_owned(),
            json!([{ "name": "certs", "secret": secret }]),
        );
    }
    extras
}

fn anti_affinity() -> Value {
    json!({
        "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": { "matchLabels": names::selector() }
            }
        }]
    })
}

fn spread(topology_key: &str) -> Value {
    json!({
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": names::selector() }
    })
}

fn container(options: &Options) -> Value {
    let mut container = json!({
        "name": APP,
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments(options),
        "ports": [
            { "name": "webhook", "containerPort": options.port, "protocol": "TCP" },
            { "name": "health", "containerPort": options.health_port, "protocol": "TCP" }
        ],
        "startupProbe": probe("/livez", 1, 60),
        "livenessProbe": probe("/livez", 10, 3),
        "readinessProbe": probe("/readyz", 5, 1),
        // No CPU limit: throttling would turn bursts into timeouts. The memory limit is what all
        // bounds of requests come to together, whoever sends them.
        "resources": {
            "requests": { "cpu": "50m", "memory": "32Mi" },
            "limits": { "memory": format!("{}Gi", names::WEBHOOK_MEMORY >> 30) }
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "capabilities": { "drop": ["ALL"] },
            "seccompProfile": { "type": "RuntimeDefault" }
        }
    });
    if options.certificates == Some(Certificates::CertManager) {
        let mount = json!({ "name": "certs", "mountPath": CERTIFICATE_FOLDER, "readOnly": true });
        container["volumeMounts"] = json!([mount]);
    }
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    container["env"] = json!([
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace")
    ]);
    container
}

fn probe(path: &str, period_seconds: u32, failure_threshold: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": "health" },
        "periodSeconds": period_seconds,
        "timeoutSeconds": 2,
        "failureThreshold": failure_threshold
    })
}

fn arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec![
        "serve".to_owned(),
        format!("--port={}", options.port),
        format!("--health-port={}", options.health_port),
        format!("--image={}", options.image),
    ];
    arguments.extend(match options.certificates {
        Some(Certificates::CertManager) => vec![format!("--cert-dir={CERTIFICATE_FOLDER}")],
        Some(Certificates::SelfManaged) => vec![
            "--self-managed-certs".to_owned(),
            format!("--cert-secret={}/{OWN_SECRET}", options.namespace),
        ],
        None => Vec::new(),
    });
    if !options.controller {
        arguments.push("--no-controller".to_owned());
    } else if !options.only_namespaces.is_empty() {
        arguments.push(format!(
            "--namespaces={}",
            options.only_namespaces.join(",")
        ));
    }
    arguments
}
