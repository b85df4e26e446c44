//! The pods.

use serde_json::{Value, json};

use super::names::{
    APP, CERTIFICATE_FOLDER, CLIENT_AUTHORITY_FOLDER, Component, ISSUED_SECRET, OWN_SECRET,
    WEBHOOK_MEMORY,
};
use super::{Certificates, ManifestOptions};

/// Keeps one pod running while Kubernetes nodes are drained.
pub fn disruption_budget(options: &ManifestOptions, component: Component) -> Option<Value> {
    // For a single pod it would block every drain.
    (options.replicas_of(component) > 1).then(|| {
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": component.metadata(component.name(), &options.namespace),
            "spec": { "minAvailable": 1, "selector": { "matchLabels": component.labels() } }
        })
    })
}

/// The pods that may have a critical priority class in Rayfit's namespace. Where a provider (GKE) limits such a class,
/// pods can have it only in namespaces with a quota that counts them.
const CRITICAL_PODS: u32 = 100;

/// The quota of pods with the priority class, if there is one.
pub fn critical_pods(options: &ManifestOptions) -> Option<Value> {
    let class = options.priority_class.as_ref()?;
    Some(json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": Component::Admission.metadata("rayfit-critical-pods", &options.namespace),
        "spec": {
            "hard": { "pods": CRITICAL_PODS.to_string() },
            "scopeSelector": {
                "matchExpressions": [
                    { "scopeName": "PriorityClass", "operator": "In", "values": [class] }
                ]
            }
        }
    }))
}

/// A Deployment.
pub fn deployment(options: &ManifestOptions, component: Component) -> Value {
    let labels = component.labels();
    let rolling_update = if is_on_host_network(options, component) {
        // There may be no node with free ports for a new pod until an old pod ends.
        json!({ "maxUnavailable": 1, "maxSurge": 0 })
    } else {
        json!({ "maxUnavailable": 0, "maxSurge": 1 })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": component.metadata(component.name(), &options.namespace),
        "spec": {
            "replicas": options.replicas_of(component),
            "revisionHistoryLimit": 3,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": rolling_update },
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": { "kubectl.kubernetes.io/default-container": APP }
                },
                "spec": pod(options, component)
            }
        }
    })
}

/// API servers must reach the webhooks; nothing needs to reach the controller.
fn is_on_host_network(options: &ManifestOptions, component: Component) -> bool {
    component == Component::Admission && options.host_network
}

/// The volumes of a pod that serves webhooks, each with its name and where it is mounted.
fn volumes(options: &ManifestOptions, serves: bool) -> Vec<(Value, &'static str, &'static str)> {
    let mut volumes = Vec::new();
    if serves && options.certificates == Some(Certificates::CertManager) {
        // Optional, so that the pods can start before cert-manager has filled it.
        let secret = json!({ "secretName": ISSUED_SECRET, "optional": true });
        let volume = json!({ "name": "certs", "secret": secret });
        volumes.push((volume, "certs", CERTIFICATE_FOLDER));
    }
    if let Some(map) = options.client_ca_config_map.as_ref().filter(|_| serves) {
        let volume = json!({ "name": "clients", "configMap": { "name": map } });
        volumes.push((volume, "clients", CLIENT_AUTHORITY_FOLDER));
    }
    volumes
}

fn pod(options: &ManifestOptions, component: Component) -> Value {
    let labels = component.labels();
    let serves = component == Component::Admission;
    let volumes = volumes(options, serves);
    let mounts = volumes.iter();
    let mounts =
        mounts.map(|(_, name, path)| json!({ "name": name, "mountPath": path, "readOnly": true }));
    let spread = |topology_key: &str| {
        json!({
            "maxSkew": 1,
            "topologyKey": topology_key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": labels }
        })
    };
    let mut pod = json!({
        "serviceAccountName": component.name(),
        // On SIGTERM a pod continues to serve for 10 s, until every node knows that it is
        // terminating, and then lets calls finish for up to 30 s. The controller finishes its
        // writes and exits.
        "terminationGracePeriodSeconds": if serves { 45 } else { 30 },
        // The image has a user, and OpenShift gives another one: it refuses pods that name theirs.
        "securityContext": {
            "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" }
        },
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": { "matchLabels": labels }
                    }
                }]
            }
        },
        "topologySpreadConstraints": [
            spread("topology.kubernetes.io/zone"),
            spread("kubernetes.io/hostname")
        ],
        "containers": [container(options, component, mounts.collect())]
    });
    if let Some(class) = &options.priority_class {
        pod["priorityClassName"] = json!(class);
    }
    if is_on_host_network(options, component) {
        pod["hostNetwork"] = json!(true);
        // Otherwise such a pod asks the node's name servers, which do not know the names in the
        // cluster.
        pod["dnsPolicy"] = json!("ClusterFirstWithHostNet");
    }
    if !volumes.is_empty() {
        pod["volumes"] = volumes.into_iter().map(|(volume, ..)| volume).collect();
    }
    pod
}

fn container(options: &ManifestOptions, component: Component, mounts: Vec<Value>) -> Value {
    let serves = component == Component::Admission;
    let port =
        |name: &str, port: u16| json!({ "name": name, "containerPort": port, "protocol": "TCP" });
    let mut ports = Vec::new();
    if serves {
        ports.push(port("webhook", options.port));
    }
    ports.push(port("health", options.health_port));
    let probe = |path: &str, period_seconds: u32, failure_threshold: u32| {
        json!({
            "httpGet": { "path": path, "port": "health" },
            "periodSeconds": period_seconds,
            "timeoutSeconds": 2,
            "failureThreshold": failure_threshold
        })
    };
    let (request, limit) = match component {
        Component::Admission => ("32Mi", format!("{}Gi", WEBHOOK_MEMORY >> 30)),
        Component::Controller => ("64Mi", "512Mi".to_owned()),
    };
    let mut container = json!({
        "name": APP,
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments(options, component),
        "ports": ports,
        "startupProbe": probe("/livez", 1, 60),
        "livenessProbe": probe("/livez", 10, 3),
        "readinessProbe": probe("/readyz", 5, 1),
        // No CPU limit: throttling would turn bursts into timeouts. The memory limit is the sum
        // of all limits on requests for the webhooks, and what the largest answers of a GCS
        // take for the controller.
        "resources": {
            "requests": { "cpu": "50m", "memory": request },
            "limits": { "memory": limit }
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "capabilities": { "drop": ["ALL"] },
            "seccompProfile": { "type": "RuntimeDefault" }
        }
    });
    if !mounts.is_empty() {
        container["volumeMounts"] = mounts.into();
    }
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    container["env"] = json!([
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace")
    ]);
    container
}

/// The command line of `rayfit serve`.
fn arguments(options: &ManifestOptions, component: Component) -> Vec<String> {
    let serves = component == Component::Admission;
    let mut arguments = vec!["serve".to_owned()];
    arguments.push(if serves {
        format!("--port={}", options.port)
    } else {
        "--no-webhooks".to_owned()
    });
    arguments.push(format!("--health-port={}", options.health_port));
    arguments.push(format!("--image={}", options.image));
    match options.certificates.filter(|_| serves) {
        Some(Certificates::CertManager) => {
            arguments.push(format!("--cert-dir={CERTIFICATE_FOLDER}"));
        }
        Some(Certificates::SelfManaged) => arguments.extend([
            "--self-managed-certs".to_owned(),
            format!("--cert-secret={}/{OWN_SECRET}", options.namespace),
        ]),
        None => {}
    }
    if serves && options.client_ca_config_map.is_some() {
        arguments.push(format!("--client-ca-file={CLIENT_AUTHORITY_FOLDER}/ca.crt"));
    }
    if options.scaler() != Some(component) {
        arguments.push("--no-controller".to_owned());
    } else if !options.only_namespaces.is_empty() {
        let namespaces = options.only_namespaces.join(",");
        arguments.push(format!("--namespaces={namespaces}"));
    }
    arguments
}
