//! The pods.

use serde_json::{Map, Value, json};

use super::names::{
    self, APP, CERTIFICATE_FOLDER, CLIENT_AUTHORITY_FOLDER, Component, ISSUED_SECRET, OWN_SECRET,
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
        "metadata": names::metadata("rayfit-critical-pods", &options.namespace),
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
    let work = Workload { options, component };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": component.metadata(component.name(), &options.namespace),
        "spec": {
            "replicas": options.replicas_of(component),
            "revisionHistoryLimit": 3,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": work.rolling_update() },
            "selector": { "matchLabels": component.labels() },
            "template": {
                "metadata": {
                    "labels": component.labels(),
                    "annotations": { "kubectl.kubernetes.io/default-container": APP }
                },
                "spec": work.pod()
            }
        }
    })
}

/// One of the Deployments of an installation.
struct Workload<'a> {
    options: &'a ManifestOptions,
    component: Component,
}

impl Workload<'_> {
    fn serves(&self) -> bool {
        self.component == Component::Admission
    }

    /// Whether its pods are in the network of their nodes.
    fn on_host_network(&self) -> bool {
        // API servers must reach the webhooks; nothing needs to reach the controller.
        self.serves() && self.options.host_network
    }

    /// The certificate is mounted as files.
    fn mounts_certificate(&self) -> bool {
        self.serves() && self.options.certificates == Some(Certificates::CertManager)
    }

    /// The strategy by which pods are replaced by new ones.
    fn rolling_update(&self) -> Value {
        if self.on_host_network() {
            // There may be no node with free ports for a new pod until an old pod ends.
            json!({ "maxUnavailable": 1, "maxSurge": 0 })
        } else {
            json!({ "maxUnavailable": 0, "maxSurge": 1 })
        }
    }

    fn pod(&self) -> Value {
        let labels = self.component.labels();
        let mut pod = json!({
            "serviceAccountName": self.component.name(),
            // On SIGTERM a pod continues to serve for 10 s, until every node knows that it is
            // terminating, and then lets calls finish for up to 30 s. The controller finishes its
            // writes and exits.
            "terminationGracePeriodSeconds": if self.serves() { 45 } else { 30 },
            // The image has a user, and OpenShift gives another one: it refuses pods that name theirs.
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": { "type": "RuntimeDefault" }
            },
            "affinity": { "podAntiAffinity": anti_affinity(&labels) },
            "topologySpreadConstraints": [
                spread("topology.kubernetes.io/zone", &labels),
                spread("kubernetes.io/hostname", &labels)
            ],
            "containers": [self.container()]
        });
        for (key, value) in self.pod_extras() {
            pod[key] = value;
        }
        pod
    }

    fn pod_extras(&self) -> Map<String, Value> {
        let mut extras = Map::new();
        if let Some(class) = &self.options.priority_class {
            extras.insert("priorityClassName".to_owned(), json!(class));
        }
        if self.on_host_network() {
            extras.insert("hostNetwork".to_owned(), json!(true));
            // Otherwise such a pod asks the node's name servers, which do not know the names in the
            // cluster.
            extras.insert("dnsPolicy".to_owned(), json!("ClusterFirstWithHostNet"));
        }
        let volumes = self.volumes();
        if !volumes.is_empty() {
            let volumes = volumes.into_iter().map(|(volume, _)| volume);
            extras.insert("volumes".to_owned(), volumes.collect());
        }
        extras
    }

    /// Volumes and their mounts.
    fn volumes(&self) -> Vec<(Value, Value)> {
        let mount =
            |name: &str, path: &str| json!({ "name": name, "mountPath": path, "readOnly": true });
        let mut volumes = Vec::new();
        if self.mounts_certificate() {
            // Optional, so that the pods can start before cert-manager has filled it.
            let secret = json!({ "secretName": ISSUED_SECRET, "optional": true });
            let volume = json!({ "name": "certs", "secret": secret });
            volumes.push((volume, mount("certs", CERTIFICATE_FOLDER)));
        }
        if let Some(map) = self.client_authority() {
            let volume = json!({ "name": "clients", "configMap": { "name": map } });
            volumes.push((volume, mount("clients", CLIENT_AUTHORITY_FOLDER)));
        }
        volumes
    }

    fn client_authority(&self) -> Option<&str> {
        let map = self.options.client_ca_config_map.as_deref();
        map.filter(|_| self.serves())
    }

    fn memory(&self) -> String {
        if self.serves() {
            format!("{}Gi", WEBHOOK_MEMORY >> 30)
        } else {
            "512Mi".to_owned()
        }
    }

    fn container(&self) -> Value {
        let mut container = json!({
            "name": APP,
            "image": self.options.image,
            "imagePullPolicy": "IfNotPresent",
            "args": self.arguments(),
            "ports": self.ports(),
            "startupProbe": probe("/livez", 1, 60),
            "livenessProbe": probe("/livez", 10, 3),
            "readinessProbe": probe("/readyz", 5, 1),
            // No CPU limit: throttling would turn bursts into timeouts. The memory limit is the sum
            // of all limits on requests for the webhooks, and what the largest answers of a GCS
            // take for the controller.
            "resources": {
                "requests": { "cpu": "50m", "memory": if self.serves() { "32Mi" } else { "64Mi" } },
                "limits": { "memory": self.memory() }
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "capabilities": { "drop": ["ALL"] },
                "seccompProfile": { "type": "RuntimeDefault" }
            }
        });
        let volumes = self.volumes();
        if !volumes.is_empty() {
            let mounts = volumes.into_iter().map(|(_, mount)| mount);
            container["volumeMounts"] = mounts.collect();
        }
        let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
        container["env"] = json!([
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace")
        ]);
        container
    }

    fn ports(&self) -> Vec<Value> {
        let port = |name: &str, port: u16| json!({ "name": name, "containerPort": port, "protocol": "TCP" });
        let mut ports = Vec::new();
        if self.serves() {
            ports.push(port("webhook", self.options.port));
        }
        ports.push(port("health", self.options.health_port));
        ports
    }

    fn arguments(&self) -> Vec<String> {
        let options = self.options;
        let mut arguments = vec!["serve".to_owned()];
        if self.serves() {
            arguments.push(format!("--port={}", options.port));
        } else {
            arguments.push("--no-webhooks".to_owned());
        }
        arguments.push(format!("--health-port={}", options.health_port));
        arguments.push(format!("--image={}", options.image));
        if self.serves() {
            arguments.extend(certificate_arguments(options));
        }
        if self.client_authority().is_some() {
            arguments.push(format!("--client-ca-file={CLIENT_AUTHORITY_FOLDER}/ca.crt"));
        }
        if options.scaler() != Some(self.component) {
            arguments.push("--no-controller".to_owned());
        } else if !options.only_namespaces.is_empty() {
            arguments.push(format!(
                "--namespaces={}",
                options.only_namespaces.join(",")
            ));
        }
        arguments
    }
}

fn certificate_arguments(options: &ManifestOptions) -> Vec<String> {
    match options.certificates {
        Some(Certificates::CertManager) => vec![format!("--cert-dir={CERTIFICATE_FOLDER}")],
        Some(Certificates::SelfManaged) => vec![
            "--self-managed-certs".to_owned(),
            format!("--cert-secret={}/{OWN_SECRET}", options.namespace),
        ],
        None => Vec::new(),
    }
}

fn anti_affinity(labels: &Value) -> Value {
    json!({
        "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": { "matchLabels": labels }
            }
        }]
    })
}

fn spread(topology_key: &str, labels: &Value) -> Value {
    json!({
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": labels }
    })
}

fn probe(path: &str, period_seconds: u32, failure_threshold: u32) -> Value {
    json!({
        "httpGet": { "path": path, "port": "health" },
        "periodSeconds": period_seconds,
        "timeoutSeconds": 2,
        "failureThreshold": failure_threshold
    })
}
