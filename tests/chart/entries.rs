//! The table of the values.

/// Where a value's default and description come from.
pub(super) enum Source {
    /// A flag of `rayfit manifests`.
    Flag(&'static str),
    /// Both are here; the default is JSON.
    Own(&'static str, &'static str),
    /// The default is what the objects of an installation have, as a path of the pod.
    Pod(&'static str, &'static str),
}

/// A value: its path, its JSON schema, and its source.
pub(super) type Entry = (&'static str, &'static str, Source);

const BOOLEAN: &str = r#"{"type": "boolean"}"#;
const PORT: &str = r#"{"type": "integer", "minimum": 1024, "maximum": 65535}"#;
const PORTS: &str = r#"{"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 65535}}"#;
const TEXT: &str = r#"{"type": "string"}"#;
const NAMESPACES: &str = r#"{"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}}"#;
const OBJECT: &str = r#"{"type": "object"}"#;
const LIST: &str = r#"{"type": "array"}"#;
const TEXTS: &str = r#"{"type": "array", "items": {"type": "string"}}"#;

/// All values except for those of one Deployment.
pub(super) const COMMON: &[Entry] = &[
    (
        "image.registry",
        TEXT,
        Source::Own(
            "\"\"",
            "Registry of Rayfit's image, for example registry.example",
        ),
    ),
    (
        "image.repository",
        TEXT,
        Source::Own("\"rayfit\"", "Name of the image in it"),
    ),
    (
        "image.tag",
        TEXT,
        Source::Own("\"\"", "Tag of the image; the chart's appVersion if empty"),
    ),
    (
        "image.digest",
        r#"{"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}"#,
        Source::Own("\"\"", "Digest of the image, sha256:..., instead of a tag"),
    ),
    (
        "image.pullPolicy",
        r#"{"enum": ["Always", "IfNotPresent", "Never"]}"#,
        Source::Own("\"IfNotPresent\"", "When nodes pull the image"),
    ),
    (
        "imagePullSecrets",
        LIST,
        Source::Own(
            "[]",
            "Secrets in the release's namespace with which the image is pulled, [{name: ...}]",
        ),
    ),
    (
        "commonLabels",
        OBJECT,
        Source::Own("{}", "Further labels of all objects and pods"),
    ),
    (
        "createNamespace",
        BOOLEAN,
        Source::Own(
            "false",
            "Include the release's namespace in the release, with its pod security level. Helm itself needs the namespace to exist before; this is for tools that render the chart (Argo CD, helm template)",
        ),
    ),
    (
        "crds.enabled",
        BOOLEAN,
        Source::Own(
            "true",
            "Install the CustomResourceDefinition of RayPolicy. false if you install definitions separately (rayfit crd prints it)",
        ),
    ),
    (
        "crds.keep",
        BOOLEAN,
        Source::Own(
            "true",
            "Keep the definition, and with it all RayPolicies, when the release is uninstalled",
        ),
    ),
    (
        "certificates",
        r#"{"enum": ["self-managed", "cert-manager"]}"#,
        Source::Own(
            "\"self-managed\"",
            "Who issues the serving certificate: self-managed (Rayfit itself) or cert-manager, which must be installed (1.19 or later is recommended)",
        ),
    ),
    ("failClosed", BOOLEAN, Source::Flag("fail-closed")),
    ("priorityClassName", TEXT, Source::Flag("priority-class")),
    ("healthPort", PORT, Source::Flag("health-port")),
    (
        "excludedNamespaces",
        NAMESPACES,
        Source::Flag("exclude-namespace"),
    ),
    ("onlyNamespaces", NAMESPACES, Source::Flag("only-namespace")),
    ("apiServerPorts", PORTS, Source::Flag("api-server-ports")),
    (
        "apiServerCidrs",
        r#"{"type": "array", "items": {"type": "string", "pattern": "^[0-9a-fA-F.:]+/[0-9]{1,3}$"}}"#,
        Source::Flag("api-server-cidr"),
    ),
    (
        "monitoringNamespaceLabels",
        r#"{"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[-A-Za-z0-9_./]+=[-A-Za-z0-9_./]+$"}}"#,
        Source::Flag("monitoring-namespace-label"),
    ),
    (
        "metrics.serviceMonitor.enabled",
        BOOLEAN,
        Source::Own(
            "false",
            "Have the Prometheus operator scrape metrics. Its definitions (monitoring.coreos.com/v1) must be installed",
        ),
    ),
    (
        "metrics.serviceMonitor.interval",
        r#"{"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$"}"#,
        Source::Own("\"30s\"", "The time between two scrapes"),
    ),
    (
        "metrics.serviceMonitor.additionalLabels",
        OBJECT,
        Source::Own(
            "{}",
            "Further labels, by which a Prometheus operator selects ServiceMonitors, for example {release: prometheus}",
        ),
    ),
    (
        "metrics.prometheusRule.enabled",
        BOOLEAN,
        Source::Own(
            "false",
            "Add alerts for the Prometheus operator (docs/runbook.md)",
        ),
    ),
    (
        "metrics.prometheusRule.additionalLabels",
        OBJECT,
        Source::Own(
            "{}",
            "Further labels, by which a Prometheus operator selects PrometheusRules",
        ),
    ),
    (
        "metrics.dashboard.enabled",
        BOOLEAN,
        Source::Own(
            "false",
            "Add the dashboard as a ConfigMap for Grafana's sidecar",
        ),
    ),
    (
        "metrics.dashboard.additionalLabels",
        OBJECT,
        Source::Own(
            "{}",
            "Further labels, by which Grafana's sidecar selects dashboards",
        ),
    ),
    ("gcsPorts", PORTS, Source::Flag("gcs-ports")),
    (
        "singleDeployment",
        BOOLEAN,
        Source::Flag("single-deployment"),
    ),
    ("rayAuth", BOOLEAN, Source::Flag("ray-auth")),
    (
        "deleteIdleClusters",
        BOOLEAN,
        Source::Flag("delete-idle-clusters"),
    ),
    ("initialSizes", BOOLEAN, Source::Flag("initial-sizes")),
    (
        "webhook.enabled",
        BOOLEAN,
        Source::Own(
            "true",
            "Serve the webhooks. One installation in a Kubernetes cluster does; further ones, each with onlyNamespaces of its own, only scale (docs/operations.md)",
        ),
    ),
    (
        "webhook.replicaCount",
        r#"{"type": "integer", "minimum": 0}"#,
        Source::Own(
            "0",
            "Replicas of the webhooks; 0: two, with failClosed three",
        ),
    ),
    ("webhook.port", PORT, Source::Flag("port")),
    ("webhook.hostNetwork", BOOLEAN, Source::Flag("host-network")),
    (
        "webhook.timeoutSeconds",
        r#"{"type": "integer", "minimum": 1, "maximum": 30}"#,
        Source::Flag("timeout-seconds"),
    ),
    (
        "webhook.clientCaConfigMap",
        TEXT,
        Source::Flag("client-ca-config-map"),
    ),
    (
        "webhook.rules",
        r#"{"type": "object", "propertyNames": {"pattern": "^RF[0-9]{3}$"}, "additionalProperties": {"enum": ["off", "audit", "warn", "enforce"]}}"#,
        Source::Own(
            "{}",
            "Modes of rules that differ from their own mode: {RF213: \"off\", RF214: warn}. Quote off: YAML reads it as false",
        ),
    ),
    (
        "controller.enabled",
        BOOLEAN,
        Source::Own(
            "true",
            "Scale clusters in mode central. false: only the webhooks, without the permissions that scaling needs",
        ),
    ),
    (
        "controller.replicaCount",
        r#"{"type": "integer", "minimum": 1}"#,
        Source::Flag("controller-replicas"),
    ),
];

/// The values that each Deployment has.
pub(super) const EACH: &[Entry] = &[
    (
        "resources",
        OBJECT,
        Source::Pod(
            "/containers/0/resources",
            "Requests and limits. With webhooks a pod needs 1Gi: limits on requests bound what it uses to that",
        ),
    ),
    (
        "nodeSelector",
        OBJECT,
        Source::Own("{}", "Labels of the Kubernetes nodes on which pods may run"),
    ),
    (
        "tolerations",
        LIST,
        Source::Own("[]", "Taints of Kubernetes nodes that pods tolerate"),
    ),
    (
        "affinity",
        OBJECT,
        Source::Own(
            "{}",
            "Affinity of pods, instead of the preference for different nodes",
        ),
    ),
    (
        "topologySpreadConstraints",
        LIST,
        Source::Own(
            "[]",
            "How pods are spread, instead of over zones and nodes where that is possible",
        ),
    ),
    (
        "podLabels",
        OBJECT,
        Source::Own("{}", "Further labels of pods"),
    ),
    (
        "podAnnotations",
        OBJECT,
        Source::Own("{}", "Further annotations of pods"),
    ),
    (
        "serviceAccount.labels",
        OBJECT,
        Source::Own("{}", "Further labels of the service account"),
    ),
    (
        "serviceAccount.annotations",
        OBJECT,
        Source::Own("{}", "Annotations of the service account"),
    ),
    (
        "podSecurityContext",
        OBJECT,
        Source::Pod(
            "/securityContext",
            "Security context of pods. The image's user is 65532; OpenShift gives another one",
        ),
    ),
    (
        "containerSecurityContext",
        OBJECT,
        Source::Pod(
            "/containers/0/securityContext",
            "Security context of containers",
        ),
    ),
    (
        "extraArgs",
        TEXTS,
        Source::Own("[]", "Further arguments of rayfit serve"),
    ),
    (
        "extraEnv",
        LIST,
        Source::Own(
            "[]",
            "Further environment variables, for example of a proxy",
        ),
    ),
];

/// The Deployments, and the names in front of their values.
pub(super) const DEPLOYMENTS: [(&str, &str); 2] =
    [("webhook", "rayfit"), ("controller", "rayfit-controller")];
